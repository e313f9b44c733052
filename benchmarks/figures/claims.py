"""Checks of measured rows: whether curves lie below one another, fall, rise or agree, with the numbers that decide. Pure.

Each function returns a check. A curve that was not measured makes the check raise KeyError: a figure whose rows lack what its claims are
about is a fault of the figure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.figures.figure import Finding, Rows

Check = Callable[[Rows], Finding]
Points = Mapping[float, float]
Where = Callable[[float], bool]
SHOWN = 2


def curve(rows: Rows, panel: str, name: str) -> dict[float, float]:
    """{x: y} of a curve, x ascending. Raises KeyError where it has no point."""
    points = sorted((row.x, row.y) for row in rows if row.panel == panel and row.curve == name)
    if not points:
        raise KeyError(f"no rows of {name!r} in {panel!r}")
    return dict(points)


def short(number: float) -> str:
    """A number for people, four digits."""
    return f"{number:,.0f}" if abs(number) >= 1000 or number == round(number) else f"{number:.4g}"


def _in(panel: str) -> str:
    return f"{panel}: " if panel else ""


def everywhere(_: float) -> bool:
    """All x count."""
    return True


def below(panel: str, lower: str, upper: str, where: Where = everywhere, factor: float = 1) -> Check:
    """`lower` times `factor` is less than `upper` at every x that both have."""

    def check(rows: Rows) -> Finding:
        one, other = curve(rows, panel, lower), curve(rows, panel, upper)
        shared = [x for x in one if x in other and where(x)]
        if not shared:
            raise KeyError(f"no x that {lower!r} and {upper!r} in {panel!r} share")
        wrong = [x for x in shared if not one[x] * factor < other[x]]
        worst = max(shared, key=lambda x: one[x] * factor - other[x])
        told = f"{_in(panel)}{lower} {short(one[worst])}, {upper} {short(other[worst])} at {short(worst)}"
        return Finding(not wrong, f"{len(shared) - len(wrong)} of {len(shared)}; {told}")

    return check


def across(lower: str, upper: str, name: str) -> Check:
    """A curve has less in the panel `lower` than in the panel `upper`, on average over x."""

    def check(rows: Rows) -> Finding:
        one, other = (list(curve(rows, panel, name).values()) for panel in (lower, upper))
        means = sum(one) / len(one), sum(other) / len(other)
        told = f"{name} {short(means[0])} ({lower}), {short(means[1])} ({upper}) on average"
        return Finding(means[0] < means[1], told)

    return check


def close(panel: str, name: str, reference: str, share: float, slack: float = 0, where: Where = everywhere) -> Check:
    """At every x that both have `name` is within `share` of `reference`, or within `slack` of it where that is more."""

    def check(rows: Rows) -> Finding:
        one, other = curve(rows, panel, name), curve(rows, panel, reference)
        shared = [x for x in one if x in other and where(x)]
        if not shared:
            raise KeyError(f"no x that {name!r} and {reference!r} in {panel!r} share")
        worst = max(shared, key=lambda x: abs(one[x] - other[x]) - max(slack, share * abs(other[x])))
        holds = all(abs(one[x] - other[x]) <= max(slack, share * abs(other[x])) for x in shared)
        told = f"{_in(panel)}{name} {short(one[worst])}, {reference} {short(other[worst])} at {short(worst)}"
        return Finding(holds, told)

    return check


def within_times(panel: str, name: str, other: str, factor: float) -> Check:
    """`name` is at most `factor` times `other` at every x that both have."""
    return below(panel, name, other, factor=1 / factor)


def within(panel: str, name: str, low: float, high: float, where: Where = everywhere) -> Check:
    """Every y of the curve lies in [low, high]."""

    def check(rows: Rows) -> Finding:
        points = [y for x, y in curve(rows, panel, name).items() if where(x)]
        if not points:
            raise KeyError(f"no point of {name!r} in {panel!r} where it is asked")
        holds = all(low <= y <= high for y in points)
        return Finding(holds, f"{_in(panel)}{name} {short(min(points))} to {short(max(points))}")

    return check


def falls(panel: str, name: str, by: float = 1) -> Check:
    """The last y is less than the first over `by`."""
    return _ends(panel, name, lambda first, last: last * by < first)


def rises(panel: str, name: str, by: float = 1) -> Check:
    """The last y is more than `by` times the first."""
    return _ends(panel, name, lambda first, last: last > first * by)


def steady(panel: str, name: str, factor: float) -> Check:
    """The largest y is at most `factor` times the smallest."""

    def check(rows: Rows) -> Finding:
        points = curve(rows, panel, name).values()
        told = f"{_in(panel)}{name} {short(min(points))} to {short(max(points))}"
        return Finding(max(points) <= factor * min(points), told)

    return check


def _ends(panel: str, name: str, holds: Callable[[float, float], bool]) -> Check:
    def check(rows: Rows) -> Finding:
        points = curve(rows, panel, name)
        first, last = min(points), max(points)
        told = f"{_in(panel)}{name} {short(points[first])} at {short(first)}, {short(points[last])} at {short(last)}"
        return Finding(holds(points[first], points[last]), told)

    return check


def steeper(panel: str, name: str, other: str, factor: float = 1) -> Check:
    """`name` grows more from its first x to its last than `factor` times what `other` grows, by difference."""

    def check(rows: Rows) -> Finding:
        grown = []
        for one in (name, other):
            points = curve(rows, panel, one)
            grown.append(points[max(points)] - points[min(points)])
        return Finding(grown[0] > factor * grown[1], f"{name} by {short(grown[0])}, {other} by {short(grown[1])}")

    return check


def every(*checks: Check) -> Check:
    """All of them hold; the numbers of the first `SHOWN` that do not, else of the first."""

    def check(rows: Rows) -> Finding:
        each = [one(rows) for one in checks]
        against = [finding.measured for finding in each if not finding.holds]
        told = "; ".join(against[:SHOWN] or [each[0].measured])
        more = f"; and {len(against) - SHOWN} more of {len(each)}" if len(against) > SHOWN else ""
        return Finding(not against, told + more)

    return check


def of_each(make: Callable[..., Check], panels: Any, *given: Any, **more: Any) -> Check:
    """The same check in several panels."""
    return every(*(make(panel, *given, **more) for panel in panels))
