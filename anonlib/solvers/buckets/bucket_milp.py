"""Optimal: the least loss over all bucket sizes M .. M', anytime, with a proven gap.

Source: the integer program of generalized bucketization, section 6.1, which the paper gives up beyond small domains. Three
changes make it fast. (1) Only the numbers of buckets stay in the program; that their records can be placed is a set of linear
conditions on them, added as exact flows find them broken (`crowding`). (2) The program is written in Y_j = b_j + .. + b_q, the
number of buckets of at least S_j records: then sum_j Y_j (S_j - S_(j-1)) = n, conditions get coefficients near 0 and 1, and
branching on Y_j decides something ("how many buckets have room for x_i"). (3) Everything is written relative to the rounded
optimum of the linear relaxation, so the right-hand sides that HiGHS sees are small whatever |T| is; and where
ranges stay so long that its tolerances could move a bound by a record, that much is taken off it (`_IntegerProgram`).

What is returned is checked in integers: CC exactly, and a record partition from an integral flow. Without a proof of
optimality in time the better of the best setting seen and MultiSize's is returned with the proven bound.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from anonlib.arrays import Float64Array, Int64Array
from anonlib.privacy.buckets import BucketSetting, BucketSolution
from anonlib.solvers.buckets import multi_size
from anonlib.solvers.buckets.crowding import CrowdingConditions, Relaxation, relax
from anonlib.solvers.buckets.sensitive_table import SensitiveTable
from anonlib.solvers.buckets.validity import place

_CLOSE = 1e-4  # relative gap from which the proof is taken to the last record


def solve(table: SensitiveTable, time_limit: float) -> BucketSolution | None:
    """The best setting found within about `time_limit` seconds, or None when no valid setting exists (proven).

    Raises TimeoutError when the limit ends before either is known. Cost: tables of G merged values and q sizes take
    seconds at G = 3,200 and q = 50; memory O(G q). Independent of the number of records.
    """
    started = time.perf_counter()
    deadline = started + time_limit
    search = _Search(table)
    if table.nodes is None:
        warm = multi_size.solve(table, started + time_limit / 4)
        if warm is not None:
            search.offer(*warm)
    else:
        search.try_neighbours(started + time_limit / 4)
    if not search.relax(deadline):
        return None
    search.close(deadline)
    if search.best is None:
        if search.empty:
            return None
        raise TimeoutError(f"no valid setting was found, nor its absence proven, within {time_limit:g} seconds")
    setting, parts = search.best
    status = "optimal" if search.bound >= setting.loss else "time_limit"
    return BucketSolution(
        setting, parts, "optimal", min(search.bound, setting.loss), status, time.perf_counter() - started
    )


def lower_bound(table: SensitiveTable, time_limit: float) -> int:
    """A proven lower bound on the loss of any valid setting: the linear relaxation, or as far as it gets in time."""
    search = _Search(table)
    search.relax(time.perf_counter() + time_limit)
    return search.bound


def relaxation_feasible(table: SensitiveTable, deadline: float) -> bool:
    """False only if not even fractional numbers of buckets could hold the table: a quick proof that nothing is valid."""
    return _Search(table).relax(deadline)


def feasible(table: SensitiveTable, deadline: float) -> bool | None:
    """Whether any setting over the table's sizes is valid; None if `deadline` (time.perf_counter) comes first."""
    search = _Search(table)
    if not search.relax(deadline):
        return False
    search.close(deadline, first=True)
    return True if search.best is not None else False if search.empty else None


class _Search:
    """The state of one run: conditions found, best setting with its partition, proven bound."""

    def __init__(self, table: SensitiveTable) -> None:
        self.table = table
        merged = table.merged()
        limits = merged.fill_limits()
        self.values = merged.only(np.flatnonzero(limits > 0))  # no bucket of the other sizes can be filled
        self.conditions = CrowdingConditions(self.values, table.n)
        self.best: tuple[BucketSetting, Int64Array] | None = None
        self.bound = 0
        self.empty = False
        self.fractional: Float64Array = np.zeros(len(self.values.sizes))

    def try_neighbours(self, deadline: float) -> None:
        """Take the smallest size for which buckets of this and of the next size hold everybody, as a setting to begin with.

        MultiSize, which splits by two sums of values, knows no limits on values taken together.
        """
        sizes, n = self.values.sizes.tolist(), self.table.n
        for j, size in enumerate(sizes):
            buckets, rest = divmod(n, size)
            if rest > buckets or (rest and (j + 1 == len(sizes) or sizes[j + 1] != size + 1)):
                continue
            numbers = np.zeros(len(sizes), dtype=np.int64)
            numbers[j] = buckets - rest
            if rest:
                numbers[j + 1] = rest
            if (self._learn(numbers) and self.best is not None) or time.perf_counter() > deadline:
                return

    def offer(self, setting: BucketSetting, parts: Int64Array) -> None:
        """Take a valid setting as the best if it loses less."""
        if self.best is None or setting.loss < self.best[0].loss:
            self.best = setting, parts

    def relax(self, deadline: float) -> bool:
        """Solve the linear relaxation, adding conditions until none is broken. False if it has no solution."""
        if len(self.values.sizes) == 0:
            self.empty = True
            return False
        self.conditions.add(np.ones(len(self.values.counts), dtype=np.bool_))
        while True:
            relaxation: Relaxation = relax(self.conditions)
            if not relaxation.feasible:
                self.empty = True
                return False
            self.bound = max(self.bound, relaxation.bound)
            self.fractional = relaxation.numbers
            if self.best is not None and self.bound >= self.best[0].loss:
                return True
            if time.perf_counter() > deadline or not self.conditions.separate(relaxation.numbers):
                return True

    def close(self, deadline: float, first: bool = False) -> None:
        """Integer rounds: solve, place the records exactly, add what is broken, until proven or out of time.

        A round gets half of the time that is left, so that one hard round leaves time to learn from what it found.
        With `first` the first valid setting ends the search.
        """
        program = _IntegerProgram(self.conditions, np.maximum(np.floor(self.fractional + 1e-6), 0).astype(np.int64))
        while not self.empty and (self.best is None or self.bound < self.best[0].loss):
            left = deadline - time.perf_counter()
            if left <= 0:
                return
            limit = self.best[0].loss if self.best else None
            if limit is not None and program.slip >= 1 and limit - self.bound < _CLOSE * limit:
                program.narrow(limit)
            answer = program.solve(limit, left if left < 2 else left / 2)
            if answer.infeasible:
                self.empty = limit is None
                self.bound = self.bound if limit is None else max(self.bound, limit - program.slip)
                return
            # Under "loss < limit" a bound above the limit says no more than that nothing better exists.
            self.bound = max(self.bound, answer.bound if limit is None else min(limit, answer.bound))
            if answer.numbers is None or not self._learn(answer.numbers) or (first and self.best is not None):
                return

    def _learn(self, numbers: Int64Array) -> bool:
        """Place the records: a new best setting, or new conditions. False if neither, when floating point failed the solver."""
        placement = place(self.values, numbers)
        if placement.flow is None:
            known = len(self.conditions.rows)
            for crowd in placement.crowded:
                self.conditions.add(crowd)
            return len(self.conditions.rows) > known
        used = np.flatnonzero(numbers)
        setting = BucketSetting(tuple(self.values.sizes[used].tolist()), tuple(numbers[used].tolist()))
        self.offer(setting, self.values.deal(placement.flow[:, used], len(self.table.counts)))
        return True


@dataclass(frozen=True)
class _Answer:
    """numbers: (q,) buckets that keep all known conditions, or None when none was found. bound: proven. infeasible: proven."""

    numbers: Int64Array | None
    bound: int
    infeasible: bool = False


class _IntegerProgram:
    """Minimise the loss under the known conditions, in Y relative to the Y of `base`: Y_j = above_base_j + y_j.

    low, high : (q,) the ranges of y. HiGHS takes a reduced cost of -10^-7 for none, so a bound it proves may be too high by
                10^-7 times the sum of the ranges: `slip` is what is taken off. It is 0 up to some million records; beyond,
                `narrow` shortens the ranges, once a good setting is known.
    """

    def __init__(self, conditions: CrowdingConditions, base: Int64Array) -> None:
        self.conditions, self.base = conditions, base
        sizes = conditions.sizes
        above_base = np.cumsum(base[::-1])[::-1]
        self.low, self.high = -above_base, conditions.n // sizes - above_base  # 0 <= Y_j <= n / S_j
        self.steps = np.diff(conditions.costs, prepend=0)  # the loss in terms of Y
        self.base_loss = sum(int(c) * int(b) for c, b in zip(conditions.costs, base, strict=True))

    @property
    def slip(self) -> int:
        """By how much a bound on the loss, an integer, may be too high."""
        return math.floor(self._tolerance)

    @property
    def _tolerance(self) -> float:
        return 0.01 + 1e-7 * float((self.high - self.low).sum())

    def _rows(self, below: int | None) -> tuple[Float64Array, Float64Array]:
        """(A, a) with A y >= a: the conditions, b >= 0, and a loss less than `below`; without those that hold in all the range."""
        matrix, needs = self.conditions.matrix()
        q = len(self.base)
        rows = [np.diff(matrix, axis=1, prepend=0), np.eye(q, dtype=np.int64) - np.eye(q, k=1, dtype=np.int64)]
        least = [needs - matrix @ self.base, -self.base]
        if below is not None:
            rows.append(-self.steps[None, :])
            least.append(np.array([self.base_loss + 1 - below]))
        all_rows, all_least = np.concatenate(rows), np.concatenate(least)
        smallest = np.where(all_rows > 0, all_rows * self.low, all_rows * self.high).sum(axis=1)
        kept = smallest < all_least
        return all_rows[kept].astype(np.float64), all_least[kept].astype(np.float64)

    def _total(self) -> tuple[Float64Array, int]:
        """(A, a) with A y = a: all records are in buckets."""
        sizes = self.conditions.sizes
        return np.diff(sizes, prepend=0)[None, :].astype(np.float64), self.conditions.n - int(sizes @ self.base)

    def narrow(self, below: int) -> None:
        """Shorten the ranges to what a setting of loss < `below` can use, one linear program for each end of each."""
        rows, least = self._rows(below)
        total, missing = self._total()
        for j in range(len(self.base)):
            for sign in (1, -1):
                cost = np.zeros(len(self.base))
                cost[j] = sign
                bounds = np.stack([self.low, self.high], axis=1)
                end = linprog(cost, -rows, -least, total, [missing], bounds=bounds, method="highs")
                if end.x is None:
                    continue
                reached = float(end.x[j])
                margin = 2 + 1e-6 * abs(reached)  # the linear programs are only as exact as floating point
                if sign == 1:
                    self.low[j] = max(int(self.low[j]), math.floor(reached - margin))
                else:
                    self.high[j] = min(int(self.high[j]), math.ceil(reached + margin))

    def solve(self, below: int | None, seconds: float) -> _Answer:
        """The least loss within the ranges, losses below `below` only, and what is proven after `seconds`."""
        rows, least = self._rows(below)
        total, missing = self._total()
        constraints = [LinearConstraint(total, missing, missing)]
        if len(rows):
            constraints.append(LinearConstraint(rows, least, np.inf))
        with standard_output_kept_clean():
            solved = milp(
                self.steps,
                constraints=constraints,
                bounds=Bounds(self.low, self.high),
                integrality=np.ones(len(self.base), dtype=np.int64),
                options={"time_limit": max(0.1, seconds), "mip_rel_gap": 0},
            )
        if solved.status == 2:
            return _Answer(None, 0, infeasible=True)
        dual = solved.get("mip_dual_bound")
        bound = 0
        if dual is not None and abs(dual) < 1e15:
            bound = self.base_loss + math.ceil(dual - self._tolerance)
        if solved.x is None:
            return _Answer(None, bound)
        y = np.rint(solved.x).astype(np.int64)
        numbers = self.base + y - np.append(y[1:], 0)
        if (numbers < 0).any() or int(self.conditions.sizes @ numbers) != self.conditions.n:
            return _Answer(None, bound)
        return _Answer(numbers, bound)


@contextmanager
def standard_output_kept_clean() -> Iterator[None]:
    """HiGHS has prints of its own that no option silences; standard output belongs to results, so they go to standard error."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # no file descriptors to turn (closed, or an embedded interpreter): nothing to protect
        yield
        return
    try:
        yield
    finally:
        with suppress(OSError, AttributeError, TypeError):
            ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
