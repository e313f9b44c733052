"""TwoSize: the best setting of at most two bucket sizes, over all pairs M <= S_1 < S_2 <= M'.

Source: generalized bucketization, section 5, Algorithms 2 and 3. Three ways to search one list of candidates:

none   scan the whole list for its first valid candidate                                     (no pruning)
loss   scan only the candidates that lose less than the best so far                          (Algorithm 2, Eq. 11-12)
full   compute the valid candidates as one interval of indices, then look at its first       (Algorithm 3, Eq. 13)

Why one interval. FC_S1 bounds b_1 from above, whatever S_2 is: sum_i min(floor(f'_i S_1) b, o_i) - S_1 b is concave in b
and 0 at b = 0; so does FC_S2 with b_2 (Lemma 7). The three cases of PC_xi (Corollary 2) are one linear condition,
u_i1 + u_i2 >= o_i: cases 1 and 2 imply it, and case 3 is it. Along the list it changes by the constant of Eq. 18, so it
holds on a prefix or on a suffix. All of Gamma* is therefore an intersection of half-lines, each found by a division.
(Taking "the left-most of C_1 .. C_m", as the journal text has it, would return a candidate that some other value refuses.)

Cost, full: q^2 / 2 size pairs, q = M' - M + 1, most of them dismissed by loss in O(1), the others in O(m'), m' the number of
merged values; plus log |T| steps of O(m' q) once. Independent of the number of records otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.privacy.buckets import BucketSetting
from anonlib.solvers.buckets.bucket_candidates import Candidates
from anonlib.solvers.buckets.sensitive_table import MergedValues, SensitiveTable
from anonlib.solvers.buckets.validity import two_size_partition

Pruning = Literal["none", "loss", "full"]
_BLOCK = 1024  # candidates scanned at a time


def solve(table: SensitiveTable, pruning: Pruning = "full", below: int | None = None) -> BucketSetting | None:
    """The valid setting of at most two sizes with the least loss, or None when there is none (with loss < `below`, if given).

    Ties go to the smaller S_1, then the smaller S_2. `pruning` changes the time, never the answer.
    """
    first_valid = _SEARCHES[pruning]
    values = table.merged()
    n = table.n
    best = _best_one_size(values, n, below)
    limits = values.fill_limits() if pruning == "full" else None
    sizes = table.sizes
    for small in sizes:
        threshold = best.loss if best else below
        if pruning != "none" and threshold is not None and n * (small - 1) ** 2 >= threshold * small:
            break  # every setting of buckets this large or larger loses at least n (S - 1)^2 / S
        for large in range(small + 1, sizes.stop):
            threshold = best.loss if best else below
            candidates = Candidates.of(n, small, large)
            kept = candidates.length if pruning == "none" else candidates.cutoff(threshold)
            i = first_valid(values, candidates, kept, limits) if kept else None
            if i is not None and (threshold is None or candidates.loss(i) < threshold):
                best = BucketSetting.of(zip((small, large), candidates.at(i), strict=True))
    return best


def exists(table: SensitiveTable, deadline: float | None = None) -> bool | None:
    """Whether any setting of at most two sizes is valid; None if `deadline` (time.perf_counter) comes first.

    Stops at the first it finds, large sizes first; sizes of which no single bucket can be filled are left out.
    """
    values, n = table.merged(), table.n
    if _best_one_size(values, n, None) is not None:
        return True
    limits = values.fill_limits()
    usable = values.sizes[limits > 0].tolist()
    for at in range(len(usable) - 1, 0, -1):
        if deadline is not None and time.perf_counter() > deadline:
            return None
        for small in reversed(usable[:at]):
            candidates = Candidates.of(n, small, usable[at])
            if candidates.length and _first_of_interval(values, candidates, candidates.length, limits) is not None:
                return True
    return False


def partition(table: SensitiveTable, setting: BucketSetting) -> Int64Array:
    """How many records of each value go to each size of a valid one- or two-size setting, (m, 1 or 2) int64 (Algorithm 1)."""
    if len(setting.sizes) == 1:
        return table.counts[:, None].copy()
    (s1, s2), (b1, b2) = setting.sizes, setting.numbers
    return two_size_partition(table.counts, table.capacity(s1), table.capacity(s2), (s1, s2), (b1, b2))


def _best_one_size(values: MergedValues, n: int, below: int | None) -> BucketSetting | None:
    """The smallest single size that is valid (Lemma 2)."""
    for size in values.sizes.tolist():
        number = n // size
        if number * size == n and (values.counts <= values.column(size) * number).all():
            return BucketSetting((size,), (number,)) if below is None or number * (size - 1) ** 2 < below else None
    return None


def _scan(values: MergedValues, candidates: Candidates, kept: int, limits: Int64Array | None) -> int | None:
    """The first valid among the first `kept` candidates by Theorem 1, one after the other (a block at a time)."""
    small, large = values.column(candidates.small), values.column(candidates.large)
    o = values.counts
    for start in range(0, kept, _BLOCK):
        i = np.arange(start, min(start + _BLOCK, kept), dtype=np.int64)
        b1 = candidates.first_small - i * candidates.step_small
        b2 = candidates.first_large + i * candidates.step_large
        a1 = np.minimum(b1[:, None] * small, o)  # (block, G)
        a2 = np.minimum(b2[:, None] * large, o)
        valid = (a1 + a2 >= o).all(axis=1)
        valid &= (a1 @ values.members >= b1 * candidates.small) & (a2 @ values.members >= b2 * candidates.large)
        if valid.any():
            return int(i[np.argmax(valid)])
    return None


def _first_of_interval(
    values: MergedValues, candidates: Candidates, kept: int, limits: Int64Array | None
) -> int | None:
    """The first index of Gamma* among the first `kept`: where all half-lines of FC and PC meet."""
    assert limits is not None
    first_size = int(values.sizes[0])
    most_small, most_large = (int(limits[size - first_size]) for size in (candidates.small, candidates.large))
    low = max(0, -((most_small - candidates.first_small) // candidates.step_small))  # b_1 <= most_small (FC_S1)
    high = min(kept - 1, (most_large - candidates.first_large) // candidates.step_large)  # b_2 <= most_large (FC_S2)
    if low > high:
        return None
    small, large = values.column(candidates.small), values.column(candidates.large)
    lacking = (
        values.counts - small * candidates.first_small - large * candidates.first_large
    )  # PC_xi: lacking <= i * gain
    gain = large * candidates.step_large - small * candidates.step_small  # Eq. 18
    # At both ends of the interval a linear condition either holds at `low`, or rises, or can never hold before `high`.
    rising = gain > 0
    if rising.any():
        low = max(low, int((-(-lacking[rising] // gain[rising])).max()))
    falling = gain < 0
    if falling.any():
        high = min(high, int((-lacking[falling] // -gain[falling]).min()))
    if low > high or (lacking[~rising & ~falling] > 0).any():
        return None
    return low


_SEARCHES: dict[str, Callable[[MergedValues, Candidates, int, Int64Array | None], int | None]] = {
    "none": _scan,
    "loss": _scan,
    "full": _first_of_interval,
}
