"""The one statistic every solver starts from: how often each sensitive value occurs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.arrays import Int64Array


@dataclass(frozen=True)
class SensitiveCounts:
    """o_i = `counts[i]` records carry the sensitive value x_i = `values[i]`.

    values : tuple of m distinct Python values, in a fixed order (None stands for a kept null)
    counts : (m,) int64, each >= 1, same order
    """

    values: tuple[Any, ...]
    counts: Int64Array

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts, dtype=np.int64)
        if counts.ndim != 1 or len(counts) != len(self.values):
            raise ValueError(f"{len(self.values)} values need as many counts, not an array of shape {counts.shape}")
        if (counts < 1).any():
            raise ValueError("every listed sensitive value must occur at least once")
        counts.setflags(write=False)
        object.__setattr__(self, "counts", counts)

    @property
    def m(self) -> int:
        """m, how many distinct sensitive values the table has."""
        return len(self.values)

    @property
    def n(self) -> int:
        """n = |T|, how many records the table has."""
        return int(self.counts.sum())

    def frequency(self, i: int) -> Fraction:
        """f_i = o_i / |T|, the share of the table's records that have value i, exactly."""
        return Fraction(int(self.counts[i]), self.n)
