"""Pools for beta-likeness by matches: every record in one of them, nobody made up and nobody left out, each within the bound by itself.

Source: heterogeneous generalization, section 4, made exact. The paper fills buckets up with made-up records. Whoever knows the graph and
the true counts then knows which value was made up, hence the bucket of that record and of everybody who is known to share it. So records
are taken apart until everything comes out even:

    main pool   mu buckets of c records
    rare pool   where it pays, mu' > mu buckets of c' records, which hold what the bound keeps out of the main one: rare values need many
                matches, and the others need not have as many for their sake
    rest        the few that are left, each a bucket of its own

Every pool keeps |B_i| / mu <= (1 + beta) phi_i with its own mu and the shares phi_i of the whole table. Shapes are tried from the least
expected loss on (`beta_pool_shapes`); n buckets of one record always do for the whole table. By counts alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.match_buckets import MatchBuckets, match_buckets
from anonlib.privacy.match_limits import MatchLimits
from anonlib.solvers.matching.beta_buckets import greedy, packed
from anonlib.solvers.matching.beta_pool_shapes import (
    could_hold,
    loss,
    loss_alike,
    loss_of,
    losses,
    matches_alike,
    shapes_of,
)
from anonlib.solvers.matching.l_pools import l_pools
from anonlib.solvers.matching.line_pools import line_pools, poured

ALGORITHM = "beta_pools"
_PATIENT, _STEP = 32, 0.002
"""After so many shapes that could not be packed, the next one tried loses more than the last by this share, and ever more by and by."""
_FIRST, _BLOCK = 1 << 14, 1 << 19
"""Entries of the (shapes, values) tables that are looked at in one go, and the most after doubling."""
_WAYS = ("whole buckets stay", "whole buckets go", "whole buckets go, remainders too", "remainders go, and part of one")


def beta_pools(
    counts: Int64Array,
    likeness: BetaLikeness,
    largest: int | None = None,
    most: float | None = None,
    limits: MatchLimits | None = None,
) -> list[MatchBuckets] | None:
    """The pools of the least loss found, largest first; None when such counts cannot keep the bound by themselves, or it was not found.

    counts  : (m,) int64, the values' records here, may be 0; `likeness` knows those of the whole table
    largest : records of a bucket at most
    most    : the most matches, as `alike` counts them, beyond which nothing is looked for
    limits  : what every pool has to keep beside, of nodes and of values; with the bound among them

    l-diversity with l = ceil(1 / ((1 + beta) phi_min)), which implies the bound (Theorem 4), is taken where its pools lose less; with
    limits the pools of `anonlib.solvers.matching.line_pools` are.
    Cost: O(m) vectorised per shape, O(m log m + n / c) for each that is packed; some tenth of a second for 1,000 records of 50 values.
    """
    if not counts.any() or not likeness.holds(counts[None, :])[0]:  # what each pool keeps, all of them do
        return None
    present = np.flatnonzero(counts)
    if len(present) == len(counts):
        return _cheapest(counts, likeness, largest, most, limits)
    absent = int(
        likeness.table.sum() - likeness.table[present].sum()
    )  # as one value, so that a partition pays for its own alone
    shares = BetaLikeness(likeness.beta, np.append(likeness.table[present], absent))
    of_present = None if limits is None else limits.of_values(present)
    pools = _cheapest(np.append(counts[present], 0), shares, largest, most, of_present)
    return (
        None
        if pools is None
        else [replace(pool, value=present[pool.value], suppressed=np.zeros_like(counts)) for pool in pools]
    )


def _cheapest(
    counts: Int64Array, likeness: BetaLikeness, largest: int | None, most: float | None, limits: MatchLimits | None
) -> list[MatchBuckets] | None:
    """The pools of least loss by beta-likeness or by l-diversity, as `beta_pools`, where every value of the table has a count here."""
    n = int(counts.sum())
    if limits is not None and not bool(limits.eligible(counts).all()):
        return None
    pools = _least(counts, likeness, largest, math.inf if most is None else most, limits)
    if limits is not None:
        line = line_pools(counts, limits, largest)
        fits = line is not None and (most is None or alike(line) <= most)
        return line if fits and (pools is None or loss_of(line or []) < loss_of(pools)) else pools
    l = likeness.equivalent_l  # noqa: E741  (the field's name)
    if pools is None or float(loss(l, n / l)) < loss_of(pools):
        by_l = [replace(pool, distinct=False) for pool in l_pools(counts, l) or []]
        if by_l and (pools is None or loss_of(by_l) < loss_of(pools)):
            small = largest is None or all(pool.size <= largest for pool in by_l)
            if small and (most is None or alike(by_l) <= most):
                return by_l
    return pools


def alike(pools: list[MatchBuckets]) -> float:
    """The number of matches with which one pool of as many records would be expected to lose as much."""
    return matches_alike(loss_of(pools), sum(pool.mu * pool.size for pool in pools))


def _least(
    counts: Int64Array, likeness: BetaLikeness, largest: int | None, most: float, limits: MatchLimits | None
) -> list[MatchBuckets] | None:
    """The pools of the first shape, in order of loss, that can be packed within the bound; None when none can."""
    n = int(counts.sum())
    shapes = shapes_of(counts, likeness, largest)
    lost = losses(shapes, n)
    shapes = shapes[: int(np.searchsorted(lost, loss_alike(most, n), side="right"))]
    failed, least, start, stop = 0, 0.0, 0, 0
    while stop < len(shapes):
        start, stop = stop, stop + max(16, min(_BLOCK, _FIRST + stop * len(counts)) // len(counts))
        block = shapes[start:stop]
        for k in np.flatnonzero(could_hold(counts, likeness, block)).tolist():
            if lost[start + k] < least and start + k < len(shapes) - 1:
                continue
            mu, c, rare_mu, rare_c = block[k].tolist()
            pools = taken_apart(counts, likeness, mu, c, rare_mu, rare_c, limits)
            if pools is not None:
                return pools
            failed += 1
            if failed > _PATIENT:
                least = float(lost[start + k]) * (1 + _STEP * (failed // _PATIENT))
    return None


def taken_apart(
    counts: Int64Array,
    likeness: BetaLikeness,
    mu: int,
    c: int,
    rare_mu: int = 0,
    rare_c: int = 0,
    limits: MatchLimits | None = None,
) -> list[MatchBuckets] | None:
    """Pools of this shape, largest first, or None where none of the ways tried comes out even within the bound."""
    left = int(counts.sum()) - mu * c - rare_mu * rare_c
    may, rare_may = likeness.copies(mu), likeness.copies(rare_mu)
    main_holds, rare_holds = c * may, rare_c * rare_may
    for way in _WAYS:
        stay = counts
        pools: list[MatchBuckets] = []
        if left:
            alone = set_aside(stay, left, likeness.copies(left), main_holds + rare_holds, c, 1, way)
            if alone is None:
                continue
            stay = stay - alone
            pools.append(_of_one(alone))
            if limits is not None and not limits.kept_by(pools):
                continue
        if rare_c:
            rare = set_aside(stay, rare_mu * rare_c, rare_holds, main_holds, c, rare_c, way)
            if rare is None:
                continue
            stay = stay - rare
            filled = _filled(rare, likeness, rare_may, rare_c, limits)
            if filled is None:
                continue
            pools.append(filled)
        main = _filled(stay, likeness, may, c, limits)
        if main is not None:
            return sorted([main, *pools], key=lambda pool: -pool.mu * pool.size)
    return None


def set_aside(
    counts: Int64Array, number: int, holds: Int64Array, stays: Int64Array, c: int, size: int, way: str = _WAYS[0]
) -> Int64Array | None:
    """(m,) how many records of each value leave buckets of c records for buckets of `size`, `number` in all; None when they cannot.

    holds : (m,) records of each value that the new buckets may have; stays : that the old ones may. Where there is a choice, what is over a
    whole number of buckets goes first, and then whole buckets, of one kind or the other by `way`: the fewer remainders, the better both
    are packed. O(m log m).
    """
    most = np.minimum(counts, holds)
    gone = np.maximum(counts - stays, 0)
    short = number - int(gone.sum())
    if short < 0 or (gone > most).any() or int(most.sum()) < number:
        return None
    remainders = -gone % size if way == _WAYS[1] else (counts - gone) % c
    order = np.argsort(remainders, kind="stable").tolist()
    over, room = remainders.tolist(), (most - gone).tolist()  # one at a time Python's numbers cost a tenth of NumPy's
    for value in order:
        take = min(short, room[value], over[value])
        if take == over[value] or way == _WAYS[3]:
            room[value] -= take
            short -= take
    units = {_WAYS[0]: (c, size, 1), _WAYS[1]: (size, c, 1), _WAYS[2]: (size, 1), _WAYS[3]: (c, size, 1)}[way]
    for unit in units:
        if short < unit:
            continue
        for value in sorted(range(len(room)), key=lambda v: -room[v]):
            take = min(short, room[value]) // unit * unit
            room[value] -= take
            short -= take
    return np.asarray(most - np.array(room, dtype=np.int64))


def _filled(
    counts: Int64Array, likeness: BetaLikeness, may: Int64Array, c: int, limits: MatchLimits | None = None
) -> MatchBuckets | None:
    """Full buckets of c of all these records, value i in may[i] of them at most; unsplit remainders first, else as Algorithm 3 pours, else
    node after node where limits are to be kept."""
    if (counts > c * may).any():
        return None
    packings: list[Callable[[], MatchBuckets | None]] = [lambda: packed(counts, likeness, c), lambda: greedy(counts, c)]
    if limits is not None:
        packings.append(lambda: poured(counts, limits, c))
    for pack in packings:
        buckets = pack()
        if buckets is not None and not buckets.made_up and (buckets.held_by <= may).all():
            if limits is not None and not limits.kept_by([buckets]):
                continue
            return replace(buckets, algorithm=ALGORITHM)
    return None


def _of_one(counts: Int64Array) -> MatchBuckets:
    """The pool of records that are each a bucket of their own."""
    contents = {(b, v): [1, 0] for b, v in enumerate(np.repeat(np.arange(len(counts)), counts).tolist())}
    return match_buckets(1, contents, np.zeros(len(counts), dtype=np.int64), distinct=False, algorithm=ALGORITHM)
