"""What a bucketization for matching answers: mu buckets of one size, and how many records of each sensitive value each one holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anonlib.arrays import Int64Array


@dataclass(frozen=True)
class MatchBuckets:
    """mu buckets of `size` places. A record gets one match from every bucket.

    bucket, value, records, dummies : (k,) int64, in order of bucket; bucket[j] holds records[j] records of value[j] and
        dummies[j] made-up ones, one entry per (bucket, value), each with at least one record
    suppressed : (m,) int64, records of each value that no bucket holds
    distinct   : whether the matches of a record must all carry different values (l-diversity); else any choice keeps the promise
    algorithm  : how it was found
    """

    mu: int
    size: int
    bucket: Int64Array
    value: Int64Array
    records: Int64Array
    dummies: Int64Array
    suppressed: Int64Array
    distinct: bool
    algorithm: str

    @cached_property
    def held_by(self) -> Int64Array:
        """(m,) int64: |B_i|, in how many buckets value i is; among the matches of a record it is at most so often."""
        return np.bincount(self.value, minlength=len(self.suppressed)).astype(np.int64)

    @property
    def made_up(self) -> int:
        """How many dummies the buckets are filled up with."""
        return int(self.dummies.sum())

    @property
    def left_out(self) -> int:
        """How many records are suppressed: no bucket holds them."""
        return int(self.suppressed.sum())

    @property
    def estimated_loss(self) -> tuple[int, int]:
        """Fewer matches make smaller boxes, whatever the partition; then fewer records made up or left out."""
        return self.mu, self.made_up + self.left_out


def match_buckets(
    size: int, contents: dict[tuple[int, int], list[int]], suppressed: Int64Array, distinct: bool, algorithm: str
) -> MatchBuckets:
    """The buckets of a packing, renumbered 0, 1, ... in order.

    size     : places of each bucket; contents : {(bucket, value): [records, dummies]}, not empty
    suppressed : (m,) int64, records of each value that no bucket holds; distinct, algorithm : as in `MatchBuckets`
    """
    keys = sorted(contents)
    bucket, value, records, dummies = np.array([[b, v, *contents[b, v]] for b, v in keys], dtype=np.int64).T
    mu = int(bucket.max()) + 1
    return MatchBuckets(mu, size, bucket, value, records, dummies, suppressed, distinct, algorithm)


def records(pools: Sequence[MatchBuckets]) -> int:
    """How many records all pools hold, dummies among them."""
    return sum(pool.mu * pool.size for pool in pools)


def mean_matches(pools: Sequence[MatchBuckets]) -> float:
    """The number of matches of a record, on average over all pools."""
    return sum(pool.mu**2 * pool.size for pool in pools) / records(pools)
