"""How many buckets of which sizes, where the values of two sensitive columns are bounded at once.

Buckets can be composed where each column's values fit by themselves (`anonlib.solvers.buckets.pair_kinds`), so what is to be chosen is how
many buckets b_j of each size S_j there are and how many records r_cj of each combination c they take, with

    sum_j r_cj = o_c        sum_c r_cj = S_j b_j        sum of r_cj over the combinations of a value v <= floor(f'_v S_j) b_j,

for all values v of both columns: an integer program with the loss sum_j (S_j - 1)^2 b_j. Its linear relaxation
(`anonlib.solvers.buckets.pair_program`) gives a bound, exact whatever floating point did, and the sizes that are worth trying. Two answers
are tried, each checked in integers, and the better is taken:

    even     one size S and S + 1, the smallest S with x_v <= floor(n / S) floor(f'_v S) for all values: always there if any S is
    whole    the integer program over those sizes, while time lasts; an answer that floating point has spoilt is not valid, and dropped

The record partition of several sizes is a three-way transportation problem, which no flow decides; hence the integer program.

Cost: the linear program of `anonlib.solvers.buckets.pair_program`, and an integer program over at most `MOST_SIZES` of its sizes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from anonlib.arrays import BoolArray, Int64Array
from anonlib.errors import OutOfTime, SpecError, Unsatisfiable
from anonlib.exact import ceil_over
from anonlib.privacy.buckets import BucketSetting, BucketSolution
from anonlib.privacy.column_pair import PairCounts, PairThresholds
from anonlib.solvers.buckets import pair_program
from anonlib.solvers.buckets.bucket_milp import standard_output_kept_clean
from anonlib.solvers.buckets.pair_kinds import BucketKind, even_kinds
from anonlib.solvers.buckets.pair_program import PairProgram, PairTable, Relaxed

MOST_COMBINATIONS = 5_000
"""Combinations that buckets are composed of: a flow is needed for about each of them."""
MOST_SIZES = 16
"""Sizes that the integer program chooses among."""
_SEARCHED = 100_000
"""The largest size that a refusal looks for."""
_SEARCHED_CAPACITIES = 5_000_000
"""Capacities, of a value in a bucket of a size, that a refusal looks at: a few seconds, and megabytes at a time."""


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
    relaxed = pair_program.relaxed(table, started + time_limit)
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


def _other_answer(table: PairTable, even: _Answer | None, relaxed: Relaxed, deadline: float) -> _Answer | None:
    """What the integer program finds over the sizes that the relaxation uses, and those of the even answer."""
    if not relaxed.feasible or (even is not None and even.loss <= relaxed.bound):
        return None
    small, seconds = table.only(_worth_trying(table, even, relaxed)), deadline - time.perf_counter()
    return _whole(small, seconds) if seconds > 0 else None


def _worth_trying(table: PairTable, even: _Answer | None, relaxed: Relaxed) -> Int64Array:
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
    program = PairProgram.of(table)
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
