"""Companions from other branches: of all record partitions of a setting, one with the fewest buckets that tell a node.

A bucket whose records are all of values under one node tells the node of everybody in it, though no value. A size j has
max(0, o_Nj - (S_j - 1) b_j) such buckets for node N, dealt round as `anonlib.solvers.buckets.node_limits` says, and no way to deal has
fewer. Which values go to which size is free, as far as capacities allow: the sum over nodes and sizes is least where records flow through
the tree at the lowest cost, with a cost for each that has no stranger left to share its bucket. A linear program (HiGHS) finds it; what it
answers is made whole and checked in integers, and where it is no valid partition, or no better, the one that was there stays. The setting,
and so the loss, is the same. By counts alone: the program ends after a number of iterations, never after some time, and is used only where
it is proven optimal by then, so that the same counts, thresholds and solution have the same partition on a fast machine and on a slow one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from anonlib.arrays import Int64Array
from anonlib.privacy.buckets import BucketSetting, BucketSolution
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import Thresholds
from anonlib.privacy.value_tree import ValueTree
from anonlib.solvers.buckets.node_limits import node_sums
from anonlib.solvers.buckets.sensitive_table import MergedValues, SensitiveTable
from anonlib.solvers.buckets.validity import check

_MOST_VARIABLES = 200_000
_OPTIMAL = 0
"""`scipy.optimize.linprog`'s status of a proven optimum."""
_MOST_ITERATIONS = 50_000
"""Of the dual simplex method. By seconds, the machine's load would decide which records share a bucket."""


def apart(counts: SensitiveCounts, thresholds: Thresholds, solution: BucketSolution) -> BucketSolution:
    """The same setting with records partitioned so that as few buckets as can be tell a node; the same solution where values have no nodes.

    Cost: a linear program of (G + K) q variables for G groups of values, K nodes and q sizes. Where there are more than 200,000, or
    50,000 iterations prove no optimum, values stay where the solver put them.
    """
    tree, setting = thresholds.tree, solution.setting
    if tree is None or not tree.nodes or not telling(tree, setting, solution.partition).any():
        return solution
    table = SensitiveTable.of(counts, thresholds, max(setting.sizes))
    columns = np.array(setting.sizes, dtype=np.int64) - table.first_size
    values = table.merged(tree.above).only(columns)
    if (len(values.counts) + tree.nodes) * len(columns) > _MOST_VARIABLES:
        return solution
    of_group = tree.above[values.value_ids[np.cumsum(values.members) - values.members]]
    flow = _cheapest(values, of_group, tree, setting)
    if flow is None or (flow.sum(axis=1) != values.supply).any():
        return solution
    partition = values.deal(flow, counts.m)
    try:
        check(table, setting, partition)
    except AssertionError:
        return solution
    better = telling(tree, setting, partition).sum() < telling(tree, setting, solution.partition).sum()
    return replace(solution, partition=partition) if better else solution


def telling(tree: ValueTree, setting: BucketSetting, partition: Int64Array) -> Int64Array:
    """(K,) int64: how many buckets hold values under each node alone, dealt round with the values of every node as neighbours.

    partition : (m, q) int64, records of each value in the buckets of each size
    """
    numbers, sizes = np.array(setting.numbers, dtype=np.int64), np.array(setting.sizes, dtype=np.int64)
    told = np.maximum(0, tree.records(partition) - (sizes - 1) * numbers)
    return np.asarray(told.sum(axis=1))


def _cheapest(values: MergedValues, of_group: Int64Array, tree: ValueTree, setting: BucketSetting) -> Int64Array | None:
    """(G, q): records of each group in each size, with the least sum of buckets that tell a node; None without a proof in time.

    Time is counted in iterations.

    of_group : (G,) int64, the lowest node of the tree above each group
    """
    G, q, K = len(values.counts), len(setting.sizes), tree.nodes
    sizes, numbers = np.array(setting.sizes), np.array(setting.numbers)
    own = np.arange(G * q).reshape(G, q)
    under = node_sums(np.eye(G, dtype=np.int64), of_group, tree.parents)[:K] > 0
    in_node = sparse.kron(sparse.csr_array(under.astype(float)), sparse.eye_array(q))
    blocks = [sparse.hstack([in_node, -sparse.eye_array(K * q)])]  # under a node, less what it tells
    bounds = [np.tile((sizes - 1) * numbers, K)]
    if values.nodes is not None:
        limited = node_sums(np.eye(G, dtype=np.int64), values.nodes.above, values.nodes.parents)[:-1] > 0
        held = sparse.kron(sparse.csr_array(limited.astype(float)), sparse.eye_array(q))
        blocks.append(sparse.hstack([held, sparse.csr_array((held.shape[0], K * q))]))
        bounds.append((values.nodes.capacities * numbers).reshape(-1))
    everybody = sparse.kron(sparse.eye_array(G), np.ones((1, q)))
    full = sparse.kron(np.ones((1, G)), sparse.eye_array(q))
    exactly = sparse.hstack([sparse.vstack([everybody, full]), sparse.csr_array((G + q, K * q))])
    most = (values.members[:, None] * values.capacities * numbers).reshape(-1).astype(float)
    solved = linprog(
        np.concatenate([np.zeros(own.size), np.ones(K * q)]),
        A_ub=sparse.vstack(blocks, format="csr"),
        b_ub=np.concatenate(bounds).astype(float),
        A_eq=exactly.tocsr(),
        b_eq=np.concatenate([values.supply, sizes * numbers]).astype(float),
        bounds=np.stack([np.zeros(own.size + K * q), np.concatenate([most, np.full(K * q, np.inf)])], axis=1),
        method="highs-ds",  # ends at a vertex, and the vertices of a flow are whole numbers
        options={"maxiter": _MOST_ITERATIONS},
    )
    if solved.status != _OPTIMAL:
        return None
    flow: Int64Array = np.rint(solved.x[: own.size]).astype(np.int64).reshape(G, q)
    return flow
