"""Bucket settings by brute force: every multiset of sizes, and every way to deal the records. Slow, obvious, for small tables.

Nothing is shared with the solvers: no size classes, no capacities, no theorem. A bucket is a bucket, with room for floor(f' |g|)
records of each value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from math import floor


def multisets_of_sizes(n: int, largest: int) -> Iterator[tuple[int, ...]]:
    """All multisets of sizes 1 .. largest that add up to n, each in descending order."""
    if n == 0:
        yield ()
        return
    for size in range(min(n, largest), 0, -1):
        for rest in multisets_of_sizes(n - size, size):
            yield (size, *rest)


def loss(buckets: Sequence[int]) -> int:
    """Sum of (|g| - 1)^2."""
    return sum((size - 1) ** 2 for size in buckets)


def valid(counts: Sequence[int], thresholds: Sequence[Fraction], buckets: Sequence[int]) -> bool:
    """Whether the records can be dealt to these buckets, all exactly full, with every share within its threshold.

    Depth first over the values; buckets of equal size and equal free room are interchangeable.
    """
    if sum(counts) != sum(buckets):
        return False
    most = [{size: floor(threshold * size) for size in set(buckets)} for threshold in thresholds]

    @cache
    def place(value: int, rooms: tuple[tuple[int, int], ...]) -> bool:
        if value == len(counts):
            return all(free == 0 for _, free in rooms)
        return any(place(value + 1, after) for after in dealt(counts[value], most[value], rooms))

    return place(0, tuple(sorted((size, size) for size in buckets)))


def dealt(records: int, most: dict[int, int], rooms: tuple[tuple[int, int], ...]) -> set[tuple[tuple[int, int], ...]]:
    """All (size, free room) states after dealing `records` of one value, at most most[size] to a bucket."""
    states: set[tuple[int, tuple[tuple[int, int], ...]]] = {(records, ())}
    for size, free in rooms:
        states = {
            (left - given, (*done, (size, free - given)))
            for left, done in states
            for given in range(min(free, most[size], left) + 1)
        }
    return {tuple(sorted(done)) for left, done in states if left == 0}


def best_losses(counts: Sequence[int], thresholds: Sequence[Fraction], largest: int) -> tuple[int | None, int | None]:
    """The least loss over valid settings of at most two distinct sizes, and over all, with buckets of at most `largest` records."""
    overall = None
    for buckets in sorted(multisets_of_sizes(sum(counts), largest), key=loss):
        two = len(set(buckets)) <= 2
        if (two or overall is None) and valid(counts, thresholds, buckets):
            overall = loss(buckets) if overall is None else overall
            if two:
                return loss(buckets), overall
    return None, overall
