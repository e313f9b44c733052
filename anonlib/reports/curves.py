"""What a stricter or a looser bound would have cost, from the counts of sensitive values alone, which every manifest has.

No record moves and no table is read: the trade-off is the one of `explain` (`anonlib.solvers.trade_offs.registry`), where counts give one,
and under t the least size of a class. Seconds to half a minute; with more than `MOST_VALUES` sensitive values minutes, so that no curve is
drawn of those. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from anonlib.errors import AnonlibError, SpecError, Unsatisfiable
from anonlib.hierarchy import hierarchy_of
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.sub_buckets import JointValues
from anonlib.privacy.t_closeness import GroundDistance, TCloseness
from anonlib.release.manifest import GuaranteePart, Manifest
from anonlib.solvers.classes.sub_buckets import pack
from anonlib.solvers.trade_offs import of_class_sizes
from anonlib.solvers.trade_offs.registry import from_counts
from anonlib.solvers.trade_offs.trade_off import Point, TradeOff
from anonlib.spec.method import Method
from anonlib.spec.methods import read_method
from anonlib.spec.methods.bucketize import Bucketize
from anonlib.spec.methods.sabre import Sabre

MOST_VALUES = {"sabre": 500, "heterogeneous": 60, "burel": of_class_sizes.MOST_VALUES}
"""Sensitive values that a curve takes about twenty seconds for; `MOST` under other methods, and under l."""
MOST = 2_000
FACTORS = tuple(Fraction(k, 4) for k in (1, 2, 3, 4, 6, 8, 12, 16))
"""Values of t beside the one asked, as multiples of it."""
STREAM = "Of a stream every window has a curve of its own; none is drawn here."
TOGETHER = (
    "With several protected columns a curve needs to know which values occur together, which a release does not tell."
)
TOO_MANY = "There are so many different values that what other bounds cost takes minutes to tell; none is drawn here."
NODES = (
    "Groups of values have bounds of their own here, beside those of the values. What a release costs follows from all of them together "
    "and changes with no single number, so that no curve is drawn."
)
ONE_BY_ONE = "Every threshold is stated value by value: there is no single number to make stricter or looser, so that no curve is drawn."
DEPENDS = (
    "For this method what a stricter bound costs depends on the records themselves, which a release does not hold. anonlib explain, run on "
    "the spec, tells what it can before anything is published."
)
UNREAD = "What the manifest says of the method or of its values cannot be read; the audit says more."
NOT_KEPT = "The counts in the manifest were not seen to keep the bound that it states, so that no curve is drawn; the audit says more."
ALONE = "No other bound near the one asked can be kept on this table."


def curve(manifest: Manifest) -> TradeOff | str:
    """The method's own bound against its cost, with two points at least that can be kept, or why there is none, in a sentence.

    Raises nothing, whatever the manifest says. Cost: see `from_counts`.
    """
    part = manifest.guarantee
    if manifest.stream is not None:
        return STREAM
    if part.also:
        return TOGETHER
    if len(part.values) > (MOST if "l" in part.asked else MOST_VALUES.get(manifest.method.name, MOST)):
        return TOO_MANY
    if any(node.threshold is not None for node in part.nodes):
        return NODES
    try:
        wanted = read_method({manifest.method.name: manifest.method.parameters})
        trade_off = _trade_off(wanted, manifest)
    except (AnonlibError, ValueError, ArithmeticError):
        return UNREAD
    if trade_off is None:
        return ONE_BY_ONE if isinstance(wanted, Bucketize) else DEPENDS
    if trade_off.at_asked not in trade_off.kept:
        return NOT_KEPT
    return trade_off if len(trade_off.kept) > 1 else ALONE


def _trade_off(wanted: Method, manifest: Manifest) -> TradeOff | None:
    part = manifest.guarantee
    counts = SensitiveCounts(tuple(v.value for v in part.values), np.array([v.count for v in part.values]))
    if isinstance(wanted, Sabre):
        return _of_t(wanted, counts, part) if wanted.way == "symmetric" else None
    return from_counts(wanted, counts, _before(manifest))


def _before(manifest: Manifest) -> Mapping[str | None, int] | None:
    """{value: records} of earlier releases, where thresholds follow from theirs; records of other values stand under a name that no
    value has."""
    ledger, values = manifest.ledger, [v.value for v in manifest.guarantee.values]
    if ledger is None or not ledger.records_before:
        return None
    nobody = max((value for value in values if value is not None), key=len, default="") + "+"
    before: dict[str | None, int] = dict(zip(values, ledger.before or [0] * len(values), strict=True))
    return {**before, nobody: ledger.records_before - sum(ledger.before)}


def _of_t(wanted: Sabre, counts: SensitiveCounts, part: GuaranteePart) -> TradeOff:
    """The least size of a class over t. Cost: a packing for each point (see `pack`)."""
    distance = _distance(part, counts)
    bounds = sorted({wanted.t * factor for factor in FACTORS})
    points = tuple(_point(wanted, counts, distance, t) for t in bounds)
    return TradeOff("t", wanted.t, {"class_size": "records in a class, at least"}, "class_size", points)


def _point(wanted: Sabre, counts: SensitiveCounts, distance: GroundDistance, t: Fraction) -> Point:
    try:
        packing = pack([TCloseness(distance, counts.counts, t)], JointValues.single(counts.counts), wanted.k)
    except (Unsatisfiable, SpecError):
        return Point(t, {}, "cannot be kept")
    parts, least = packing.sub_buckets, packing.least
    note = f"leaves nothing: one class of {parts.number * parts.records:,} records" if parts.records < 2 * least else ""
    return Point(t, {"class_size": float(parts.number * least)}, note)


def _distance(part: GuaranteePart, counts: SensitiveCounts) -> GroundDistance:
    if part.distance == "ordered":
        return GroundDistance.ordered(counts.values)
    if part.distance == "hierarchical":
        return GroundDistance.hierarchical(hierarchy_of(part.hierarchy), counts.values)
    return GroundDistance.flat(counts.m)
