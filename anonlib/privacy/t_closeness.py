"""t-closeness: the sensitive values of every equivalence class are spread almost as in the whole table.

"Almost" is the earth mover's distance (EMD) between the two distributions, at most t. How far apart two values are (the ground
distance) depends on the attribute; values v_1..v_m stand in an order in which that distance is a matter of the gaps between neighbours:

    ordered      (numeric)               |i - j| / (m - 1)                        the sum of the gaps between v_i and v_j
    hierarchical (categories in a tree)  h(lowest common ancestor) / h(tree)      the largest gap between v_i and v_j, in leaf order
    flat         (plain categories)      1                                        the same, with a tree of one level

In each case EMD(P, Q) is a weighted sum of |P(S) - Q(S)| over fixed runs S of neighbouring values: prefixes for ordered values
(SABRE, section 3.1), the nodes of the tree otherwise (a node S below a parent counts h(parent) - h(S), halved since a movement climbs
and descends; the paper's sum of h(n)/h(tree) min(pos, neg) over inner nodes gives the same number). With counts instead of shares the sum
is an integer, so every comparison with t is exact.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from anonlib import words
from anonlib.arrays import BoolArray, Int64Array
from anonlib.errors import SpecError
from anonlib.hierarchy import Hierarchy
from anonlib.privacy.earth_mover import EarthMover

Kind = Literal["ordered", "hierarchical", "flat"]


@dataclass(frozen=True, eq=False)
class GroundDistance:
    """How far apart the m sensitive values of a table are, as integers over a common denominator.

    order : (m,) int64, the code of the value that stands at each position (codes are places in the table's `SensitiveCounts`)
    gaps  : (m - 1,) int64, the distance between the values at positions i and i + 1, times `height`
    height: the largest distance there can be, so that distances lie in [0, 1]
    """

    kind: Kind
    order: Int64Array
    gaps: Int64Array
    height: int

    @staticmethod
    def ordered(values: Sequence[str | None]) -> GroundDistance:
        """The distance of ordered values: their difference in rank among the table's values, over m - 1.

        values : m texts of numbers, dates or timestamps, by code. Raises SpecError for other text, and for a missing value.
        """
        keys = _sort_keys(values)
        order = np.array(sorted(range(len(values)), key=lambda code: keys[code]), dtype=np.int64)
        gaps = np.ones(max(0, len(values) - 1), dtype=np.int64)
        return GroundDistance("ordered", order, gaps, max(1, len(values) - 1))

    @staticmethod
    def flat(m: int) -> GroundDistance:
        """The distance of m values that are all equally far apart: EMD is then the total variation distance."""
        return GroundDistance("flat", np.arange(m, dtype=np.int64), np.ones(max(0, m - 1), dtype=np.int64), 1)

    @staticmethod
    def hierarchical(hierarchy: Hierarchy, values: Sequence[str | None]) -> GroundDistance:
        """The distance of the leaves of a tree: the height of their lowest common ancestor, over the tree's height.

        values : m texts by code. Leaves that the table does not have play no part, and a null stands apart under the root.
        Raises SpecError naming the first values that are no leaves. Cost: O(m * levels).
        """
        known = [code for code, value in enumerate(values) if value is not None]
        leaves = hierarchy.positions(cast("list[str]", [values[code] for code in known]))
        by_leaf = np.argsort(leaves, kind="stable")
        leaves = leaves[by_leaf]
        gaps = hierarchy.heights[hierarchy.lowest_common_ancestor(leaves[:-1], leaves[1:])]
        order = np.array(known, dtype=np.int64)[by_leaf]
        height = max(1, int(hierarchy.heights[hierarchy.root]))
        nulls = [code for code, value in enumerate(values) if value is None]
        if nulls:
            order = np.append(order, nulls)
            gaps = np.append(gaps, [height] * min(len(nulls), len(values) - 1))
        return GroundDistance("hierarchical", order, gaps.astype(np.int64), height)

    @property
    def m(self) -> int:
        """m, how many sensitive values the table has."""
        return len(self.order)

    @cached_property
    def positions(self) -> Int64Array:
        """(m,) int64, the position of each code: the inverse of `order`."""
        positions = np.empty(self.m, dtype=np.int64)
        positions[self.order] = np.arange(self.m)
        return positions

    def between(self, i: int, j: int) -> Fraction:
        """The distance between the values at positions i and j, in [0, 1]."""
        low, high = min(i, j), max(i, j)
        if low == high:
            return Fraction(0)
        run = self.gaps[low:high]
        return Fraction(int(run.sum() if self.kind == "ordered" else run.max()), self.height)

    @cached_property
    def mover(self) -> EarthMover:
        """The earth mover's distance over positions, as O(m) runs of neighbours with weights (see the module)."""
        if self.kind == "ordered":
            last = np.arange(self.m - 1, dtype=np.int64)
            return EarthMover(np.zeros_like(last), last, self.gaps, self.height)
        weights: dict[tuple[int, int], int] = {}
        steps = [*sorted(set(self.gaps.tolist()), reverse=True), 0]
        for upper, lower in itertools.pairwise(steps):
            # the nodes below that height lie between neighbouring cuts at the gaps >= upper
            cuts = np.flatnonzero(self.gaps >= upper)
            for run in zip([0, *(cuts + 1).tolist()], [*cuts.tolist(), self.m - 1], strict=True):
                weights[run] = weights.get(run, 0) + upper - lower
        table = np.array([(*run, weight) for run, weight in weights.items()], dtype=np.int64).reshape(-1, 3)
        return EarthMover(table[:, 0], table[:, 1], table[:, 2], 2 * self.height)


@dataclass(frozen=True, eq=False)
class TCloseness:
    """The predicate: EMD(values of a group of records, values of the whole table) <= t.

    distance : between the m values; table : (m,) int64, how many records of the table have each value, by code; t : exact, above 0
    """

    distance: GroundDistance
    table: Int64Array
    t: Fraction

    def __post_init__(self) -> None:
        if len(self.table) != self.distance.m:
            raise ValueError(f"{self.distance.m} values need as many counts, not {len(self.table)}")

    @property
    def n(self) -> int:
        """n, how many records the table has."""
        return int(self.table.sum())

    def work(self, groups: npt.ArrayLike) -> npt.NDArray[Any]:
        """EMD of each group, times unit * n * its size: an integer.

        groups : (G, m) integers, how many records of each value (by code) each group holds. Returns (G,) int64, or Python integers
        where n, m and the groups are so large that 64 bits might not do. O(G m) time.
        """
        groups = np.atleast_2d(np.asarray(groups, dtype=np.int64))
        order = self.distance.order
        return self.distance.mover.work(self.table[order], groups[:, order])

    def allowed(self, sizes: npt.ArrayLike) -> npt.NDArray[Any]:
        """The most `work` a t-close group of each size may have, (G,), exactly."""
        return self.distance.mover.allowed(self.t, self.n, sizes)

    def close(self, groups: npt.ArrayLike) -> BoolArray:
        """Which groups are t-close, (G,) bool; an empty group is not. `groups` as in `work`."""
        groups = np.atleast_2d(np.asarray(groups, dtype=np.int64))
        sizes = groups.sum(axis=1)
        return cast("BoolArray", (self.work(groups) <= self.allowed(sizes)).astype(bool) & (sizes > 0))

    def holds(self, counts: Int64Array) -> BoolArray:
        """`close`, by the name that every requirement of a class has (`anonlib.privacy.class_requirements.Requirement`)."""
        return self.close(counts)

    @property
    def smallest(self) -> int:
        """A single record may be close enough; its value decides."""
        return 1

    def emd(self, groups: npt.ArrayLike) -> list[Fraction]:
        """The distance of each group from the table, exactly. `groups` as in `work`; none may be empty."""
        groups = np.atleast_2d(np.asarray(groups, dtype=np.int64))
        scale = self.distance.mover.unit * self.n
        sizes = groups.sum(axis=1).tolist()
        return [Fraction(int(w), scale * size) for w, size in zip(self.work(groups).tolist(), sizes, strict=True)]

    def farthest(self, groups: npt.ArrayLike) -> Fraction:
        """The largest distance of any of the groups: how close the table really is. 0 for no groups."""
        groups = np.atleast_2d(np.asarray(groups, dtype=np.int64))
        if not len(groups):
            return Fraction(0)
        distances = self.work(groups).astype(np.float64) / groups.sum(axis=1)
        near = distances >= distances.max() * (1 - 1e-9)  # rounding moves a quotient by far less
        return max(self.emd(groups[near]))


@dataclass(frozen=True, eq=False)
class SeveralAttributes:
    """t-closeness of several sensitive attributes at once: counts stand side by side, attribute after attribute."""

    parts: tuple[TCloseness, ...]

    @property
    def smallest(self) -> int:
        """A single record may be close enough; its values decide."""
        return 1

    def holds(self, counts: Int64Array) -> BoolArray:
        """(G,) bool: whether every attribute of each group is close. counts : (G, sum of m) int64."""
        close = np.ones(len(counts), dtype=bool)
        start = 0
        for part in self.parts:
            rest = np.flatnonzero(close)
            close[rest] = part.close(counts[rest, start : start + part.distance.m])
            start += part.distance.m
        return close


def guarantee_words(column: str, closeness: TCloseness, k: int = 1, known: str | None = None) -> str:
    """What t-closeness promises, in words with the numbers used. known : see `anonlib.words.closeness`."""
    return words.closeness(column, closeness.distance.kind, closeness.t, k, known)


_DATE = re.compile(r"([+-]?\d{4,})(-\d\d-\d\d.*)")


def _sort_keys(values: Sequence[str | None]) -> list[Any]:
    """What the texts of numbers, dates or timestamps are sorted by."""
    if None in values or "NaN" in values:
        raise SpecError(
            "a missing sensitive value has no place in the order that numeric t-closeness measures by; "
            "set missing: {sensitive: drop}, or declare the column type: categorical"
        )
    known = cast("Sequence[str]", values)
    numbers = [_number(value) for value in known]
    if all(number is not None for number in numbers):
        endless = [value for value, number in zip(known, numbers, strict=True) if number and not number.is_finite()]
        if endless:
            raise SpecError(
                f"the sensitive value {endless[0]} is no finite number; mend it in the input, or drop its records"
            )
        return numbers
    dates = [_DATE.fullmatch(value) for value in known]
    neither = [v for v, number, date in zip(known, numbers, dates, strict=True) if number is None and date is None]
    if neither or not all(dates):
        odd = neither[0] if neither else next(v for v, date in zip(known, dates, strict=True) if date is not None)
        raise SpecError(
            f"the sensitive value {odd!r} is neither a number nor a date, so it has no place in an order; "
            "declare the column type: categorical, with a hierarchy if some values are closer than others"
        )
    return [(int(date.group(1)), date.group(2)) for date in dates if date is not None]


def _number(value: str) -> Decimal | None:
    try:
        return Decimal(value)
    except InvalidOperation:
        return None
