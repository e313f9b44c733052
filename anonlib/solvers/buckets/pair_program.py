"""The program of `anonlib.solvers.buckets.pair_setting`: what it sees of a table, its rows, and what its linear relaxation proves.

Cost: a linear program of m q variables and m + (M_1 + M_2 + 1) q rows; of more than `MOST_VARIABLES`,
sizes are thinned out, and those left out have the prices of the nearest in the bound.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, csr_matrix, vstack

from anonlib.arrays import BoolArray, Float64Array, Int64Array
from anonlib.privacy.column_pair import PairCounts, PairThresholds

MOST_VARIABLES = 60_000
_PRICE = 1 << 20
"""Prices of the relaxation are taken in this part of a unit."""
_FAR = 1 << 60
"""No price of a record is above this."""


@dataclass(frozen=True, eq=False)
class PairTable:
    """What the solver sees of a table: counts, and exact capacities.

    records    : (m,) int64, of each combination; codes : (2, m) int64, the numbers of its values
    sizes      : (q,) int64, ascending
    capacities : of each column, (M_k, q) int64, floor(f'_v S_j)
    """

    records: Int64Array
    codes: Int64Array
    sizes: Int64Array
    capacities: tuple[Int64Array, Int64Array]

    @staticmethod
    def of(counts: PairCounts, thresholds: PairThresholds, sizes: Int64Array) -> PairTable:
        """The table with these bucket sizes."""
        first, second = (of_column.capacities(sizes.tolist()) for of_column in thresholds.columns)
        return PairTable(counts.combined.counts, counts.codes, sizes, (first, second))

    @property
    def n(self) -> int:
        """How many records there are."""
        return int(self.records.sum())

    @property
    def costs(self) -> Int64Array:
        """(q,) int64: (S_j - 1)^2."""
        return (self.sizes - 1) ** 2

    def allowed(self) -> BoolArray:
        """(m, q) bool: whether a bucket of each size may hold a record of each combination."""
        first, second = (capacity[self.codes[k]] > 0 for k, capacity in enumerate(self.capacities))
        return np.asarray(first & second)

    def only(self, columns: Int64Array) -> PairTable:
        """The same with the sizes at these positions."""
        first, second = (capacity[:, columns] for capacity in self.capacities)
        return PairTable(self.records, self.codes, self.sizes[columns], (first, second))

    def held(self, records: Int64Array) -> tuple[Int64Array, Int64Array]:
        """How many of `records`, (m,) or (m, q), each value of either column has: (M_1, ...) and (M_2, ...)."""
        sums = []
        for k in (0, 1):
            of_values = np.zeros((len(self.capacities[k]), *records.shape[1:]), dtype=np.int64)
            np.add.at(of_values, self.codes[k], records)
            sums.append(of_values)
        return sums[0], sums[1]


@dataclass(frozen=True, eq=False)
class Relaxed:
    """The linear relaxation over some sizes, (s,) of them: fractional numbers of buckets, a proven bound on the loss over all sizes of the
    table, and whether there may be buckets: False only where the relaxation is over all sizes and has no solution."""

    sizes: Int64Array
    numbers: Float64Array
    bound: int
    feasible: bool


@dataclass(frozen=True, eq=False)
class PairProgram:
    """The program's rows over its variables: r_cj where a bucket may hold them, then b_j.

    place : (m, q) int64, the variable of each r_cj, -1 for none
    """

    table: PairTable
    place: Int64Array

    @staticmethod
    def of(table: PairTable) -> PairProgram:
        allowed = table.allowed()
        place = np.full(allowed.shape, -1, dtype=np.int64)
        place[allowed] = np.arange(int(allowed.sum()))
        return PairProgram(table, place)

    @property
    def variables(self) -> int:
        return int((self.place >= 0).sum()) + len(self.table.sizes)

    def equalities(self) -> tuple[csr_matrix, Int64Array]:
        """All records of each combination are placed, and all buckets are full."""
        combination, size = np.nonzero(self.place >= 0)
        variable = self.place[combination, size]
        m, q, first_number = *self.place.shape, self.variables - len(self.table.sizes)
        ones = np.ones(len(variable))
        entries = [
            (ones, combination, variable),
            (ones, m + size, variable),
            (-self.table.sizes.astype(np.float64), m + np.arange(q), first_number + np.arange(q)),
        ]
        return _matrix(entries, m + q, self.variables), np.concatenate([self.table.records, np.zeros(q, np.int64)])

    def capacities(self) -> csr_matrix:
        """Rows A with A x <= 0: of the values of the first column, then of the second, size after size."""
        combination, size = np.nonzero(self.place >= 0)
        variable = self.place[combination, size]
        q, first_number = len(self.table.sizes), self.variables - len(self.table.sizes)
        blocks = []
        for k, capacity in enumerate(self.table.capacities):
            value, column = np.divmod(np.arange(capacity.size), q)
            entries = [
                (np.ones(len(variable)), self.table.codes[k][combination] * q + size, variable),
                (-capacity.reshape(-1).astype(np.float64), value * q + column, first_number + column),
            ]
            blocks.append(_matrix(entries, capacity.size, self.variables))
        return vstack(blocks).tocsr()

    def costs(self) -> Float64Array:
        costs = np.zeros(self.variables)
        costs[self.variables - len(self.table.sizes) :] = self.table.costs
        return costs

    def records(self, solved: Float64Array) -> Float64Array:
        """(m, q): r_cj of a solution."""
        return np.where(self.place >= 0, solved[self.place], 0.0)

    def numbers(self, solved: Float64Array) -> Float64Array:
        """(q,): b_j of a solution."""
        return solved[self.variables - len(self.table.sizes) :]


def _matrix(entries: list[tuple[Float64Array, Int64Array, Int64Array]], rows: int, columns: int) -> csr_matrix:
    data, row, column = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    return coo_matrix((data, (row, column)), shape=(rows, columns)).tocsr()


def relaxed(whole: PairTable, deadline: float) -> Relaxed:
    """Solve the linear relaxation, over few enough sizes. Where time runs out before it is, nothing is known: the bound is 0."""
    columns = _thinned(whole)
    table = whole.only(columns)
    program = PairProgram.of(table)
    matrix, needs = program.equalities()
    above = program.capacities()
    seconds = max(0.1, deadline - time.perf_counter())
    scale = 1.0 / table.n
    solved = linprog(
        program.costs(),
        A_ub=above,
        b_ub=np.zeros(above.shape[0]),
        A_eq=matrix,
        b_eq=needs * scale,
        method="highs",
        options={"time_limit": seconds},
    )
    q = len(table.sizes)
    if solved.x is None:
        return Relaxed(table.sizes, np.zeros(q), 0, solved.status != 2 or q < len(whole.sizes))
    prices = np.maximum(0.0, -solved.ineqlin.marginals)
    cut = len(table.capacities[0]) * q
    nearest = _nearest(
        columns, len(whole.sizes)
    )  # a size that was left out has the prices of one that was not: any prices bound
    of_all = [part.reshape(-1, q)[:, nearest] for part in (prices[:cut], prices[cut:])]
    return Relaxed(table.sizes, program.numbers(solved.x) * table.n, _proven_bound(whole, of_all), True)


def _nearest(columns: Int64Array, number: int) -> Int64Array:
    """(number,) int64: for each of so many positions, which of `columns`, ascending, is the nearest."""
    middles = (columns[1:] + columns[:-1]) / 2
    return np.searchsorted(middles, np.arange(number), side="right").astype(np.int64)


def _proven_bound(table: PairTable, prices: Sequence[Float64Array]) -> int:
    """A bound on any loss over these sizes from prices of the capacities, in integers: whatever the floats are worth, it holds.

    prices : of each column, (M_k, q), at least 0

    For prices y, z let p_j = ((S_j - 1)^2 - sum_v floor(f'_v S_j) y_vj) / S_j. As capacities are kept, a loss is at least the sum over
    combinations and sizes of r_cj (p_j + y_aj + z_dj), which is at least sum_c o_c min_j (p_j + y_aj + z_dj). O(m q).
    """
    paid_for = [np.floor(np.minimum(part, 1e9) * _PRICE).astype(np.int64) for part in prices]
    allowed = table.allowed()
    least = np.full(len(table.records), _FAR, dtype=np.int64)
    for j, (cost, size) in enumerate(zip(table.costs.tolist(), table.sizes.tolist(), strict=True)):
        paid = sum(
            int(capacity[v, j]) * int(price[v, j])
            for capacity, price in zip(table.capacities, paid_for, strict=True)
            for v in np.flatnonzero(price[:, j])
        )
        each = (cost * _PRICE - paid) // size
        if each < -_FAR:
            return 0
        of_size = min(each, _FAR) + paid_for[0][table.codes[0], j] + paid_for[1][table.codes[1], j]
        least = np.where(allowed[:, j], np.minimum(least, of_size), least)
    value = sum(int(records) * int(price) for records, price in zip(table.records, least, strict=True) if price < _FAR)
    return max(0, -(-value // _PRICE))


def _thinned(table: PairTable) -> Int64Array:
    """Positions of as many sizes as make no more than MOST_VARIABLES, the smallest and the largest among them."""
    most, q = max(2, MOST_VARIABLES // len(table.records)), len(table.sizes)
    if q <= most:
        return np.arange(q, dtype=np.int64)
    return np.unique(np.linspace(0, q - 1, most).astype(np.int64))
