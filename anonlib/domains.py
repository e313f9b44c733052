"""Domains of quasi-identifiers, and what it costs to publish less than a value: spans, sets of categories, and their penalties.

Kernels work on columns of codes. A numeric column is int64 (whole numbers, dates as days, timestamps as microseconds, decimals as
their unscaled digits) or float64; a categorical column is int64, an index into the domain's values. The generalized certainty
penalty is that of heterogeneous generalization (section 2): 0 for a value, 1 for the whole domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Float64Array, Int64Array
from anonlib.hierarchy import Hierarchy


@dataclass(frozen=True)
class NumericDomain:
    """A numeric quasi-identifier, from the smallest to the largest value of the whole table (in codes)."""

    name: str
    low: float
    high: float

    @property
    def width(self) -> float:
        """The span of the domain; 1 when it has a single value, so that shares of it are 0."""
        return float(self.high - self.low) or 1.0

    def share(self, codes: npt.ArrayLike) -> Float64Array:
        """Where codes lie on the axis of the domain, from 0 (the smallest value) to 1 (the largest), elementwise."""
        return (np.asarray(codes, dtype=np.float64) - self.low) / self.width

    def penalty(self, low: npt.ArrayLike, high: npt.ArrayLike) -> Float64Array:
        """(u - l) / (U - L), elementwise: NCP, and SABRE's information loss too."""
        return (np.asarray(high, dtype=np.float64) - np.asarray(low, dtype=np.float64)) / self.width


@dataclass(frozen=True)
class CategoricalDomain:
    """A categorical quasi-identifier: code i stands for `values[i]`, in leaf order of the hierarchy, else in text order.

    values    : the values that occur in the table and, with a hierarchy, all its leaves; None is a missing value kept as its own
    hierarchy : over exactly `values`, when the release spec names one
    """

    name: str
    values: tuple[str | None, ...]
    hierarchy: Hierarchy | None = None

    @property
    def size(self) -> int:
        """|A|, how many values the domain has."""
        return len(self.values)

    def share(self, codes: npt.ArrayLike) -> Float64Array:
        """Where codes lie on the axis of the domain, from 0 (the first leaf) to 1 (the last), elementwise."""
        return np.asarray(codes, dtype=np.float64) / max(1, self.size - 1)

    def penalty(self, distinct: npt.ArrayLike) -> Float64Array:
        """(count - 1) / (|A| - 1) for sets of `distinct` values, elementwise; 0 when the domain has a single value."""
        return (np.asarray(distinct, dtype=np.float64) - 1) / max(1, self.size - 1)

    def information_loss(self, distinct: npt.ArrayLike, first: Int64Array, last: Int64Array) -> Float64Array:
        """SABRE's loss (section 3.2) of sets of `distinct` values whose smallest and largest codes are `first` and `last`, elementwise.

        With a hierarchy, the share of its leaves under their lowest common ancestor; without, of the domain's values that are in the
        set. 0 for a single value.
        """
        covered = np.asarray(distinct, dtype=np.int64)
        if self.hierarchy is not None:
            node = self.hierarchy.cover(first, last)
            covered = self.hierarchy.last[node] - self.hierarchy.first[node] + 1
        return np.where(np.asarray(distinct) > 1, covered / max(1, self.size), 0.0)


Domain = NumericDomain | CategoricalDomain

DENSE = 1 << 25
"""Bytes that a table of runs x values may take."""


def penalty_of_runs(domain: Domain, values: npt.NDArray[Any], bounds: Int64Array) -> Float64Array:
    """The penalty of publishing each run of records by its tight box, (g,) float64 in [0, 1].

    values : (n,) codes, run after run; bounds : (g + 1,) int64, run r is values[bounds[r]:bounds[r + 1]], none is empty
    Cost: a categorical domain is counted in g x |A| bytes up to `DENSE`, by a sort above that.
    """
    starts, runs = bounds[:-1], len(bounds) - 1
    if isinstance(domain, NumericDomain):
        return domain.penalty(np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts))
    owner = np.repeat(np.arange(runs, dtype=np.int64), np.diff(bounds))
    if runs * domain.size <= DENSE:
        occurs = np.zeros((runs, domain.size), dtype=bool)
        occurs[owner, values] = True
        return domain.penalty(occurs.sum(axis=1))
    pairs = np.unique(owner * domain.size + values)
    return domain.penalty(np.bincount(pairs // domain.size, minlength=runs))


def generalized_certainty_penalty(penalties: Sequence[Float64Array]) -> float:
    """GCP, the mean of the penalties over records and attributes; 0 without attributes.

    penalties : per quasi-identifier (n,) float64, each in [0, 1] (heterogeneous generalization, section 2)
    """
    return float(np.mean([np.mean(column) for column in penalties])) if penalties else 0.0
