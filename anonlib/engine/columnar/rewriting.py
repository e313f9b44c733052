"""A table rewritten column by column: dealt by a task for each partition, gathered by a task for each file, and counted in between."""

from __future__ import annotations

import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from anonlib.engine.columnar.columns import Columns, typed
from anonlib.engine.columnar.deal import NUMBER, WORD, Dealing
from anonlib.engine.columnar.files import Files
from anonlib.engine.columnar.gather import Gathering
from anonlib.engine.columnar.pieces import Pieces
from anonlib.engine.columnar.source import Layout, layout
from anonlib.engine.columnar.tasks import on_disk, said_by_each
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
    """

    table: Microdata
    statistics: SensitiveStatistics
    kernel: RankKernel
    names: tuple[str, ...]
    columns: Columns
    grouped: bool

    def written(self, folder: str, doing: str) -> bool:
        """Write the table into the new `folder`, a local path, see `rewrite`; False, with nothing done, where it goes by rows."""
        where = place(self)
        if where is not None:
            rewrite(self, where, folder, doing)
        return where is not None

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
        asked.from_files,
        where.coded,
        table.sensitive,
        values,
        offsets,
        asked.kernel,
        asked.grouped,
        where.row_bytes,
        # under a key that is stored a record would stand at the same place in two releases, and so link them
        secrets.token_bytes(32),
    )
    written_as = Files.of_run(where.codec, WITHOUT_DICTIONARY)
    gathering = Gathering(asked.names, asked.columns, asked.grouped, written_as)
    working = f"{folder} in pieces"
    pieces = Pieces(working, files(statistics.counts.n), secrets.token_bytes(32))
    segments = where.segments
    with on_disk(doing):
        for path in (folder, working):
            Path(path).mkdir()
    with explained(doing):
        spark = table.frame.sparkSession
        dealt = said_by_each(spark, sorted(segments), lambda partition: dealing(partition, segments[partition], pieces))
        batches = [(partition, k) for partition, count in dealt.items() for k in range(count)]
        written = said_by_each(spark, range(pieces.files), lambda file: gathering(pieces, batches, file, folder))
    with on_disk(doing):
        written_as.settle(folder, range(pieces.files))
        shutil.rmtree(working)
    if sum(written.values()) != statistics.counts.n:
        raise AnonlibError(f"{doing}: other records than the first pass counted; {CHANGED}")
