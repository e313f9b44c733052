"""Optimal: the least loss over all bucket sizes M .. M', anytime, with a proven gap.

Source: the integer program of generalized bucketization, section 6.1, which the paper gives up beyond small domains. Three
changes make it fast. (1) Only the numbers of buckets stay in the program; that their records can be placed is a set of linear
conditions on them, added as exact flows find them broken (`crowding`). (2) The program is written in Y_j = b_j + .. + b_q, the
number of buckets of at least S_j records: then sum_j Y_j (S_j - S_(j-1)) = n, conditions get coefficients near 0 and 1, and
branching on Y_j decides something ("how many buckets have room for x_i"). (3) Everything is written relative to the rounded
optimum of the linear relaxation, so the numbers that HiGHS sees are small whatever |T| is, and its tolerances are harmless.

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
from scipy.optimize import Bounds, LinearConstraint, milp

from anonlib.privacy.buckets import BucketSetting, BucketSolution
from anonlib.privacy.counts import Int64Array
from anonlib.solvers import multi_size
from anonlib.solvers.crowding import CrowdingConditions, FloatArray, Relaxation, relax
from anonlib.solvers.sensitive_table import SensitiveTable
from anonlib.solvers.validity import place


def solve(table: SensitiveTable, time_limit: float) -> BucketSolution | None:
    """The best setting found within about `time_limit` seconds, or None when no valid setting exists (proven).

    Raises TimeoutError when the limit ends before either is known. Cost: tables of G merged values and q sizes take
    seconds at G = 3,200 and q = 50; memory O(G q). Independent of the number of records.
    """
    started = time.perf_counter()
    deadline = started + time_limit
    search = _Search(table)
    warm = multi_size.solve(table, started + time_limit / 4)
    if warm is not None:
        search.offer(*warm)
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
        self.fractional: FloatArray = np.zeros(len(self.values.sizes))

    def offer(self, setting: BucketSetting, parts: Int64Array) -> None:
        if self.best is None or setting.loss < self.best[0].loss:
            self.best = setting, parts

    def relax(self, deadline: float) -> bool:
        """Solve the linear relaxation, adding conditions until none is broken. False if it has no solution."""
        if len(self.values.sizes) == 0:
            self.empty = True
            return False
        self.conditions.add(np.ones(len(self.values.counts), dtype=np.bool_))
        while True:
            found: Relaxation = relax(self.conditions)
            if not found.feasible:
                self.empty = True
                return False
            self.bound = max(self.bound, found.bound)
            self.fractional = found.numbers
            if self.best is not None and self.bound >= self.best[0].loss:
                return True
            if time.perf_counter() > deadline or not self.conditions.separate(found.numbers):
                return True

    def close(self, deadline: float, first: bool = False) -> None:
        """Integer rounds: solve, place the records exactly, add what is broken, until proven or out of time.

        A round gets half of the time that is left, so that one hard round leaves time to learn from what it found.
        With `first` the first valid setting ends the search.
        """
        base = np.maximum(np.floor(self.fractional + 1e-6), 0).astype(np.int64)
        while not self.empty and (self.best is None or self.bound < self.best[0].loss):
            left = deadline - time.perf_counter()
            if left <= 0:
                return
            limit = self.best[0].loss if self.best else None
            answer = _integer_program(self.conditions, base, limit, left if left < 2 else left / 2)
            if answer.infeasible:
                self.bound, self.empty = (limit, False) if limit is not None else (self.bound, True)
                return
            # Under "loss < limit" a bound above the limit says no more than that nothing better exists.
            self.bound = max(self.bound, answer.bound if limit is None else min(limit, answer.bound))
            if answer.numbers is None or not self._learn(answer.numbers) or (first and self.best is not None):
                return

    def _learn(self, numbers: Int64Array) -> bool:
        """Place the records: a new best setting, or new conditions. False if neither, when floating point failed the solver."""
        found = place(self.values, numbers)
        if found.flow is None:
            known = len(self.conditions.rows)
            for crowd in found.crowded:
                self.conditions.add(crowd)
            return len(self.conditions.rows) > known
        used = np.flatnonzero(numbers)
        setting = BucketSetting(tuple(self.values.sizes[used].tolist()), tuple(numbers[used].tolist()))
        self.offer(setting, self.values.deal(found.flow[:, used], len(self.table.counts)))
        return True


@dataclass(frozen=True)
class _Answer:
    """numbers: (q,) buckets that keep all known conditions, or None when none was found. bound: proven. infeasible: proven."""

    numbers: Int64Array | None
    bound: int
    infeasible: bool = False


def _integer_program(conditions: CrowdingConditions, base: Int64Array, below: int | None, seconds: float) -> _Answer:
    """Minimise the loss under the known conditions, losses below `below` only, in Y relative to `base`."""
    matrix, needs = conditions.matrix()
    sizes, costs = conditions.sizes, conditions.costs
    q = len(sizes)
    base_loss = sum(int(c) * int(b) for c, b in zip(costs, base, strict=True))
    missing = conditions.n - int(sizes @ base)
    steps = np.diff(costs, prepend=0)  # the loss in terms of Y
    numbers_of = np.eye(q) - np.eye(q, k=1)  # b_j = Y_j - Y_(j+1)
    constraints = [
        LinearConstraint(np.diff(sizes, prepend=0)[None, :], missing, missing),
        LinearConstraint(np.diff(matrix, axis=1, prepend=0), needs - matrix @ base, np.inf),
        LinearConstraint(numbers_of, -base, np.inf),
    ]
    if below is not None:
        constraints.append(LinearConstraint(steps[None, :], -np.inf, below - 1 - base_loss))
    with _standard_output_kept_clean():
        solved = milp(
            steps,
            constraints=constraints,
            bounds=Bounds(-np.inf, np.inf),
            integrality=np.ones(q, dtype=np.int64),
            options={"time_limit": max(0.1, seconds), "mip_rel_gap": 0},
        )
    if solved.status == 2:
        return _Answer(None, 0, infeasible=True)
    dual = solved.get("mip_dual_bound")
    bound = base_loss + math.ceil(dual - 0.01) if dual is not None and abs(dual) < 1e15 else 0
    if solved.x is None:
        return _Answer(None, bound)
    above = np.rint(solved.x).astype(np.int64)
    numbers = base + above - np.append(above[1:], 0)
    if (numbers < 0).any() or int(sizes @ numbers) != conditions.n:
        return _Answer(None, bound)
    return _Answer(numbers, bound)


@contextmanager
def _standard_output_kept_clean() -> Iterator[None]:
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
