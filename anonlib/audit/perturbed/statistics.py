"""Do published values look as if they had been perturbed as the operators say? Tests of counts, with stated chances of a false alarm.

In a sub-table of n records, C_x of which truly have value x, the number O_y published with y is a sum of independent draws: C_y with
chance p + q, n - C_y with chance q. So E[O_y] = p C_y + q n and Var[O_y] = C_y a (1 - a) + (n - C_y) q (1 - q), a = p + q. Over a whole
sub-table the covariance is diag(D) less a part that does not matter on vectors that sum to 0, with D_y = p (1 - p) C_y + q n, so that

    S = sum_y d_y^2 / D_y - (sum_y d_y / D_y)^2 / sum_y (1 / D_y),    d = O - E[O],

is chi-square with m - 1 degrees of freedom where counts are large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from anonlib.arrays import Float64Array, Int64Array

FALSE_ALARM = 1e-9
"""The chance at most that a release which was perturbed as stated fails one of these tests."""
LARGE = 50
"""The least D_y of a sub-table whose S may be taken for chi-square."""
SKEWED = 100
"""Counts of this size are skewed: S lies above what chi-square says with a chance of 10^-12 a hundred times as often. So that far out the
limit is set. (Convolved exactly for Poisson counts of 50: 1.3 times what is wanted with one degree of freedom, less with more.)"""
LEAST_FREEDOM = 10
"""With fewer degrees of freedom than this no sum is too small: counts are whole numbers, and may meet what is expected."""


@dataclass(frozen=True)
class Cells:
    """One sub-table: p, q and, for each of its m values, how many records truly have it and were published with it. Equal sums."""

    p: float
    q: float
    true: Int64Array
    observed: Int64Array

    @property
    def expected(self) -> Float64Array:
        """(m,): how many records are expected to be published with each value."""
        mean: Float64Array = self.p * self.true + self.q * self.true.sum()
        return mean

    @property
    def variances(self) -> Float64Array:
        """(m,): the variance of the number of records published with each value."""
        a, n = self.p + self.q, self.true.sum()
        spread: Float64Array = self.true * a * (1 - a) + (n - self.true) * self.q * (1 - self.q)
        return spread

    def chi_square(self) -> tuple[float, int] | None:
        """(S, m - 1), or None when counts are too small for it."""
        if len(self.true) < 2:
            return None
        D = self.p * (1 - self.p) * self.true + self.q * self.true.sum()
        if D.min() < LARGE:
            return None
        d = self.observed - self.expected
        return float((d**2 / D).sum() - (d / D).sum() ** 2 / (1 / D).sum()), len(D) - 1


@dataclass(frozen=True)
class Finding:
    """Whether the counts pass, in words; `worst` is (sub-table, value) as positions, of the count that lies furthest off."""

    passed: bool
    words: str
    worst: tuple[int, int] | None


def plausible(subtables: Sequence[Cells]) -> Finding:
    """Are the published counts what the operators give? Two tests, each with half of `FALSE_ALARM`.

    Each count by itself: Bernstein's inequality, which holds for counts of any size, over all counts. All counts together: the sum of
    the S of sub-tables with large counts; values that were not perturbed at all may show in nothing but a sum that is too small.
    """
    cells = max(1, sum(len(t.true) for t in subtables))
    limit = math.log(2 * cells / (FALSE_ALARM / 2))
    furthest, worst = 0.0, None
    for i, t in enumerate(subtables):
        off = np.abs(t.observed - t.expected)
        allowed = limit / 3 + np.sqrt((limit / 3) ** 2 + 2 * limit * t.variances)
        allowed = np.where(t.variances == 0, 0.5, allowed)
        share = off / allowed
        if len(share) and share.max() > furthest:
            furthest, worst = float(share.max()), (i, int(share.argmax()))
    chi_squares = [s for s in (t.chi_square() for t in subtables) if s is not None]
    total, freedom = sum(s for s, _ in chi_squares), sum(f for _, f in chi_squares)
    words = f"the furthest of {cells:,} counts at {furthest:.2f} of what chance allows"
    fine = furthest <= 1
    if freedom:
        low = stats.chi2.ppf(FALSE_ALARM / 4, freedom) if freedom >= LEAST_FREEDOM else 0.0
        high = stats.chi2.isf(FALSE_ALARM / 4 / SKEWED, freedom)
        fine = fine and bool(low <= total <= high)
        words += (
            f"; chi-square {total:,.1f} where {low:,.1f} to {high:,.1f} are allowed ({freedom:,} degrees of freedom)"
        )
    return Finding(fine, words, worst)


def kept_as_often(kept: Sequence[int], records: Sequence[int], chances: Sequence[float]) -> Finding:
    """Do `kept` of `records` fit the chance p + q of being published unchanged, in each sub-table? Exact binomial tails, their chances
    of a false alarm adding up to `FALSE_ALARM`."""
    tails = []
    for k, n, chance in zip(kept, records, chances, strict=True):
        at_most, at_least = stats.binom.cdf(k, n, chance), stats.binom.sf(k - 1, n, chance)
        tails.append(min(1.0, 2 * float(min(at_most, at_least))))
    worst = int(np.argmin(tails)) if tails else None
    passed = not tails or min(tails) * len(tails) >= FALSE_ALARM
    total = sum(records)
    expected = sum(n * c for n, c in zip(records, chances, strict=True))
    words = f"{sum(kept):,} of {total:,} records unchanged, {expected:,.1f} expected"
    return Finding(passed, words, None if worst is None else (worst, 0))
