"""Which tables the second pass can rewrite column by column, and where their records lie: the row groups of each partition.

A table can be where it is Parquet by a local path, Spark works on this machine alone, and every file has its columns with exactly the types
that Spark reads them as. All else, and whatever is not understood, goes by rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.engine.columnar.deal import Segment
from anonlib.engine.columnar.files import DECIMALS
from anonlib.engine.columnar.tasks import codec_of, on_one_machine
from anonlib.engine.failures import explained
from anonlib.spec.release import Input

THREADS = 16
MOST_GROUPS, MOST_STARTS = 20_000, 2_000
"""Row groups of all files, and different rows of a file at which one begins: they stand in a query."""
MOST_ROW_BYTES = 400
"""Bytes of a record in memory: a task holds some two million of them."""
_TYPES = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_OF_CALENDARS = ("date", "timestamp", "timestamp_ntz")
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_VERSION, _CHAR = b"org.apache.spark.version", b"__CHAR_VARCHAR_TYPE_STRING"
_FIELD_IDS = "spark.sql.parquet.fieldId.read.enabled"
_DELTA = {"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}
"""Encodings of texts that PyArrow does not read as dictionaries, and whose size says nothing of how long the texts are."""


@dataclass(frozen=True)
class ParquetSource:
    """A table that is nothing but the Parquet files below a path: no column of it is computed, no row left out.

    frame : the very DataFrame that stands for them
    """

    frame: DataFrame


@dataclass(frozen=True)
class Group:
    """A row group that holds records. start : the first of them, counted within the file."""

    path: str
    index: int
    start: int
    rows: int


@dataclass(frozen=True)
class Layout:
    """Where the records of a table lie.

    segments : {partition: its row groups, in the order of its records}
    coded    : columns whose texts are stored as dictionaries; row_bytes : of a record in memory, about
    codec    : how Spark would compress what it writes
    """

    segments: Mapping[int, tuple[Segment, ...]]
    coded: frozenset[str]
    row_bytes: float
    codec: str


def parquet_source(source: Input | None, frame: DataFrame) -> ParquetSource | None:
    """`frame` as a ParquetSource where `source`, which it was read from, asks for Parquet files as they are."""
    plain = source is not None and source.path is not None and source.format == "parquet"
    return ParquetSource(frame) if plain and not source.options and source.schema_ddl is None else None  # type: ignore[union-attr]


def layout(frame: DataFrame) -> Layout | None:
    """Where the records of `frame`, that of a ParquetSource, lie; None where it cannot be rewritten column by column.

    Cost: the footer of every file, and a job that reads no column of any.
    """
    spark = frame.sparkSession
    codec, kinds = codec_of(spark), _arrow_types(frame)
    if codec is None or kinds is None or not on_one_machine(spark) or not _calendars_alike(spark, frame):
        return None
    if str(spark.conf.get(_FIELD_IDS, "false")).lower() == "true":
        return None  # columns are then found by numbers, not by names
    with explained("looking at the input's files"):
        files = frame.inputFiles()
    if not all(file.startswith("file:/") for file in files):
        return None
    paths = [_path(file) for file in files]
    if any("=" in folder for path in paths for folder in path.split("/")[:-1]):
        return None  # columns come from folders' names, and Spark takes them before those of files
    try:
        with ThreadPoolExecutor(THREADS) as threads:
            footers = list(threads.map(lambda path: _footer(path, kinds), paths))
    except (OSError, ValueError, KeyError, pa.ArrowException):
        return None
    if any(footer is None for footer in footers):
        return None
    known = [footer for footer in footers if footer is not None]
    groups = [group for footer in known for group in footer.groups]
    coded = frozenset.intersection(*(footer.coded for footer in known)) if known else frozenset()
    row_bytes = _row_bytes(known, kinds, coded)
    if not 0 < row_bytes <= MOST_ROW_BYTES or not _few(groups):
        return None
    segments = _segments(frame, groups)
    return None if segments is None else Layout(segments, coded, row_bytes, codec)


def _arrow_types(frame: DataFrame) -> dict[str, pa.DataType] | None:
    """Of each column, the type that its files must have; None for a table with others."""
    kinds = {}
    for name, kind in frame.dtypes:
        decimal = re.fullmatch(r"decimal\((\d+),(\d+)\)", kind)
        if decimal and DECIMALS:
            kinds[name] = pa.decimal128(int(decimal[1]), int(decimal[2]))
        elif kind in _TYPES:
            kinds[name] = _TYPES[kind]
        else:
            return None
    return kinds


def _calendars_alike(spark: SparkSession, frame: DataFrame) -> bool:
    """Whether Spark reads and writes the table's days and instants as they stand, as PyArrow does."""
    kinds = {kind for _, kind in frame.dtypes}
    if "timestamp" in kinds and spark.conf.get("spark.sql.parquet.outputTimestampType", "INT96") != "TIMESTAMP_MICROS":
        return False
    modes = [f"spark.sql.parquet.datetimeRebaseModeIn{way}" for way in ("Read", "Write")]
    return kinds.isdisjoint(_OF_CALENDARS) or all(
        str(spark.conf.get(mode, "")).upper() == "CORRECTED" for mode in modes
    )


@dataclass(frozen=True)
class _Footer:
    """coded : columns stored as dictionaries; bytes_ : of each column without compression"""

    groups: tuple[Group, ...]
    coded: frozenset[str]
    bytes_: Mapping[str, int]


def _footer(path: str, kinds: Mapping[str, pa.DataType]) -> _Footer | None:
    """What the footer of a file says; None where its columns are not of exactly these types. Raises what PyArrow raises."""
    footer = pq.read_metadata(path)
    schema = footer.schema.to_arrow_schema()
    if "_metadata" in {name.lower() for name in schema.names} or not _read_as_it_stands(footer.metadata or {}, kinds):
        return None  # a column of that name hides Spark's own, which has the numbers of rows
    if any(_plain(schema.field(name).type) != kind or schema.names.count(name) > 1 for name, kind in kinds.items()):
        return None
    place = {footer.schema.column(i).path: i for i in range(len(footer.schema))}
    groups, start = [], 0
    coded = {name for name, kind in kinds.items() if kind == pa.string()}
    bytes_ = dict.fromkeys(kinds, 0)
    for k in range(footer.num_row_groups):
        group = footer.row_group(k)
        if group.num_rows:
            groups.append(Group(path, k, start, group.num_rows))
        for name in kinds:
            column = group.column(place[name])
            if _DELTA & set(column.encodings):
                return None
            size = column.total_uncompressed_size
            bytes_[name] += size
            if size >= 4 * group.num_rows:  # plain text takes four bytes a value for its length alone
                coded.discard(name)
        start += group.num_rows
    return _Footer(tuple(groups), frozenset(coded), bytes_)


def _read_as_it_stands(notes: Mapping[bytes, bytes], kinds: Mapping[str, pa.DataType]) -> bool:
    """Whether Spark takes a file's values as they stand, by what is noted in its footer. It pads texts to the length of a type char(n), and
    takes days and instants of files by Spark 2 for those of the Julian calendar, whatever the session's settings."""
    if any(_CHAR in value for value in notes.values()):
        return False
    old = any(note in notes for note in _LEGACY) or re.match(rb"[012]\.", notes.get(_VERSION, b""))
    return not (old and any(pa.types.is_temporal(kind) for kind in kinds.values()))


def _plain(kind: pa.DataType) -> pa.DataType:
    """A file's type without what PyArrow keeps of it in memory alone."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if pa.types.is_large_string(value) else value


def _row_bytes(footers: Sequence[_Footer], kinds: Mapping[str, pa.DataType], coded: frozenset[str]) -> float:
    """What a record takes in memory, about; 0 without records."""
    records = sum(group.rows for footer in footers for group in footer.groups)
    plain = [name for name, kind in kinds.items() if kind == pa.string() and name not in coded]
    stored = sum(footer.bytes_[name] for footer in footers for name in plain)
    others = [
        4 if kind == pa.string() else -(-kind.bit_width // 8) for name, kind in kinds.items() if name not in plain
    ]
    return stored / records + sum(others) if records else 0


def _few(groups: Sequence[Group]) -> bool:
    """Whether row groups, and the rows of a file at which they begin, are few enough for a query."""
    return len(groups) <= MOST_GROUPS and len({group.start for group in groups}) <= MOST_STARTS


def _segments(frame: DataFrame, groups: Sequence[Group]) -> dict[int, tuple[Segment, ...]] | None:
    """{partition: its row groups, in order}, as Spark cuts the table; None where that is not whole row groups one after another."""
    by_place = {(group.path, group.start): group for group in groups}
    starts = sorted({group.start for group in groups})
    most = len({group.path for group in groups}) * len(starts)
    if most > MOST_GROUPS:
        return None
    located = frame.select(
        F.monotonically_increasing_id().alias("place"),
        F.input_file_name().alias("file"),
        F.col("_metadata.row_index").alias("start"),
    ).where(F.col("start").isin(starts))
    with explained("looking for the input's row groups"):
        rows = located.limit(most + 1).collect()  # bounded: row groups of all files
    found: dict[int, list[tuple[int, Group]]] = {}
    seen: set[Group] = set()
    for row in rows:
        group = by_place.get((_path(row["file"]), row["start"]))
        if group is not None:
            if group in seen:
                return None  # a path that is named twice, e.g. by {a,b/../a}, is read twice
            seen.add(group)
            found.setdefault(row["place"] >> 33, []).append((row["place"] & ((1 << 33) - 1), group))
    if len(seen) < len(by_place):
        return None
    return _in_order(found)


def _in_order(found: Mapping[int, list[tuple[int, Group]]]) -> dict[int, tuple[Segment, ...]] | None:
    """found : {partition: (place of its first record in the partition, row group)}"""
    segments: dict[int, tuple[Segment, ...]] = {}
    for partition, placed in found.items():
        runs: list[tuple[str, list[int]]] = []
        before = 0
        for place, group in sorted(placed, key=lambda pair: pair[0]):
            if place != before:
                return None
            before += group.rows
            if not runs or runs[-1][0] != group.path:
                runs.append((group.path, []))
            runs[-1][1].append(group.index)
        segments[partition] = tuple(Segment(path, tuple(indices)) for path, indices in runs)
    return segments


def _path(file: str) -> str:
    return "/" + unquote(file.removeprefix("file:")).lstrip("/")
