"""How many records of which values each sub-table takes, and how its values are perturbed: from the solver to kernel and layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anonlib.arrays import BoolArray, Int64Array
from anonlib.privacy.rho_privacy import amplification, posterior, retention, unchanged


@dataclass(frozen=True)
class SubTable:
    """T_i, described by counts.

    codes  : (m_i,) int64, ascending: which values of one `SensitiveCounts` it has, its domain SA_i
    counts : (m_i,) int64, each >= 1: how many records of each
    rho1   : the largest share of a protected value; gamma : of its perturbation, exact, above 1
    """

    codes: Int64Array
    counts: Int64Array
    rho1: Fraction
    gamma: Fraction

    @staticmethod
    def of(codes: Int64Array, counts: Int64Array, protected: BoolArray, rho2: Fraction) -> SubTable:
        """The sub-table of these values with the largest gamma that keeps `rho2` (equation 10).

        codes, counts : (m_i,) in any order; protected : (m,) bool over all values of the table
        Raises ValueError when no gamma keeps it, or when none of its values is protected.
        """
        order = np.argsort(codes)
        codes, counts = np.asarray(codes, dtype=np.int64)[order], np.asarray(counts, dtype=np.int64)[order]
        guarded = counts[protected[codes]]
        if not guarded.size:
            raise ValueError("a sub-table without a protected value has no largest gamma")
        rho1 = Fraction(int(guarded.max()), int(counts.sum()))
        return SubTable(codes, counts, rho1, amplification(rho1, rho2))

    @property
    def size(self) -> int:
        """|T_i|, how many records the sub-table has."""
        return int(self.counts.sum())

    @property
    def domain_size(self) -> int:
        """m_i, how many sensitive values the sub-table has: what a replaced value is drawn from."""
        return len(self.codes)

    @property
    def retention(self) -> Fraction:
        """p_i, the chance that a record's value is retained rather than replaced (equation 4). Exact."""
        return retention(self.domain_size, self.gamma)

    @property
    def unchanged(self) -> Fraction:
        """p_i + q_i, the chance that a record is published with its own value: the diagonal of equation (5). Exact."""
        return unchanged(self.domain_size, self.gamma)

    @property
    def posterior(self) -> Fraction:
        """The largest belief in a protected value of one of its records after the release; at most rho2. Exact."""
        return posterior(self.rho1, self.gamma)


@dataclass(frozen=True)
class SubTables:
    """All sub-tables of a release, numbered 0, 1, ...; over them every value's counts add up to its records in the table."""

    tables: tuple[SubTable, ...]

    def __iter__(self) -> Iterator[SubTable]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __getitem__(self, i: int) -> SubTable:
        return self.tables[i]

    @property
    def records(self) -> int:
        """|T|, how many records all sub-tables have together."""
        return sum(t.size for t in self.tables)

    @property
    def mean_retention(self) -> float:
        """Average over records of p_i: the share of records that are not replaced."""
        return sum(t.size * float(t.retention) for t in self.tables) / self.records


def belief_in_groups(subtables: SubTables, group: Int64Array) -> Fraction:
    """The largest belief after the release that a record's value lies in one group of values. group : (m,) int64, each value's group.

    Of several sensitive columns perturbed together, the values that agree in one column are such a group: (rho1, rho2)-privacy
    bounds the belief in each combination, not in them. Seen a value y of a group with a share of s, that is
    (f_y gamma + s - f_y) / (f_y gamma + 1 - f_y).
    """
    largest = Fraction(0)
    for t in subtables:
        of_group = np.zeros(int(group.max()) + 1, dtype=np.int64)
        np.add.at(of_group, group[t.codes], t.counts)
        held, counts = of_group[group[t.codes]], t.counts
        gamma = float(t.gamma)
        at = int(np.argmax((counts * gamma + held - counts) / (counts * gamma + t.size - counts)))
        y, s = int(counts[at]), int(held[at])
        largest = max(largest, (y * t.gamma + s - y) / (y * t.gamma + t.size - y))
    return largest


def beliefs(subtables: SubTables, values: int) -> list[Fraction]:
    """Of each of `values` values: the most that is believed of it after the release, in any sub-table that has it. Exact."""
    largest = [Fraction(0)] * values
    for t in subtables:
        for code, count in zip(t.codes.tolist(), t.counts.tolist(), strict=True):
            largest[code] = max(largest[code], posterior(Fraction(count, t.size), t.gamma))
    return largest
