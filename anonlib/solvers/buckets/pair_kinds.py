"""What each bucket holds where two sensitive columns are bounded at once: buckets of few kinds, made of combinations of values.

A combination is an edge between a value of the first column and one of the second. To put its records into b buckets is to colour the
edges with b colours, and a bipartite multigraph can be coloured evenly: every bucket takes the floor or the ceiling of the b-th part of
the records of every combination, of every value of either column, and of all (D. de Werra, Equitable colorations of graphs, 1971). Round
robin does that for one column, whose values can stand in a row; two columns have no such row.

So buckets can be composed exactly when each column's values fit by themselves: x_v <= b floor(f'_v S) for every value v of both.

Few kinds suffice: x / b lies between the floors and ceilings, which are the bounds of a flow, so an integral flow between them is a
bucket; it is taken as often as all remaining records still lie between them, by which time one more combination or value is at its floor
or ceiling in every bucket that is left. At most m + M_1 + M_2 + 1 kinds, for m combinations of M_1 and M_2 values: as many flows of m arcs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_flow

from anonlib.arrays import Int64Array


@dataclass(frozen=True, eq=False)
class BucketKind:
    """`number` buckets that all hold `counts[i]` records of combination `codes[i]`; codes ascending, counts at least 1."""

    number: int
    codes: Int64Array
    counts: Int64Array

    @property
    def size(self) -> int:
        """How many records such a bucket holds."""
        return int(self.counts.sum())


def even_kinds(records: Int64Array, codes: Int64Array, number: int) -> list[BucketKind]:
    """`number` buckets for these records, each combination, each value and all records spread as evenly as whole numbers allow.

    records : (m,) int64, of each combination; codes : (2, m) int64, the number of its value in either column; number : b, at least 1

    Every bucket holds floor(x / b) or ceil(x / b) of the x records of each. Cost: see the module.
    """
    held = np.flatnonzero(records)
    left = _Left(records[held], codes[:, held], number)
    kinds = []
    while left.number:
        bucket = left.bucket()
        here = np.flatnonzero(bucket)
        kinds.append(BucketKind(left.take(bucket), held[here], bucket[here]))
    return kinds


class _Left:
    """The records that no kind has yet, of combinations and of the groups that they belong to: values of either column, and all.

    low    : of combinations and of groups, the floor; high : the ceiling, the same where numbers come out even
    excess : records above low in every bucket that is left
    """

    def __init__(self, records: Int64Array, codes: Int64Array, number: int) -> None:
        self.number = number
        self.codes, self.sizes = codes, [int(codes[k].max(initial=-1)) + 1 for k in (0, 1)]
        sums = self._sums(records)
        self.low = [x // number for x in (records, *sums)]
        self.high = [-(-x // number) for x in (records, *sums)]
        self.excess = [x - low * number for x, low in zip((records, *sums), self.low, strict=True)]

    def _sums(self, of_combinations: Int64Array) -> list[Int64Array]:
        """Of the values of the first column, of the second, and of all."""
        sums = [np.zeros(size, dtype=np.int64) for size in self.sizes]
        for k in (0, 1):
            np.add.at(sums[k], self.codes[k], of_combinations)
        return [*sums, of_combinations.sum(keepdims=True)]

    def bucket(self) -> Int64Array:
        """(m,) int64: what one bucket holds. A group at its floor or ceiling in all that is left is at it here."""
        least = [low + (excess == self.number) for low, excess in zip(self.low, self.excess, strict=True)]
        most = [low + (excess > 0) for low, excess in zip(self.low, self.excess, strict=True)]
        fixed = self._sums(least[0])
        free = np.flatnonzero(most[0] > least[0])
        bounds = [(low - has, high - has) for low, high, has in zip(least[1:], most[1:], fixed, strict=True)]
        bucket: Int64Array = least[0].astype(np.int64)
        bucket[free[_chosen(self.codes[:, free], bounds)]] += 1
        return bucket

    def take(self, bucket: Int64Array) -> int:
        """How many such buckets are made: as many as leave every group between its bounds."""
        sums = (bucket, *self._sums(bucket))
        above = [x > low for x, low in zip(sums, self.low, strict=True)]
        often = self.number
        for up, excess, low, high in zip(above, self.excess, self.low, self.high, strict=True):
            room = np.where(up, excess, self.number - excess)[high > low]
            often = min(often, int(room.min(initial=often)))
        for excess, up in zip(self.excess, above, strict=True):
            excess -= often * up
        self.number -= often
        return often


def _chosen(ends: Int64Array, bounds: Sequence[tuple[Int64Array, Int64Array]]) -> Int64Array:
    """Which edges to take, positions: every value at either end as often as its bounds say, and as many in all.

    ends : (2, e) int64; bounds : (least, most) of the values of the first column, of the second, and of all. A flow with lower bounds from
    source through values to sink; what must flow at least is sent from a source of its own to a sink of its own.
    """
    if not ends.shape[1]:
        return np.zeros(0, dtype=np.int64)
    (first_least, first_most), (second_least, second_most), (least, most) = bounds
    a, b = len(first_least), len(second_least)
    source, sink, supply, drain = range(a + b, a + b + 4)
    tails = [np.full(a, source), ends[0], a + np.arange(b), np.array([sink])]
    heads = [np.arange(a), a + ends[1], np.full(b, sink), np.array([source])]
    lows = np.concatenate([first_least, np.zeros(ends.shape[1], dtype=np.int64), second_least, least])
    highs = np.concatenate([first_most, np.ones(ends.shape[1], dtype=np.int64), second_most, most])
    tail, head = np.concatenate(tails), np.concatenate(heads)
    need = np.zeros(drain + 1, dtype=np.int64)  # what lower bounds bring to a node, less what they take from it
    np.add.at(need, head, lows)
    np.subtract.at(need, tail, lows)
    giving, taking = np.flatnonzero(need > 0), np.flatnonzero(need < 0)
    rows = np.concatenate([tail, np.full(len(giving), supply), taking])
    columns = np.concatenate([head, giving, np.full(len(taking), drain)])
    capacity = np.concatenate([highs - lows, need[giving], -need[taking]]).astype(np.int32)
    network = csr_matrix((capacity, (rows, columns)), shape=(drain + 1, drain + 1))
    flow = maximum_flow(network, supply, drain)
    if flow.flow_value != int(need[giving].sum()):
        raise AssertionError("an even bucket of two columns' values always exists, and none was found")
    sent = np.asarray(flow.flow[ends[0], a + ends[1]]).reshape(-1)
    return np.flatnonzero(sent > 0)
