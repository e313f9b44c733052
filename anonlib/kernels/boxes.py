"""The tight boxes of equivalence classes: what the records of a class are published by.

Source: heterogeneous generalization, section 2: per numeric attribute the smallest and the largest value, per categorical one the set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonlib.arrays import Codes, Int32Array, Int64Array, Lists
from anonlib.domains import Domain, NumericDomain


@dataclass(frozen=True)
class Interval:
    """One numeric attribute of the boxes of g classes: from `low` to `high`, both (g,) codes, both included."""

    low: Codes
    high: Codes


@dataclass(frozen=True)
class Sets:
    """One categorical attribute of the boxes of g classes: class r may be values[bounds[r]:bounds[r + 1]].

    values : int32 codes, ascending within a class; bounds : (g + 1,) int64
    """

    values: Int32Array
    bounds: Int64Array

    def lists(self) -> Lists:
        """The sets as a column of g lists."""
        return Lists(self.values, self.bounds)


Box = Interval | Sets


def boxes_of_classes(columns: Sequence[Codes], domains: Sequence[Domain], classes: Int64Array) -> list[Box]:
    """The tight boxes of g classes: one `Interval` or `Sets` per quasi-identifier, in the order of `columns`.

    columns : d code columns of n records; domains : theirs; classes : (n,) int64, numbered 0..g-1 without a hole. O(d n log n).
    """
    order = np.argsort(classes, kind="stable")
    sizes = np.bincount(classes)
    starts = np.cumsum(sizes) - sizes
    boxes: list[Box] = []
    for column, domain in zip(columns, domains, strict=True):
        if isinstance(domain, NumericDomain):
            sorted_codes = column[order]
            boxes.append(
                Interval(np.minimum.reduceat(sorted_codes, starts), np.maximum.reduceat(sorted_codes, starts))
                if len(sizes)
                else Interval(sorted_codes, sorted_codes)
            )
        else:
            pairs = np.unique(classes * domain.size + column)
            owners, values = np.divmod(pairs, domain.size)
            bounds = np.searchsorted(owners, np.arange(len(sizes) + 1)).astype(np.int64)
            boxes.append(Sets(values.astype(np.int32), bounds))
    return boxes
