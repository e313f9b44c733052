"""Perturbation Partitioning, phase 2: put groups that share values next to each other.

Source: small domain randomization, section 5.2: reverse Cuthill-McKee on the graph A A^T of the groups-by-values matrix A. Initial groups
have nearly the same neighbours, so ties decide most of the order. SciPy breaks them by an unstable sort, which is another one on other
processors; here they are broken by what the phase is for, the values that two groups share, and the same counts give the same sub-tables
on every machine.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from anonlib.arrays import Int64Array
from anonlib.solvers.subtables.groups import Groups


def rearrange(groups: Groups) -> Int64Array:
    """(t,) the order of the groups: one connected part of the graph after the other, by their earliest group. A part and its mirror are
    worth the same: of its two ends the earlier group comes first.

    Cost: 8 bytes for each pair of groups that share a value, and a sort of each group's neighbours.
    """
    t = len(groups)
    holds = sparse.csr_matrix(
        (np.ones(len(groups.codes), dtype=np.int32), groups.codes, groups.start), shape=(t, int(groups.codes.max()) + 1)
    )
    shared = (holds @ holds.T).tocsr()
    shared.sort_indices()
    order = _reverse_cuthill_mckee(shared)
    part = connected_components(shared, directed=False)[1]
    first = np.full(part.max() + 1, t, dtype=np.int64)
    np.minimum.at(first, part, np.arange(t))
    in_parts = order[np.argsort(first[part[order]], kind="stable")]
    ends = np.flatnonzero(np.diff(part[in_parts])) + 1
    return np.concatenate([run if run[0] <= run[-1] else run[::-1] for run in np.split(in_parts, ends)])


def _reverse_cuthill_mckee(shared: sparse.csr_matrix) -> Int64Array:
    """(t,) int64: breadth first from a group of fewest neighbours, those with fewer neighbours first, backwards.

    shared : (t, t), how many values each two groups share, column indices in order
    Ties: the group that shares more values with the one it is reached from, then the earlier one.
    """
    start, neighbours, values = shared.indptr, shared.indices, shared.data
    degree = np.diff(start)
    reached = np.zeros(len(degree), dtype=bool)
    line: list[int] = []
    for root in np.argsort(degree, kind="stable").tolist():
        if reached[root]:
            continue
        reached[root] = True
        done = len(line)
        line.append(root)
        while done < len(line):
            row = slice(start[line[done]], start[line[done] + 1])
            fresh = ~reached[neighbours[row]]
            next_groups, in_common = neighbours[row][fresh], values[row][fresh]
            next_groups = next_groups[np.lexsort((-in_common, degree[next_groups]))]
            reached[next_groups] = True
            line += next_groups.tolist()
            done += 1
    return np.array(line[::-1], dtype=np.int64)
