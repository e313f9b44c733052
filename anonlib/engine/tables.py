"""Writing tables, reading them back, and their columns by name and type."""

from __future__ import annotations

import re

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anonlib.engine.failures import explained
from anonlib.spec.layouts import BUCKET_ID
from anonlib.sql import quoted


def write(frame: DataFrame, path: str, format: str, doing: str) -> None:
    """Write `frame` to a new folder, without the comments and metadata of its columns. One job."""
    with explained(doing):
        plain(frame).write.format(format).options(**_DICTIONARIES).mode("error").save(path)


# Parquet would look each bucket id up in a dictionary, which grows to some 100,000 of them before it is given up: a twentieth of the CPU
# seconds of writing `qit`. In order as they are, and compressed, they take less room without one. Other formats know no such option
WITHOUT_DICTIONARY = frozenset({BUCKET_ID})
_DICTIONARIES = {f"parquet.enable.dictionary#{name}": "false" for name in WITHOUT_DICTIONARY}


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


def read_back(spark: SparkSession, path: str, format: str, written: DataFrame | None = None) -> DataFrame:
    """A table of a release or of a working area, at exactly this path: what looks like a pattern (`a[b]`, `x*`) is none.

    written : the frame that this run wrote there, whose columns need not be asked of its files: that would be a job
    """
    with explained(f"reading {path}"):
        reader = spark.read.format(format)
        if written is not None and format in SCHEMA_OF_READER:
            reader = reader.schema(bare_type(written.schema))  # type: ignore[arg-type]
        return reader.load(literal_path(path))


def literal_path(path: str) -> str:
    """The path as Spark takes it for exactly this one."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def read_files(spark: SparkSession, paths: list[str], format: str, schema: str) -> DataFrame:
    """A table of these files and no others, of columns that are told; without any, an empty one."""
    if not paths:
        return spark.createDataFrame([], schema)
    with explained(f"reading {len(paths):,} files"):
        return (
            spark.read.format(format).schema(schema).load([re.sub(r"([\[\]{}*?\\])", r"\\\1", path) for path in paths])
        )


SCHEMA_OF_READER = ("parquet", "orc")
"""Formats whose reader may be told the columns; others (Delta) keep them apart from the files and refuse to be told."""


FEW_RECORDS = 20_000
"""Tables of so many records are looked at in one partition."""


def together(frame: DataFrame, records: int) -> DataFrame:
    """The table, in one partition where the release has few records: groups and joins of it then need no shuffle, each of which is a job of
    its own and takes longer than all the rest of such a table."""
    return frame.coalesce(1) if records <= FEW_RECORDS else frame


def number(frame: DataFrame) -> int:
    """How many rows a table has. One job; of Parquet files it reads the footers alone."""
    with explained("counting rows"):
        return frame.count()


def project(frame: DataFrame, names: list[str]) -> DataFrame:
    """The named columns, spelled as given, in this order."""
    return frame.select(*[F.expr(quoted(name)).alias(name) for name in names])


def types(frame: DataFrame) -> dict[str, str]:
    """{column: Spark's simple type name}."""
    return dict(frame.dtypes)
