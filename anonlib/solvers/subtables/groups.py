"""Groups of records described by how many records of which values they have, and the error bound that every merge is judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from anonlib.arrays import BoolArray, Float64Array, Int64Array
from anonlib.privacy.rho_privacy import below, spread, squared_error


@dataclass(frozen=True)
class Groups:
    """t groups over m values, in compressed rows: group j has counts[start[j]:start[j+1]] records of the values codes[...]."""

    codes: Int64Array
    counts: Int64Array
    start: Int64Array

    @staticmethod
    def of(parts: Sequence[tuple[Int64Array, Int64Array]]) -> Groups:
        """Groups from the (codes, counts) of each, both (k,) int64, counts at least 1."""
        lengths = np.array([len(codes) for codes, _ in parts], dtype=np.int64)
        return Groups(
            np.concatenate([np.asarray(codes, dtype=np.int64) for codes, _ in parts]),
            np.concatenate([np.asarray(counts, dtype=np.int64) for _, counts in parts]),
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        )

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, j: int) -> tuple[Int64Array, Int64Array]:
        entries = slice(self.start[j], self.start[j + 1])
        return self.codes[entries], self.counts[entries]

    @cached_property
    def row(self) -> Int64Array:
        """(entries,) int64: which group each entry of `codes` and `counts` belongs to."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.start))

    @cached_property
    def sizes(self) -> Int64Array:
        """(t,) int64: how many records each group has."""
        return np.add.reduceat(self.counts, self.start[:-1])

    def permuted(self, order: Sequence[int]) -> Groups:
        """The same groups in another order. order : t group numbers."""
        return Groups.of([self[j] for j in order])

    def merged(self, label: Int64Array) -> Groups:
        """One group for each label 0, 1, ...; `label` is (t,), and no label is left out. Values ascend within a group."""
        matrix = sparse.coo_matrix((self.counts, (label[self.row], self.codes))).tocsr()
        matrix.sum_duplicates()
        return Groups(matrix.indices.astype(np.int64), matrix.data.astype(np.int64), matrix.indptr.astype(np.int64))


@dataclass(frozen=True)
class Objective:
    """What a merging costs: |g| eps(g) / a of equation (12), and `weight` times the squared error of the reconstructed counts. Both add up
    over sub-tables; both are infinite where rho1 of the group reaches rho2.

    protected : (m,) bool, SA'; rho2 : exact; weight : 0 for the paper's objective
    """

    protected: BoolArray
    rho2: Fraction
    weight: float = 0.0

    @cached_property
    def _odds(self) -> float:
        return float(self.rho2 / (1 - self.rho2))

    def cost(self, sizes: Any, domain_sizes: Any, largest: Any) -> Float64Array:
        """What groups cost as sub-tables; infinite where rho1 reaches rho2. float64 of the arguments' broadcast shape.

        sizes : records of each; domain_sizes : values of each; largest : the most records that one of its protected values has
        """
        kept, allowed = self._retention(sizes, domain_sizes, largest)
        size = np.asarray(sizes, dtype=np.float64)
        cost = size * spread(size, kept)
        if self.weight:
            cost = cost + self.weight * squared_error(size, domain_sizes, kept)
        return np.where(allowed, cost, np.inf)

    def _retention(self, sizes: Any, domain_sizes: Any, largest: Any) -> tuple[Float64Array, BoolArray]:
        """(p of equation 4, whether there is one)."""
        size, most = np.asarray(sizes, dtype=np.float64), np.asarray(largest, dtype=np.float64)
        allowed = below(largest, sizes, self.rho2) & (most > 0)
        gamma = np.where(allowed, self._odds * (size - most) / np.maximum(most, 1), 2.0)
        allowed &= gamma > 1  # a gamma so near to 1 that doubles cannot tell is worth nothing
        gamma = np.where(allowed, gamma, 2.0)
        return (gamma - 1) / (domain_sizes - 1 + gamma), allowed

    def of(self, groups: Groups) -> Float64Array:
        """(t,) float64: what each group costs as a sub-table by itself."""
        return self.cost(groups.sizes, np.diff(groups.start), self._largest(groups))

    def squared_error(self, groups: Groups) -> float:
        """The expected squared error of the reconstructed counts, added up over groups as sub-tables; infinite where one keeps no bound."""
        sizes, domains = groups.sizes, np.diff(groups.start)
        kept, allowed = self._retention(sizes, domains, self._largest(groups))
        return float(np.where(allowed, squared_error(sizes.astype(np.float64), domains, kept), np.inf).sum())

    def _largest(self, groups: Groups) -> Int64Array:
        """(t,) int64: the most records that one protected value has in each group."""
        guarded = np.where(self.protected[groups.codes], groups.counts, 0)
        return np.maximum.reduceat(guarded, groups.start[:-1])
