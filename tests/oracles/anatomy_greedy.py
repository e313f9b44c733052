"""Anatomize, as it stands in the paper: one record at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def anatomize(counts: Sequence[int], l: int) -> list[Counter[int]]:  # noqa: E741
    """Buckets of value ids. While l groups have records, a bucket takes one of each of the l largest; then each residue goes
    to a smallest bucket that lacks its value. Assumes eligibility."""
    left = Counter({value: number for value, number in enumerate(counts) if number})
    buckets: list[Counter[int]] = []
    while len(left) >= l:
        largest = sorted(left, key=lambda value: (-left[value], value))[:l]
        buckets.append(Counter(largest))
        left.subtract(largest)
        left += Counter()
    for value in left.elements():
        lacking = [bucket for bucket in buckets if value not in bucket]
        min(lacking, key=lambda bucket: bucket.total())[value] += 1
    return buckets
