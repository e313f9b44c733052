"""Buckets for l-diversity: the l most frequent values found one bucket each, the others fill the emptiest.

Source: heterogeneous generalization, Algorithm 1. Theorem 2 rests on two facts that this keeps: a bucket's dominating value is in no other
bucket, and no other value is more frequent than a dominating one. So made-up records, where n is no multiple of l, carry the
dominating value of the bucket that lacks them; the paper gives them values of their own, which nobody else in the release would have.
"""

from __future__ import annotations

import heapq

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.match_buckets import MatchBuckets, match_buckets


def l_buckets(counts: Int64Array, l: int, dummies: bool = True) -> MatchBuckets | None:  # noqa: E741  (the field's name)
    """l buckets of ceil(n / l) records (n / l rounded down, and the rest left out, without dummies); None when not eligible.

    counts : (m,) int64, may be 0. At most l - 1 records are made up or left out. O(m log m).
    """
    if not bool(LDiversity(l).eligible(counts[None, :])[0]):
        return None
    left, size = _fitting(counts, l, dummies)
    order = np.lexsort((np.arange(len(left)), -left))
    order = order[left[order] > 0].tolist()
    contents = {(b, v): [int(left[v]), 0] for b, v in enumerate(order[:l])}
    fill = [(int(left[v]), b) for b, v in enumerate(order[:l])]
    heapq.heapify(fill)
    for value in order[l:]:
        rest = int(left[value])
        while rest:
            full, bucket = heapq.heappop(fill)  # the emptiest
            poured = min(rest, size - full)
            contents[bucket, value] = [poured, 0]
            rest -= poured
            if full + poured < size:
                heapq.heappush(fill, (full + poured, bucket))
    for full, bucket in fill:
        contents[bucket, order[bucket]][1] = size - full
    return match_buckets(size, contents, counts - left, distinct=True, algorithm="l_diversity")


def _fitting(counts: Int64Array, l: int, dummies: bool) -> tuple[Int64Array, int]:  # noqa: E741
    """(counts without those to leave out, bucket size). The most frequent value gives up records first."""
    n = int(counts.sum())
    if dummies:
        return counts, -(-n // l)
    left = counts.copy()
    for _ in range(n % l):
        left[int(np.argmax(left))] -= 1
    return left, n // l
