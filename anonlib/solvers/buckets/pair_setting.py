"""How many buckets of which sizes, where the values of two sensitive columns are bounded at once.

Buckets can be composed where each column's values fit by themselves (`anonlib.solvers.buckets.pair_kinds`), so what is to be chosen is how
many buckets b_j of each size S_j there are and how many records r_cj of each combination c they take, with

    sum_j r_cj = o_c        sum_c r_cj = S_j b_j        sum of r_cj over the combinations of a value v <= floor(f'_v S_j) b_j,

for all values v of both columns: an integer program with the loss sum_j (S_j - 1)^2 b_j. Its linear relaxation gives a bound, exact
whatever floating point did (`_proven_bound`), and the sizes that are worth trying. Two answers are tried, each checked in integers, and
the better is taken:

    even     one size S and S + 1, the smallest S with x_v <= floor(n / S) floor(f'_v S) for all values: always there if any S is
    whole    the integer program over those sizes, while time lasts; an answer that floating point has spoilt is not valid, and dropped

The record partition of several sizes is a three-way transportation problem, which no flow decides; hence the integer program.

Cost: a linear program of m q variables and m + (M_1 + M_2 + 1) q rows; of more than `MOST_VARIABLES`,
sizes are thinned out, and those left out have the prices of the nearest in the bound.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import coo_matrix, csr_matrix, vstack

from anonlib.arrays import BoolArray, Float64Array, Int64Array
from anonlib.errors import OutOfTime, SpecError, Unsatisfiable
from anonlib.exact import ceil_over
from anonlib.privacy.buckets import BucketSetting, BucketSolution
from anonlib.privacy.column_pair import PairCounts, PairThresholds
from anonlib.solvers.buckets.bucket_milp import standard_output_kept_clean
from anonlib.solvers.buckets.pair_kinds import BucketKind, even_kinds

MOST_COMBINATIONS = 5_000
"""Combinations that buckets are composed of: a flow is needed for about each of them."""
MOST_VARIABLES = 60_000
MOST_SIZES = 16
"""Sizes that the integer program chooses among."""
_PRICE = 1 << 20
"""Prices of the relaxation are taken in this part of a unit."""
_FAR = 1 << 60
"""No price of a record is above this."""
_SEARCHED = 100_000
"""The largest size that a refusal looks for."""
_SEARCHED_CAPACITIES = 5_000_000
"""Capacities, of a value in a bucket of a size, that a refusal looks at: a few seconds, and megabytes at a time."""


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
class PairSolution:
    """The chosen buckets: `solution` as of one column, its partition over combinations, and what the buckets hold, by size."""

    solution: BucketSolution
    kinds: tuple[BucketKind, ...]


@dataclass(frozen=True, eq=False)
class _Answer:
    """Parts of the table: of each, (m,) records that are spread evenly over `numbers[i]` buckets."""

    parts: tuple[Int64Array, ...]
    numbers: tuple[int, ...]

    @property
    def loss(self) -> int:
        loss = 0
        for part, number in zip(self.parts, self.numbers, strict=True):
            size, larger = divmod(int(part.sum()), number)
            loss += (number - larger) * (size - 1) ** 2 + larger * size**2
        return loss


def solve(counts: PairCounts, thresholds: PairThresholds, max_bucket_size: int, time_limit: float) -> PairSolution:
    """The buckets for these counts and thresholds, of at most `max_bucket_size` records. `time_limit` is in seconds.

    Raises SpecError for an empty table or more than MOST_COMBINATIONS combinations; Unsatisfiable, with a size that would do, where there
    are no such buckets; OutOfTime where none were found and it is not proven that there are none.
    """
    started = time.perf_counter()
    if counts.m == 0:
        raise SpecError("the table has no records, so there is nothing to put into buckets; check the input path")
    if counts.m > MOST_COMBINATIONS:
        raise SpecError(
            f"columns.sensitive: {counts.m:,} combinations of values occur, and at most {MOST_COMBINATIONS:,} can be protected together; "
            "coarsen one of the columns, or withhold it as an identifier"
        )
    table = PairTable.of(counts, thresholds, _sizes(counts, thresholds, max_bucket_size))
    if len(table.sizes) == 0:
        raise Unsatisfiable(_refusal(counts, thresholds, max_bucket_size))
    even = _even(table)
    relaxed = _relaxed(table, started + time_limit)
    if even is None and not relaxed.feasible:
        raise Unsatisfiable(_refusal(counts, thresholds, max_bucket_size))
    answers = [even, _other_answer(table, even, relaxed, started + time_limit)]
    best = min((answer for answer in answers if answer is not None), key=lambda answer: answer.loss, default=None)
    if best is None:
        raise OutOfTime(
            f"no buckets of at most {max_bucket_size} records were found that keep the thresholds of both columns, nor a proof that there "
            "are none; raise time_limit, max_bucket_size or the thresholds"
        )
    return _solution(table, best, relaxed.bound, started)


def even_size(counts: PairCounts, thresholds: PairThresholds, sizes: Int64Array) -> int | None:
    """The smallest S of `sizes` such that all records fit into floor(n / S) buckets of equal size, or one more; None for none. O(m q)."""
    table = PairTable.of(counts, thresholds, sizes)
    fits = _fits_evenly(table)
    return int(sizes[np.argmax(fits)]) if fits.any() else None


def _sizes(counts: PairCounts, thresholds: PairThresholds, max_bucket_size: int) -> Int64Array:
    """The sizes to choose among: no bucket can hold fewer than 1 / f' records of any combination."""
    smallest = min(ceil_over(1, f) for f in thresholds.of_combinations(counts.codes))
    return np.arange(smallest, min(max_bucket_size, counts.n) + 1, dtype=np.int64)


def _thinned(table: PairTable) -> Int64Array:
    """Positions of as many sizes as make no more than MOST_VARIABLES, the smallest and the largest among them."""
    most, q = max(2, MOST_VARIABLES // len(table.records)), len(table.sizes)
    if q <= most:
        return np.arange(q, dtype=np.int64)
    return np.unique(np.linspace(0, q - 1, most).astype(np.int64))


def _fits_evenly(table: PairTable) -> BoolArray:
    """(q,) bool: whether each value of both columns fits into floor(n / S_j) buckets of S_j."""
    numbers = table.n // table.sizes
    first, second = table.held(table.records)
    of_first, of_second = (capacity * numbers for capacity in table.capacities)
    return np.asarray((first[:, None] <= of_first).all(axis=0) & (second[:, None] <= of_second).all(axis=0))


def _even(table: PairTable) -> _Answer | None:
    """All records spread evenly over the most buckets that hold them, of one size or two that follow one another; None for none."""
    for j in np.flatnonzero(_fits_evenly(table)).tolist():
        number = table.n // int(table.sizes[j])
        if -(-table.n // number) <= table.sizes[-1]:
            return _Answer((table.records,), (number,))
    return None


@dataclass(frozen=True, eq=False)
class _Relaxed:
    """The linear relaxation over some sizes, (s,) of them: fractional numbers of buckets, a proven bound on the loss over all sizes of the
    table, and whether there may be buckets: False only where the relaxation is over all sizes and has no solution."""

    sizes: Int64Array
    numbers: Float64Array
    bound: int
    feasible: bool


@dataclass(frozen=True, eq=False)
class _Program:
    """The program's rows over its variables: r_cj where a bucket may hold them, then b_j.

    place : (m, q) int64, the variable of each r_cj, -1 for none
    """

    table: PairTable
    place: Int64Array

    @staticmethod
    def of(table: PairTable) -> _Program:
        allowed = table.allowed()
        place = np.full(allowed.shape, -1, dtype=np.int64)
        place[allowed] = np.arange(int(allowed.sum()))
        return _Program(table, place)

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


def _relaxed(whole: PairTable, deadline: float) -> _Relaxed:
    """Solve the linear relaxation, over few enough sizes. Where time runs out before it is, nothing is known: the bound is 0."""
    columns = _thinned(whole)
    table = whole.only(columns)
    program = _Program.of(table)
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
        return _Relaxed(table.sizes, np.zeros(q), 0, solved.status != 2 or q < len(whole.sizes))
    prices = np.maximum(0.0, -solved.ineqlin.marginals)
    cut = len(table.capacities[0]) * q
    nearest = _nearest(
        columns, len(whole.sizes)
    )  # a size that was left out has the prices of one that was not: any prices bound
    of_all = [part.reshape(-1, q)[:, nearest] for part in (prices[:cut], prices[cut:])]
    return _Relaxed(table.sizes, program.numbers(solved.x) * table.n, _proven_bound(whole, of_all), True)


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


def _other_answer(table: PairTable, even: _Answer | None, relaxed: _Relaxed, deadline: float) -> _Answer | None:
    """What the integer program finds over the sizes that the relaxation uses, and those of the even answer."""
    if not relaxed.feasible or (even is not None and even.loss <= relaxed.bound):
        return None
    small, seconds = table.only(_worth_trying(table, even, relaxed)), deadline - time.perf_counter()
    return _whole(small, seconds) if seconds > 0 else None


def _worth_trying(table: PairTable, even: _Answer | None, relaxed: _Relaxed) -> Int64Array:
    """Positions of up to MOST_SIZES sizes: those of which the relaxation has most records; spread over all where it has none."""
    records = relaxed.numbers * relaxed.sizes
    first = [
        int(s) for s, r in sorted(zip(relaxed.sizes, records, strict=True), key=lambda it: -it[1]) if r > 1e-9 * table.n
    ]
    wanted = first[: MOST_SIZES - 2]
    if even is not None:
        size = table.n // even.numbers[0]
        wanted += [s for s in (size, size + 1) if s <= table.sizes[-1]]
    wanted += [s + 1 for s in wanted if s + 1 <= table.sizes[-1]]
    if not wanted:
        return np.unique(np.linspace(0, len(table.sizes) - 1, MOST_SIZES).astype(np.int64))
    chosen = sorted(set(list(dict.fromkeys(wanted))[:MOST_SIZES]))
    return np.asarray(np.searchsorted(table.sizes, np.array(chosen, dtype=np.int64)), dtype=np.int64)


def _whole(table: PairTable, seconds: float) -> _Answer | None:
    """The integer program over these sizes. None where it finds nothing valid within `seconds`."""
    program = _Program.of(table)
    matrix, needs = program.equalities()
    above = program.capacities()
    with standard_output_kept_clean():
        solved: Any = milp(
            program.costs(),
            constraints=[LinearConstraint(matrix, needs, needs), LinearConstraint(above, -np.inf, 0)],
            bounds=Bounds(0, table.n),
            integrality=np.ones(program.variables, dtype=np.int64),
            options={"time_limit": max(0.1, seconds), "mip_rel_gap": 0},
        )
    if solved.x is None:
        return None
    records = np.rint(program.records(solved.x)).astype(np.int64)
    return _of_records(table, records) if (records.sum(axis=1) == table.records).all() else None


def _of_records(table: PairTable, records: Int64Array) -> _Answer | None:
    """Each size's records in as many buckets as they fill, which may be larger by one. None where a value would not fit, or a bucket is
    larger than allowed."""
    if (records < 0).any():
        return None
    parts, numbers = [], []
    held = table.held(records)
    for j, size in enumerate(table.sizes.tolist()):
        total = int(records[:, j].sum())
        if not total:
            continue
        number = total // size
        if number == 0 or -(-total // number) > table.sizes[-1]:
            return None
        if any((held[k][:, j] > table.capacities[k][:, j] * number).any() for k in (0, 1)):
            return None
        parts.append(records[:, j])
        numbers.append(number)
    return _Answer(tuple(parts), tuple(numbers))


def _solution(table: PairTable, answer: _Answer, bound: int, started: float) -> PairSolution:
    """The answer with what its buckets hold, checked."""
    kinds = [
        kind for part, b in zip(answer.parts, answer.numbers, strict=True) for kind in even_kinds(part, table.codes, b)
    ]
    kinds.sort(key=lambda kind: kind.size)  # stable
    check(table, kinds)
    setting = BucketSetting.of((kind.size, kind.number) for kind in kinds)
    partition = np.zeros((len(table.records), len(setting.sizes)), dtype=np.int64)
    for kind in kinds:
        partition[kind.codes, setting.sizes.index(kind.size)] += kind.counts * kind.number
    bound = min(bound, setting.loss)
    status = "optimal" if bound == setting.loss else "heuristic"
    seconds = time.perf_counter() - started
    return PairSolution(BucketSolution(setting, partition, "optimal", bound, status, seconds), tuple(kinds))


def check(table: PairTable, kinds: list[BucketKind]) -> None:
    """Raise AssertionError unless these buckets hold exactly the table's records, and no more of any value of a column than they may."""
    placed = np.zeros(len(table.records), dtype=np.int64)
    for kind in kinds:
        placed[kind.codes] += kind.counts * kind.number
        j = int(np.searchsorted(table.sizes, kind.size))
        if j == len(table.sizes) or table.sizes[j] != kind.size or kind.number < 1:
            raise AssertionError(f"{kind.number} buckets of size {kind.size}, which is none of the sizes")
        bucket = np.zeros(len(table.records), dtype=np.int64)
        bucket[kind.codes] = kind.counts
        if any((held > table.capacities[k][:, j]).any() for k, held in enumerate(table.held(bucket))):
            raise AssertionError(
                f"a bucket of size {kind.size} holds more records of a value than its threshold allows"
            )
    if (placed != table.records).any():
        raise AssertionError("the buckets lose or invent records of a combination")


def _refusal(counts: PairCounts, thresholds: PairThresholds, max_bucket_size: int) -> str:
    """Why there are no buckets of these sizes, and a size that does."""
    why = f"no buckets of at most {max_bucket_size} records keep the thresholds of both sensitive columns"
    values = sum(len(of_column.fractions) for of_column in thresholds.columns)
    last = min(counts.n, _SEARCHED, max_bucket_size + _SEARCHED_CAPACITIES // values)
    low, works = max_bucket_size, None
    while works is None and low < last:
        high = min(2 * low, low + 1 + _SEARCHED_CAPACITIES // (10 * values), last)
        works = even_size(counts, thresholds, np.arange(low + 1, high + 1, dtype=np.int64))
        low = high
    if works is None or works >= counts.n:
        return f"{why}; raise {'' if last == counts.n else 'max_bucket_size or '}the thresholds"
    return f"{why}; max_bucket_size {-(-counts.n // (counts.n // works))} works, or raise the thresholds"
