"""(rho1, rho2)-privacy: who believes a sensitive value with at most rho1 before the release believes it with at most rho2 after it.

Source: small domain randomization, section 3 (equations 1 to 6) and section 4 (equations 9 to 12, definition 1, corollary 1), in the
restricted form in which the belief is about one sensitive value of one person. The prior belief is the value's share of the
table; the protected values SA' are those with a share of at most rho1. All comparisons are exact; floats stand in error bounds alone.

A record of a sub-table T_i keeps its value with probability p_i, and else gets one of the m_i values of the sub-table at random. With
gamma_i = (p_i + q_i) / q_i, where q_i = (1 - p_i) / m_i, whoever sees the value x believes x with

    posterior = s gamma_i / (s gamma_i + 1 - s),    s the share of x in T_i,

and with at most s when another value is seen. So rho2 is kept for every protected value if and only if

    gamma_i <= rho2 (1 - rho1_i) / (rho1_i (1 - rho2)),    rho1_i the largest share of a protected value in T_i,      (10)

and the largest gamma_i retains the most. It exceeds 1 exactly when rho1_i < rho2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib import words
from anonlib.arrays import BoolArray
from anonlib.errors import SpecError, Unsatisfiable
from anonlib.exact import exact, legible, text
from anonlib.privacy.counts import SensitiveCounts


@dataclass(frozen=True)
class RhoPrivacy:
    """What is asked. rho2 : the belief that nobody may exceed; rho1 : which values are protected, None for all of them."""

    rho1: Fraction | None
    rho2: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.rho2 < 1:
            raise SpecError(f"rho2: {text(self.rho2)} is no bound on a belief; it lies above 0 and below 1, e.g. 1/6")
        if self.rho1 is not None and not 0 < self.rho1 < self.rho2:
            raise SpecError(
                f"rho1: {text(self.rho1)} does not lie above 0 and below rho2 = {text(self.rho2)}; lower rho1, raise rho2, "
                "or leave rho1 out to protect every sensitive value"
            )

    @staticmethod
    def of(rho2: int | str | Fraction, rho1: int | str | Fraction | None = None) -> RhoPrivacy:
        """The requirement from text or exact numbers, e.g. RhoPrivacy.of(rho2="1/6", rho1="1/13"). Raises SpecError for floats."""
        return RhoPrivacy(None if rho1 is None else exact(rho1, "rho1"), exact(rho2, "rho2"))

    def protected(self, counts: SensitiveCounts) -> BoolArray:
        """(m,) bool: is the value's share of the table at most rho1? SA' of equation (9).

        Raises Unsatisfiable when nothing would be protected, or when a protected value's share of the whole table reaches rho2:
        whatever the sub-tables, its share in one of them is as large.
        """
        if self.rho1 is None:
            is_protected = np.ones(counts.m, dtype=bool)
        else:
            is_protected = np.array(
                [c * self.rho1.denominator <= self.rho1.numerator * counts.n for c in counts.counts.tolist()]
            )
        if not is_protected.any():
            rarest = min(range(counts.m), key=lambda i: (int(counts.counts[i]), i))
            share = counts.frequency(rarest)
            raise Unsatisfiable(
                f"rho1: no sensitive value has a share of at most {legible(self.rho1 or self.rho2)} of the records, so nothing would be "
                f"protected; the rarest, {counts.values[rarest]!r}, has {legible(share)}: raise rho1 to at least that, or leave it out"
            )
        most = int(counts.counts[is_protected].max())
        share = Fraction(most, counts.n)
        if share >= self.rho2:
            offending = [i for i in np.flatnonzero(is_protected).tolist() if counts.frequency(i) >= self.rho2]
            raise Unsatisfiable(
                f"rho2: {legible(self.rho2)} cannot be kept for {_named(counts, offending)}: a share of {legible(share)} of the records is "
                f"known before anything is published; any rho2 above {legible(share)} works (the weakest that is needed), "
                f"or name a rho1 below {legible(min(counts.frequency(i) for i in offending), down=True)} to protect only rarer values"
            )
        return is_protected


def amplification(share: Fraction, rho2: Fraction) -> Fraction:
    """The largest gamma under which a value of that share is believed with at most rho2. Equations (6), (10).

    >>> amplification(Fraction(1, 3), Fraction(2, 3)), amplification(Fraction(1, 6), Fraction(2, 3))
    (Fraction(4, 1), Fraction(10, 1))
    """
    if not 0 < share < rho2 < 1:
        raise ValueError(f"a share of {share} leaves nothing to hide below {rho2}")
    return rho2 * (1 - share) / (share * (1 - rho2))


def retention(domain_size: int, gamma: Fraction) -> Fraction:
    """p, the chance that a record's value is retained rather than replaced. Equation (4)."""
    return (gamma - 1) / (domain_size - 1 + gamma)


def unchanged(domain_size: int, gamma: Fraction) -> Fraction:
    """p + q, the chance that a record is published with its own value, kept or drawn: the diagonal of equation (5)."""
    return gamma / (domain_size - 1 + gamma)


def posterior(share: Fraction, gamma: Fraction) -> Fraction:
    """The most that is believed of a value with a share of `share` in the sub-table, once it is seen published. Exact."""
    return share * gamma / (share * gamma + 1 - share)


def below(counts: Any, sizes: Any, rho2: Fraction) -> BoolArray:
    """Whether counts / sizes < rho2, elementwise and exactly, bool of their broadcast shape.

    counts, sizes : int64 that broadcast, sizes above 0. Doubles decide but where they are within 10^-9, integers there.
    """
    count, size = np.broadcast_arrays(np.asarray(counts, dtype=np.int64), np.asarray(sizes, dtype=np.int64))
    difference = count / size - float(rho2)
    is_below: BoolArray = np.atleast_1d(difference < 0)
    for at in np.flatnonzero(np.abs(difference) < 1e-9).tolist():  # too near for doubles
        is_below.flat[at] = int(count.flat[at]) * rho2.denominator < rho2.numerator * int(size.flat[at])
    return is_below.reshape(count.shape)


def confidence_factor(delta: Fraction) -> float:
    """a = 2 sqrt(ln(2 / delta)), which turns the spread of equation (11) into a bound that fails with a chance of delta."""
    return 2 * math.sqrt(math.log(2 / float(delta)))


def spread(records: Any, retention: Any) -> Any:
    """eps / a of equation (11) for a (sub-)table that retains p of its values: numbers or arrays. Multiply by `confidence_factor` for the
    bound on the error of a reconstructed share."""
    return 1 / (retention * np.sqrt(records))


def squared_error(records: Any, domain_size: Any, retention: Any) -> Any:
    """The expected sum, over the values of a (sub-)table's domain, of the squared errors of their reconstructed counts; numbers or arrays.

    A value's observed count is a sum of independent draws, with chance p + q for its own records and q for the others (equation 5), and is
    divided by p (equation 7): ((p + q)(1 - p - q) + (m - 1) q (1 - q)) / p^2 a record. It adds up over sub-tables.
    """
    q = (1 - retention) / domain_size
    same = retention + q
    return records * (same * (1 - same) + (domain_size - 1) * q * (1 - q)) / retention**2


def guarantee_words(column: str, asked: RhoPrivacy, counts: SensitiveCounts, protected: BoolArray) -> str:
    """What the release promises, in words with the numbers used; `protected` is (m,)."""
    open_ = sorted(np.flatnonzero(~protected).tolist(), key=lambda i: (-int(counts.counts[i]), i))
    return words.beliefs(
        column,
        asked.rho1,
        asked.rho2,
        int(protected.sum()),
        [(counts.values[i], counts.frequency(i)) for i in open_],
    )


def _named(counts: SensitiveCounts, codes: list[int]) -> str:
    """The most frequent of the values, with their shares."""
    first = sorted(codes, key=lambda i: (-int(counts.counts[i]), i))
    return words.named([(counts.values[i], counts.frequency(i)) for i in first])
