"""Perturbation Partitioning, phase 2: put groups that share values next to each other.

Source: small domain randomization, section 5.2: reverse Cuthill-McKee on the graph A A^T of the groups-by-values matrix A.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

from anonlib.privacy.counts import Int64Array
from anonlib.solvers.groups import Groups


def rearrange(groups: Groups) -> Int64Array:
    """(t,) the order of the groups: one connected part of the graph after the other, by their earliest group. A part and its mirror are
    worth the same: of its two ends the earlier group comes first.

    Cost: time and 5 bytes of memory for each pair of groups that share a value.
    """
    t = len(groups)
    shares = sparse.csr_matrix(
        (np.ones(len(groups.codes), dtype=bool), groups.codes, groups.start), shape=(t, int(groups.codes.max()) + 1)
    )
    graph = (shares @ shares.T).tocsr()
    order = reverse_cuthill_mckee(graph, symmetric_mode=True).astype(np.int64)
    part = connected_components(graph, directed=False)[1]
    first = np.full(part.max() + 1, t, dtype=np.int64)
    np.minimum.at(first, part, np.arange(t))
    in_parts = order[np.argsort(first[part[order]], kind="stable")]
    ends = np.flatnonzero(np.diff(part[in_parts])) + 1
    return np.concatenate([run if run[0] <= run[-1] else run[::-1] for run in np.split(in_parts, ends)])
