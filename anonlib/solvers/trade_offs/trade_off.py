"""A bound against what it costs, as data: for the screen, for JSON, and for whoever plots it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.exact import text

NOTED = Fraction(1, 100)
"""A share of the records from which on it is said that a bound leaves nothing, or protects nothing, of them."""
STOPS = "giving more stops paying"
SHARES = ("unbounded", "retention", "in_the_dark")
"""Measures that are shares of the records, shown in percent; others as numbers."""


@dataclass(frozen=True)
class Point:
    """One bound and what it costs.

    bound    : the number asked, exact
    measures : {key of a measure: its value}; empty where the bound cannot be kept
    note     : what must be known of this bound: that it leaves nothing, protects nothing, or cannot be kept; "" else
    """

    bound: Fraction
    measures: Mapping[str, float]
    note: str = ""


@dataclass(frozen=True)
class TradeOff:
    """What a release loses over one bound, all else as asked.

    A bound that leaves nothing, or protects nothing, of some records is never proposed, however little it costs.

    name     : the parameter, e.g. "theta"; asked : its value in the spec
    measures : {key: what it is called}, in the order they are shown; cost : the key of the one to trade against, less is better
    points   : the strictest bound first; `asked` is among them
    sample   : how many records `cost` was measured on; None where it follows from the counts of the whole table
    """

    name: str
    asked: Fraction
    measures: Mapping[str, str]
    cost: str
    points: tuple[Point, ...]
    sample: int | None = None

    @property
    def at_asked(self) -> Point:
        """The point of the bound that is asked."""
        return next(point for point in self.points if point.bound == self.asked)

    @property
    def kept(self) -> tuple[Point, ...]:
        """The points that can be kept, strictest first."""
        return tuple(point for point in self.points if self.cost in point.measures)

    @property
    def worth(self) -> tuple[Point, ...]:
        """The points that can be kept and have no note: they leave something of all records, and protect all."""
        return tuple(point for point in self.kept if not point.note)

    @property
    def proposed(self) -> Fraction | None:
        """Where giving more stops paying: the knee of the points that are `worth` it. None of fewer than three, which have no knee."""
        curve = [(point.bound, point.measures[self.cost]) for point in self.worth]
        return knee(curve) if len(curve) >= 3 else None

    def with_measure(self, key: str, label: str, values: Mapping[Fraction, float], sample: int | None) -> TradeOff:
        """The same with one measure more, which becomes the cost. values : {bound: value} of the points that have one."""
        points = tuple(
            replace(point, measures={**point.measures, key: values[point.bound]}) if point.bound in values else point
            for point in self.points
        )
        return replace(self, measures={**self.measures, key: label}, cost=key, points=points, sample=sample)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; bounds as exact text."""
        return {
            "name": self.name,
            "asked": text(self.asked),
            "proposed": None if self.proposed is None else text(self.proposed),
            "cost": self.cost,
            "measures": dict(self.measures),
            "sample": self.sample,
            "points": [{"bound": text(p.bound), **p.measures, "note": p.note} for p in self.points],
        }


def knee(curve: Sequence[tuple[Fraction, float]]) -> Fraction:
    """The bound whose point lies farthest below the straight line between the ends of the curve; the strictest of a flat one.

    curve : ((bound, cost), ...), strictest first, not empty. Bounds that grow stricter as they grow (l) are measured by 1 / bound.

    >>> knee([(Fraction(1), 10.0), (Fraction(2), 3.0), (Fraction(3), 2.0), (Fraction(4), 1.0)])
    Fraction(2, 1)
    """
    bound = np.array([float(point) for point, _ in curve])
    cost = np.array([value for _, value in curve])
    if cost[0] <= cost[-1] or len(curve) < 3:
        return curve[0][0]
    at = 1 / bound if bound[0] > bound[-1] else bound
    line = cost[0] + (cost[-1] - cost[0]) * (at - at[0]) / (at[-1] - at[0])
    return curve[int(np.argmax(line - cost))][0]


def with_offer(refusal: str, offered: str) -> str:
    """A refusal that ends with what would give a useful release; a refusal of several lines, in a line of its own.

    >>> with_offer("it cannot", "l: 2 can"), with_offer("it cannot", "")
    ('it cannot; l: 2 can', 'it cannot')
    """
    if not offered:
        return refusal
    return f"{refusal}\n{offered}" if "\n" in refusal else f"{refusal}; {offered}"
