"""A table rewritten column by column: dealt by a task for each partition, gathered by a task for each file, and counted in between."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from anonlib.engine.columnar.columns import Columns, typed
from anonlib.engine.columnar.deal import NUMBER, WORD, Dealing
from anonlib.engine.columnar.gather import Gathering
from anonlib.engine.columnar.pieces import Pieces
from anonlib.engine.columnar.source import Layout, layout
from anonlib.engine.failures import explained
from anonlib.engine.microdata import Microdata
from anonlib.engine.order import FILE_ROWS, files
from anonlib.engine.ranks import CHANGED, RankKernel
from anonlib.engine.statistics import SensitiveStatistics
from anonlib.engine.tables import FEW_RECORDS, WITHOUT_DICTIONARY, types
from anonlib.errors import AnonlibError

MOST_FILES = 200
"""Files of a published table: a batch of records is cut into as many pieces, and shorter ones are mostly overhead."""


@dataclass(frozen=True)
class Rewriting:
    """A table that a rank kernel turns into a published one, as the second pass does by rows (`anonlib.engine.ranks`).

    table, statistics : the table, and what pass 1 found of it; kernel : (codes, ranks) -> a number for each record
    names   : the published columns, in order; columns : those of them that a record's number stands for
    grouped : whether records of one number stand together, and in one file
    key     : of the release
    """

    table: Microdata
    statistics: SensitiveStatistics
    kernel: RankKernel
    names: tuple[str, ...]
    columns: Columns
    grouped: bool
    key: bytes = field(repr=False)

    @property
    def from_files(self) -> tuple[str, ...]:
        """The published columns that are in the input's files."""
        return tuple(name for name in self.names if name not in self.columns.names)


def place(asked: Rewriting) -> Layout | None:
    """Where the records lie, if `asked` can be done column by column; else None, and it is done by rows.

    It can where the table is nothing but Parquet files (`anonlib.engine.columnar.source`) with more than a few records and at most 200
    million, its sensitive values are texts, whole numbers or truth values, and the driver has pass 1's counts.
    """
    table, counts = asked.table, asked.statistics.counts
    source = table.source
    if source is None or source.frame is not table.frame or table.keep is not None:
        return None
    if asked.statistics.offsets.by_partition is None or not FEW_RECORDS < counts.n <= MOST_FILES * FILE_ROWS:
        return None
    kind = types(table.frame)[table.sensitive]
    if typed(counts.values, kind) is None or {NUMBER, WORD} & set(asked.names):
        return None
    return layout(source.frame)


def rewrite(asked: Rewriting, where: Layout, folder: str, doing: str) -> None:
    """Write the published table into the new `folder`, a local path.

    Cost: one scan of the input by two jobs of Python tasks; room beside `folder` for all records, compressed and encrypted.
    Raises SpecError for an input that cannot be read, AnonlibError for one that changed since pass 1 counted it.
    """
    table, statistics = asked.table, asked.statistics
    values = typed(statistics.counts.values, types(table.frame)[table.sensitive])
    offsets = statistics.offsets.by_partition
    assert values is not None  # `place` has seen to both
    assert offsets is not None
    dealing = Dealing(
        asked.from_files, where.coded, table.sensitive, values, offsets, asked.kernel, asked.grouped, asked.key
    )
    token = secrets.token_hex(16)
    gathering = Gathering(asked.names, asked.columns, asked.grouped, where.codec, WITHOUT_DICTIONARY, token)
    working = f"{folder} in pieces"
    pieces = Pieces(working, files(statistics.counts.n), secrets.token_bytes(32))
    segments = where.segments
    for path in (folder, working):
        Path(path).mkdir()
    with explained(doing):
        spark = table.frame.sparkSession
        dealt = _each(spark, sorted(segments), lambda partition: dealing(partition, segments[partition], pieces))
        batches = [(partition, k) for partition, count in dealt.items() for k in range(count)]
        written = _each(spark, range(pieces.files), lambda file: gathering(pieces, batches, file, folder))
    _settle(folder, [gathering.name(file) for file in range(pieces.files)])
    shutil.rmtree(working)
    if sum(written.values()) != statistics.counts.n:
        raise AnonlibError(f"{doing}: other records than the first pass counted; {CHANGED}")


def _each(spark: SparkSession, ids: Sequence[int], task: Callable[[int], int]) -> dict[int, int]:
    """{id: what `task` says of it}, of a Python task for each of `ids`, in their order. One job."""

    def tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            mine = [ids[k] for k in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_pydict({"id": mine, "said": [task(k) for k in mine]}, schema=_SAID)

    numbers = spark.range(0, len(ids), 1, max(1, len(ids)))
    said = numbers.mapInArrow(tasks, "id long, said long").collect()  # bounded: one row for each partition or file
    return dict(sorted((row["id"], row["said"]) for row in said))


_SAID = pa.schema([("id", pa.int64()), ("said", pa.int64())])


def _settle(folder: str, names: Sequence[str]) -> None:
    """Leave in `folder` the files `names` and Spark's mark of a whole table; a task that was stopped may have left half a file."""
    for path in Path(folder).iterdir():
        if path.name not in names:
            path.unlink()
    (Path(folder) / "_SUCCESS").touch()
