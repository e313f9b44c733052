"""The earth mover's distance, as the audit reads it: exact, and derived apart from the code that methods use.

What must cross an edge of a line or a tree is the difference of the two distributions on one side of it, so EMD is a sum of
|share of a group of values in the class - share in the table|, each weighted alike:

    ordered       the prefixes of the ordered values, all but the whole, 1 / (m - 1) each
    hierarchical  at each level below the root, the values under one label, 1 / (2 h) each, h the height of the root
    flat          single values, 1/2 each

Two leaves of a tree first meet at the height of their lowest common ancestor: below it they stand in different groups at each level, so
a unit of earth that goes from one to the other is counted 2 height / (2 h) times, which is the ground distance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Int64Array
from anonlib.errors import AnonlibError

SAFE = 1 << 62
_DATE = re.compile(r"([+-]?\d{4,})(-.+)")
"""A date or timestamp as text: the year, which may have more than four digits, and the rest, whose text order is time's."""


@dataclass(frozen=True)
class Distance:
    """EMD of classes from a table: sum over `groupings` and groups of |n c(S) - s N(S)| / (unit n s).

    table     : (m,) int64, the table's counts of the sensitive values by code
    groupings : each (m,) int64, the number of the group in which each code stands; a group counted once
    prefix    : the order of codes whose prefixes are the groups (then there are no groupings), or None
    """

    table: Int64Array
    groupings: tuple[Int64Array, ...]
    prefix: Int64Array | None
    unit: int

    def largest(self, classes: Int64Array, ids: Sequence[int | None] = ()) -> tuple[Fraction, int]:
        """(the largest distance of any class, exactly, and its row). classes : (G, m) int64 counts, G >= 1, no class empty.

        ids : the numbers of the classes, which make no difference here: all are measured from one table
        """
        n, sizes = int(self.table.sum()), classes.sum(axis=1)
        groups = self.table.shape[0] * max(1, len(self.groupings))
        wide: Any = object if n * int(sizes.max()) * groups >= SAFE else np.int64
        excess = classes.astype(wide) * n - self.table.astype(wide)[None, :] * sizes.astype(wide)[:, None]
        if self.prefix is not None:
            total = np.abs(np.cumsum(excess[:, self.prefix], axis=1)[:, :-1]).sum(axis=1)
        else:
            total = sum(np.abs(_by_group(excess, grouping)).sum(axis=1) for grouping in self.groupings)
        share = np.asarray(total, dtype=np.float64) / sizes
        near = np.flatnonzero(
            share >= share.max() * (1 - 1e-12)
        )  # doubles choose the candidates, fractions the largest
        exact = [Fraction(int(total[g]), self.unit * n * int(sizes[g])) for g in near]
        best = max(range(len(near)), key=lambda i: exact[i])
        return exact[best], int(near[best])


UNKNOWN = Fraction(2)
"""The distance of a class from a window that nobody has evidence of: farther than any there is."""


@dataclass(frozen=True)
class WindowDistances:
    """EMD of classes from the windows of a stream that they were formed in; as `Distance` for its kernel.

    of    : {window of a class, as `shift` bits less of its number tell it: the distance from that window}
    place : (m,) int64, where the sensitive value of each code stands among the values that the stream was told
    told  : how many these are
    """

    of: Mapping[int, Distance]
    place: Int64Array
    told: int
    shift: int

    def largest(self, classes: Int64Array, ids: Sequence[int | None]) -> tuple[Fraction, int]:
        """As `Distance.largest`; `UNKNOWN` for a class of no known window."""
        wide = np.zeros((len(classes), self.told), dtype=np.int64)
        wide[:, self.place] = classes
        window = np.array([-1 if number is None else number >> self.shift for number in ids], dtype=np.int64)
        worst, where = Fraction(-1), 0
        for one in np.unique(window).tolist():
            rows = np.flatnonzero(window == one)
            distance, at = self.of[one].largest(wide[rows]) if one in self.of else (UNKNOWN, 0)
            if distance > worst:
                worst, where = distance, int(rows[at])
        return worst, where


def distances_of_windows(
    template: Distance,
    told: Sequence[str | None],
    values: Sequence[str | None],
    spreads: Mapping[int, Sequence[int]],
    shift: int,
) -> WindowDistances:
    """The distances from windows, of which `spreads` tell how many records have each of the `told` values; `values` : those of the release.

    template : the distance over the told values, from whatever table. Raises AnonlibError for a spread of another length, or a value that
    was not told.
    """
    place = {value: i for i, value in enumerate(told)}
    lost = [value for value in values if value not in place]
    if lost or any(len(spread) != len(told) for spread in spreads.values()):
        raise AnonlibError("the evidence is not that of this stream: it has other sensitive values")
    tables = {window: np.array(spread, dtype=np.int64) for window, spread in spreads.items()}
    of = {window: replace(template, table=table) for window, table in tables.items()}
    return WindowDistances(of, np.array([place[value] for value in values], dtype=np.int64), len(told), shift)


def distance_of(
    kind: str,
    values: Sequence[str | None],
    counts: Sequence[int],
    sensitive_type: str,
    hierarchy: Sequence[Sequence[str]],
) -> Distance:
    """The distance from a table with `counts` of `values`. Raises AnonlibError for an unknown kind, or values that do not suit it."""
    table = np.array(counts, dtype=np.int64)
    if kind == "flat":
        return Distance(table, (np.arange(len(values), dtype=np.int64),), None, 2)
    if kind == "ordered":
        return Distance(table, (), _order(values, sensitive_type), max(1, len(values) - 1))
    if kind == "hierarchical":
        return _hierarchical(table, values, hierarchy)
    raise AnonlibError(f"the manifest's distance {kind!r} is none of ordered, hierarchical, flat")


def _order(values: Sequence[str | None], sensitive_type: str) -> Int64Array:
    if None in values:
        raise AnonlibError("a missing sensitive value has no place among ordered ones")
    texts = [str(value) for value in values]
    try:
        keys: list[Any] = [Decimal(text) for text in texts]
    except ArithmeticError:
        dates = [_DATE.fullmatch(text) for text in texts]
        if not (sensitive_type.startswith(("date", "timestamp")) and all(dates)):
            raise AnonlibError(f"values of type {sensitive_type} have no order of numbers or of time") from None
        keys = [(int(date[1]), date[2]) for date in dates if date]
    if any(isinstance(key, Decimal) and not key.is_finite() for key in keys):
        raise AnonlibError("a sensitive value that is no finite number has no place among ordered ones")
    return np.array(sorted(range(len(values)), key=lambda code: keys[code]), dtype=np.int64)


def _hierarchical(table: Int64Array, values: Sequence[str | None], rows: Sequence[Sequence[str]]) -> Distance:
    path = {row[0]: row for row in rows}
    lost = [value for value in values if value is not None and value not in path]
    if lost or not rows:
        raise AnonlibError(
            f"the manifest's hierarchy has no leaf {lost[0]!r}" if lost else "the manifest has no hierarchy"
        )
    height = next(level for level in range(len(rows[0])) if len({row[level] for row in rows}) == 1)
    if not height:  # a single leaf, which a missing value stands apart from
        return Distance(table, (np.arange(len(values), dtype=np.int64),), None, 2)
    groupings = []
    for level in range(height):
        number: dict[str | None, int] = {}
        labels = [None if value is None else path[value][level] for value in values]
        groupings.append(np.array([number.setdefault(label, len(number)) for label in labels], dtype=np.int64))
    return Distance(table, tuple(groupings), None, max(1, 2 * height))


def _by_group(excess: npt.NDArray[Any], grouping: Int64Array) -> npt.NDArray[Any]:
    """(G, groups): the columns of `excess` added up by group."""
    order = np.argsort(grouping, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(grouping[order]) > 0])
    return np.asarray(np.add.reduceat(excess[:, order], starts, axis=1))
