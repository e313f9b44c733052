"""Partitions that hold exact numbers of records of each group, neighbours along a curve kept together.

    coded     : as in `anonlib.engine.partitions`
    on_curve  : the same and `grp` int, `curve` bigint: which group a record belongs to, and where it lies
    seated    : the same and `seat` bigint: written out in the order of (group, curve), which a range shuffle made; must be staged, since
                a second run of a range shuffle may cut elsewhere
    by_rank   : located: the partition and the node that the record's exact rank in its group falls in

Records at one place of the curve stand in an order that only a salt of the release key knows, and equal rows are interchangeable, so the
cut is a function of the table's rows as a set and of the key, whatever the input's order or partitions. One range shuffle of the codes (a
sort in one task where the input has at most `ONE_TASK` rows), one scan for (task x group) counts on the driver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Codes, Int64Array
from anonlib.engine.batches import over_batches
from anonlib.engine.codes import code_columns
from anonlib.engine.failures import explained
from anonlib.engine.partitions import NODE, PARTITION
from anonlib.engine.ranks import CHANGED
from anonlib.engine.relational import rows, with_columns
from anonlib.errors import AnonlibError

Positions = Callable[[list[Codes]], Int64Array]
"""code columns -> the place of each record along the curve."""
GroupsOnCurve = Callable[[list[Codes], Int64Array], tuple[Int64Array, Int64Array]]
"""(code columns, first sensitive codes) -> (group, place along the curve) of each record."""
LocateRank = Callable[[Int64Array, Int64Array], tuple[Int64Array, Int64Array]]
"""(group, rank within it) -> (partition, node) of each record."""

MAX_COUNTS = 4_000_000
ONE_TASK = 500_000
"""So many records are sorted by one task in a second. A range shuffle would first draw a sample, for which all that comes before it, a pass
through Python with it, is done twice. One task takes all that comes before as well, from the scan of the input on: of a huge table a policy
on missing values may leave few records, and one task would read all of it to find them. So it is the rows of the input that count."""
SEATED = "seated"
SEAT_BITS = 33
"""`monotonically_increasing_id` counts the rows of a task in so many bits."""


def on_curve(coded: DataFrame, curve: GroupsOnCurve) -> DataFrame:
    """Each record's group and place on the curve. Narrow: one pass of the codes through Arrow."""
    names = code_columns(coded)

    def kernel(columns: dict[str, Codes]) -> dict[str, Codes]:
        group, place = curve([columns[name] for name in names], columns["s0"].astype(np.int64))
        return {"grp": group.astype(np.int32), "curve": place}

    return over_batches(coded, kernel, {"grp": "int", "curve": "bigint"})


def seated(records: DataFrame, salt: int, input_rows: int) -> DataFrame:
    """The `records` ordered by group and curve, with each one's seat: (task << 33) + place. One range shuffle, none up to `ONE_TASK`.

    input_rows : rows read to find the records, those that policies leave out too
    """
    codes = [name for name in records.columns if name not in ("grp", "curve")]
    keys = [F.col("grp"), F.col("curve"), F.expr(f"xxhash64({salt}L, {', '.join(codes)})"), *map(F.col, codes)]
    dealt = _in_one_task(records) if input_rows <= ONE_TASK else records.repartitionByRange(*keys)
    return dealt.sortWithinPartitions(*keys).withColumn("seat", F.monotonically_increasing_id())


def _in_one_task(records: DataFrame) -> DataFrame:
    return records.coalesce(1)


def by_rank(staged: DataFrame, sizes: Int64Array, locate: LocateRank) -> DataFrame:
    """The partition of every record of a staged `seated` table, by its exact rank within its group.

    sizes : (groups,) int64, what each group must hold. Raises AnonlibError when the staged table holds something else.
    """
    task = F.expr(f"shiftright(seat, {SEAT_BITS})").alias("task")
    with explained("counting the records of each group"):
        counted = rows(staged.groupBy(task, "grp").agg(F.count(F.lit(1)).alias("n")), MAX_COUNTS)
    starts = _Starts(counted, sizes)

    def kernel(columns: dict[str, Codes]) -> dict[str, Codes]:
        group, seat = columns["grp"].astype(np.int64), columns["seat"]
        rank = (seat & ((1 << SEAT_BITS) - 1)) + starts.shift(seat >> SEAT_BITS, group)
        partition, node = locate(group, rank)
        return {PARTITION: partition, NODE: node}

    kept = [name for name in staged.columns if name not in ("grp", "curve", "seat")]
    return over_batches(staged, kernel, {PARTITION: "bigint", NODE: "bigint"}, kept)


class _Starts:
    """Where each group begins in each task, as a place in the task and as a rank in the group."""

    def __init__(self, counted: list[dict[str, Any]], sizes: Int64Array) -> None:
        task, group, n = (np.array([row[name] for row in counted], dtype=np.int64) for name in ("task", "grp", "n"))
        if not np.array_equal(np.bincount(group, n, minlength=len(sizes)).astype(np.int64), sizes):
            raise AnonlibError(CHANGED)
        order = np.lexsort((group, task))
        task, group, n = task[order], group[order], n[order]
        place = np.cumsum(n) - n
        place -= place[np.searchsorted(task, task)]
        by_group = np.lexsort((task, group))
        ahead = np.cumsum(n[by_group]) - n[by_group]
        rank = np.empty(len(n), dtype=np.int64)
        rank[by_group] = ahead - ahead[np.searchsorted(group[by_group], group[by_group])]
        self._groups = len(sizes)
        self._keys: Int64Array = task * self._groups + group  # ascending
        self._shift: Int64Array = rank - place

    def shift(self, task: Int64Array, group: Int64Array) -> Int64Array:
        """What to add to a record's place in its task to get its rank in its group."""
        return np.asarray(self._shift[np.searchsorted(self._keys, task * self._groups + group)])


def equal_partitions(
    coded: DataFrame,
    positions: Positions,
    n: int,
    number: int,
    salt: int,
    stage: Callable[[str, DataFrame], DataFrame],
    input_rows: int,
    multiple_of: int = 1,
) -> DataFrame:
    """`coded`, located in partitions 0 .. number - 1 in the order of the curve; every one has n // number records or one more.

    n           : the records there are; AnonlibError when it turns out otherwise
    input_rows  : as for `seated`
    multiple_of : every partition but the last has a multiple of so many records, nearly equally many; number <= n / multiple_of

    Which records these are, no sensitive value has a say in. Records at one place of the curve are told apart by a hash that only the
    release key knows. It covers how many equal rows came before, so that even records that are alike in everything are spread as by
    chance: a place that holds more records than a partition is cut into parts that differ in their sensitive values no more than a random
    split does. Cost: as `by_rank`, and above `ONE_TASK` rows of input one more shuffle of the codes, in which
    equal rows are numbered.
    """
    codes = ", ".join(coded.columns)
    numbered = with_columns(
        _in_one_task(coded) if input_rows <= ONE_TASK else coded,
        {"twin": f"row_number() OVER (PARTITION BY {codes} ORDER BY q0)"},
    )
    staged = stage(SEATED, seated(on_curve(numbered, _OneGroup(positions)), salt, input_rows))
    records = by_rank(staged, np.array([n], dtype=np.int64), _EqualRuns(n, number, multiple_of))
    return records.select(*coded.columns, PARTITION)


@dataclass(frozen=True)
class _OneGroup:
    positions: Positions

    def __call__(self, columns: list[Codes], sensitive: Int64Array) -> tuple[Int64Array, Int64Array]:
        return np.zeros(len(sensitive), dtype=np.int64), self.positions(columns)


class _EqualRuns:
    """Rank r of n goes to one of `number` runs of nearly equally many units, without a product that could overflow."""

    def __init__(self, n: int, number: int, unit: int = 1) -> None:
        small, larger = divmod(n // unit, number)
        self._stops = unit * np.cumsum(np.full(number, small, dtype=np.int64) + (np.arange(number) < larger))
        self._stops[-1] = n

    def __call__(self, group: Int64Array, rank: Int64Array) -> tuple[Int64Array, Int64Array]:
        return np.searchsorted(self._stops, rank, side="right").astype(np.int64), np.zeros(len(rank), dtype=np.int64)
