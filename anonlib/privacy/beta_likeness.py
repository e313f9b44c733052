"""beta-likeness of heterogeneous generalization: among a record's matches no sensitive value has more than (1 + beta) times its share.

Source: heterogeneous generalization, definition 4 and equations (3) to (5). Exact: whole numbers and fractions only.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from anonlib.arrays import BoolArray, Int64Array

_SAFE = 1 << 62


@dataclass(frozen=True)
class BetaLikeness:
    """psi_i <= (1 + beta) phi_i for all values i, psi_i among a record's matches, phi_i in the whole table.

    table : (m,) int64, records of each value in the whole table, each at least 1
    """

    beta: Fraction
    table: Int64Array

    @cached_property
    def n(self) -> int:
        """n, how many records the whole table has."""
        return int(self.table.sum())

    @cached_property
    def _most(self) -> int:
        return int(self.table.max())

    def copies(self, matches: npt.ArrayLike) -> Int64Array:
        """floor((1 + beta) phi_i mu): how many of a record's mu matches may carry value i. Exact.

        matches : mu, integers of any shape (...). Returns (..., m) int64, none above its mu. O(m) for each mu.
        """
        mu = np.asarray(matches, dtype=np.int64)[..., None]
        factor = 1 + self.beta
        largest = max(factor.numerator * self._most * int(mu.max(initial=1)), factor.denominator * self.n)
        dtype: Any = np.int64 if largest < _SAFE else object  # Python's integers where a product could overflow
        allowed = mu.astype(dtype) * self.table.astype(dtype) * factor.numerator // (factor.denominator * self.n)
        return np.asarray(np.minimum(allowed, mu), dtype=np.int64)

    def holds(self, carried: Int64Array) -> BoolArray:
        """Which of g records keep the bound, (g,) bool.

        carried : (g, m) int64, how many of each record's matches carry each value; a row sums to the record's number of matches
        """
        return np.asarray((carried <= self.copies(carried.sum(axis=1))).all(axis=1))

    def attained(self, carried: npt.ArrayLike, matches: int) -> Fraction:
        """The beta that one record's matches keep: max_i psi_i / phi_i - 1, exactly.

        carried : (m,) how many of its matches carry each value; matches : how many matches it has, above 0
        """
        pairs = zip(np.asarray(carried).tolist(), self.table.tolist(), strict=True)
        return max(Fraction(c * self.n, matches * t) for c, t in pairs) - 1

    @property
    def equivalent_l(self) -> int:
        """ceil(1 / ((1 + beta) phi_min)): l-diversity with so many matches keeps the bound as well (Theorem 4)."""
        rarest = (1 + self.beta) * Fraction(int(self.table.min()), self.n)
        return -(-rarest.denominator // rarest.numerator)
