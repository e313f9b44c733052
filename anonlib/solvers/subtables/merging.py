"""Perturbation Partitioning, phase 3: merge neighbours in the sequence of groups, by dynamic programming.

Source: small domain randomization, section 5.3, equation (14).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anonlib.arrays import Float64Array, Int64Array
from anonlib.solvers.subtables.groups import Groups, Objective


def merge_neighbours(groups: Groups, objective: Objective) -> Int64Array:
    """(t,) int64 label 0, 1, ... of the sub-table that each group of the sequence goes to; runs of neighbours, least total cost.

    O([1..i]) = min over r < i of O([1..r]) + E(g[r+1..i]); of equal minima the one with the longest last run. The whole sequence as one
    run is among the choices. Cost: O(t^2) for the minima, and O(t) vectorised for each value of each group; memory O(t + sum of domains).
    """
    t = len(groups)
    best = np.full(t + 1, np.inf)
    best[0] = 0.0
    cut = np.zeros(t + 1, dtype=np.int64)
    for i, costs in enumerate(_runs_ending_at(groups, objective)):
        totals = best[: i + 1] + costs
        cut[i + 1] = int(np.argmin(totals))
        best[i + 1] = totals[cut[i + 1]]
    label = np.zeros(t, dtype=np.int64)
    end = t
    while end:
        label[cut[end] : end] = 1
        label[cut[end]] = 2  # where a run begins
        end = int(cut[end])
    return np.asarray(np.cumsum(label == 2) - 1, dtype=np.int64)


def _runs_ending_at(groups: Groups, objective: Objective) -> Iterator[Float64Array]:
    """For each i the (i + 1,) costs of the runs g[r..i], r = 0 .. i."""
    t = len(groups)
    m = int(groups.codes.max()) + 1
    sizes = groups.sizes
    before = np.concatenate([[0], np.cumsum(sizes)])
    last_seen = np.full(m, -1, dtype=np.int64)  # the latest group that has the value
    last_of = np.zeros(t, dtype=np.int64)  # how many values were seen last in each group: suffix sums are domain sizes
    largest = np.zeros(t, dtype=np.int64)  # largest[r]: the most records of one protected value in g[r..i]
    place: list[list[int]] = [[] for _ in range(m)]  # the groups that have the value
    total: list[list[int]] = [[] for _ in range(m)]  # its records up to and with each of them
    for i in range(t):
        codes, counts = groups[i]
        gone = last_seen[codes]
        np.subtract.at(last_of, gone[gone >= 0], 1)
        last_seen[codes] = i
        last_of[i] = len(codes)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            if objective.protected[code]:
                had = total[code][-1] if total[code] else 0
                place[code].append(i)
                total[code].append(had + count)
                # from g[r] on, r in (place[k-1], place[k]], the run has all but the total before place[k]
                at = np.asarray(place[code])
                held = had + count - np.array([0, *total[code][:-1]], dtype=np.int64)
                steps = np.repeat(held, np.diff(np.concatenate([[-1], at])))
                np.maximum(largest[: i + 1], steps, out=largest[: i + 1])
        domains = np.cumsum(last_of[i::-1])[::-1]
        yield objective.cost(before[i + 1] - before[: i + 1], domains, largest[: i + 1])
