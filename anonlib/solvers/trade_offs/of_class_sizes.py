"""What beta costs in BuReL's classes: how many records share a box on average, from strict to loose.

Source: Cao and Karras, VLDB 2012: which values share a bucket, and how many records of each bucket a class takes, follow from counts alone.
With `refine` classes are then cut on by what the records are, which no counts tell: there the sizes are those before it.
"""

from __future__ import annotations

from fractions import Fraction

from anonlib.privacy.class_requirements import enhanced_beta_likeness
from anonlib.privacy.counts import SensitiveCounts
from anonlib.solvers.classes.burel import ROOM, number_of_classes, value_buckets
from anonlib.solvers.trade_offs.trade_off import Point, TradeOff
from anonlib.spec.methods.burel import BuReL

BETAS = tuple(map(Fraction, ("0.5", "1", "2", "4", "8")))
MEASURES = {"class_size": "records in a class, on average"}
MOST_VALUES = 500
"""Sensitive values that the sizes of six betas take some ten seconds for: exact products of their bounds leave 64 bits."""
REFINED = {"class_size": "records in a class, on average, before it is cut on"}


def of_beta(counts: SensitiveCounts, wanted: BuReL) -> TradeOff:
    """Mean class size over beta, of a table in one piece, all else as asked.

    Cost: one partition of the values for each point, and `number_of_classes`; minutes above `MOST_VALUES` values.
    """
    bounds = sorted({*BETAS, wanted.beta})
    points = tuple(_point(counts, beta, ROOM if wanted.refine else Fraction(1)) for beta in bounds)
    return TradeOff("beta", wanted.beta, REFINED if wanted.refine else MEASURES, "class_size", points)


def _point(counts: SensitiveCounts, beta: Fraction, room: Fraction) -> Point:
    buckets = value_buckets(counts, enhanced_beta_likeness(beta, counts), room)
    classes = number_of_classes(buckets.counts(counts.counts), buckets.bounds)
    note = f"leaves nothing: one class of {counts.n:,} records" if classes == 1 else ""
    return Point(beta, {"class_size": counts.n / classes}, note)
