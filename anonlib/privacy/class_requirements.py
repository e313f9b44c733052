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
    """A predicate over classes."""

    def holds(self, counts: Int64Array) -> BoolArray:
        """counts : (g, m) int64, records of each value in each class. Returns (g,) bool."""

    @property
    def smallest(self) -> int:
        """No class with fewer records can meet it: what a search need not try."""


@dataclass(frozen=True)
class KAnonymity:
    """At least k records."""

    k: int

    @property
    def smallest(self) -> int:
        return self.k

    def holds(self, counts: Int64Array) -> BoolArray:
        return np.asarray(counts.sum(axis=1) >= self.k)


@dataclass(frozen=True)
class DistinctDiversity:
    """At least l different sensitive values."""

    l: int  # noqa: E741  (the field's name)

    @property
    def smallest(self) -> int:
        return self.l

    def holds(self, counts: Int64Array) -> BoolArray:
        return np.asarray((counts > 0).sum(axis=1) >= self.l)


@dataclass(frozen=True)
class ShareCaps:
    """No value i in more than the share caps[i] of a class. caps : (m,) Fractions; a cap above 1 binds nobody."""

    caps: tuple[Fraction, ...]

    @property
    def smallest(self) -> int:
        """ceil(1 / largest cap): one record of the most welcome value already takes its share."""
        largest = min(Fraction(1), max(self.caps))
        return -(-largest.denominator // largest.numerator)

    def holds(self, counts: Int64Array) -> BoolArray:
        size = counts.sum(axis=1)
        largest = int(size.max(initial=0))
        numerators = [min(cap, Fraction(1)).numerator for cap in self.caps]
        denominators = [min(cap, Fraction(1)).denominator for cap in self.caps]
        wide = largest * max(*numerators, *denominators, 1) >= _INT64
        kind: Any = object if wide else np.int64  # Python's integers where a product could overflow
        have = counts.astype(kind) * np.array(denominators, dtype=kind)
        may = size.astype(kind)[:, None] * np.array(numerators, dtype=kind)
        return np.asarray((have <= may).all(axis=1), dtype=bool)


def frequency_diversity(l: int, m: int) -> ShareCaps:  # noqa: E741
    """q_i <= 1 / l for each of m values."""
    return ShareCaps((Fraction(1, l),) * m)


def beta_likeness(beta: Fraction, counts: SensitiveCounts) -> ShareCaps:
    """q_i <= (1 + beta) p_i, the basic bound."""
    return ShareCaps(tuple((1 + beta) * counts.frequency(i) for i in range(counts.m)))


def enhanced_beta_likeness(beta: Fraction, counts: SensitiveCounts) -> ShareCaps:
    """q_i <= f(p_i) = (1 + min(beta, -ln p_i)) p_i: for frequent values the bound grows by less than beta, and stays below 1."""
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
    """Every one of `parts`."""

    parts: tuple[Requirement, ...]

    @property
    def smallest(self) -> int:
        return max((part.smallest for part in self.parts), default=1)

    def holds(self, counts: Int64Array) -> BoolArray:
        found = np.ones(len(counts), dtype=bool)
        for part in self.parts:
            rest = np.flatnonzero(found)
            if not rest.size:
                break
            found[rest] = part.holds(counts[rest])
        return found


def all_of(parts: Sequence[Requirement]) -> Requirement:
    """One requirement out of several."""
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))
