"""Beyond the paper: merge groups that are not neighbours in the sequence, wherever that lowers the error bound.

The dynamic program of phase 3 merges runs of one sequence. Here any groups may meet: merge the pair that gains most until none gains
(agglomeration), then move single groups to the sub-table where they cost least, or make them one of their own, until none gains
(relocation), and again. Deterministic: ties go to the lowest index. A local optimum; started from the dynamic program's answer and from the
groups alone.

The bound adds up the errors of sub-tables as if all erred the same way, and so overrates few large ones: taken by itself, it merges
occupations of the census until counts err by a fifth more. So merges are judged by the bound and, with several weights, by the squared
error of the reconstructed counts beside it, as little as needed that counts err no more than at the start. Never worse in either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from anonlib.arrays import BoolArray, Float64Array, Int64Array
from anonlib.solvers.subtables.groups import Groups, Objective

MAX_CELLS = 16_000_000
"""Sub-tables x values, the counts that a search keeps as a dense matrix (128 MB)."""
MAX_SUBTABLES = 2_000
"""The gains of all pairs are kept (32 MB)."""
ROUNDS = 20
WEIGHTS = (0.0, 0.25, 1.0)
"""Of the squared error beside the bound, when both are 1 at the start."""
LEAST_GAIN = 1e-12
"""Relative to the total cost; what is less is rounding."""


def search(groups: Groups, objective: Objective, start: Int64Array) -> Int64Array:
    """(t,) labels 0, 1, ... of a merging with no larger bound and no larger squared error than `start`, whose cost is finite.

    objective : the paper's, of weight 0. Cost: for each merge or move O(k) for every value of the group concerned, k sub-tables; memory
    as `MAX_CELLS` says. A start with more cells than that is left as it is.
    """
    bound, error = _worth(groups, objective, start)
    alone = np.arange(len(groups), dtype=np.int64)
    starts = [start] if np.isinf(objective.of(groups)).any() else [start, alone]
    best, least = start, bound
    for weight in WEIGHTS:
        weighted = replace(objective, weight=weight * bound / error)
        for label in starts:
            improved = _improved(groups, weighted, label)
            reached, err = _worth(groups, objective, improved)
            if reached < least and err <= error:
                best, least = improved, reached
        if least < bound:
            break  # more weight on the error would give a larger bound
    return best


def _worth(groups: Groups, objective: Objective, label: Int64Array) -> tuple[float, float]:
    """(bound, squared error) of the sub-tables that groups with the same label make."""
    merged = groups.merged(label)
    return float(objective.of(merged).sum()), objective.squared_error(merged)


def _improved(groups: Groups, objective: Objective, label: Int64Array) -> Int64Array:
    """Labels after rounds of agglomeration and relocation; `label` itself where the search would be too large."""
    m = int(groups.codes.max()) + 1
    k = int(label.max()) + 1
    if k > MAX_SUBTABLES or k * m > MAX_CELLS:
        return label
    for _ in range(ROUNDS):
        merged = _agglomerated(groups, objective, label)
        moved = _relocated(groups, objective, merged)
        if (moved == merged).all():
            return moved
        label = moved
    return label


@dataclass
class _Clusters:
    """The sub-tables of a merging in progress: counts (k, m) int64, and for each its records, values, largest protected count, cost."""

    objective: Objective
    counts: Int64Array
    sizes: Int64Array
    domains: Int64Array
    largest: Int64Array
    costs: Float64Array

    @staticmethod
    def of(groups: Groups, label: Int64Array, objective: Objective, spare: int) -> _Clusters:
        """The sub-tables that groups with the same label make, and `spare` empty ones at the end, whose cost is 0."""
        k, m = int(label.max()) + 1 + spare, int(groups.codes.max()) + 1
        counts = np.zeros((k, m), dtype=np.int64)
        np.add.at(counts, (label[groups.row], groups.codes), groups.counts)
        none, no_cost = np.zeros(k, dtype=np.int64), np.zeros(k)
        clusters = _Clusters(objective, counts, none, none.copy(), none.copy(), no_cost)
        for a in range(k - spare):
            clusters.refresh(a)
        return clusters

    def refresh(self, a: int) -> None:
        """Derive the records, values, largest count and cost of sub-table `a` anew from its counts."""
        row = self.counts[a]
        self.sizes[a], self.domains[a] = row.sum(), np.count_nonzero(row)
        self.largest[a] = row[self.objective.protected[: len(row)]].max(initial=0)
        self.costs[a] = self._cost(self.sizes[a], self.domains[a], self.largest[a]) if self.sizes[a] else 0.0

    def with_group(self, codes: Int64Array, counts: Int64Array) -> Float64Array:
        """(k,) what each sub-table would cost together with a group of records."""
        beside = self.counts[:, codes]
        guarded = self.objective.protected[codes]
        largest = (beside[:, guarded] + counts[guarded]).max(axis=1, initial=0)
        return self.objective.cost(
            self.sizes + counts.sum(),
            self.domains + (beside == 0).sum(axis=1),
            np.maximum(self.largest, largest),
        )

    def without_group(self, a: int, codes: Int64Array, counts: Int64Array) -> float:
        """What sub-table `a` would cost without a group of its records."""
        left = self.counts[a].copy()
        left[codes] -= counts
        size = int(left.sum())
        largest = left[self.objective.protected[: len(left)]].max(initial=0)
        return self._cost(size, np.count_nonzero(left), largest) if size else 0.0

    def _cost(self, size: int, domain: int, largest: int) -> float:
        return float(self.objective.cost(size, domain, largest).item())


def _agglomerated(groups: Groups, objective: Objective, label: Int64Array) -> Int64Array:
    """Merge the pair of sub-tables that gains most until no pair gains."""
    clusters = _Clusters.of(groups, label, objective, spare=0)
    label, k = label.copy(), len(clusters.sizes)
    least = LEAST_GAIN * float(clusters.costs.sum())
    gains = np.full((k, k), -np.inf)
    alive = np.ones(k, dtype=bool)
    for a in range(k):
        gains[a] = _gains_with(clusters, a, alive)
    best: npt.NDArray[np.intp] = gains.argmax(axis=1)
    while True:
        tops = gains[np.arange(k), best]
        a = int(tops.argmax())
        if not tops[a] > least:
            return _renumbered(label)
        a, b = sorted((a, int(best[a])))
        clusters.counts[a] += clusters.counts[b]
        clusters.counts[b] = 0
        clusters.refresh(a)
        alive[b] = False
        label[label == b] = a
        gains[b], gains[:, b] = -np.inf, -np.inf
        gains[a] = gains[:, a] = _gains_with(clusters, a, alive)
        stale = np.flatnonzero((best == a) | (best == b))
        best[stale] = gains[stale].argmax(axis=1)
        better = gains[:, a] > gains[np.arange(k), best]
        best[better] = a
        best[a] = gains[a].argmax()


def _gains_with(clusters: _Clusters, a: int, alive: BoolArray) -> Float64Array:
    """(k,) what merging sub-table `a` with each other one gains; -inf with itself and with those merged away."""
    codes = np.flatnonzero(clusters.counts[a])
    gains: Float64Array = clusters.costs + clusters.costs[a] - clusters.with_group(codes, clusters.counts[a, codes])
    gains[~alive] = -np.inf
    gains[a] = -np.inf
    return gains


def _relocated(groups: Groups, objective: Objective, label: Int64Array) -> Int64Array:
    """Move one group at a time to where it costs least, or alone, until no move gains."""
    clusters = _Clusters.of(groups, label, objective, spare=1)
    label = label.copy()
    least = LEAST_GAIN * float(clusters.costs.sum())
    for _ in range(ROUNDS):
        moved = False
        for j in range(len(groups)):
            codes, counts = groups[j]
            current = int(label[j])
            gains = clusters.costs - clusters.with_group(codes, counts)
            gains += clusters.costs[current] - clusters.without_group(current, codes, counts)
            gains[current] = 0.0
            cheapest = int(gains.argmax())
            if gains[cheapest] > least:
                clusters.counts[current, codes] -= counts
                clusters.counts[cheapest, codes] += counts
                clusters.refresh(current)
                clusters.refresh(cheapest)
                label[j] = cheapest
                moved = True
                if not (clusters.sizes == 0).any():
                    return _renumbered(label)  # no empty one is left to move to: the next round makes another
        if not moved:
            break
    return _renumbered(label)


def _renumbered(label: Int64Array) -> Int64Array:
    """The same merging with labels 0, 1, ... in order of their first group."""
    first, inverse = np.unique(label, return_index=True, return_inverse=True)[1:]
    rank = np.argsort(np.argsort(first))
    return np.asarray(rank[inverse], dtype=np.int64)
