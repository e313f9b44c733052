"""Limits on values taken together: how many records under a node of a hierarchy a bucket may hold.

Round robin numbers the records of a size value after value; with the values of every node as neighbours, the o_Nj records of a node N come
one after another, and each of the b_j buckets takes floor or ceil of o_Nj / b_j of them, whatever the node and however nodes stand in one
another. So buckets keep floor(f'_N S_j) iff o_Nj <= floor(f'_N S_j) b_j: Lemma 2 of generalized bucketization, for a node as for a value.
Which settings have room for everybody then is a flow through the tree (`anonlib.solvers.buckets.tree_transport`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.exact import floor_times
from anonlib.privacy.f_privacy import Thresholds


@dataclass(frozen=True)
class NodeLimits:
    """The K nodes that have a threshold.

    parents    : (K,) int64, the node with a threshold above each, -1 for none; each stands behind those below it
    above      : (m,) int64, the lowest such node above each value, -1 for none
    capacities : (K, q) int64, floor(f'_N S_j)
    """

    parents: Int64Array
    above: Int64Array
    capacities: Int64Array

    @staticmethod
    def of(thresholds: Thresholds, sizes: range) -> NodeLimits | None:
        """The limits for buckets of these sizes; None where no node has a threshold."""
        if thresholds.tree is None or not thresholds.limited:
            return None
        parents, above = thresholds.tree.only(list(thresholds.limited))
        capacities = [[floor_times(f, size) for size in sizes] for f in thresholds.limited.values()]
        shape = (len(parents), len(sizes))
        return NodeLimits(parents, above, np.array(capacities, dtype=np.int64).reshape(shape))

    def only(self, columns: Int64Array) -> NodeLimits:
        """The same nodes with fewer sizes. columns : (k,) int64, positions of sizes."""
        return replace(self, capacities=self.capacities[:, columns])


def node_sums(amounts: Int64Array, above: Int64Array, parents: Int64Array) -> Int64Array:
    """(K + 1, q): what is under each of K nodes, and in the last row under none of them or any. amounts : (G, q), above : (G,)."""
    held = np.zeros((len(parents) + 1, amounts.shape[1]), dtype=amounts.dtype)
    np.add.at(held, above, amounts)  # -1 is the last row
    for k, parent in enumerate(parents.tolist()):
        held[parent] += held[k]
    return held


def room(amounts: Int64Array, above: Int64Array, parents: Int64Array, limits: Int64Array) -> Int64Array:
    """(q,): the most of `amounts` that gets through the tree, no more than limits[k] through node k. limits : (K, q)."""
    held = np.zeros((len(parents) + 1, amounts.shape[1]), dtype=amounts.dtype)
    np.add.at(held, above, amounts)
    for k, parent in enumerate(parents.tolist()):
        held[parent] += np.minimum(held[k], limits[k])
    return np.asarray(held[-1])
