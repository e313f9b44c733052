"""SABRE's first phase: buckets of close sensitive values, few enough to choose from and close enough to promise something.

An equivalence class that takes from every bucket its share of the table is at most U away from the table, whichever records it takes,
where U is the sum over buckets of CET, the most that moving earth within the bucket can cost (Theorems 2 and 3). Starting from one bucket
of all values, the bucket whose split lowers U most is split, until U < t (functions bucketCat and bucketNum).

Buckets are runs of neighbouring values, in the order of the ground distance. All of this is integer arithmetic on m counts, on the
driver: a split tries all j - 1 cuts of a run of j ordered values at once from prefix sums, O(j); a split of a tree's node is O(j).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import cast

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.privacy.earth_mover import EarthMover
from anonlib.privacy.t_closeness import GroundDistance, TCloseness

Run = tuple[int, int]
"""First and last position of a bucket."""


@dataclass(frozen=True, eq=False)
class BucketPartition:
    """Every sensitive value in one bucket. b buckets, in the order of their values.

    first, last : (b,) int64, the run of positions of each bucket (positions as in `distance.order`)
    sizes       : (b,) int64, records of the table in each bucket
    bound       : U, exactly
    distance    : the ground distance of the values
    """

    first: Int64Array
    last: Int64Array
    sizes: Int64Array
    bound: Fraction
    distance: GroundDistance

    @property
    def b(self) -> int:
        """b, how many buckets there are."""
        return len(self.first)

    @cached_property
    def bucket_of(self) -> Int64Array:
        """(m,) int64: the bucket of each value, by the value's code."""
        bucket_of = np.empty(self.distance.m, dtype=np.int64)
        bucket_of[self.distance.order] = np.repeat(np.arange(self.b), self.last - self.first + 1)
        return bucket_of

    def between(self, i: int, j: int) -> Fraction:
        """The ground distance of two buckets: the largest of their values' distances, 0 from a bucket to itself (before Lemma 1)."""
        if i == j:
            return Fraction(0)
        low, high = min(i, j), max(i, j)
        return self.distance.between(int(self.first[low]), int(self.last[high]))

    @cached_property
    def mover(self) -> EarthMover:
        """The earth mover's distance over buckets, in closed form: `between` is a tree metric.

        ordered : d(i, j) = last_j - first_i for i < j = |middle_i - middle_j| + half_i + half_j, with half the width of each bucket: the
                  middles stand on a line, and each bucket hangs on its middle by an edge of length half_i. What crosses that edge is
                  bucket i's own difference; what crosses the line between two middles is the difference of a prefix.
        tree    : the nodes above the buckets, as for values.
        """
        gaps = self._gaps
        if self.distance.kind != "ordered":
            return GroundDistance("hierarchical", np.arange(self.b), gaps, self.distance.height).mover
        bucket = np.arange(self.b, dtype=np.int64)
        return EarthMover(
            np.concatenate([np.zeros(self.b - 1, dtype=np.int64), bucket]),
            np.concatenate([bucket[:-1], bucket]),
            np.concatenate([gaps, self.last - self.first]),
            2 * self.distance.height,
        )

    @cached_property
    def _gaps(self) -> Int64Array:
        """ordered: twice the distance between the middles of neighbours; else the height of the node above both."""
        if self.distance.kind == "ordered":
            return cast(Int64Array, np.diff(self.first + self.last))
        return cast(Int64Array, self.distance.gaps[self.last[:-1]])


def bucketize(closeness: TCloseness) -> BucketPartition:
    """The buckets of SABRE: the first along the greedy path with U < t. O(m log m) on real data, O(m^2) at worst."""
    costs = _Costs(closeness)
    most = closeness.n * closeness.distance.height
    return next(
        _partition(closeness, costs, bounds, total)
        for bounds, total in _steps(closeness, costs)
        if Fraction(total, most) < closeness.t
    )


def greedy_path(closeness: TCloseness) -> Iterator[BucketPartition]:
    """Every bucket partition on the way from one bucket of all values to one bucket a value, where U is 0.

    A bucket of a single value cannot be split and has no part in the choice; a split that gains nothing is made in its turn.
    """
    costs = _Costs(closeness)
    for bounds, total in _steps(closeness, costs):
        yield _partition(closeness, costs, bounds, total)


def _steps(closeness: TCloseness, costs: _Costs) -> Iterator[tuple[dict[Run, int], int]]:
    """(the runs with their upper bounds, the sum of these) after every split. The dictionary is one and the same."""
    whole = (0, closeness.distance.m - 1)
    bounds = {whole: costs.most(whole)}
    total = bounds[whole]
    heap: list[tuple[int, Run, list[Run]]] = []
    _offer(heap, costs, whole)
    while True:
        yield bounds, total
        if not heap:
            return
        _, chosen, parts = heapq.heappop(heap)
        total -= bounds.pop(chosen)
        for part in parts:
            bounds[part] = costs.most(part)
            total += bounds[part]
            _offer(heap, costs, part)


def _offer(heap: list[tuple[int, Run, list[Run]]], costs: _Costs, run: Run) -> None:
    """Put a run that can be split on the heap, by how much its best split lowers U (ties: the run further left)."""
    parts = costs.split(run)
    if parts:
        gain = costs.most(run) - sum(costs.most(part) for part in parts)
        heapq.heappush(heap, (-gain, run, parts))


def _partition(closeness: TCloseness, costs: _Costs, bounds: dict[Run, int], total: int) -> BucketPartition:
    runs = np.array(sorted(bounds), dtype=np.int64)
    return BucketPartition(
        runs[:, 0],
        runs[:, 1],
        costs.total[runs[:, 1] + 1] - costs.total[runs[:, 0]],
        Fraction(total, closeness.n * closeness.distance.height),
        closeness.distance,
    )


class _Costs:
    """CET upper bounds of runs (Theorem 2) times n * height, and the best split of a run; all integers."""

    def __init__(self, closeness: TCloseness) -> None:
        self.distance = closeness.distance
        self.counts = closeness.table[closeness.distance.order]
        self.total = np.concatenate([[0], np.cumsum(self.counts)])
        self.moment = np.concatenate([[0], np.cumsum(self.counts * np.arange(closeness.distance.m))])

    def most(self, run: Run) -> int:
        """The upper bound of moving earth within the run."""
        first, last = run
        if self.distance.kind == "ordered":
            return int(self._ordered(np.array([first]), np.array([last]))[0])
        if first == last:
            return 0
        height = int(self.distance.gaps[first:last].max())
        held = self.counts[first : last + 1]
        return height * int(held.sum() - held.min())

    def _ordered(self, first: Int64Array, last: Int64Array) -> Int64Array:
        """max over l of sum_i |l - i| p_i is convex in l: it is taken at one of the two ends of the run."""
        held = self.total[last + 1] - self.total[first]
        moment = self.moment[last + 1] - self.moment[first]
        return cast(Int64Array, np.maximum(moment - first * held, last * held - moment))

    def split(self, run: Run) -> list[Run]:
        """The parts of a run: two for ordered values, at the cut with the least cost (ties: further left); a node's children in a tree."""
        first, last = run
        if first == last:
            return []
        if self.distance.kind == "ordered":
            cuts = np.arange(first, last, dtype=np.int64)  # the last position of the left part
            costs = self._ordered(np.full_like(cuts, first), cuts) + self._ordered(cuts + 1, np.full_like(cuts, last))
            cut = int(cuts[np.argmin(costs)])
            return [(first, cut), (cut + 1, last)]
        gaps = self.distance.gaps[first:last]
        ends = (first + np.flatnonzero(gaps == gaps.max())).tolist()
        return list(zip([first, *[end + 1 for end in ends]], [*ends, last], strict=True))
