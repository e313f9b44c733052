"""l-diversity of heterogeneous generalization: every record matches l published records with l different sensitive values.

Source: heterogeneous generalization, definition 2 and section 3.1. Exact: whole numbers only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anonlib.privacy.counts import Int64Array

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LDiversity:
    """l matches, all of different values: confidence in each is 1/l."""

    l: int  # noqa: E741  (the field's name)

    def holds(self, matched: Int64Array) -> BoolArray:
        """(n,) bool: matched : (n, mu) int64, the sensitive codes of each record's matches."""
        ordered = np.sort(matched, axis=1)
        return np.asarray((matched.shape[1] >= self.l) & (ordered[:, 1:] != ordered[:, :-1]).all(axis=1))

    def eligible(self, counts: Int64Array, dummies: bool = True) -> BoolArray:
        """(g,) bool: can groups with (g, m) counts of the sensitive values be matched so?

        At least l values, none more often than in one bucket of l equal ones: ceil(n / l) records where dummies fill up, and n / l
        where records may be left out (those of the most frequent values are).
        """
        size = counts.sum(axis=1)
        bucket = -(-size // self.l) if dummies else size // self.l
        beyond = np.maximum(counts - bucket[:, None], 0).sum(axis=1)
        spare = 0 if dummies else size - bucket * self.l
        return np.asarray(((counts > 0).sum(axis=1) >= self.l) & (bucket > 0) & (beyond <= spare))


def most_diverse(counts: Int64Array) -> int:
    """The largest l for which a table with (m,) counts is eligible when dummies fill up; 1 when none above is."""
    largest, n = int(counts.max()), int(counts.sum())
    best = int((counts > 0).sum())
    if largest > 1:  # largest <= ceil(n / l) means (largest - 1) l < n
        best = min(best, (n - 1) // (largest - 1))
    return max(1, best)
