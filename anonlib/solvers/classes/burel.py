"""BuReL's choices from counts alone: which sensitive values share a bucket, and how many records of each bucket a class takes.

Source: Cao and Karras, *Publishing microdata with a robust privacy guarantee*, VLDB 2012, as a baseline of heterogeneous generalization
(section 5). A class that takes records from a bucket in proportion might, at worst, take all of them with the bucket's rarest value. So
values may share a bucket if their joint share of the table is below the rarest value's bound, and a class may be halved while the
share of each bucket stays within it: whatever records are taken, every value then keeps its own bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anonlib.arrays import BoolArray, Int64Array
from anonlib.privacy.class_requirements import ShareCaps
from anonlib.privacy.counts import SensitiveCounts


@dataclass(frozen=True)
class ValueBuckets:
    """A partition of the sensitive values into q buckets.

    bucket : (m,) int64, the bucket of each value; bounds : per bucket, the bound of its rarest value
    """

    bucket: Int64Array
    bounds: ShareCaps

    @property
    def q(self) -> int:
        """q, how many buckets the values are put into."""
        return len(self.bounds.caps)

    def counts(self, of_values: Int64Array) -> Int64Array:
        """(q,) int64: how many records each bucket has. of_values : (m,) int64, records of each value."""
        records = np.zeros(self.q, dtype=np.int64)
        np.add.at(records, self.bucket, of_values)
        return records


ROOM = Fraction(6, 5)
"""A joint share this many times below its bound lets classes be halved further: buckets chosen to be as few as possible may be so full
that a class of hundreds of records cannot be halved, because one bucket's half would round up beyond its bound."""


def value_buckets(counts: SensitiveCounts, bounds: ShareCaps, room: Fraction = Fraction(1)) -> ValueBuckets:
    """The fewest buckets, each a run of values in order of their share, whose joint share is below the bound of its rarest value.

    bounds : f(p_i) for each value; it grows with p_i
    room   : 1 as published; above that, joint shares stay below bound / room

    Exact dynamic programming, O(m w) for runs of at most w values.
    """
    order = np.lexsort((np.arange(counts.m), counts.counts)).tolist()
    ascending = [int(counts.counts[i]) for i in order]
    first_of, fewest = _fewest_runs(ascending, [bounds.caps[i] * counts.n / room for i in order])
    bucket = np.zeros(counts.m, dtype=np.int64)
    caps: list[Fraction] = []
    stop = counts.m
    while stop:
        start = first_of[stop]
        bucket[order[start:stop]] = fewest[start]
        caps.append(bounds.caps[order[start]])
        stop = start
    return ValueBuckets(bucket, ShareCaps(tuple(reversed(caps))))


def _fewest_runs(ascending: list[int], most: list[Fraction]) -> tuple[list[int], list[int]]:
    """(where the last run of the best partition of the first j values starts, how many runs that partition has), for j = 0..m.

    Values b..e-1 may be one run if they have fewer than most[b] records together: at the bound itself no class could be halved. A
    longer run has more records and a lower bound, so the first b that fails ends the search.
    """
    m = len(ascending)
    first_of, fewest = [0] * (m + 1), [0] * (m + 1)
    for e in range(1, m + 1):
        first_of[e], fewest[e] = e - 1, fewest[e - 1] + 1
        together = ascending[e - 1]
        for b in range(e - 2, -1, -1):
            together += ascending[b]
            if together >= most[b]:
                break
            if fewest[b] + 1 < fewest[e]:
                first_of[e], fewest[e] = b, fewest[b] + 1
    return first_of, fewest


def class_sizes(records: Int64Array, bounds: ShareCaps) -> Int64Array:
    """How many records of each bucket each class takes, (classes, q) int64; columns sum to `records`.

    records : (q,) int64, records of each bucket. The root is halved, then its halves, and so on, each bucket by itself (half rounded up to
    one side, the rest to the other), while both halves keep the bounds. A level at a time; O(classes q) memory.
    """
    open_nodes, done = np.asarray(records, dtype=np.int64)[None, :], []
    while len(open_nodes):
        good, halves = _halved(open_nodes, bounds)
        done.append(open_nodes[~good])
        open_nodes = halves
    return np.concatenate(done)


def number_of_classes(records: Int64Array, bounds: ShareCaps) -> int:
    """How many classes `class_sizes` gives, without listing them: a level has at most q + 1 different nodes, each looked at once.

    records, bounds : as for `class_sizes`. O(q^2 log n) time.
    """
    nodes, times, classes = np.asarray(records, dtype=np.int64)[None, :], np.ones(1, dtype=np.int64), 0
    while len(nodes):
        good, halves = _halved(nodes, bounds)
        classes += int(times[~good].sum())
        nodes, of_halves = np.unique(halves, axis=0, return_inverse=True)
        below = np.zeros(len(nodes), dtype=np.int64)
        np.add.at(below, of_halves.reshape(-1), np.repeat(times[good], 2))
        times = below
    return classes


def _halved(nodes: Int64Array, bounds: ShareCaps) -> tuple[BoolArray, Int64Array]:
    """(which of (g, q) nodes are halved, (2 h, q) their halves, the larger first)."""
    left = (nodes + 1) // 2
    right = nodes - left
    good = (nodes >= 2).any(axis=1) & bounds.holds(left) & bounds.holds(right) & (right.sum(axis=1) > 0)
    return good, np.stack([left[good], right[good]], axis=1).reshape(-1, nodes.shape[1])
