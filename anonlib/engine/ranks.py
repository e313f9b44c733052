"""Pass 2: every record's exact rank within its sensitive value, handed to a kernel, without moving a row.

Only the sensitive value's hash visits Python: an iterator UDF runs down each partition, keeps running counts per value, and gives
back one number a record; all other columns stay in the JVM. The partition's offsets come from pass 1, and the task refuses to end
unless it saw exactly the records that pass 1 counted, so an input that changed in between cannot be published.

Cost: one scan, no shuffle; per worker the hashes and offsets (24 bytes per value of the partition) and the kernel's own tables.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

from anonlib.arrays import Int64Array, IntegerArray
from anonlib.engine.failures import TaskRefusal
from anonlib.engine.statistics import SensitiveStatistics

RankKernel = Callable[[IntegerArray, Int64Array], Int64Array]
"""(value codes (N,), ranks within value (N,) int64) -> (N,) int64."""

FIRST_ROW = (
    "(monotonically_increasing_id() & 8589934591) = 0"  # the row number within the partition is in the low 33 bits
)


def with_kernel(frame: DataFrame, statistics: SensitiveStatistics, kernel: RankKernel, name: str) -> DataFrame:
    """`frame` and a long column `name`: what `kernel` says for each record's (value code, rank within value).

    `frame` must be the very DataFrame that pass 1 counted, narrowed at most by the same filter. A task raises TaskRefusal when its
    partition is not the one pass 1 counted.
    """
    offsets = statistics.offsets
    hashed = F.expr(statistics.hash_sql)
    if offsets.by_partition is not None:
        udf = _pandas_udf(_ranker(statistics.hashes, dict(offsets.by_partition), kernel))
        return frame.withColumn(name, udf(hashed))
    # counts too many for a closure: each partition's packed offsets ride on its first row
    assert offsets.frame is not None
    partition, packed = (_unlike(frame, part) for part in ("partition", "packed"))
    carried = (
        frame.withColumn(partition, F.spark_partition_id())
        .join(offsets.frame.toDF(partition, packed).hint("broadcast"), partition, "left")
        .withColumn(packed, F.expr(f"CASE WHEN {FIRST_ROW} THEN {packed} END"))
    )
    udf = _pandas_udf(_carried_ranker(statistics.hashes, kernel))
    return carried.withColumn(name, udf(hashed, F.col(packed))).drop(partition, packed)


def _unlike(frame: DataFrame, name: str) -> str:
    """`name`, lengthened until no column of the table is called so."""
    there = {column.lower() for column in frame.columns}
    while name in there:
        name += "_"
    return name


def _pandas_udf(function: Callable[..., Any]) -> Callable[..., Any]:
    # non-deterministic, so that no optimizer rule may evaluate it twice or move it
    udf: Any = pandas_udf  # its overloads name no iterator of tuples
    counted: Callable[..., Any] = udf(function, returnType="long").asNondeterministic()
    return counted


def _partition() -> int:
    """The number of the partition that this task works on."""
    from pyspark import TaskContext

    task = TaskContext.get()
    assert task is not None  # always within a task
    return task.partitionId()


def _ranker(hashes: Int64Array, by_partition: dict[int, Int64Array], kernel: RankKernel) -> Callable[..., Any]:
    def ranks(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
        partition = _partition()
        counter = PartitionRanks(hashes, partition, by_partition.get(partition))
        for batch in batches:
            yield pd.Series(kernel(*counter.next(batch.to_numpy())))
        counter.finish()

    return ranks


def _carried_ranker(hashes: Int64Array, kernel: RankKernel) -> Callable[..., Any]:
    def ranks(batches: Iterator[tuple[pd.Series, pd.Series]]) -> Iterator[pd.Series]:
        counter = None
        for hashed, packed in batches:
            if counter is None:
                first = packed.iloc[0] if len(packed) else None
                triples = None if first is None else np.asarray(first, dtype=np.int64).reshape(-1, 3)
                counter = PartitionRanks(hashes, _partition(), triples)
            yield pd.Series(kernel(*counter.next(hashed.to_numpy())))
        if counter is not None:
            counter.finish()

    return ranks


class CodeRanks:
    """Running ranks down one partition, of values that are known by their codes. Pure arithmetic; knows nothing of Spark but the words
    of its refusals.

    m : number of values; packed : (k, 3) int64 of code, first rank and count in this partition, None for a partition without records
    """

    def __init__(self, m: int, partition: int, packed: Int64Array | None) -> None:
        self._partition = partition
        self._next = np.zeros(m, dtype=np.int64)
        self._end = np.zeros(m, dtype=np.int64)
        if packed is not None and len(packed):
            code, offset, n = packed.T
            self._next[code] = offset
            self._end[code] = offset + n

    def next(self, code: IntegerArray) -> Int64Array:
        """The ranks, (N,) int64, of the next records of the partition, given their codes (N,)."""
        by_code = np.argsort(code, kind="stable")
        count = np.bincount(code, minlength=len(self._next))
        start = np.cumsum(count) - count
        in_order = code[by_code]
        rank = np.empty(len(code), dtype=np.int64)
        rank[by_code] = self._next[in_order] + (np.arange(len(code)) - start[in_order])
        self._next += count
        if (self._next > self._end).any():
            raise TaskRefusal(f"partition {self._partition} holds more rows than the first pass counted; {CHANGED}")
        return rank

    def finish(self) -> None:
        """Raises TaskRefusal unless the partition held every record that the first pass counted in it."""
        if (self._next != self._end).any():
            raise TaskRefusal(f"partition {self._partition} holds fewer rows than the first pass counted; {CHANGED}")


class PartitionRanks:
    """Running ranks down one partition, of values that are known by their hashes."""

    def __init__(self, hashes: Int64Array, partition: int, packed: Int64Array | None) -> None:
        self._order = np.argsort(hashes)
        self._sorted = hashes[self._order]
        self._partition = partition
        self._code_type = code_type(len(hashes))
        self._ranks = CodeRanks(len(hashes), partition, packed)

    def next(self, hashed: Int64Array) -> tuple[IntegerArray, Int64Array]:
        """(codes, ranks) of the next records of the partition, given their value hashes (N,) int64."""
        place = np.searchsorted(self._sorted, hashed)
        place[place == len(self._sorted)] = 0
        if (self._sorted[place] != hashed).any():
            raise TaskRefusal(
                f"partition {self._partition} holds a sensitive value that the first pass did not see; {CHANGED}"
            )
        code: IntegerArray = self._order[place].astype(self._code_type)
        return code, self._ranks.next(code)

    def finish(self) -> None:
        """Raises TaskRefusal unless the partition held every record that the first pass counted in it."""
        self._ranks.finish()


def code_type(m: int) -> type[np.int16] | type[np.int32]:
    """The type of codes of m values: NumPy sorts 16 bits by radix, far faster than more."""
    return np.int16 if m < 1 << 15 else np.int32


CHANGED = "the input changed between the two passes: publish from a table that nobody writes to, e.g. a snapshot"
