"""Counts reconstructed from perturbed values (small domain randomization, equation 7), and how far they may be off.

In sub-table i each record keeps its sensitive value with probability p_i = (gamma_i - 1) / (m_i - 1 + gamma_i) and else gets one
of the m_i values of the domain at random, each with probability q_i = 1 / (m_i - 1 + gamma_i). Among n_i records that satisfy
the conditions on other columns, f_i truly have one of s_i wanted values, and o_i are observed with one of them. Then

    E[o_i] = p_i f_i + s_i q_i n_i,   so   f*_i = (o_i - s_i q_i n_i) / p_i   is unbiased,            (7), summed over the s_i values

and o_i is a sum of independent draws, f_i of them with chance a = p_i + s_i q_i and n_i - f_i with chance b = s_i q_i, so

    Var[f*_i] = (f_i a (1 - a) + (n_i - f_i) b (1 - b)) / p_i^2,

linear in f_i: with f*_i in its place the variance is estimated without bias, and never comes out below 0. Sub-tables are
perturbed independently, so estimates and variances add up. The perturbation is all that is random here: every record is
published, and the records and their other columns are what they are.

Calibration (not in the paper). The release states how many records C_i of the whole sub-table truly have a wanted value, so the
error of its reconstruction e_i = f*_i(all) - C_i is known. It is the sum of the errors of the matching and of the other records,
which are independent, so the share V_i / V_i(all) of it is expected to come from the matching records (best linear prediction).
Taking that off leaves the variance V_i (1 - V_i / V_i(all)): much less for conditions that most records meet, and 0 when all do. V_i
is here computed from f*_i brought within what is certain, max(0, n_i + C_i - |T_i|) to min(n_i, C_i).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from anonlib.arrays import Float64Array, Int64Array


@dataclass(frozen=True)
class Operators:
    """The perturbation of k sub-tables.

    domain_sizes : (k,) m_i; gammas : (k,) gamma_i > 1, as doubles
    """

    domain_sizes: Int64Array
    gammas: Float64Array

    @property
    def retention(self) -> Float64Array:
        """(k,) p_i, the chance that a record's value is retained rather than replaced. Equation 4."""
        kept: Float64Array = (self.gammas - 1) / (self.domain_sizes - 1 + self.gammas)
        return kept

    @property
    def replacement(self) -> Float64Array:
        """(k,) q_i, the chance that a record's value is replaced by one given value. Equation 4."""
        q: Float64Array = 1 / (self.domain_sizes - 1 + self.gammas)
        return q


@dataclass(frozen=True)
class ReconstructedCount:
    """How many records meet a predicate, as far as a perturbed release tells.

    estimate       : the best single number: `raw` calibrated by the published counts of the sub-tables, within `low` and `high`
    standard_error : of the calibrated estimate (before it is brought within the bounds)
    low, high      : no perturbation whatever gives fewer or more records; they rest on no chance
    interval       : holds the true number with a chance of about 95 %; within `low` and `high`
    raw            : equation (7) summed over the sub-tables; unbiased, may be negative; `raw_error` is its standard error
    """

    estimate: float
    standard_error: float
    low: int
    high: int
    interval: tuple[float, float]
    raw: float
    raw_error: float

    def __str__(self) -> str:
        return (
            f"{self.estimate:,.1f} (standard error {self.standard_error:,.1f}; with 95 % confidence {self.interval[0]:,.1f} to "
            f"{self.interval[1]:,.1f}; certainly {self.low:,} to {self.high:,})"
        )


def terms(operators: Operators, matching: Any, accepted: Any, observed: Any) -> tuple[Float64Array, Float64Array]:
    """(f*_i, its estimated variance) for each sub-table, float64 of the broadcast shape. Equation (7), summed over the accepted values.

    matching : n_i, accepted : s_i <= m_i, observed : o_i <= n_i; arrays that broadcast over a last axis of k sub-tables
    """
    n, s, o = (np.asarray(a, dtype=np.float64) for a in (matching, accepted, observed))
    p, b = operators.retention, s * operators.replacement
    estimate = (o - b * n) / p
    return estimate, _variance(p, b, n, estimate)


def variance(operators: Operators, matching: Any, accepted: Any, true: Any) -> Float64Array:
    """Var[f*_i] when f_i = `true` of the `matching` records have one of `accepted` wanted values; shapes as in `terms`."""
    n, s, f = (np.asarray(a, dtype=np.float64) for a in (matching, accepted, true))
    return _variance(operators.retention, s * operators.replacement, n, f)


def reconstruct(
    operators: Operators,
    sizes: Any,
    matching: Any,
    accepted: Any,
    observed: Any,
    observed_in_all: Any,
    true_in_all: Any,
) -> ReconstructedCount:
    """One count from what was seen in each of k sub-tables, all arguments of shape (k,).

    sizes    : |T_i|; matching : n_i, records that satisfy the conditions on other columns; accepted : s_i, values of the domain that
               satisfy the condition on the sensitive column
    observed : o_i, matching records whose published value satisfies it; observed_in_all : the same of all |T_i| records
    true_in_all : C_i, how many records of T_i truly satisfy it, as the release states
    """
    N, n, C = (np.asarray(a, dtype=np.int64) for a in (sizes, matching, true_in_all))
    raw, spread = terms(operators, n, accepted, observed)
    whole = terms(operators, N, accepted, observed_in_all)[0] - C
    least, most = np.maximum(0, n + C - N), np.minimum(n, C)
    own = variance(operators, n, accepted, np.clip(raw, least, most))
    of_whole = variance(operators, N, accepted, C)
    share = np.divide(own, of_whole, out=np.zeros_like(own), where=of_whole > 0).clip(0, 1)
    calibrated = float((raw - share * whole).sum())
    error = math.sqrt(float((own * (1 - share)).sum()))
    low, high = int(least.sum()), int(most.sum())
    return ReconstructedCount(
        estimate=min(max(calibrated, float(low)), float(high)),
        standard_error=error,
        low=low,
        high=high,
        interval=confidence_interval(calibrated, error, low, high),
        raw=float(raw.sum()),
        raw_error=math.sqrt(max(0.0, float(spread.sum()))),
    )


def confidence_interval(
    estimate: float, standard_error: float, low: float, high: float, level: float = 0.95
) -> tuple[float, float]:
    """The normal interval around an estimate, brought within bounds that are certain."""
    half = NormalDist().inv_cdf((1 + level) / 2) * standard_error
    return min(max(estimate - half, low), high), max(min(estimate + half, high), low)


def _variance(p: Float64Array, b: Float64Array, n: Float64Array, f: Float64Array) -> Float64Array:
    """Var[f*_i] of the module's formula, at least 0. b : s_i q_i; n : matching records; f : how many of them have a wanted value."""
    a = p + b
    spread: Float64Array = np.maximum(0, (f * a * (1 - a) + (n - f) * b * (1 - b)) / p**2)
    return spread
