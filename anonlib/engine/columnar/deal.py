"""A task of the columnar second pass: the records of one partition, numbered by a kernel and dealt to the files-to-be.

Pure but for the files it reads and the pieces it writes. Cost: one pass over the partition's files; memory of some copies of a batch,
besides what `anonlib.engine.ranks` and the kernel take.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anonlib.arrays import Int64Array, IntegerArray, UInt64Array
from anonlib.engine.columnar.pieces import Pieces
from anonlib.engine.failures import TaskRefusal
from anonlib.engine.ranks import CHANGED, CodeRanks, RankKernel, code_type
from anonlib.engine.valid_text import sentence
from anonlib.errors import SpecError
from anonlib.keyed import Draws

BATCH, BATCH_BYTES = 1 << 18, 32 << 20
"""Of records that are looked at together: how many, and how large they are, at most."""
BUFFER = 1 << 20
"""Bytes of each column that are read from a file at once; else whole columns of a row group would be."""
ORDER = "the order of published rows"
NUMBER, WORD = "anonlib number", "anonlib word"
"""Columns of a piece besides the published ones: what the kernel says of a record, and its word of the key."""


@dataclass(frozen=True)
class Segment:
    """Row groups of one Parquet file that a partition holds, in their order."""

    path: str
    groups: tuple[int, ...]


@dataclass(frozen=True)
class Dealing:
    """How records are numbered and dealt.

    columns : those that are published as they are; coded : of them and of the sensitive column, the texts that are read as dictionaries
    sensitive : the sensitive column; values : of it, as Arrow has them, in the order of their codes
    offsets : {partition: (k, 3) int64 of code, first rank, count}, see `anonlib.engine.statistics.PartitionOffsets`
    kernel  : (codes, ranks) -> a number for each record; key : of the order of rows, of this run alone
    grouped : whether records of one number belong together: its file then follows from the number alone, else from the key's word
    row_bytes : of a record in memory, about
    """

    columns: tuple[str, ...]
    coded: frozenset[str]
    sensitive: str
    values: pa.Array
    offsets: Mapping[int, Int64Array]
    kernel: RankKernel
    grouped: bool
    row_bytes: float
    key: bytes = field(repr=False)

    @property
    def batch(self) -> int:
        """How many records are looked at together."""
        return max(1, min(BATCH, int(BATCH_BYTES / max(1.0, self.row_bytes))))

    def __call__(self, partition: int, segments: Sequence[Segment], pieces: Pieces) -> int:
        """Deal the records of a partition; in how many batches. Raises TaskRefusal for other files than pass 1 counted."""
        ranks = CodeRanks(len(self.values), partition, self.offsets.get(partition))
        draws = Draws(self.key, ORDER)
        batches = 0
        for batch in self._batches(segments):
            code = self._codes(batch, partition)
            rank = ranks.next(code)
            number = self.kernel(code, rank)
            word = draws.words(code, rank)[:, 0]
            numbered = pa.RecordBatch.from_arrays(
                [*batch.select(list(self.columns)).columns, pa.array(number), pa.array(word)],
                names=[*self.columns, NUMBER, WORD],
            )
            dealt = cut(numbered, files_of(number, word, pieces.files, self.grouped), pieces.files)
            try:
                pieces.write(partition, batches, dealt)
            except OSError as error:  # a full disk
                raise TaskRefusal(
                    f"records cannot be handed on in {pieces.folder} ({error.strerror}); run again"
                ) from None
            batches += 1
        ranks.finish()
        return batches

    def _batches(self, segments: Sequence[Segment]) -> Iterator[pa.RecordBatch]:
        wanted = list(dict.fromkeys([*self.columns, self.sensitive]))
        for segment in segments:
            try:
                coded = [name for name in wanted if name in self.coded]
                file = pq.ParquetFile(segment.path, read_dictionary=coded, buffer_size=BUFFER)
                for batch in file.iter_batches(self.batch, list(segment.groups), wanted, use_threads=False):
                    yield self._checked(batch.select(wanted))
            except (OSError, pa.ArrowException) as error:
                raise TaskRefusal(f"the file {segment.path} cannot be read ({error}); {CHANGED}", SpecError) from None

    def _checked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with its texts plain or coded as they were announced; refused where one is no text."""
        columns = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if _is_text(column.type):
                column = _coded(column) if name in self.coded else _plain(column)
                try:
                    (column.dictionary if name in self.coded else column).validate(full=True)
                except pa.ArrowInvalid:
                    raise TaskRefusal(sentence(name), SpecError) from None
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def _codes(self, batch: pa.RecordBatch, partition: int) -> IntegerArray:
        column = batch.column(self.sensitive)
        if self.sensitive in self.coded:
            known = pc.index_in(column.dictionary, self.values)
            code = known.take(column.indices)
            if column.null_count:
                code = pc.if_else(column.is_null(), pc.index_in(pa.nulls(1, pa.string()), self.values)[0], code)
        else:
            code = pc.index_in(column, self.values)
        if code.null_count:
            raise TaskRefusal(
                f"partition {partition} holds a sensitive value that the first pass did not see; {CHANGED}"
            )
        return np.asarray(code.to_numpy(zero_copy_only=False), dtype=code_type(len(self.values)))


def files_of(number: Int64Array, word: UInt64Array, files: int, grouped: bool) -> Int64Array:
    """The file of each record, (N,) int64: a function of its published number where records are grouped by it, else of the key's word."""
    return (number % files if grouped else word % np.uint64(files)).astype(np.int64)


def cut(batch: pa.RecordBatch, file: Int64Array, files: int) -> list[pa.RecordBatch]:
    """`batch` cut by `file`, (N,) in 0 .. files - 1: one for each file, its records in the order of the batch."""
    if files == 1:
        return [batch]
    order = np.argsort(file.astype(np.int32), kind="stable")
    ends = np.cumsum(np.bincount(file, minlength=files))
    sorted_ = batch.take(pa.array(order))
    return [
        sorted_.slice(end - size, size)
        for end, size in zip(ends.tolist(), np.diff(ends, prepend=0).tolist(), strict=True)
    ]


def _is_text(kind: pa.DataType) -> bool:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value))


def _coded(column: pa.Array) -> pa.DictionaryArray:
    if not pa.types.is_dictionary(column.type):
        return _plain(column).dictionary_encode()
    return pa.DictionaryArray.from_arrays(column.indices.cast(pa.int32()), column.dictionary.cast(pa.string()))


def _plain(column: pa.Array) -> pa.Array:
    return (column.dictionary_decode() if pa.types.is_dictionary(column.type) else column).cast(pa.string())
