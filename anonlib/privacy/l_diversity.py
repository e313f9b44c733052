"""l-diversity of heterogeneous generalization: every record matches l published records with l different sensitive values.

Source: heterogeneous generalization, definition 2 and section 3.1. Exact: whole numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anonlib.arrays import BoolArray, Int64Array


@dataclass(frozen=True)
class LDiversity:
    """l matches, all of different values: confidence in each is 1/l."""

    l: int  # noqa: E741  (the field's name)

    def holds(self, matched: Int64Array) -> BoolArray:
        """Which records keep it, (n,) bool: l matches or more, no two with the same value.

        matched : (n, mu) int64, the sensitive codes of each record's matches. O(n mu log mu).
        """
        ordered = np.sort(matched, axis=1)
        return np.asarray((matched.shape[1] >= self.l) & (ordered[:, 1:] != ordered[:, :-1]).all(axis=1))

    def eligible(self, counts: Int64Array) -> BoolArray:
        """Which groups of records can be matched so, (g,) bool: those with no value in more than one of l records, exactly.

        counts : (g, m) int64, how many records of each group have each value. So there are l values at least. A group of nobody cannot.
        """
        size = counts.sum(axis=1)
        return np.asarray((size > 0) & (counts.max(axis=1) <= size // self.l))
