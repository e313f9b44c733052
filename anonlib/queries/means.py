"""Means of a numeric sensitive attribute among the records that meet a condition, from the same numbers as counts. Pure.

On buckets a mean is a ratio of two sums over values, c'X / d'X: c the value as a number (0 of a missing one), d 1 where there is a number.
Its error is that of (c - r d)'X at the ratio r itself, to first order, over d'X; without missing values d'X is the number of matching
records, which the release tells, and the ratio is exactly unbiased.

On perturbed values, with y the published value as a number, a sum over the domain of a sub-table V and of squares V2, p and q as in
`anonlib.queries.reconstruction`, a record with the true value x has E[y] = p x + q V and Var[y] = p (1 - p) x^2 - 2 p q V x + q V2 - q^2
V^2: both are linear in x and x^2, whose sums are reconstructed alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from anonlib.arrays import BoolArray, Float64Array
from anonlib.queries.bucketized import REFUTED, Seen, z_of
from anonlib.queries.estimates import Estimator
from anonlib.queries.flattening import MAX_VALUES, Flattening, Kinds
from anonlib.queries.reconstruction import Operators

MOST_SPREAD = 0.15
"""Of a number of records that is estimated beside their sum: its standard error, as a share of it, up to which the error of their ratio is
told. Beyond, a ratio is biased and far from normal."""


@dataclass(frozen=True)
class MeanEstimate:
    """The mean of a column among the records that meet a condition; nan where no record has a number.

    estimate, estimator : as of `anonlib.queries.estimates.CountEstimate`
    interval       : holds the true mean with a chance of about 95 % over the keys; None where no such statement is known
    unbiased, standard_error : right on average over the keys, and how far it scatters; None where the release does not tell
    """

    estimate: float
    estimator: Estimator
    interval: tuple[float, float] | None = None
    unbiased: float | None = None
    standard_error: float | None = None

    @staticmethod
    def exact(mean: float) -> MeanEstimate:
        """A mean that the release tells; nan of nobody, which has no interval."""
        return MeanEstimate(mean, "exact") if math.isnan(mean) else MeanEstimate(mean, "exact", (mean, mean), mean, 0.0)

    @staticmethod
    def normal(mean: float, error: float, estimate: float | None = None) -> MeanEstimate:
        """An unbiased mean with its error, and an estimate that answers in its stead unless it is refuted."""
        half = z_of(0.95) * error
        answers = estimate if estimate is not None and abs(estimate - mean) <= REFUTED * error else mean
        estimator: Estimator = "unbiased" if answers == mean else "shrunk"
        return MeanEstimate(answers, estimator, (mean - half, mean + half), mean, error)

    def __str__(self) -> str:
        if math.isnan(self.estimate):
            return "no mean: nobody who is asked for has a number there"
        if self.estimator == "exact":
            return f"{self.estimate:,.6g} (exact)"
        if self.interval is None:
            return f"{self.estimate:,.6g} ({self.estimator}; no error is known)"
        low, high = self.interval
        return (
            f"{self.estimate:,.6g} ({self.estimator}; standard error {self.standard_error:,.4g}; with 95 % confidence {low:,.6g} to "
            f"{high:,.6g})"
        )


def of_buckets(kinds: Kinds, numbers: Float64Array, seen: Seen, accepted: BoolArray | None = None) -> MeanEstimate:
    """The mean over the matching records.

    numbers  : (m,) of each value, nan of a missing one
    accepted : (m,) which values are averaged, None for all. Of some, the number of records that have one is estimated too; an error is
               told where that number is known to a share of `MOST_SPREAD` of itself
    O(m^3).
    """
    held = ~np.isnan(numbers) & (True if accepted is None else accepted)
    c, d = np.where(held, numbers, 0.0)[:, None], held.astype(np.float64)[:, None]
    flat = kinds.flattened(seen.by_kind(len(kinds.buckets)))
    if not flat[held].any():
        return MeanEstimate.exact(math.nan)
    if len(numbers) > MAX_VALUES:
        return flattened(float((c * flat).sum()), float((d * flat).sum()))
    system = Flattening(kinds)
    parts = [kinds.flattened(seen.parts[:, [i]]) for i in range(seen.parts.shape[1])]
    counts = system.shrunk(flat, system.prior(parts, flat.sum(axis=0)))
    shrunk = float((c * counts).sum() / (d * counts).sum())
    if not (system.tells(c) and system.tells(d)):
        return MeanEstimate(shrunk, "shrunk")
    records = float(system.unbiased(flat, d)[0])
    if records <= 0:
        return MeanEstimate(shrunk, "shrunk")
    mean = float(system.unbiased(flat, c)[0]) / records
    shares = system.shares(counts)
    if accepted is not None and not accepted.all() and _spread_of(system, d, shares) > MOST_SPREAD * records:
        return MeanEstimate(shrunk, "shrunk")
    variance = float(system.variance(c - mean * d, shares)[0])
    return MeanEstimate.normal(mean, math.sqrt(variance) / records, shrunk)


def _spread_of(system: Flattening, d: Float64Array, shares: Float64Array) -> float:
    """The standard error of the number of matching records whose values d, (m, 1), has."""
    return math.sqrt(float(system.variance(d, shares)[0]))


def flattened(total: float, records: float) -> MeanEstimate:
    """The mean if each bucket's values were anybody's, from the flattened sum and number of records."""
    return MeanEstimate(total / records, "flattened") if records > 0 else MeanEstimate.exact(math.nan)


@dataclass(frozen=True)
class PublishedNumbers:
    """Of k sub-tables, (k,) float64 each: sums over the matching records, and over the domain.

    records : n; total, squares, known : of the published numbers, of their squares, and how many are no missing value
    domain_total, domain_squares, domain_known : the same of one of each value of the domain
    """

    records: Float64Array
    total: Float64Array
    squares: Float64Array
    known: Float64Array
    domain_total: Float64Array
    domain_squares: Float64Array
    domain_known: Float64Array


def of_perturbed(operators: Operators, seen: PublishedNumbers) -> MeanEstimate:
    """The mean over the matching records, reconstructed sub-table by sub-table."""
    p, q, n = operators.retention, operators.replacement, seen.records
    total = (seen.total - q * n * seen.domain_total) / p
    squares = (seen.squares - q * n * seen.domain_squares) / p
    known = (seen.known - q * n * seen.domain_known) / p
    records = float(known.sum())
    if records <= 0:
        return MeanEstimate.exact(math.nan)
    mean = float(total.sum()) / records
    # of z = y - mean where there is a number, else 0
    z, z2 = total - mean * known, squares - 2 * mean * total + mean**2 * known
    V = seen.domain_total - mean * seen.domain_known
    V2 = seen.domain_squares - 2 * mean * seen.domain_total + mean**2 * seen.domain_known
    variance = p * (1 - p) * z2 - 2 * p * q * V * z + n * (q * V2 - (q * V) ** 2)
    error = math.sqrt(max(0.0, float((variance / p**2).sum()))) / records
    return MeanEstimate.normal(mean, error)
