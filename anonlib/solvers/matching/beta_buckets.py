"""Buckets for beta-likeness: the largest bucket size c whose packing keeps |B_i| / mu <= (1 + beta) phi_i for every value i.

Source: heterogeneous generalization, section 4. The largest c is NP-hard to find (Theorem 6). Two packings are tried at every c, from the
largest support downward, since the attainable beta is not monotone in c:

    packed   full buckets first; then values that may not be split find room for their remainder (best fit, largest first), and those
             that may be (their bound allows further buckets) fill the gaps; if the former need more room, a value that can spare
             a full bucket gives it up. Every value then stands in ceil(n_i / c) buckets or within its exact bound.
    greedy   Algorithm 3: values in order of support, multiples of c first, one bucket filled after the other

The bound is the exact one, with mu = ceil(n / c). The paper's c / min(n_i / |B_i|) - 1 is larger as soon as n is no multiple of c.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.match_buckets import MatchBuckets, match_buckets
from anonlib.solvers.matching.l_buckets import l_buckets

Contents = dict[tuple[int, int], list[int]]
"""{(bucket, value): [records, dummies]}: what buckets hold."""
_BLOCK = 1 << 20
"""Entries of the (sizes, values) tables that the search looks at in one go."""


def beta_buckets(counts: Int64Array, likeness: BetaLikeness, dummies: bool = True) -> MatchBuckets | None:
    """The cheaper of `largest_buckets`, with as few dummies as its mu allows, and l-diversity with l = ceil(1 / ((1 + beta) phi_min)),
    which implies the bound (Theorem 4); None if neither exists.

    counts : (m,) int64, the values' records here, may be 0; `likeness` knows those of the whole table
    """
    largest = largest_buckets(counts, likeness, dummies=dummies)
    candidates = [None if largest is None else fewest_dummies(largest, counts, likeness)]
    fewest = likeness.equivalent_l
    if candidates[0] is None or fewest < candidates[0].mu:
        candidates.append(by_l_diversity(counts, likeness, dummies))
    possible = [buckets for buckets in candidates if buckets is not None]
    return min(possible, key=lambda buckets: buckets.estimated_loss, default=None)


def by_l_diversity(counts: Int64Array, likeness: BetaLikeness, dummies: bool = True) -> MatchBuckets | None:
    """The buckets of Algorithm 1 with l = ceil(1 / ((1 + beta) phi_min)) (Theorem 4), where no value is in more of them than its
    bound allows: the theorem counts the matches of a record, and around a person a value of two buckets may be shown twice."""
    buckets = l_buckets(counts, likeness.equivalent_l, dummies)
    return replace(buckets, distinct=False) if buckets is not None and _kept(buckets, likeness) else None


def largest_buckets(
    counts: Int64Array, likeness: BetaLikeness, at_least: int = 1, dummies: bool = True, packings: str = "packed greedy"
) -> MatchBuckets | None:
    """The largest size c >= at_least that some packing of `packings` can fill, or None.

    Cost: O(m) vectorised per size, and O(m log m) for sizes that could do.
    """
    for c in _candidates(counts, likeness, at_least, dummies):
        for packing in packings.split():
            buckets = packed(counts, likeness, c, dummies) if packing == "packed" else greedy(counts, c, dummies)
            if buckets is not None and _kept(buckets, likeness):
                return buckets
    return None


def fewest_dummies(buckets: MatchBuckets, counts: Int64Array, likeness: BetaLikeness) -> MatchBuckets:
    """Buckets of the smallest size that keeps the bound with as many of them, or `buckets` themselves where no smaller one does.

    What a record's box loses is the same with as many matches, and fewer records are made up. counts, likeness : as in `beta_buckets`.
    """
    for c in range(-(-int(counts.sum()) // buckets.mu), buckets.size if buckets.made_up else 0):
        for smaller in (packed(counts, likeness, c), greedy(counts, c)):
            if smaller is not None and _kept(smaller, likeness):
                return smaller
    return buckets


def _kept(buckets: MatchBuckets, likeness: BetaLikeness) -> bool:
    """Whether no value is in more buckets than its bound allows."""
    return bool((buckets.held_by <= likeness.copies(buckets.mu)).all())


def _candidates(counts: Int64Array, likeness: BetaLikeness, at_least: int, dummies: bool) -> list[int]:
    """Sizes, largest first, at which every value may stand in the ceil(n_i / c) buckets that it needs at least."""
    n, largest = int(counts.sum()), int(counts.max(initial=0))
    if likeness.beta == 0:  # only pure buckets do (Theorem 5), so c divides every support
        largest = math.gcd(*counts.tolist())
    candidates: list[int] = []
    step = max(1, _BLOCK // max(1, len(counts)))
    for top in range(largest, at_least - 1, -step):
        sizes = np.arange(top, max(top - step, at_least - 1), -1, dtype=np.int64)
        mu = -(-n // sizes) if dummies else n // sizes
        needed = -(-counts[None, :] // sizes[:, None])
        candidates += sizes[(needed <= likeness.copies(mu)).all(axis=1)].tolist()
    return candidates


def packed(counts: Int64Array, likeness: BetaLikeness, c: int, dummies: bool = True) -> MatchBuckets | None:
    """The better packing at size c; None if it finds none within the bounds."""
    n = int(counts.sum())
    mu = -(-n // c) if dummies else n // c
    may = likeness.copies(mu)
    full = counts // c
    rest = counts - c * full
    room = mu - int(full.sum())
    spare: Int64Array = may - full - (rest > 0)  # buckets beyond those it needs
    unsplit = (rest > 0) & (spare == 0)
    tight = np.flatnonzero(unsplit)
    gaps = _best_fit(rest[tight], tight, c)
    while len(gaps) > room:  # someone who may be split gives up a full bucket
        giver = int(np.argmax(np.where(full > 0, spare, -1)))
        if full[giver] == 0 or spare[giver] <= 0:
            return None
        full[giver] -= 1
        rest[giver] += c
        spare[giver] -= 1
        room += 1
    bins = gaps + [{} for _ in range(room - len(gaps))]
    loose = np.flatnonzero((rest > 0) & ~unsplit)
    left = _fill(bins, loose[np.argsort(-rest[loose], kind="stable")].tolist(), rest, may - full, c)
    if left is None or (dummies and left.sum()):
        return None
    contents: Contents = {}
    bucket = 0
    for value in np.flatnonzero(full).tolist():
        for _ in range(int(full[value])):
            contents[bucket, value] = [c, 0]
            bucket += 1
    return _finished(contents, bucket, bins, c, left, dummies, "packed")


def _best_fit(sizes: Int64Array, values: Int64Array, c: int) -> list[dict[int, int]]:
    """Bins of c, each {value: records}: the largest first, each to the fullest bin that has room."""
    bins: list[dict[int, int]] = []
    gaps: list[tuple[int, int]] = []  # (room, bin), ascending
    for at in np.argsort(-sizes, kind="stable").tolist():
        size, value = int(sizes[at]), int(values[at])
        place = bisect.bisect_left(gaps, (size, -1))
        if place < len(gaps):
            room, number = gaps.pop(place)
            bins[number][value] = size
        else:
            room, number = c, len(bins)
            bins.append({value: size})
        bisect.insort(gaps, (room - size, number))
    return bins


def _fill(
    bins: list[dict[int, int]], values: list[int], rest: Int64Array, pieces: Int64Array, c: int
) -> Int64Array | None:
    """Put rest[v] records of each value into the bins, whole where one has room, else in up to pieces[v] pieces, widest gap first.

    Returns (m,) what found no room (without dummies the bins are too few for all), or None when a bound forbids it.
    """
    left = np.zeros(len(rest), dtype=np.int64)
    gaps = sorted((c - poured, b) for b, content in enumerate(bins) if (poured := sum(content.values())) < c)
    for value in values:
        size, may = int(rest[value]), int(pieces[value])
        while size and may and gaps:
            place = bisect.bisect_left(gaps, (size, -1))
            room, number = gaps.pop(min(place, len(gaps) - 1))  # the tightest that takes it all, else the widest
            poured = min(room, size)
            bins[number][value] = poured
            size, may = size - poured, may - 1
            if room > poured:
                bisect.insort(gaps, (room - poured, number))
        if size and gaps:
            return None
        left[value] = size
    return left


def greedy(counts: Int64Array, c: int, dummies: bool = True) -> MatchBuckets:
    """Algorithm 3 at size c: supports in descending order, multiples of c first, poured into one bucket after the other."""
    order = np.lexsort((np.arange(len(counts)), -counts, counts % c != 0))
    order = order[counts[order] > 0]
    n = int(counts.sum())
    mu = -(-n // c) if dummies else n // c
    bins: list[dict[int, int]] = [{} for _ in range(mu)]
    left = np.zeros(len(counts), dtype=np.int64)
    at = 0
    for value in order.tolist():
        stop = at + int(counts[value])
        while at < stop:
            poured = min(stop, (at // c + 1) * c) - at
            if at // c < mu:
                bins[at // c][value] = poured
            else:
                left[value] += poured
            at += poured
    return _finished({}, 0, bins, c, left, dummies, "greedy")


def _finished(
    contents: Contents, bucket: int, bins: list[dict[int, int]], c: int, left: Int64Array, dummies: bool, algorithm: str
) -> MatchBuckets:
    """Bins become buckets; gaps are filled with dummies of the value that the bucket has most of, which widens no value's |B_i|."""
    for content in bins:
        for value, records in content.items():
            contents[bucket, value] = [records, 0]
        gap = c - sum(content.values())
        if gap:
            assert dummies, "without dummies every bucket is full"
            contents[bucket, max(content, key=lambda v: (content[v], -v))][1] = gap
        bucket += 1
    return match_buckets(c, contents, left, distinct=False, algorithm=algorithm)


def published_bound(counts: Int64Array, buckets: MatchBuckets) -> Fraction:
    """The paper's bound on beta (equation 7): c / min(n_i / |B_i|) - 1; of the whole table, and exact only without dummies.

    counts : (m,) int64, n_i; buckets : those that hold them
    """
    occupancy = [Fraction(int(n), int(b)) for n, b in zip(counts, buckets.held_by, strict=True) if b]
    return buckets.size / min(occupancy) - 1
