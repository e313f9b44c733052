"""What a stricter or a looser bound would have cost, from the counts of sensitive values alone, which every manifest has.

No record moves and no table is read: the driver's half of each method is run once for each bound, some eight times: seconds, and with more
than `MOST_VALUES` sensitive values minutes, so that no curve is drawn of those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.errors import AnonlibError, SpecError, Unsatisfiable
from anonlib.evaluation.retention import retention_by_rho2
from anonlib.exact import text
from anonlib.hierarchy import hierarchy_of
from anonlib.methods import bucketize, heterogeneous
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.match_buckets import mean_matches
from anonlib.privacy.sub_buckets import JointValues
from anonlib.privacy.t_closeness import GroundDistance, TCloseness
from anonlib.release.manifest import GuaranteePart, Manifest
from anonlib.reports.facts import Curve
from anonlib.solvers.buckets import anatomy as anatomy_solver
from anonlib.solvers.classes.sub_buckets import pack
from anonlib.spec.methods import read_method
from anonlib.spec.methods.anatomy import Anatomy
from anonlib.spec.methods.bucketize import Bucketize
from anonlib.spec.methods.heterogeneous import Heterogeneous
from anonlib.spec.methods.perturb import Perturb
from anonlib.spec.methods.sabre import Sabre

MOST_VALUES = {"sabre": 500, "heterogeneous": 60}
"""Sensitive values that a curve takes about twenty seconds for; `MOST` under other methods, and under l."""
MOST = 2_000
FACTORS = tuple(Fraction(k, 4) for k in (1, 2, 3, 4, 6, 8, 12, 16))
"""Bounds beside the one asked, as multiples of it."""
FROM_COUNTS = "The figures follow from how often each value occurs; the tables of the release were not needed."
DEPENDS = (
    "For this method what a stricter bound costs depends on the records themselves, which a release does not hold. anonlib explain, run on "
    "the spec, tells what it can before anything is published."
)
TOO_MANY = "There are so many different values that what other bounds cost takes minutes to tell; none is drawn here."
Cost = Callable[[Any], float]
"""A bound -> its cost. Raises Unsatisfiable or SpecError for one that cannot be kept on this table."""


def curve(manifest: Manifest) -> Curve | str:
    """The curve of the method's own bound, or why there is none, in a sentence."""
    part = manifest.guarantee
    if manifest.stream is not None:
        return "Of a stream every window has a curve of its own; none is drawn here."
    if part.also:
        return "With several protected columns a curve needs to know which values occur together, which a release does not tell."
    if len(part.values) > (MOST if "l" in part.asked else MOST_VALUES.get(manifest.method.name, MOST)):
        return TOO_MANY
    try:
        counts = SensitiveCounts(tuple(v.value for v in part.values), np.array([v.count for v in part.values]))
        wanted = read_method({manifest.method.name: manifest.method.parameters})
        drawn = _curve(wanted, counts, manifest)
    except (AnonlibError, ValueError):
        return "What the manifest says of the method or of its values cannot be read; the audit says more."
    if drawn is None:
        return DEPENDS
    return drawn if len(drawn.at) > 1 else "No other bound near the one asked can be kept on this table."


def _curve(wanted: Any, counts: SensitiveCounts, manifest: Manifest) -> Curve | None:
    match wanted:
        case Bucketize():
            return _of_buckets(wanted, counts, manifest)
        case Anatomy():
            return _whole_numbers("l", "records that share a record's bucket, on average", wanted.l, _anatomy(counts))
        case Perturb():
            return _of_perturbation(wanted, counts)
        case Heterogeneous(l=int()):
            return _whole_numbers("l", "rows that a record may be, on average", wanted.l, _matches(wanted, counts, "l"))
        case Heterogeneous():
            return _multiples(
                "beta", "rows that a record may be, on average", wanted.beta, _matches(wanted, counts, "beta")
            )
        case Sabre(way="symmetric"):
            return _multiples(
                "t", "records in a class, at least", wanted.t, _classes(wanted, counts, manifest.guarantee)
            )
        case _:
            return None


def _of_buckets(wanted: Bucketize, counts: SensitiveCounts, manifest: Manifest) -> Curve | None:
    ledger = manifest.ledger
    before = None
    if ledger is not None and ledger.before:
        before = {v.value: n for v, n in zip(manifest.guarantee.values, ledger.before, strict=True)}
    quick = wanted.model_copy(update={"solver": "two_size", "time_limit": None, "fake_values": 0})

    def cost(name: str) -> Cost:
        def of(bound: Any) -> float:
            asked = quick.model_copy(update={"privacy": wanted.privacy.model_copy(update={name: bound})})
            return _mean_size(bucketize.choose_buckets(counts, asked, before)[1].setting)

        return of

    what = "records that share a record's bucket, on average"
    if wanted.privacy.theta is not None:
        return _multiples("theta", what, wanted.privacy.theta, cost("theta"))
    if wanted.privacy.l is not None:
        return _whole_numbers("l", what, wanted.privacy.l, cost("l"))
    if wanted.privacy.default is not None:
        return _multiples("default threshold", what, wanted.privacy.default, cost("default"), below=Fraction(1))
    return None


def _anatomy(counts: SensitiveCounts) -> Cost:
    return lambda l: _mean_size(anatomy_solver.solve(counts, l).setting)  # noqa: E741


def _mean_size(setting: Any) -> float:
    """Records in the bucket of a record, on average over the records."""
    sizes, numbers = np.array(setting.sizes, dtype=float), np.array(setting.numbers, dtype=float)
    return float((sizes**2 * numbers).sum() / (sizes * numbers).sum())


def _of_perturbation(wanted: Perturb, counts: SensitiveCounts) -> Curve | None:
    rho1 = wanted.rho1 or Fraction(0)
    asked = sorted({wanted.rho2 * f for f in FACTORS if rho1 < wanted.rho2 * f < 1} | {wanted.rho2})
    whole = wanted.partitioning == "whole"
    points = retention_by_rho2(counts, asked, wanted.rho1, wanted.delta)
    at = tuple((text(p.rho2), 100 * (p.uniform_retention if whole else p.retention)) for p in points)
    place = [label for label, _ in at].index(text(wanted.rho2)) if text(wanted.rho2) in dict(at) else None
    if place is None:
        return None
    return Curve("rho2", "values kept as they are (%)", at, place, "left", FROM_COUNTS, more_is_better=True)


def _matches(wanted: Heterogeneous, counts: SensitiveCounts, name: str) -> Cost:
    def of(bound: Any) -> float:
        promised = heterogeneous.bucketing(counts, wanted.model_copy(update={name: bound}))
        return mean_matches(heterogeneous.whole_table("", counts, promised))

    return of


def _classes(wanted: Sabre, counts: SensitiveCounts, part: GuaranteePart) -> Cost:
    distance = _distance(part, counts)

    def of(t: Fraction) -> float:
        packing = pack([TCloseness(distance, counts.counts, t)], JointValues.single(counts.counts), wanted.k)
        return float(packing.sub_buckets.number * packing.least)

    return of


def _distance(part: GuaranteePart, counts: SensitiveCounts) -> GroundDistance:
    if part.distance == "ordered":
        return GroundDistance.ordered(counts.values)
    if part.distance == "hierarchical":
        return GroundDistance.hierarchical(hierarchy_of(part.hierarchy), counts.values)
    return GroundDistance.flat(counts.m)


def _multiples(
    bound: str, what: str, asked: Fraction | None, cost: Cost, below: Fraction | None = None
) -> Curve | None:
    """Over multiples of a bound of which smaller ones protect more."""
    if not asked:
        return None
    bounds = sorted(asked * factor for factor in FACTORS if below is None or asked * factor < below or factor == 1)
    return _over(bound, what, bounds, asked, cost, "left", lambda b: text(b) if len(text(b)) < 7 else f"{float(b):.3g}")


def _whole_numbers(bound: str, what: str, asked: int | None, cost: Cost) -> Curve | None:
    """Over whole numbers of which larger ones protect more."""
    if not asked:
        return None
    near = {max(2, int(asked * factor)) for factor in FACTORS} | {asked, asked + 1, max(2, asked - 1)}
    return _over(bound, what, sorted(near), asked, cost, "right", str)


def _over(
    bound: str, what: str, bounds: Sequence[Any], asked: Any, cost: Cost, towards: str, shown: Callable[[Any], str]
) -> Curve | None:
    at: list[tuple[str, float]] = []
    place = None
    for one in bounds:
        try:
            found = cost(one)
        except (Unsatisfiable, SpecError):
            continue
        if one == asked:
            place = len(at)
        at.append((shown(one), found))
    return None if place is None else Curve(bound, what, tuple(at), place, towards, FROM_COUNTS)
