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

Cells = dict[tuple[int, int], list[int]]
_BLOCK = 1 << 20
"""Entries of the (sizes, values) tables that the search looks at in one go."""


def beta_buckets(counts: Int64Array, likeness: BetaLikeness, dummies: bool = True) -> MatchBuckets | None:
    """The cheaper of `largest_buckets`, with as few dummies as its mu allows, and l-diversity with l = ceil(1 / ((1 + beta) phi_min)),
    which implies the bound (Theorem 4); None if neither exists.

    counts : (m,) int64, the values' records here, may be 0; `likeness` knows those of the whole table
    """
    largest = largest_buckets(counts, likeness, dummies=dummies)
    found = [None if largest is None else fewest_dummies(largest, counts, likeness)]
    fewest = likeness.equivalent_l
    if found[0] is None or fewest < found[0].mu:
        found.append(by_l_diversity(counts, likeness, dummies))
    there = [each for each in found if each is not None]
    return min(there, key=lambda each: each.estimated_loss, default=None)


def by_l_diversity(counts: Int64Array, likeness: BetaLikeness, dummies: bool = True) -> MatchBuckets | None:
    """The buckets of Algorithm 1 with l = ceil(1 / ((1 + beta) phi_min)) (Theorem 4), where no value is in more of them than its
    bound allows: the theorem counts the matches of a record, and around a person a value of two buckets may be shown twice."""
    found = l_buckets(counts, likeness.equivalent_l, dummies)
    return replace(found, distinct=False) if found is not None and _kept(found, likeness) else None


def largest_buckets(
    counts: Int64Array, likeness: BetaLikeness, at_least: int = 1, dummies: bool = True, packings: str = "packed greedy"
) -> MatchBuckets | None:
    """The largest size c >= at_least that some packing of `packings` can fill, or None.

    Cost: O(m) vectorised per size, and O(m log m) for sizes that could do.
    """
    for c in _candidates(counts, likeness, at_least, dummies):
        for packing in packings.split():
            found = packed(counts, likeness, c, dummies) if packing == "packed" else greedy(counts, c, dummies)
            if found is not None and _kept(found, likeness):
                return found
    return None


def fewest_dummies(found: MatchBuckets, counts: Int64Array, likeness: BetaLikeness) -> MatchBuckets:
    """The smallest size that keeps the bound with as many buckets: what a record's box loses is the same, and fewer records are made up."""
    for c in range(-(-int(counts.sum()) // found.mu), found.size if found.made_up else 0):
        for each in (packed(counts, likeness, c), greedy(counts, c)):
            if each is not None and _kept(each, likeness):
                return each
    return found


def _kept(found: MatchBuckets, likeness: BetaLikeness) -> bool:
    return bool((found.held_by <= likeness.copies(found.mu)).all())


def _candidates(counts: Int64Array, likeness: BetaLikeness, at_least: int, dummies: bool) -> list[int]:
    """Sizes, largest first, at which every value may stand in the ceil(n_i / c) buckets that it needs at least."""
    n, largest = int(counts.sum()), int(counts.max(initial=0))
    if likeness.beta == 0:  # only pure buckets do (Theorem 5), so c divides every support
        largest = math.gcd(*counts.tolist())
    found: list[int] = []
    step = max(1, _BLOCK // max(1, len(counts)))
    for top in range(largest, at_least - 1, -step):
        sizes = np.arange(top, max(top - step, at_least - 1), -1, dtype=np.int64)
        mu = -(-n // sizes) if dummies else n // sizes
        needed = -(-counts[None, :] // sizes[:, None])
        found += sizes[(needed <= likeness.copies(mu)).all(axis=1)].tolist()
    return found


def packed(counts: Int64Array, likeness: BetaLikeness, c: int, dummies: bool = True) -> MatchBuckets | None:
    """The better packing at size c; None if it finds none within the bounds."""
    n = int(counts.sum())
    mu = -(-n // c) if dummies else n // c
    may = likeness.copies(mu)
    full = counts // c
    rest = counts - c * full
    room = mu - int(full.sum())
    spare: Int64Array = may - full - (rest > 0)  # buckets beyond those it needs
    tight = np.flatnonzero((rest > 0) & (spare == 0))
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
    loose = np.setdiff1d(np.flatnonzero(rest > 0), tight)
    left = _fill(bins, loose[np.argsort(-rest[loose], kind="stable")].tolist(), rest, may - full, c)
    if left is None or (dummies and left.sum()):
        return None
    cells: Cells = {}
    bucket = 0
    for value in np.flatnonzero(full).tolist():
        for _ in range(int(full[value])):
            cells[bucket, value] = [c, 0]
            bucket += 1
    return _finished(cells, bucket, bins, c, left, dummies, "packed")


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
    gaps = sorted((c - taken, b) for b, where in enumerate(bins) if (taken := sum(where.values())) < c)
    for value in values:
        size, may = int(rest[value]), int(pieces[value])
        while size and may and gaps:
            place = bisect.bisect_left(gaps, (size, -1))
            room, number = gaps.pop(min(place, len(gaps) - 1))  # the tightest that takes it all, else the widest
            taken = min(room, size)
            bins[number][value] = taken
            size, may = size - taken, may - 1
            if room > taken:
                bisect.insort(gaps, (room - taken, number))
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
            taken = min(stop, (at // c + 1) * c) - at
            if at // c < mu:
                bins[at // c][value] = taken
            else:
                left[value] += taken
            at += taken
    return _finished({}, 0, bins, c, left, dummies, "greedy")


def _finished(
    cells: Cells, bucket: int, bins: list[dict[int, int]], c: int, left: Int64Array, dummies: bool, algorithm: str
) -> MatchBuckets:
    """Bins become buckets; gaps are filled with dummies of the value that the bucket has most of, which widens no value's |B_i|."""
    for where in bins:
        for value, records in where.items():
            cells[bucket, value] = [records, 0]
        gap = c - sum(where.values())
        if gap:
            assert dummies, "without dummies every bucket is full"
            cells[bucket, max(where, key=lambda v: (where[v], -v))][1] = gap
        bucket += 1
    return match_buckets(c, cells, left, distinct=False, algorithm=algorithm)


def published_bound(counts: Int64Array, found: MatchBuckets) -> Fraction:
    """The paper's bound on beta (equation 7): c / min(n_i / |B_i|) - 1; of the whole table, and exact only without dummies."""
    occupancy = [Fraction(int(n), int(b)) for n, b in zip(counts, found.held_by, strict=True) if b]
    return found.size / min(occupancy) - 1
