"""takeOut: form equivalence classes of given sizes, each of records that lie near one another.

A class starts from a record chosen at random among those left and takes from each bucket the number of records its size says: those
nearest to that first record (SABRE, section 4.4). SABRE-AK takes them along the Hilbert curve, SABRE-KNN in the space itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np

from anonlib.arrays import BoolArray, Float64Array, Int64Array

FAR = 1 << 80
"""Farther than any two Hilbert values."""


def approximate(
    curve: Sequence[int], bucket: Int64Array, sizes: Iterable[Sequence[int]], seeds: Int64Array
) -> Int64Array:
    """SABRE-AK: the class of each of n records, (n,) int64, numbered as `sizes` lists them.

    curve : n Hilbert values; bucket : (n,) int64 in [0, b); sizes : per class, b numbers of records; they add up to the buckets
    seeds : (n,) int64, a random permutation: a class starts from the first record in it that is left

    Each bucket is sorted along the curve once. Which records are left is kept as a linked list, with links to the next one left that
    are shortened as they are followed (union-find), so taking a records from a bucket costs O(a + log n) whatever has gone before.
    """
    run = _Sorted(curve, bucket)
    result = np.empty(len(bucket), dtype=np.int64)
    gone = bytearray(len(bucket))
    order, at = seeds.tolist(), 0
    for number, size in enumerate(sizes):
        while gone[order[at]]:
            at += 1
        start = curve[order[at]]
        for b, wanted in enumerate(size):
            if wanted:
                for record in run.take(b, start, wanted):
                    gone[record] = 1
                    result[record] = number
    return result


class _Sorted:
    """The records of each bucket along the curve, and which of them are left."""

    def __init__(self, curve: Sequence[int], bucket: Int64Array) -> None:
        values = np.asarray(curve)
        self.values: list[list[int]] = []
        self.records: list[list[int]] = []
        for b in range(int(bucket.max(initial=-1)) + 1):
            members = np.flatnonzero(bucket == b)
            members = members[np.argsort(values[members], kind="stable")]
            self.records.append(members.tolist())
            self.values.append(values[members].tolist())
        # place i is left if following[i] == i; the end, one behind the last, always is
        self.following = [list(range(len(records) + 1)) for records in self.records]
        self.before = [list(range(-1, len(records))) for records in self.records]

    def take(self, b: int, start: int, wanted: int) -> list[int]:
        """Remove the `wanted` records left in a bucket that lie nearest to `start` along the curve (ties: the earlier)."""
        values, records = self.values[b], self.records[b]
        following, before = self.following[b], self.before[b]
        right = _find(following, bisect_left(values, start))
        left = before[right]
        nearest = []
        for _ in range(wanted):
            to_right = values[right] - start if right < len(values) else FAR
            to_left = start - values[left] if left >= 0 else FAR
            if to_right < to_left:
                nearest.append(right)
                following[right] = right + 1
                right = _find(following, right + 1)
            else:
                nearest.append(left)
                following[left] = right
                left = before[left]
        before[right] = left
        return [records[place] for place in nearest]


def _find(following: list[int], place: int) -> int:
    """The first place at or after `place` that is left. Halves the paths it walks."""
    while following[place] != place:
        following[place] = following[following[place]]
        place = following[place]
    return place


def exact(points: Float64Array, bucket: Int64Array, sizes: Iterable[Sequence[int]], seeds: Int64Array) -> Int64Array:
    """SABRE-KNN: as `approximate`, with the exact nearest records by Euclidean distance.

    points : (n, d) float64, one axis per quasi-identifier, each scaled to [0, 1]. O(n d) a class; the records left are packed
    together when a quarter of them has gone.
    """
    left = _Left(points, bucket)
    result = np.empty(len(bucket), dtype=np.int64)
    gone = np.zeros(len(bucket), dtype=bool)
    order, at = seeds.tolist(), 0
    for number, size in enumerate(sizes):
        while gone[order[at]]:
            at += 1
        members = left.take(points[order[at]], size)
        gone[members] = True
        result[members] = number
    return result


class _Left:
    """The records left, bucket after bucket."""

    def __init__(self, points: Float64Array, bucket: Int64Array) -> None:
        self.record = np.argsort(bucket, kind="stable")
        self.bucket = bucket[self.record]
        self.axes = np.ascontiguousarray(points[self.record].T)
        self.buckets = int(bucket.max(initial=-1)) + 1
        self._pack(np.ones(len(bucket), dtype=bool))

    def _pack(self, keep: BoolArray) -> None:
        self.record, self.bucket = self.record[keep], self.bucket[keep]
        self.axes = np.ascontiguousarray(self.axes[:, keep])
        self.starts = np.searchsorted(self.bucket, np.arange(self.buckets + 1))
        self.taken = np.zeros(len(self.record), dtype=bool)
        self.number_taken = 0

    def take(self, start: Float64Array, size: Sequence[int]) -> Int64Array:
        """Remove from each bucket its nearest records to `start` (ties: the earlier), and give their numbers."""
        if 4 * self.number_taken > len(self.record):
            self._pack(~self.taken)
        away = ((self.axes - start[:, None]) ** 2).sum(axis=0)
        away[self.taken] = np.inf
        places = []
        for b, wanted in enumerate(size):
            if wanted:
                begin, end = int(self.starts[b]), int(self.starts[b + 1])
                places.append(begin + _nearest(away[begin:end], wanted))
        nearest = np.concatenate(places)
        self.taken[nearest] = True
        self.number_taken += len(nearest)
        return cast(Int64Array, self.record[nearest])


def _nearest(away: Float64Array, wanted: int) -> Int64Array:
    """The places of the `wanted` smallest numbers; of equal ones the first."""
    if wanted >= len(away):
        return np.arange(len(away))
    limit = np.partition(away, wanted - 1)[wanted - 1]
    closer = np.flatnonzero(away < limit)
    return np.concatenate([closer, np.flatnonzero(away == limit)[: wanted - len(closer)]])
