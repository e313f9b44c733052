"""What an equivalence class must keep, as predicates over the counts of its sensitive values; exact, many classes at a time.

A requirement is asked about an (g, m) table of counts, one class a row, one sensitive value of the *whole* table a column, and answers
for each class. That is the only thing a homogeneous method (Mondrian, full-domain recoding, merging) has to know of a privacy model.

    k-anonymity          a class has at least k records
    distinct l           at least l different sensitive values
    frequency l          no value more often than size / l: confidence at most 1 / l
    beta-likeness        q_i <= (1 + beta) p_i, or the enhanced bound (1 + min(beta, -ln p_i)) p_i
    t-closeness          `anonlib.privacy.t_closeness` has the same interface

Source: heterogeneous generalization, section 2; the enhanced bound is that of BuReL (Cao and Karras, VLDB 2012, definition 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from anonlib.arrays import BoolArray, Int64Array
from anonlib.privacy.counts import SensitiveCounts

_INT64 = 2**63


class Requirement(Protocol):
    """What every equivalence class must keep, as a predicate over the counts of its sensitive values."""

    def holds(self, counts: Int64Array) -> BoolArray:
        """Which of g classes keep it, (g,) bool. counts : (g, m) int64, records of each value of the whole table in each class."""

    @property
    def smallest(self) -> int:
        """The fewest records with which a class can keep it at all, at least 1: a search need not try smaller ones."""


@dataclass(frozen=True)
class KAnonymity:
    """k-anonymity: a class has at least k records."""

    k: int

    @property
    def smallest(self) -> int:
        """k itself."""
        return self.k

    def holds(self, counts: Int64Array) -> BoolArray:
        """Which classes have k records, as `Requirement.holds`."""
        return np.asarray(counts.sum(axis=1) >= self.k)


@dataclass(frozen=True)
class DistinctDiversity:
    """Distinct l-diversity: a class has at least l different sensitive values; how often each occurs is not bounded."""

    l: int  # noqa: E741  (the field's name)

    @property
    def smallest(self) -> int:
        """l, one record of each value."""
        return self.l

    def holds(self, counts: Int64Array) -> BoolArray:
        """Which classes have l different values, as `Requirement.holds`."""
        return np.asarray((counts > 0).sum(axis=1) >= self.l)


@dataclass(frozen=True)
class ShareCaps:
    """Bounds on shares: value i makes up at most the share caps[i] of a class.

    caps : m exact fractions, one a value of the whole table; a cap above 1 bounds nothing
    """

    caps: tuple[Fraction, ...]

    @property
    def smallest(self) -> int:
        """ceil(1 / largest cap): one record of the most welcome value already takes its share."""
        largest = min(Fraction(1), max(self.caps))
        return -(-largest.denominator // largest.numerator)

    def holds(self, counts: Int64Array) -> BoolArray:
        """Which classes keep every cap, as `Requirement.holds`. Exact: Python's integers where products leave 64 bits. O(g m)."""
        size = counts.sum(axis=1)
        largest = int(size.max(initial=0))
        numerators = [min(cap, Fraction(1)).numerator for cap in self.caps]
        denominators = [min(cap, Fraction(1)).denominator for cap in self.caps]
        overflows = largest * max(*numerators, *denominators, 1) >= _INT64
        dtype: Any = object if overflows else np.int64  # Python's integers where a product could overflow
        held = counts.astype(dtype) * np.array(denominators, dtype=dtype)
        allowed = size.astype(dtype)[:, None] * np.array(numerators, dtype=dtype)
        return np.asarray((held <= allowed).all(axis=1), dtype=bool)


def frequency_diversity(l: int, m: int) -> ShareCaps:  # noqa: E741
    """Frequency l-diversity, q_i <= 1 / l for each of m values: nobody is believed to have a value with more than 1 / l."""
    return ShareCaps((Fraction(1, l),) * m)


def beta_likeness(beta: Fraction, counts: SensitiveCounts) -> ShareCaps:
    """Basic beta-likeness, q_i <= (1 + beta) p_i, p_i the share of value i in the whole table (heterogeneous generalization, section 2)."""
    return ShareCaps(tuple((1 + beta) * counts.frequency(i) for i in range(counts.m)))


def enhanced_beta_likeness(beta: Fraction, counts: SensitiveCounts) -> ShareCaps:
    """Enhanced beta-likeness, q_i <= f(p_i) = (1 + min(beta, -ln p_i)) p_i (Cao and Karras, VLDB 2012, definition 3).

    For frequent values the bound grows by less than beta, and it stays below 1. Logarithms are rounded down (`minus_log`).
    """
    shares = [counts.frequency(i) for i in range(counts.m)]
    return ShareCaps(tuple((1 + min(beta, minus_log(share))) * share for share in shares))


def minus_log(share: Fraction) -> Fraction:
    """-ln(share) for a share in (0, 1], rounded down to 12 decimals: a guarantee never gains by the rounding."""
    with localcontext(Context(prec=40)):
        exact = -(Decimal(share.numerator) / Decimal(share.denominator)).ln()
        down = (exact - Decimal("1e-30")).quantize(Decimal("1e-12"), rounding="ROUND_FLOOR")
    return max(Fraction(0), Fraction(down))


@dataclass(frozen=True)
class AllOf:
    """The conjunction of several requirements; those after the first are asked only of the classes that kept the ones before."""

    parts: tuple[Requirement, ...]

    @property
    def smallest(self) -> int:
        """The largest of the parts' own."""
        return max((part.smallest for part in self.parts), default=1)

    def holds(self, counts: Int64Array) -> BoolArray:
        """Which classes keep every part, as `Requirement.holds`."""
        keeps = np.ones(len(counts), dtype=bool)
        for part in self.parts:
            rest = np.flatnonzero(keeps)
            if not rest.size:
                break
            keeps[rest] = part.holds(counts[rest])
        return keeps


def all_of(parts: Sequence[Requirement]) -> Requirement:
    """One requirement that asks what each of `parts` asks; a single part is given back as it is."""
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))
