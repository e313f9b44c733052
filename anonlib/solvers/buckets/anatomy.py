"""Anatomy: l-diversity with buckets of l or l + 1 records, all values of a bucket distinct. The baseline.

Source: Xiao and Tao, "Anatomy: simple and effective privacy preservation", VLDB 2006. Their algorithm takes, over and over, one
record of each of the l currently largest groups, and puts the residues into buckets that lack their value: n / l steps. Only
its outcome is needed here, b = floor(n / l) buckets with distinct values, and that needs no steps: as eligibility means that
no value has more than b records, records laid end to end value after value and dealt round to b buckets never meet their like.
"""

from __future__ import annotations

import time

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.errors import SpecError, Unsatisfiable
from anonlib.exact import legible
from anonlib.privacy.buckets import BucketSetting, BucketSolution
from anonlib.privacy.counts import SensitiveCounts


def solve(counts: SensitiveCounts, l: int) -> BucketSolution:  # noqa: E741  (the field's name)
    """The l-diverse setting with distinct values per bucket that loses least, with its record partition. Cost: O(m).

    n = l b + r with r < l: b - r buckets of l and r of l + 1 records. A table of fewer than l^2 records may have r > b, more
    residues than buckets; then no setting of l and l + 1 exists, and the buckets are as even as can be, floor(n / b) or one
    more. Either way b is the largest number of buckets of at least l records, and even sizes lose least: optimal.

    partition[i, j] <= number of buckets of size j, so round robin within a size keeps the values of a bucket distinct.
    Raises Unsatisfiable, naming the values with more than n / l records and the largest l that works; SpecError for l < 1
    or an empty table.
    """
    started = time.perf_counter()
    if isinstance(l, bool) or not isinstance(l, int) or l < 1:
        raise SpecError(f"l: {l!r} is not a whole number of at least 1")
    if counts.m == 0:
        raise SpecError("the table has no records, so there is nothing to put into buckets; check the input path")
    n = counts.n
    _refuse_ineligible(counts, l)
    b = n // l
    size, larger = divmod(n, b)  # larger: how many buckets take one record more
    setting = BucketSetting.of([(size, b - larger), (size + 1, larger)])
    ends = np.cumsum(counts.counts)
    # The t-th record of all goes to bucket t mod b; buckets 0 .. larger - 1 are the larger ones.
    to_larger = _below(ends, b, larger) - _below(ends - counts.counts, b, larger)
    partition = np.stack([counts.counts - to_larger, to_larger], axis=1)
    partition = partition[:, [j for j, number in enumerate((b - larger, larger)) if number]]
    return BucketSolution(setting, partition, "anatomy", setting.loss, "optimal", time.perf_counter() - started)


def _below(records: Int64Array, b: int, larger: int) -> Int64Array:
    """How many of the records t = 0 .. records - 1 have t mod b < larger."""
    return np.asarray(records // b * larger + np.minimum(records % b, larger), dtype=np.int64)


def _refuse_ineligible(counts: SensitiveCounts, l: int) -> None:  # noqa: E741
    """Raises Unsatisfiable when a value has more than n / l records."""
    n = counts.n
    offending = [i for i in range(counts.m) if int(counts.counts[i]) * l > n]
    if offending:
        named = ", ".join(
            f"{counts.values[i]!r} ({int(counts.counts[i]):,} of {n:,}, share {legible(counts.frequency(i))})"
            for i in offending
        )
        raise Unsatisfiable(
            f"{l}-diversity needs every sensitive value in at most 1/{l} of the records, and {len(offending)} value(s) have more: "
            f"{named}; the largest l that works is {n // int(counts.counts.max())}"
        )
