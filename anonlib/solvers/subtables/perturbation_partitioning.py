"""Perturbation Partitioning: sub-tables with few sensitive values each, so that perturbing within them retains as much as the bound allows.

Source: small domain randomization, section 5 and appendix 10.7: balance (`balancing`), rearrange (`rearranging`), merge neighbours by
dynamic programming (`merging`), minimising eps(Part) of equation (12). Beyond the paper: a search over merges of any groups
(`merge_search`), whose answer is taken when its bound is lower and counts err no more; and a merge whose rho1 would reach rho2 is never
chosen, so that there is an answer whenever one exists at all (the whole table is one).

From counts alone, independent of the number of records. Deterministic: no key enters, so whoever has the counts gets the same sub-tables.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from anonlib.errors import Unsatisfiable
from anonlib.exact import legible
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.rho_privacy import RhoPrivacy, confidence_factor, spread, squared_error
from anonlib.privacy.subtables import SubTable, SubTables
from anonlib.solvers.subtables.balancing import balance
from anonlib.solvers.subtables.groups import Groups, Objective
from anonlib.solvers.subtables.merge_search import search
from anonlib.solvers.subtables.merging import merge_neighbours
from anonlib.solvers.subtables.rearranging import rearrange

Merging = Literal["search", "neighbours"]
LEAST_AMPLIFICATION = Fraction(1, 10**6)
"""gamma - 1 below this is refused: doubles could not reconstruct from it, and no table is long enough to."""


@dataclass(frozen=True)
class Partitioning:
    """The chosen sub-tables, and what they are worth.

    bound      : eps(Part) of equation (12): with a chance of 1 - delta the mean error of a reconstructed share stays below it
    neighbours : the bound that merging neighbours alone reaches (the paper's); whole : that of uniform perturbation, without sub-tables
    groups     : t, initial groups; balance : lambda, the whole part of |T'| / f_m
    count_error : the standard error of a value's reconstructed count in the whole table, root mean square over values; in records
    merging    : which merging gave the answer: "search", "neighbours" or "whole"
    """

    subtables: SubTables
    bound: float
    neighbours: float
    whole: float
    count_error: float
    groups: int
    balance: int
    merging: str
    seconds: float


def solve(
    counts: SensitiveCounts, asked: RhoPrivacy, delta: Fraction = Fraction(1, 20), merging: Merging = "search"
) -> Partitioning:
    """The partitioning with the lowest bound that was found. Raises Unsatisfiable when no partitioning keeps `asked`.

    Cost: m values in t groups take O(m t) for the groups, O(t^2) and O(t) for each value of a group for the merges; 15,000 values
    take seconds. Driver memory: 128 MB for the search at most, 5 t^2 bytes, and 16 bytes for each value of each group.
    """
    started = time.monotonic()
    protected = asked.protected(counts)
    objective = Objective(protected, asked.rho2)
    whole = _whole(counts, objective)
    _refuse_noise(whole, asked)
    groups = balance(counts.counts, protected)
    sequence = groups.permuted(rearrange(groups).tolist())
    label = merge_neighbours(sequence, objective)
    neighbours = _subtables(sequence.merged(label), objective)
    chosen, reached_by = neighbours, "neighbours"
    if merging == "search":
        better = _subtables(sequence.merged(search(sequence, objective, label)), objective)
        if error_bound(better, delta) < error_bound(neighbours, delta):
            chosen, reached_by = better, "search"
    guarded = counts.counts[protected]
    return Partitioning(
        subtables=chosen,
        bound=error_bound(chosen, delta),
        neighbours=error_bound(neighbours, delta),
        whole=error_bound(whole, delta),
        count_error=count_error(chosen, counts.m),
        groups=len(groups),
        balance=int(guarded.sum()) // int(guarded.max()),
        merging=reached_by,
        seconds=time.monotonic() - started,
    )


def solve_whole(counts: SensitiveCounts, asked: RhoPrivacy, delta: Fraction = Fraction(1, 20)) -> Partitioning:
    """Uniform perturbation, the baseline: the whole table as its one sub-table (section 3.1). Raises Unsatisfiable as `solve` does."""
    started = time.monotonic()
    protected = asked.protected(counts)
    whole = _whole(counts, Objective(protected, asked.rho2))
    _refuse_noise(whole, asked)
    bound, guarded = error_bound(whole, delta), counts.counts[protected]
    return Partitioning(
        subtables=whole,
        bound=bound,
        neighbours=bound,
        whole=bound,
        count_error=count_error(whole, counts.m),
        groups=1,
        balance=int(guarded.sum()) // int(guarded.max()),
        merging="whole",
        seconds=time.monotonic() - started,
    )


def _refuse_noise(whole: SubTables, asked: RhoPrivacy) -> None:
    """A gamma that near to 1 retains nothing: the release would be noise, and no count could be reconstructed from it."""
    share, gamma = whole[0].rho1, whole[0].gamma
    if gamma - 1 < LEAST_AMPLIFICATION:
        raise Unsatisfiable(
            f"rho2: {legible(asked.rho2)} is so near to {legible(share)}, the largest share of a protected value, that no value would be "
            f"retained and nothing could be counted; raise rho2, e.g. to {legible((1 + share) / 2)}"
        )


def error_bound(subtables: Iterable[SubTable], delta: Fraction) -> float:
    """eps(Part), the mean over records of eps_i = a / (p_i sqrt(|T_i|)). Equations (11), (12)."""
    parts = [(t.size, t.size * float(spread(t.size, float(t.retention)))) for t in subtables]
    return confidence_factor(delta) * math.fsum(part for _, part in parts) / sum(size for size, _ in parts)


def count_error(subtables: Iterable[SubTable], values: int) -> float:
    """The root mean square, over `values` values, of the standard errors of their reconstructed counts in the whole table; in records."""
    squares = [squared_error(t.size, t.domain_size, float(t.retention)) for t in subtables]
    return math.sqrt(math.fsum(squares) / values)


def _subtables(groups: Groups, objective: Objective) -> SubTables:
    """The sub-tables of groups, each with its largest gamma."""
    return SubTables(tuple(SubTable.of(*groups[j], objective.protected, objective.rho2) for j in range(len(groups))))


def _whole(counts: SensitiveCounts, objective: Objective) -> SubTables:
    """The whole table as its one sub-table."""
    every = np.arange(counts.m, dtype=np.int64)
    return SubTables((SubTable.of(every, counts.counts, objective.protected, objective.rho2),))
