"""Which record goes to which bucket: any of the wanted number of each sensitive value, drawn by the stream.

Source: heterogeneous generalization, Algorithms 1 and 3, whose buckets take "a random subset". Quasi-identifiers play no part.

The order of the buckets is drawn too. Rounds match bucket b to bucket b + r, so whoever runs the code on the records of a known graph can
tell the buckets that follow each other; in a known order their names are then the mu rotations, of which one insider leaves one. In a
drawn order all mu! ways to name them are alike likely, and an insider names one bucket.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonlib.arrays import BoolArray, Int64Array
from anonlib.keyed import Stream
from anonlib.privacy.match_buckets import MatchBuckets


@dataclass(frozen=True)
class DealtRecords:
    """N = mu c records to match, numbered bucket after bucket: number b c + k is place k of bucket b.

    source    : (N,) int64, the row each one is; a dummy copies the quasi-identifiers of that row
    sensitive : (N,) int64, its sensitive code; of a dummy the one it adds
    dummy     : (N,) bool
    """

    mu: int
    size: int
    source: Int64Array
    sensitive: Int64Array
    dummy: BoolArray


def deal(sensitive: Int64Array, buckets: MatchBuckets, stream: Stream) -> DealtRecords:
    """Deal rows with (n,) sensitive codes, whose counts are those that `buckets` was made for. O(n log n)."""
    n = len(sensitive)
    shuffled = stream.permutation(n)
    rows = shuffled[np.argsort(sensitive[shuffled], kind="stable")]  # value by value, in random order
    by_value = np.lexsort((buckets.bucket, buckets.value))
    value, bucket, records = buckets.value[by_value], buckets.bucket[by_value], buckets.records[by_value]
    counts = np.bincount(sensitive, minlength=len(buckets.suppressed))
    within = np.cumsum(records) - records
    first_entry = np.searchsorted(value, value)
    starts = (np.cumsum(counts) - counts)[value] + within - within[first_entry]
    place = np.repeat(starts - within, records) + np.arange(int(records.sum()))
    made_up = np.repeat(np.arange(len(buckets.bucket)), buckets.dummies)
    copied = stream.below(n, len(made_up)) if len(made_up) else np.zeros(0, dtype=np.int64)
    source = np.concatenate([rows[place], copied])
    codes = np.concatenate([sensitive[rows[place]], buckets.value[made_up]])
    bucket_of = np.concatenate([np.repeat(bucket, records), buckets.bucket[made_up]])
    dummy = np.arange(len(source)) >= len(place)
    mixed = stream.permutation(len(source))
    turn = stream.permutation(buckets.mu)  # the place of each bucket
    order = mixed[np.argsort(turn[bucket_of[mixed]], kind="stable")]
    return DealtRecords(buckets.mu, buckets.size, source[order], codes[order], dummy[order])


def into_pools(sensitive: Int64Array, pools: Sequence[MatchBuckets], stream: Stream) -> list[Int64Array]:
    """Row numbers of each pool: of every value as many rows as the pool's buckets hold and suppress, any of them alike. O(n log n).

    sensitive : (n,) codes, whose counts are those that all pools hold together
    """
    if len(pools) == 1:
        return [np.arange(len(sensitive))]
    mixed = stream.permutation(len(sensitive))
    by_value = mixed[np.argsort(sensitive[mixed], kind="stable")]
    m = len(pools[0].suppressed)
    wanted = np.zeros((m, len(pools)), dtype=np.int64)
    for number, pool in enumerate(pools):
        np.add.at(wanted[:, number], pool.value, pool.records)
        wanted[:, number] += pool.suppressed
    pool_of = np.empty(len(sensitive), dtype=np.int64)
    pool_of[by_value] = np.repeat(np.tile(np.arange(len(pools)), m), wanted.ravel())
    return [np.flatnonzero(pool_of == number) for number in range(len(pools))]
