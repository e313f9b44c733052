"""Hierarchies that are made by a rule over the values that occur: ranges of whole numbers, parts of dates, beginnings of codes.

    hierarchy: {intervals: [5, 10, 20]}       # 23, 20..24, 20..29, 20..39, *
    hierarchy: {dates: [day, month, year]}    # 2026-11-29, 2026-11, 2026, *
    hierarchy: {prefix: [3, 1]}               # 30131, 301**, 3****, *

A label follows from its leaf and the rule alone; codes shorter than a beginning are filled up with `_`. Pure.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anonlib.errors import SpecError
from anonlib.hierarchy import Hierarchy, hierarchy_of
from anonlib.spec.part import did_you_mean, fault, listed, shown

ROOT = "*"
DATES: Mapping[str, Callable[[dt.date], str]] = {
    "day": dt.date.isoformat,
    "month": lambda day: day.isoformat()[:7],
    "quarter": lambda day: f"{day.isoformat()[:4]}-Q{(day.month + 2) // 3}",
    "year": lambda day: day.isoformat()[:4],
    "decade": lambda day: f"{day.isoformat()[:3]}0s",
}
"""{part of a date: its label}, the finest first; each is made of whole ones of those before it."""
KINDS = ("intervals", "dates", "prefix")
_EXAMPLE = "{intervals: [5, 10, 20]}, {dates: [day, month, year]} or {prefix: [3, 1]}"


@dataclass(frozen=True)
class HierarchyRule:
    """`kind` of `KINDS` with its steps, from the leaves up: widths, parts of a date, or numbers of characters that stay."""

    kind: str
    steps: tuple[int, ...] | tuple[str, ...]

    def __str__(self) -> str:
        return f"{{{self.kind}: [{listed(map(str, self.steps))}]}}"

    def over(self, values: Sequence[str]) -> Hierarchy:
        """The hierarchy of these values' texts (each once), in the order of numbers, days or codes. O(values * steps).

        Raises SpecError, which names the first value that the rule has no place for.
        """
        if not values:
            raise SpecError(f"the hierarchy {self} has no value to stand over; every value is missing")
        rows = {"intervals": self._intervals, "dates": self._dates, "prefix": self._prefixes}[self.kind](values)
        return replace(hierarchy_of(rows), source=str(self))

    def _intervals(self, values: Sequence[str]) -> list[list[str]]:
        if strange := next((value for value in values if not re.fullmatch(r"0|-?[1-9][0-9]{0,17}", value)), None):
            raise SpecError(
                f"{strange!r} is not a whole number, and the hierarchy {self} is of whole numbers; mend it, or take a file"
            )

        def label(number: int, width: int) -> str:
            low = number // width * width
            return f"{low}..{low + width - 1}"

        widths = [int(step) for step in self.steps]
        return [[str(number), *(label(number, width) for width in widths), ROOT] for number in sorted(map(int, values))]

    def _dates(self, values: Sequence[str]) -> list[list[str]]:
        parts = [DATES[str(step)] for step in self.steps if step != "day"]
        rows = []
        for value in sorted(values):
            if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
                raise SpecError(
                    f"{value!r} is not a date such as 2026-11-29, and {self} is of dates; cast it, or take a file"
                )
            try:
                day = dt.date.fromisoformat(value)
            except ValueError:
                raise SpecError(
                    f"{value!r} is no day of the calendar, and the hierarchy {self} is of dates; mend it"
                ) from None
            rows.append([value, *(part(day) for part in parts), ROOT])
        return rows

    def _prefixes(self, values: Sequence[str]) -> list[list[str]]:
        if any(not value or ROOT in value for value in values):
            raise SpecError(
                f"a value is empty or has a {ROOT} in it, which the labels of {self} need for themselves; mend it, or take a file"
            )
        longest = max(map(len, values))

        def label(value: str, kept: int) -> str:
            return value if kept >= longest else value[:kept].ljust(kept, "_") + ROOT * (longest - kept)

        return [[value, *(label(value, int(kept)) for kept in self.steps), ROOT] for value in sorted(values)]


def read_rule(mapping: Mapping[Any, Any]) -> HierarchyRule:
    """The rule in a mapping of one key. Raises Faults for another key, no list, or steps that do not go up."""
    if len(mapping) != 1:
        raise fault(f"a hierarchy is made by one rule; write {_EXAMPLE}, or the path of a CSV")
    [(kind, steps)] = mapping.items()
    if kind not in KINDS:
        raise fault(f"no such rule{did_you_mean(kind, KINDS)}; write {_EXAMPLE}, or the path of a CSV", at=str(kind))
    if not isinstance(steps, (list, tuple)) or not steps:
        raise fault(f"{shown(steps)} is not a list of steps; write e.g. {_EXAMPLE}", at=kind)
    return HierarchyRule(kind, _dates(steps) if kind == "dates" else _numbers(kind, steps))


def _numbers(kind: str, steps: Sequence[Any]) -> tuple[int, ...]:
    numbers: list[int] = []
    for i, step in enumerate(steps):
        if isinstance(step, bool) or not re.fullmatch(r"[0-9]{1,18}", str(step)) or int(step) < 1:
            raise fault(f"{shown(step)} is not a whole number of at least 1", at=f"{kind}[{i}]")
        numbers.append(int(step))
    for below, above in itertools.pairwise(numbers):
        if kind == "intervals" and (above <= below or above % below):
            raise fault(
                f"{above} is not made of whole intervals of {below}; write widths that are multiples, e.g. [5, 10, 20]",
                at=kind,
            )
        if kind == "prefix" and above >= below:
            raise fault(
                f"{above} characters are not fewer than {below}; write the longest beginning first, e.g. [3, 1]",
                at=kind,
            )
    if kind == "intervals" and numbers[0] < 2:
        raise fault("an interval of width 1 is the value itself; begin with 2 or more", at=kind)
    return tuple(numbers)


def _dates(steps: Sequence[Any]) -> tuple[str, ...]:
    order = list(DATES)
    for i, step in enumerate(steps):
        if step not in DATES:
            raise fault(
                f"{shown(step)} is no part of a date{did_you_mean(step, order)}; the parts are {listed(order)}",
                at=f"dates[{i}]",
            )
    if any(order.index(above) <= order.index(below) for below, above in itertools.pairwise(steps)):
        raise fault(f"the parts do not go up; write them in the order {listed(order)}", at="dates")
    if list(steps) == ["day"]:
        raise fault("a day is the value itself; name what stands above it, e.g. [day, month, year]", at="dates")
    return tuple(str(step) for step in steps)
