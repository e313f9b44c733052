"""Pools of equal buckets that keep limits on sets of values, by brute force. Slow, obvious, for a handful of records.

Nothing is shared with the solvers: no line, no order of values, no expected loss of shapes. A bucket is a sorted tuple of values, a pool a
tuple of buckets, and what may be said of a pool is counted in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations

Limits = Sequence[tuple[frozenset[int], Fraction]]
"""Sets of values, each with the share of the buckets of a pool that may hold any of them."""
Bucket = tuple[int, ...]


def keeps(pool: Sequence[Bucket], limits: Limits) -> bool:
    """Whether no set is in more of the buckets than its share: as fractions, compared as such."""
    return all(Fraction(sum(bool(of & set(b)) for b in pool), len(pool)) <= share for of, share in limits)


def pools_of(records: Bucket) -> Iterator[tuple[Bucket, ...]]:
    """All ways to part these records into buckets of one size, as multisets of buckets."""
    for size in range(1, len(records) + 1):
        if len(records) % size == 0:
            yield from set(_buckets(records, size))


def _buckets(records: Bucket, size: int) -> Iterator[tuple[Bucket, ...]]:
    if not records:
        yield ()
        return
    for rest in set(combinations(records[1:], size - 1)):
        bucket = (records[0], *rest)
        for others in _buckets(taken(records, bucket), size):
            yield tuple(sorted((bucket, *others)))


def taken(records: Bucket, out: Bucket) -> Bucket:
    """What is left of the records once some are taken out."""
    return tuple(sorted((Counter(records) - Counter(out)).elements()))


def any_arrangement(records: Bucket, limits: Limits) -> bool:
    """Whether these records can be parted into pools, of any number and size, that all keep every limit."""

    @cache
    def can(left: Bucket) -> bool:
        if not left:
            return True
        for number in range(1, len(left) + 1):
            for rest in set(combinations(left[1:], number - 1)):
                pool = (left[0], *rest)
                if any(keeps(buckets, limits) for buckets in pools_of(pool)) and can(taken(left, pool)):
                    return True
        return False

    return can(tuple(sorted(records)))


def fewest_buckets(records: Bucket, limits: Limits) -> int | None:
    """The fewest buckets of one pool of all these records that keeps every limit; None where no single pool does."""
    return min((len(pool) for pool in pools_of(tuple(sorted(records))) if keeps(pool, limits)), default=None)
