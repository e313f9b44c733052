"""Reading and writing tables, and the check of a table's columns against the release spec."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anonlib.engine.failures import explained
from anonlib.spec.reader_options import strict_options
from anonlib.sql import quoted


def read(
    spark: SparkSession,
    path: str | None,
    table: str | None,
    format: str = "parquet",
    schema: str | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """A path in a format Spark knows, or a catalog table. No data is read, but for a CSV or JSON without a schema, which is scanned
    once to infer one. Raises SpecError when it is not there or not readable.

    CSV and JSON are read strictly: whatever reads the frame fails (as SpecError, under `explained`) at a header that is not the schema, and
    at a record that cannot be read as it, instead of taking columns by position and unreadable cells as null.
    """
    if table is not None:
        with explained(f"input.table {table!r}"):
            frame = spark.table(table)
            frame.columns  # noqa: B018  (under Connect only this asks the server)
            return frame
    with explained(f"input.path {path!r}"):
        reader = spark.read.format(format).options(**strict_options(format, options or {}))
        if schema is not None:
            reader = reader.schema(schema)
        frame = reader.load(path)
        frame.columns  # noqa: B018
        return frame


def write(frame: DataFrame, path: str, format: str, doing: str) -> None:
    """Write `frame` to a new folder, without the comments and metadata of its columns. One job."""
    with explained(doing):
        plain(frame).write.format(format).mode("error").save(path)


def plain(frame: DataFrame) -> DataFrame:
    """The same rows under the same names and types, with no comment or metadata on any column or nested field.

    A table's comments and metadata come along with its columns, and Spark writes them word for word into each file (Parquet: the footer's
    `org.apache.spark.sql.parquet.row.metadata`; Delta: the log). They may name people, sources and codes, and nobody has asked to publish
    them. A frame that has none is given back as it is.
    """
    fields = frame.schema.fields
    bare = [T.StructField(f.name, bare_type(f.dataType), f.nullable) for f in fields]
    if bare == fields:
        return frame
    columns = [F.col(quoted(f.name)) for f in fields]
    return frame.select(
        *[
            (c if b.dataType == f.dataType else c.cast(b.dataType)).alias(f.name, metadata=_NO_METADATA)
            for c, f, b in zip(columns, fields, bare, strict=True)
        ]
    )


# stated in the last projection of all: an alias that states none takes on its column's once the optimizer has joined projections.
# pyspark 3.5 takes an empty mapping for none stated
_NO_METADATA = {} if int(pyspark.__version__.split(".")[0]) >= 4 else {"comment": ""}


def bare_type(kind: T.DataType) -> T.DataType:
    """A type without the metadata of the fields inside it."""
    if isinstance(kind, T.StructType):
        return T.StructType([T.StructField(f.name, bare_type(f.dataType), f.nullable) for f in kind.fields])
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(bare_type(kind.elementType), kind.containsNull)
    if isinstance(kind, T.MapType):
        return T.MapType(bare_type(kind.keyType), bare_type(kind.valueType), kind.valueContainsNull)
    return kind


def read_back(spark: SparkSession, path: str, format: str) -> DataFrame:
    """A table of a release or of a working area, at exactly this path: what looks like a pattern (`a[b]`, `x*`) is none."""
    with explained(f"reading {path}"):
        return spark.read.format(format).load(re.sub(r"([\[\]{}*?\\])", r"\\\1", path))


FEW_RECORDS = 20_000
"""Tables of so many records are looked at in one partition."""


def together(frame: DataFrame, records: int) -> DataFrame:
    """The table, in one partition where the release has few records: groups and joins of it then need no shuffle, each of which is a job of
    its own and takes longer than all the rest of such a table."""
    return frame.coalesce(1) if records <= FEW_RECORDS else frame


def project(frame: DataFrame, names: list[str]) -> DataFrame:
    """The named columns, spelled as given, in this order."""
    return frame.select(*[F.expr(quoted(name)).alias(name) for name in names])


def types(frame: DataFrame) -> dict[str, str]:
    """{column: Spark's simple type name}."""
    return dict(frame.dtypes)
