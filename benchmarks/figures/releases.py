"""Releases without Spark: the product's own record kernels on codes in memory, and point or set queries on what they publish."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from anonlib.arrays import BoolArray, Float64Array, Int64Array
from anonlib.kernels.ranked.perturb import Perturb, unpack
from anonlib.kernels.ranked.round_robin import Deal, RoundRobin
from anonlib.privacy.buckets import BucketSolution
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.subtables import SubTables
from anonlib.queries.batch import Masks
from anonlib.queries.crossed import CrossedPerturbed, Domains
from anonlib.queries.reconstruction import Operators
from benchmarks.point_workload import cap

KEY = bytes(range(5, 37))
"""A key that stands in a program is for benchmarks only."""


@dataclass(frozen=True)
class Coded:
    """n records as codes: quasi-identifiers by name with the texts of their domains, and the sensitive codes 0 .. m - 1."""

    codes: Mapping[str, Int64Array]
    domains: Mapping[str, tuple[str, ...]]
    sensitive: Int64Array
    values: tuple[str, ...]

    @staticmethod
    def read(path: Path, sensitive: str) -> Coded:
        """All columns of a table but `sensitive` are quasi-identifiers."""
        table = pq.read_table(path)
        parts = {name: np.unique(table[name].to_numpy(), return_inverse=True) for name in table.column_names}
        domains = {name: tuple(map(str, values.tolist())) for name, (values, _) in parts.items()}
        codes = {name: inverse.astype(np.int64) for name, (_, inverse) in parts.items()}
        own, values = codes.pop(sensitive), domains.pop(sensitive)
        return Coded(codes, domains, own, values)

    @property
    def n(self) -> int:
        return len(self.sensitive)

    @property
    def m(self) -> int:
        return len(self.values)

    @property
    def counts(self) -> SensitiveCounts:
        """Of all values of the domain that occur; raises nothing, but codes are those of `values` only where all occur."""
        return SensitiveCounts(tuple(range(self.m)), np.bincount(self.sensitive, minlength=self.m))

    @cached_property
    def rank(self) -> Int64Array:
        """(n,) how many records before a record have its value."""
        order = np.argsort(self.sensitive, kind="stable")
        counts = np.bincount(self.sensitive, minlength=self.m)
        rank = np.empty(self.n, dtype=np.int64)
        rank[order] = np.arange(self.n) - np.repeat(np.cumsum(counts) - counts, counts)
        return rank

    def taken(self, rows: Int64Array) -> Coded:
        """These rows, in this order."""
        codes = {name: column[rows] for name, column in self.codes.items()}
        return Coded(codes, self.domains, self.sensitive[rows], self.values)

    def meeting(self, accepted: Mapping[str, Sequence[int]]) -> BoolArray:
        """(n,) which records have an accepted code on each quasi-identifier that is named; other names are left out."""
        met = np.ones(self.n, dtype=bool)
        for name, codes in accepted.items():
            if name in self.codes:
                allowed = np.zeros(len(self.domains[name]), dtype=bool)
                allowed[list(codes)] = True
                met &= allowed[self.codes[name]]
        return met


@dataclass(frozen=True)
class Bucketized:
    """Which bucket each record is in, and the shares of values in each, (B, m)."""

    bucket: Int64Array
    shares: Float64Array

    @staticmethod
    def of(table: Coded, solution: BucketSolution) -> Bucketized:
        """Dealt round by the product's kernel."""
        deal = Deal.of(solution.setting, solution.partition)
        bucket = RoundRobin(deal, KEY)(table.sensitive, table.rank)
        held = np.bincount(bucket * table.m + table.sensitive, minlength=deal.buckets * table.m).reshape(-1, table.m)
        return Bucketized(bucket, held / held.sum(axis=1, keepdims=True))

    def mixture(self, met: BoolArray) -> Float64Array:
        """(B,) how many records of each bucket meet a condition on quasi-identifiers."""
        return np.bincount(self.bucket[met], minlength=len(self.shares)).astype(np.float64)

    def of_each(self, met: BoolArray) -> Float64Array:
        """(m,) the estimated count of each value among those records."""
        return self.mixture(met) @ self.shares


@dataclass(frozen=True)
class PerturbedTable:
    """Sub-tables and the value that each record was published with."""

    subtables: SubTables
    subtable: Int64Array
    published: Int64Array
    m: int

    @staticmethod
    def of(table: Coded, subtables: SubTables) -> PerturbedTable:
        """Perturbed by the product's kernel."""
        found = unpack(Perturb(subtables, KEY)(table.sensitive, table.rank))
        return PerturbedTable(subtables, found.subtable, found.code, table.m)

    def estimates(self, conditions: Iterable[BoolArray]) -> tuple[Float64Array, Float64Array]:
        """((C, m) as `Release.count` gives them, (C, m) by equation (7) alone)."""
        parts = list(self.subtables)
        subtable = np.repeat(np.arange(len(parts)), [part.domain_size for part in parts])
        value = np.concatenate([part.codes for part in parts])
        entry = np.zeros((len(parts), self.m), dtype=np.int64)
        entry[subtable, value] = np.arange(len(value))
        key = entry[self.subtable, self.published]
        counts = [np.bincount(key[met], minlength=len(value)) for met in conditions]
        counts.append(np.bincount(key, minlength=len(value)))
        operators = Operators(
            np.array([part.domain_size for part in parts], dtype=np.int64),
            np.array([float(part.gamma) for part in parts]),
        )
        domains = Domains(
            operators,
            np.array([part.size for part in parts], dtype=np.int64),
            subtable,
            value,
            np.concatenate([part.counts for part in parts]),
        )
        kernel = CrossedPerturbed(Masks({}, {}, len(counts) - 1), "", tuple(map(str, range(self.m))), "", domains)
        return kernel.reconstructed(np.concatenate(counts).astype(np.float64))


def eligible(table: Coded, level: int) -> Coded:
    """The table without the surplus of its most frequent values, any records alike, so that none has more than 1 / level of the rest."""
    limit = cap(np.bincount(table.sensitive).tolist(), level)
    mixed = np.random.default_rng(7).permutation(table.n)
    own = table.taken(mixed)
    return own.taken(np.flatnonzero(own.rank < limit))
