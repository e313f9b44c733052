"""Reading the input so that what was read is what was meant: no cell that is missing, or another, for want of understanding.

Left to itself, Spark makes a null of a cell that it cannot read as its column's type, pads a short record with nulls, cuts a long one, and
reads bytes that are no text as U+FFFD, all in silence. Its own way to refuse them (`mode: FAILFAST`) repeats the record in its message,
and so in logs. Here a text file (CSV, JSON) is read with Spark's column for corrupt records, which tells the three apart from an honest
null, and `input.unreadable` says what becomes of them: the run is refused at the first (`error`), the cells are read as missing
(`missing`), or their records are left out (`drop`).

The columns and steps that do so are narrow and part of each pass: a table that can be read costs no pass of its own. One more pass over
the text, of one job, counts by column what cannot be read: after a refusal, to say how much and where, and under `missing` and `drop`,
for the manifest. The driver gets a few numbers per column, and one record, of which the message tells the line and never the content.

Checked on Spark 3.5 and 4.3: a record of a wrong length is found whatever columns a pass asks for (`columnPruning: false`), a cell
only where its own column is asked for. Hence a pass refuses what it looks at, and `drop` asks for all columns always, so that every pass
leaves out the same records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anonlib.engine import file_schemas
from anonlib.engine.failures import Misread, explained, refusal_text
from anonlib.engine.unreadable import Unreadable, counted, sentence
from anonlib.errors import SpecError
from anonlib.spec.paths import plain_path
from anonlib.spec.reader_options import CORRUPT_RECORD, is_on, record_options, strict_options
from anonlib.spec.release import Input
from anonlib.sql import quoted

CELLS, BROKEN = "_anonlib_cells", "_anonlib_broken"
"""Of a record with anything unreadable: its cells as text, which can always be read, and its text once more if it has no such cells."""

UNDECODABLE = "\ufffd"
"""What bytes that are no text in a file's encoding are read as; a file that has this character itself lost its text earlier."""


@dataclass(frozen=True)
class TextTable:
    """A CSV or JSON as Spark reads it, before anything is decided about what cannot be read.

    raw     : the cells, then the corrupt record (null for one that can be read), then columns that come from the names of folders
    fields  : the cells' columns, those of `used` first refused, missing or counted
    used    : names in lower case of the columns that may be published; what is withheld anyway need not be readable
    """

    raw: DataFrame
    fields: tuple[T.StructField, ...]
    used: frozenset[str]
    source: Input

    @property
    def looked_at(self) -> tuple[T.StructField, ...]:
        """The cells' columns that may be published."""
        return tuple(field for field in self.fields if field.name.lower() in self.used)

    @property
    def corrupt(self) -> Column:
        """Whether Spark found fault with the record, in what the pass asks for."""
        return F.col(CORRUPT_RECORD).isNotNull()

    @property
    def names(self) -> list[str]:
        """The table's own columns, in its order."""
        return [name for name in self.raw.columns if name != CORRUPT_RECORD]


def read(spark: SparkSession, source: Input, used: Collection[str] | None = None) -> DataFrame:
    """The table that `source` names. Reads no data but what a schema is inferred from.

    used : the columns that may be published; None for all
    Raises SpecError when it is not there; whatever reads the frame later fails (as Misread, under `explained`) at the first cell of a
    column in `used` that cannot be read, unless `source.unreadable` allows it.
    """
    if source.table is not None:
        with explained(f"input.table {source.table!r}"):
            frame = spark.table(source.table)
            frame.columns  # noqa: B018  (under Connect only this asks the server)
            return frame
    if _is_text(source):
        return {"error": _refusing, "missing": _as_missing, "drop": _dropping}[source.unreadable](
            _open(spark, source, used)
        )
    _refuse_versions(spark, source)
    with explained(f"input.path {source.path!r}"):
        reader = spark.read.format(source.format).options(**source.options)
        frame = (reader if source.schema_ddl is None else reader.schema(source.schema_ddl)).load(source.path)
        frame.columns  # noqa: B018
    file_schemas.check(spark, source, frame)
    return frame


def read_stream(spark: SparkSession, source: Input, used: Collection[str], files: int | None = None) -> DataFrame:
    """The files of a folder, those to come too, as a streaming DataFrame.

    used : the columns that may be published; files : how many a micro-batch takes at most, None for all that have arrived
    Without `source.schema_ddl` the types are those of the files that are there. Raises SpecError when there are none, or their schemas
    differ; a cell that cannot be read stops the stream.
    """
    limit = {} if files is None else {"maxFilesPerTrigger": str(files)}
    where = f"input.path {source.path!r}"
    if _is_text(source):
        with explained(where):
            reader = spark.readStream.format(source.format).options(
                **strict_options(source.format, source.options), **limit
            )
            raw = reader.schema(f"{source.schema_ddl}\n, {CORRUPT_RECORD} STRING").load(source.path)
            return _refusing(_text_table(raw, source, used))
    _refuse_versions(spark, source)
    with explained(where):
        reader = spark.readStream.format(source.format).options(**source.options, **limit)
        if source.format == "delta":
            return reader.load(source.path)
        if source.schema_ddl is None:
            frame = spark.read.format(source.format).options(**source.options).load(source.path)
            file_schemas.check(spark, source, frame)
            return reader.schema(frame.schema).load(source.path)
        return reader.schema(source.schema_ddl).load(source.path)


def _refuse_versions(spark: SparkSession, source: Input) -> None:
    """Refuse a folder that is a table of another kind, whose files read as Parquet are the rows of all its versions, deleted ones too.

    One look at the names in the folder, by the driver's Spark; nothing is read. Iceberg's metadata are no Parquet, which Spark says itself.
    """
    if source.format != "parquet":
        return
    try:
        spark.read.text(f"{source.path}/{{_delta_log,.hoodie}}").columns  # noqa: B018  (under Connect only this asks the server)
    except PySparkException:  # no such folder
        return
    raise SpecError(
        f"input.path {source.path!r}: this is a Delta or Hudi table (it has a _delta_log or a .hoodie), and as parquet the rows of all its "
        "versions would be read, deleted ones too; write format: delta, or name it as a table"
    )


def original_source(spark: SparkSession, name: str, format: str, published: Mapping[str, str]) -> Input:
    """How a table named on the command line is read: a path in `format`, or a catalog table where `format` is "table".

    published : {column: Spark type} as the release has them. A CSV is read by its header, a JSON by its keys, with these types; other
    columns of a CSV are text. Reads the header of a CSV. Raises SpecError when it lacks one of the columns.
    """
    path, table = (None, name) if format == "table" else (plain_path(name, "--original"), None)
    plain: dict[str, Any] = {"path": path, "table": table, "format": format, "unreadable": "error"}
    if format not in ("csv", "json") or not published:
        return Input.model_construct(**plain, schema_ddl=None, options={})
    if format == "json":
        ddl = ", ".join(f"{quoted(column)} {kind}" for column, kind in published.items())
        return Input.model_construct(**plain, schema_ddl=ddl, options={})
    with explained(f"--original {name!r}"):
        header = spark.read.option("header", "true").csv(str(path)).columns
    kinds = {column.lower(): kind for column, kind in published.items()}
    if lacking := [column for column in published if column.lower() not in {h.lower() for h in header}]:
        raise SpecError(
            f"--original {name!r}: its first line does not name the column {lacking[0]!r} of the release; give the options and schema it "
            "was read with, by --spec CONF"
        )
    ddl = ", ".join(f"{quoted(column)} {kinds.get(column.lower(), 'string')}" for column in header)
    return Input.model_construct(**plain, schema_ddl=ddl, options={"header": "true"})


def count_unreadable(spark: SparkSession, source: Input, used: Collection[str]) -> Unreadable:
    """What cannot be read of a CSV or JSON, by column: one job over the text."""
    with explained(f"input.path {source.path!r}"):
        return _count(_open(spark, source, used))


@contextmanager
def misread_explained(spark: SparkSession, source: Input | None, used: Collection[str]) -> Iterator[None]:
    """A block whose Misread says how many cells cannot be read, in which columns, where one of them stands, and how to mend it.

    Costs one more job over the text, after the refusal. Raises SpecError.
    """
    try:
        yield
    except Misread as first:
        if source is None or not _is_text(source):
            raise
        try:
            with explained(f"input.path {source.path!r}"):
                unreadable = _count(_open(spark, source, used))
                said = sentence(spark, source, unreadable) if unreadable.records else None
        except Exception:  # what stops the reading may stop the counting too: the first message stands
            raise first from None
        if said is None:
            raise
        raise Misread(said) from None


def _is_text(source: Input) -> bool:
    return source.path is not None and source.format in ("csv", "json")


def _open(spark: SparkSession, source: Input, used: Collection[str] | None) -> TextTable:
    """Reads no data, but for a schema that is not given: of a CSV the first header (or all, with `inferSchema`), of a JSON all records."""
    with explained(f"input.path {source.path!r}"):
        reader = spark.read.format(source.format).options(**strict_options(source.format, source.options))
        schema = source.schema_ddl
        if schema is None:
            inferred = reader.load(source.path).schema
            fields = [field for field in inferred.fields if field.name != CORRUPT_RECORD]
            raw = reader.schema(T.StructType([*fields, T.StructField(CORRUPT_RECORD, T.StringType())])).load(
                source.path
            )
        else:
            # a comment in the schema ends with its line
            raw = reader.schema(f"{schema}\n, {CORRUPT_RECORD} STRING").load(source.path)
        file_schemas.check_folders(source, raw.inputFiles())
        return _text_table(raw, source, used)


def _text_table(raw: DataFrame, source: Input, used: Collection[str] | None) -> TextTable:
    names = raw.columns
    cells = raw.schema.fields[: names.index(CORRUPT_RECORD)]
    if own := [field.name for field in cells if field.name.lower() in (CELLS, BROKEN)]:
        raise SpecError(
            f"input.path {source.path!r}: the column {own[0]!r} has a name that reading needs for itself; rename it"
        )
    return TextTable(raw, tuple(cells), frozenset(name.lower() for name in (names if used is None else used)), source)


def _refusing(table: TextTable) -> DataFrame:
    refuse = F.raise_error(
        F.lit(refusal_text("a record cannot be read as the schema; mend it, or allow it by input.unreadable", Misread))
    )
    guarded = {
        field.name: F.when(table.corrupt | _undecodable(field), refuse).otherwise(F.col(quoted(field.name)))
        for field in table.looked_at
    }
    return table.raw.select(*[guarded.get(name, F.col(quoted(name))).alias(name) for name in table.names])


def _as_missing(table: TextTable) -> DataFrame:
    """Cells that cannot be read are null; of a record with too few or too many cells every one: nobody knows which is missing."""
    own = {
        field.name: F.when(_broken(table) | _undecodable(field), F.lit(None)).otherwise(F.col(quoted(field.name)))
        for field in table.looked_at
    }
    return _with_cells(table).select(*[own.get(name, F.col(quoted(name))).alias(name) for name in table.names])


def _dropping(table: TextTable) -> DataFrame:
    """Records in which everything that may be published can be read.

    Whether Spark finds fault with a record depends on the columns that a pass asks for. So the condition asks for all of them, in a branch
    that is never true and that the optimizer cannot see through.
    """
    flawed = reduce(or_, [_undecodable(field) for field in table.looked_at], table.corrupt)
    asked = reduce(or_, [F.col(quoted(field.name)).isNull() for field in table.looked_at], F.lit(False))
    never = (F.spark_partition_id() < 0) & asked
    kept = table.raw.where(F.when(~flawed, F.lit(True)).otherwise(never))
    return kept.select(*[F.col(quoted(name)) for name in table.names])


def _count(table: TextTable) -> Unreadable:
    looked_at = {
        field.name: (_misread(table, field), ~_broken(table) & (_undecodable(field) | _undecodable_cell(field)))
        for field in table.looked_at
    }
    return counted(_with_cells(table), CORRUPT_RECORD, _broken(table), looked_at)


def _with_cells(table: TextTable) -> DataFrame:
    """With the cells of each record that Spark found fault with, each as text. Of a JSON of many lines no record has
    text of its own."""
    names = [*[field.name for field in table.fields], BROKEN]
    if _of_many_lines(table):
        none = ", ".join(f"{quoted(name)}: STRING" for name in names)
        return table.raw.withColumn(CELLS, F.lit(None).cast(f"struct<{none}>"))
    ddl = ", ".join(f"{quoted(name)} STRING" for name in names)
    parse = F.from_csv if table.source.format == "csv" else F.from_json
    options = {**record_options(table.source.options), "columnNameOfCorruptRecord": BROKEN}
    return table.raw.withColumn(CELLS, parse(F.col(CORRUPT_RECORD), ddl, options))


def _of_many_lines(table: TextTable) -> bool:
    return table.source.format == "json" and is_on(table.source.options, "multiLine")


def _broken(table: TextTable) -> Column:
    return table.corrupt if _of_many_lines(table) else F.col(f"{CELLS}.{BROKEN}").isNotNull()


def _undecodable(field: T.StructField) -> Column:
    """Whether the cell, as it was read, has bytes in it that were no text."""
    if not _has_text(field.dataType):
        return F.lit(False)
    cell = F.col(quoted(field.name))
    text = cell if isinstance(field.dataType, T.StringType) else F.to_json(F.struct(cell))
    return F.coalesce(F.contains(text, F.lit(UNDECODABLE)), F.lit(False))


def _undecodable_cell(field: T.StructField) -> Column:
    """The same for a cell of which nothing was read."""
    return F.coalesce(F.contains(F.col(f"{CELLS}.{quoted(field.name)}"), F.lit(UNDECODABLE)), F.lit(False))


def _misread(table: TextTable, field: T.StructField) -> Column:
    """Whether the cell has text of which nothing could be made. Bytes that are no text spoil a whole JSON: its other cells are fine."""
    cell = F.col(f"{CELLS}.{quoted(field.name)}")
    lost = table.corrupt & F.col(quoted(field.name)).isNull() & cell.isNotNull() & ~_undecodable_cell(field)
    if table.source.format == "json":
        others = [_undecodable_cell(other) for other in table.fields]
        lost = lost & ~reduce(or_, others)
    return ~_broken(table) & lost


def _has_text(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return any(_has_text(field.dataType) for field in kind.fields)
    if isinstance(kind, T.ArrayType):
        return _has_text(kind.elementType)
    if isinstance(kind, T.MapType):
        return _has_text(kind.keyType) or _has_text(kind.valueType)
    return isinstance(kind, T.StringType)
