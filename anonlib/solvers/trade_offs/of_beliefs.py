"""What a bound on beliefs costs in perturbed values: rho2 from strict to loose.

Source: small domain randomization, sections 3 and 5: the more is allowed to be believed, the more records keep their value.
"""

from __future__ import annotations

from fractions import Fraction

from anonlib.errors import Unsatisfiable
from anonlib.exact import text
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.rho_privacy import RhoPrivacy
from anonlib.solvers.subtables.perturbation_partitioning import Partitioning, solve, solve_whole
from anonlib.solvers.trade_offs.trade_off import Point, TradeOff
from anonlib.spec.methods.perturb import Perturb

RHO2S = tuple(
    Fraction(share) for share in ("1/20", "1/12", "1/8", "1/6", "1/5", "1/4", "1/3", "1/2", "2/3", "3/4", "9/10")
)
MEASURES = {"retention": "values retained", "count_error": "error of a count"}


def of_rho2(counts: SensitiveCounts, wanted: Perturb) -> TradeOff:
    """Retention and the error of a count over rho2, rho1 as asked. Cost: a partitioning for each point (see `solve`)."""
    bounds = sorted({*(rho2 for rho2 in RHO2S if wanted.rho1 is None or rho2 > wanted.rho1), wanted.rho2})
    points = tuple(_point(counts, wanted, rho2) for rho2 in bounds)
    return TradeOff("rho2", wanted.rho2, MEASURES, "count_error", points)


def _point(counts: SensitiveCounts, wanted: Perturb, rho2: Fraction) -> Point:
    asked = RhoPrivacy(wanted.rho1, rho2)
    try:
        if wanted.partitioning == "whole":
            chosen = solve_whole(counts, asked, wanted.delta)
        else:
            chosen = solve(counts, asked, wanted.delta, wanted.merging or "search")
    except Unsatisfiable:
        return Point(rho2, {}, "cannot be kept")
    measures = {"retention": chosen.subtables.mean_retention, "count_error": chosen.count_error}
    return Point(rho2, measures, note_of(counts, chosen))


def note_of(counts: SensitiveCounts, chosen: Partitioning) -> str:
    """Whether counts can be told at all: not where the error of one is as large as a value is frequent."""
    mean = counts.n / counts.m
    if chosen.count_error < mean:
        return ""
    return (
        f"leaves nothing: counts are off by {chosen.count_error:,.0f}, and a value has {mean:,.0f} records on average"
    )


def offer(counts: SensitiveCounts, wanted: Perturb) -> str:
    """A clause for a refusal: the rho2 where giving more stops paying, with what it retains; "" where none leaves anything."""
    trade_off = of_rho2(counts, wanted)
    if not trade_off.worth:
        return ""
    at = next((point for point in trade_off.worth if point.bound == trade_off.proposed), trade_off.worth[0])
    return f"rho2: {text(at.bound)} retains {at.measures['retention']:.2%} of the values"
