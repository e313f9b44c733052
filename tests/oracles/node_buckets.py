"""Buckets that keep thresholds of values and of nodes, by brute force: every bucket's every content. Slow, obvious, for small tables.

Nothing is shared with the solvers: no flow, no order of values, no sizes with capacities. A bucket is a tuple of counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache

from tests.oracles.bucket_settings import loss, multisets_of_sizes

Members = Sequence[tuple[frozenset[int], Fraction | None]]
"""For each node the values under it, and its threshold if it has one."""


def keeps(bucket: Sequence[int], thresholds: Sequence[Fraction], nodes: Members) -> bool:
    """Whether a bucket keeps every threshold: shares as fractions, compared as such."""
    size = sum(bucket)
    return all(Fraction(n, size) <= f for n, f in zip(bucket, thresholds, strict=True)) and all(
        f is None or Fraction(sum(bucket[v] for v in under), size) <= f for under, f in nodes
    )


def told(bucket: Sequence[int], nodes: Members) -> int:
    """Under how many nodes all records of a bucket are."""
    return sum(sum(bucket[v] for v in under) == sum(bucket) for under, _ in nodes)


def contents(size: int, left: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """All ways to take `size` records out of those that are left."""
    if len(left) == 1:
        if size <= left[0]:
            yield (size,)
        return
    for n in range(min(size, left[0]) + 1):
        for rest in contents(size - n, left[1:]):
            yield (n, *rest)


def fewest_told(
    counts: Sequence[int], thresholds: Sequence[Fraction], nodes: Members, buckets: Sequence[int]
) -> int | None:
    """Over all ways to fill buckets of these sizes that keep every threshold, the least sum of `told`; None when there is no way."""

    @cache
    def fill(k: int, left: tuple[int, ...]) -> int | None:
        if k == len(buckets):
            return 0
        best: int | None = None
        for content in contents(buckets[k], left):
            if not keeps(content, thresholds, nodes):
                continue
            rest = fill(k + 1, tuple(a - b for a, b in zip(left, content, strict=True)))
            if rest is not None and (best is None or rest + told(content, nodes) < best):
                best = rest + told(content, nodes)
        return best

    return fill(0, tuple(counts))


def least_loss(counts: Sequence[int], thresholds: Sequence[Fraction], nodes: Members, largest: int) -> int | None:
    """The least loss of buckets of at most `largest` records that keep every threshold; None when there are none."""
    for buckets in sorted(multisets_of_sizes(sum(counts), largest), key=loss):
        if fewest_told(counts, thresholds, nodes, buckets) is not None:
            return loss(buckets)
    return None
