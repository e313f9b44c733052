"""What l or beta costs in matches: from strict to loose, by the pools of the whole table.

Source: heterogeneous generalization, sections 3 and 4: more matches make larger boxes. A record that matches all others of its pool has the
box of the whole pool, and tells nothing; one that matches itself alone is published as it is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from fractions import Fraction

from anonlib.hierarchy import Hierarchy
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.match_buckets import MatchBuckets, mean_matches, records
from anonlib.privacy.match_limits import MatchLimits, match_limits
from anonlib.solvers.matching.match_partitions import Bucketing
from anonlib.solvers.trade_offs.trade_off import NOTED, Point, TradeOff
from anonlib.spec.methods.heterogeneous import Heterogeneous

LS = tuple(map(Fraction, (30, 20, 15, 10, 8, 6, 5, 4, 3, 2)))
BETAS = tuple(map(Fraction, ("0.5", "1", "2", "4", "8")))
MEASURES = {"matches": "matches", "in_the_dark": "records that match their whole pool"}
SECONDS = 20.0
"""After so long no further bound is looked at: some 700 rare values take as long each."""

NOT_LOOKED_AT = "its matches were not looked at, for time"
Known = Mapping[Fraction, list[MatchBuckets]]


def of_matches(
    counts: SensitiveCounts, wanted: Heterogeneous, known: Known | None = None, hierarchy: Hierarchy | None = None
) -> TradeOff:
    """Mean matches over l, or over beta, all else as asked. known : {bound: pools of the whole table} that need not be computed again;
    hierarchy : of the sensitive values.

    Cost: `Bucketing.of_whole` for each point, those next to what is asked first, until `SECONDS` have passed.
    """
    asked, late = bound_of(wanted), time.monotonic() + SECONDS
    bounds = {*(LS if wanted.l is not None else BETAS), asked}
    points = {}
    for bound in sorted(bounds, key=lambda each: abs(math.log(each / asked)) if each and asked else each):
        looked_at = bound == asked or time.monotonic() < late
        points[bound] = (
            _point(counts, wanted, bound, known or {}, hierarchy) if looked_at else Point(bound, {}, NOT_LOOKED_AT)
        )
    strictest_first = sorted(bounds, reverse=wanted.l is not None)
    name = "l" if wanted.l is not None else "beta"
    return TradeOff(name, asked, MEASURES, "matches", tuple(points[bound] for bound in strictest_first))


def bound_of(wanted: Heterogeneous) -> Fraction:
    """The one bound that the spec gives, l or beta."""
    return Fraction(wanted.l) if wanted.l is not None else Fraction(wanted.beta or 0)


def bucketing_at(
    counts: SensitiveCounts, wanted: Heterogeneous, bound: Fraction, hierarchy: Hierarchy | None = None
) -> Bucketing:
    """What is asked with another l or beta, over the shares of `counts`. hierarchy : of the sensitive values, None for none."""
    likeness = None if wanted.beta is None else BetaLikeness(bound, counts.counts)
    remainder = None if wanted.remainder is None else wanted.remainder == "dummy"
    limits = _limits(counts, wanted, bound, hierarchy)
    return Bucketing(int(bound) if likeness is None else None, likeness, remainder, limits)


def bounds_at(counts: SensitiveCounts, wanted: Heterogeneous, bound: Fraction) -> list[Fraction]:
    """The share of each value that l or beta allows among the matches of a record."""
    if wanted.l is not None:
        return [1 / bound] * counts.m
    return [min(Fraction(1), (1 + bound) * counts.frequency(i)) for i in range(counts.m)]


def _limits(
    counts: SensitiveCounts, wanted: Heterogeneous, bound: Fraction, hierarchy: Hierarchy | None
) -> MatchLimits | None:
    """None where l or beta says all."""
    if not wanted.thresholds:
        return None
    return match_limits(counts.values, bounds_at(counts, wanted, bound), wanted.thresholds, hierarchy)


def _point(
    counts: SensitiveCounts, wanted: Heterogeneous, bound: Fraction, known: Known, hierarchy: Hierarchy | None
) -> Point:
    pools = known.get(bound) or bucketing_at(counts, wanted, bound, hierarchy).of_whole(counts.counts)
    if pools is None:
        return Point(bound, {}, "cannot be kept")
    measures = {"matches": mean_matches(pools), "in_the_dark": in_the_dark(pools) / records(pools)}
    return Point(bound, measures, note_of(pools))


def in_the_dark(pools: list[MatchBuckets]) -> int:
    """How many records match all of their pool, which has others."""
    return sum(pool.mu for pool in pools if pool.size == 1 and pool.mu > 1)


def note_of(pools: list[MatchBuckets]) -> str:
    """What must be known of pools: whose boxes tell nothing, and who is published as he is."""
    n = records(pools)
    alone = sum(pool.size for pool in pools if pool.mu == 1)
    if alone >= NOTED * n:
        return f"protects nothing of {alone / n:.2%} of the records: each matches itself alone"
    dark = [pool.mu for pool in pools if pool.size == 1 and pool.mu > 1]
    if sum(dark) < NOTED * n:
        return ""
    return f"leaves nothing of {sum(dark) / n:.2%} of the records: each matches {max(dark) - 1:,} others, all there are in its pool"
