"""One door to the bucket solvers: counts and thresholds in, a valid setting with its record partition out, or why not."""

from __future__ import annotations

import time
from typing import Literal

from anonlib.errors import OutOfTime, SpecError, Unsatisfiable
from anonlib.exact import ceil_over, legible
from anonlib.privacy.buckets import BucketSolution
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import Thresholds
from anonlib.solvers.buckets import bucket_milp, multi_size, two_size
from anonlib.solvers.buckets.sensitive_table import SensitiveTable
from anonlib.solvers.buckets.validity import check

Solver = Literal["optimal", "multi_size", "two_size"]
_BOUND_SECONDS = 5.0  # what a heuristic spends at most on saying how far from the optimum it may be
_REFUSAL_SECONDS = 30.0  # what a refusal spends at most on finding the max_bucket_size that would do
_MOST_CAPACITIES = 20_000_000  # values x sizes looked at when searching for it


def solve(
    counts: SensitiveCounts,
    thresholds: Thresholds,
    solver: Solver,
    max_bucket_size: int,
    time_limit: float | None = None,
) -> BucketSolution:
    """The setting that `solver` chooses among sizes M .. min(max_bucket_size, |T|), with a record partition, checked.

    two_size   : optimal over settings of at most two sizes; the bound is over those settings. It always runs to its end, which
                 does not depend on |T|: `time_limit` is for the other two
    multi_size : Algorithm 4; valid and never worse than two_size; splits for at most `time_limit` seconds, if given
    optimal    : optimal over all settings, or the best found in about `time_limit` seconds with its proven gap

    Where nodes of a hierarchy have thresholds only optimal answers.

    Raises Unsatisfiable (exit code 3) when a value breaks Lemma 1, or no setting of these sizes is valid: the message
    gives the smallest max_bucket_size that works; OutOfTime, which is one too, when `time_limit` ends before either is known. Raises
    SpecError for an unknown solver, a limit that is not positive, or
    an empty table. Driver only; memory O(m q), q the number of sizes.
    """
    if solver not in ("optimal", "multi_size", "two_size"):
        raise SpecError(f"solver: {solver!r} is not one of optimal, multi_size, two_size")
    if time_limit is not None and not time_limit > 0:
        raise SpecError(f"time_limit: {time_limit!r} is not a positive number of seconds")
    if time_limit is None and solver == "optimal":
        raise SpecError("time_limit: solver optimal needs one; give the seconds it may search")
    if thresholds.limited and solver != "optimal":
        raise SpecError(
            f"solver: {solver} fills buckets by sums over values and knows no thresholds of nodes; write solver: optimal"
        )
    table = SensitiveTable.of(counts, thresholds, max_bucket_size)
    try:
        solution = _solution(table, solver, time_limit) if len(table.sizes) else None
    except TimeoutError as late:
        raise OutOfTime(f"{late}; raise time_limit, or max_bucket_size above {max_bucket_size}") from None
    if solution is None:
        raise Unsatisfiable(_refusal(counts, thresholds, solver, max_bucket_size))
    check(table, solution.setting, solution.partition)
    return solution


def _solution(table: SensitiveTable, solver: Solver, time_limit: float | None) -> BucketSolution | None:
    """What `solver` answers, or None when it has no valid setting; unchecked. Raises TimeoutError as `bucket_milp.solve` does."""
    started = time.perf_counter()
    if solver == "optimal":
        assert time_limit is not None
        return bucket_milp.solve(table, time_limit)
    if solver == "two_size":
        setting = two_size.solve(table)
        if setting is None:
            return None
        parts = two_size.partition(table, setting)
        return BucketSolution(setting, parts, solver, setting.loss, "optimal", time.perf_counter() - started)
    answer = multi_size.solve(table, None if time_limit is None else started + time_limit)
    if answer is None:
        return None
    setting, parts = answer
    seconds = time.perf_counter() - started
    bound = min(setting.loss, bucket_milp.lower_bound(table, _BOUND_SECONDS))
    return BucketSolution(setting, parts, solver, bound, "optimal" if bound == setting.loss else "heuristic", seconds)


def possible(counts: SensitiveCounts, thresholds: Thresholds, max_bucket_size: int, deadline: float) -> bool | None:
    """Whether any setting of sizes up to `max_bucket_size` is valid; None where `deadline` (time.perf_counter) comes first.

    Raises Unsatisfiable when a value breaks Lemma 1.
    """
    if time.perf_counter() > deadline:
        return None
    table = SensitiveTable.of(counts, thresholds, max_bucket_size)
    return len(table.sizes) > 0 and bucket_milp.feasible(table, deadline)


def smallest_max_bucket_size(
    counts: SensitiveCounts, thresholds: Thresholds, solver: Solver, above: int, seconds: float = _REFUSAL_SECONDS
) -> tuple[int, bool]:
    """(size, exact): the smallest max_bucket_size > `above` with which `solver` finds a valid setting, given that `above` is too small.

    Doubles, then bisects: a larger limit only adds settings, and one bucket of the whole table is always valid. When
    `seconds` or memory run out first, `exact` is False and `size` is the smallest that is known to work.
    """
    deadline = time.perf_counter() + seconds
    # each value, and each node, needs a bucket of at least 1 / f'
    largest_need = max(ceil_over(1, f) for f in (*thresholds.fractions, *thresholds.limited.values()))
    too_small, works, doubling = max(above, largest_need - 1), counts.n, True
    while works - too_small > 1:
        size = min(2 * too_small, works - 1) if doubling else (too_small + works) // 2
        known = _feasible(counts, thresholds, solver, size, deadline)
        if known is None:
            return works, False
        if known:
            works, doubling = size, False
        else:
            too_small = size
    return works, True


def _feasible(
    counts: SensitiveCounts, thresholds: Thresholds, solver: Solver, max_bucket_size: int, deadline: float
) -> bool | None:
    """Whether `solver` has an answer with this limit; None when that is too much to find out."""
    if counts.m * max_bucket_size > _MOST_CAPACITIES or time.perf_counter() > deadline:
        return None
    table = SensitiveTable.of(counts, thresholds, max_bucket_size)
    if len(table.sizes) == 0:
        return False
    if solver == "optimal":
        return bucket_milp.feasible(table, deadline)
    if not bucket_milp.relaxation_feasible(table, deadline):
        return False
    return two_size.exists(table, deadline)


def _refusal(counts: SensitiveCounts, thresholds: Thresholds, solver: Solver, max_bucket_size: int) -> str:
    """The sentence of a refusal: why no setting of these sizes is valid, and the smallest limit that works."""
    size, exact = smallest_max_bucket_size(counts, thresholds, solver, min(max_bucket_size, counts.n))
    who, bounds = list(counts.values), list(thresholds.fractions)
    if thresholds.tree is not None:
        who += [thresholds.tree.labels[k] for k in thresholds.limited]
        bounds += thresholds.limited.values()
    needs = [ceil_over(1, f) for f in bounds]
    most = max(range(len(who)), key=needs.__getitem__)
    why = f"no combination of such buckets holds exactly {counts.n:,} records with room for every value"
    other = ""
    if needs[most] > max_bucket_size:
        why = f"the threshold {legible(bounds[most])} of {who[most]!r} needs a bucket of at least {needs[most]} records"
    elif solver != "optimal":
        other = _other_solver(counts, thresholds, max_bucket_size)
    if not exact:
        mend = f"max_bucket_size {size} works (the search for a smaller one was cut short), or raise the thresholds"
    elif size == counts.n:
        mend = f"nothing smaller than one bucket of all {size:,} records is valid, and that tells nothing of anybody: raise the thresholds"
    else:
        mend = f"the smallest max_bucket_size that works is {size}"
    return (
        f"solver {solver} has no valid setting with buckets of at most {max_bucket_size} records: {why}; {mend}{other}"
    )


def _other_solver(counts: SensitiveCounts, thresholds: Thresholds, max_bucket_size: int) -> str:
    """A clause that names the optimal solver where it has a valid setting; else ""."""
    table = SensitiveTable.of(counts, thresholds, max_bucket_size)
    if len(table.sizes) and bucket_milp.feasible(table, time.perf_counter() + _BOUND_SECONDS):
        return "; solver optimal, which may mix more than two sizes, has a valid setting as it is"
    return ""
