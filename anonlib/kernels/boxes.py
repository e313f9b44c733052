"""The tight boxes of equivalence classes: what the records of a class are published by.

Source: heterogeneous generalization, section 2: per numeric attribute the smallest and the largest value, per categorical one the set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonlib.arrays import Codes, Int32Array, Int64Array, ObjectArray
from anonlib.domains import Domain, NumericDomain


@dataclass(frozen=True)
class Interval:
    """low, high : (g,) codes, both inclusive."""

    low: Codes
    high: Codes


@dataclass(frozen=True)
class Sets:
    """Class g may be values[bounds[g]:bounds[g + 1]], ascending codes (int32); bounds : (g + 1,) int64."""

    values: Int32Array
    bounds: Int64Array

    def listed(self) -> ObjectArray:
        """(g,) arrays, one per class, as columns of lists want them."""
        found = np.empty(len(self.bounds) - 1, dtype=object)
        found[:] = np.split(self.values, self.bounds[1:-1]) if len(found) else []
        return found


Box = Interval | Sets


def boxes_of_classes(columns: Sequence[Codes], domains: Sequence[Domain], classes: Int64Array) -> list[Box]:
    """One box per attribute, each over g classes.

    columns : d code columns of n records; classes : (n,) int64, numbered 0..g-1 without a hole. O(d n log n).
    """
    order = np.argsort(classes, kind="stable")
    sizes = np.bincount(classes)
    starts = np.cumsum(sizes) - sizes
    found: list[Box] = []
    for column, domain in zip(columns, domains, strict=True):
        if isinstance(domain, NumericDomain):
            sorted_codes = column[order]
            found.append(
                Interval(np.minimum.reduceat(sorted_codes, starts), np.maximum.reduceat(sorted_codes, starts))
                if len(sizes)
                else Interval(sorted_codes, sorted_codes)
            )
        else:
            pairs = np.unique(classes * domain.size + column)
            owners, values = np.divmod(pairs, domain.size)
            bounds = np.searchsorted(owners, np.arange(len(sizes) + 1)).astype(np.int64)
            found.append(Sets(values.astype(np.int32), bounds))
    return found
