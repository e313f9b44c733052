"""Cut a table into partitions by its quasi-identifiers alone, as Mondrian's first cuts would: a k-d tree from counts of combinations.

Why a tree and not a curve: Mondrian inside a partition continues the very cuts that the tree began, so that a table cut for the cluster
costs hardly more penalty than a table in one piece. No sensitive value plays a part; that a partition can keep its promise is seen to
afterwards, by merging those that cannot with their neighbours in the tree.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonlib.arrays import Codes, Int64Array
from anonlib.domains import Domain, NumericDomain
from anonlib.privacy.class_requirements import Requirement

LEAF = -1


@dataclass(frozen=True)
class KdTree:
    """Node i sends codes at or below `thresholds[attribute[i]][i]` to `left[i]`, others to `right[i]`; node 0 is the root.

    attribute   : (nodes,) int64, LEAF for a leaf; left, right : (nodes,) int64, always later nodes
    thresholds  : per attribute (nodes,) of the column's own type, so that no large code is rounded
    leaf        : (nodes,) int64, the number of a leaf from left to right, LEAF for an inner node
    """

    attribute: Int64Array
    thresholds: tuple[Codes, ...]
    left: Int64Array
    right: Int64Array
    leaf: Int64Array

    @property
    def leaves(self) -> int:
        """How many leaves the tree has: partitions before any are merged."""
        return int(self.leaf.max()) + 1

    def leaf_of(self, columns: Sequence[Codes]) -> Int64Array:
        """(n,) int64: the leaf of each record of d code columns. O(n depth)."""
        node = np.zeros(len(columns[0]), dtype=np.int64)
        going = np.arange(len(node)) if self.attribute[0] != LEAF else np.zeros(0, dtype=np.int64)
        while going.size:
            asked = self.attribute[node[going]]
            for a in np.unique(asked).tolist():
                records = going[asked == a]
                nodes = node[records]
                node[records] = np.where(
                    columns[a][records] <= self.thresholds[a][nodes], self.left[nodes], self.right[nodes]
                )
            going = going[self.attribute[node[going]] != LEAF]
        return self.leaf[node]

    def merged(self, counts: Int64Array, requirement: Requirement) -> Int64Array:
        """(leaves,) int64: the partition of each leaf, so that every partition keeps `requirement`, if the whole table does.

        counts : (leaves, m) int64, records of each sensitive value in each leaf. A node keeps its subtrees apart if the partitions on both
        sides keep the promise; else everything below it is one partition. O(nodes m), bottom up.
        """
        total = np.zeros((len(self.leaf), counts.shape[1]), dtype=np.int64)
        total[self.leaf != LEAF] = counts[self.leaf[self.leaf != LEAF]]
        for node in range(len(self.leaf) - 1, -1, -1):
            if self.attribute[node] != LEAF:
                total[node] = total[self.left[node]] + total[self.right[node]]
        good = requirement.holds(total)
        partition = np.full(counts.shape[0], LEAF, dtype=np.int64)
        stack, number = [0], 0
        while stack:
            node = stack.pop()
            if self.attribute[node] != LEAF and good[self.left[node]] and good[self.right[node]]:
                stack += [int(self.right[node]), int(self.left[node])]
                continue
            partition[self._below(node)] = number
            number += 1
        return partition

    def _below(self, node: int) -> list[int]:
        """The numbers of the leaves at or below a node."""
        leaves, stack = [], [node]
        while stack:
            below = stack.pop()
            if self.attribute[below] == LEAF:
                leaves.append(int(self.leaf[below]))
            else:
                stack += [int(self.left[below]), int(self.right[below])]
        return leaves


def kd_tree(columns: Sequence[Codes], domains: Sequence[Domain], weights: Int64Array, size: int) -> KdTree:
    """Cut at the gap next to the median of the widest attribute, the largest region first, while both sides have `size` records.

    columns : d code columns of c combinations; weights : (c,) int64 records of each. So leaves have `size` records or more, and a leaf
    with 2 size records or more is one that no gap divides well. O(c log c) per level of the tree; c is bounded by the caller.
    """
    nodes: list[tuple[int, Any, int, int]] = [(LEAF, 0, LEAF, LEAF)]
    members: dict[int, Int64Array] = {0: np.arange(len(weights), dtype=np.int64)}
    heap = [(-int(weights.sum()), 0)]
    while heap:
        weight, node = heapq.heappop(heap)
        if -weight < 2 * size:
            break
        cut = _cut(columns, domains, weights, members[node], size)
        if cut is None:
            continue
        attribute, threshold = cut
        low = columns[attribute][members[node]] <= threshold
        nodes[node] = (attribute, threshold, len(nodes), len(nodes) + 1)
        for side in (members[node][low], members[node][~low]):
            members[len(nodes)] = side
            heapq.heappush(heap, (-int(weights[side].sum()), len(nodes)))
            nodes.append((LEAF, 0, LEAF, LEAF))
        del members[node]
    return _tree(nodes, columns)


def _cut(
    columns: Sequence[Codes], domains: Sequence[Domain], weights: Int64Array, members: Int64Array, size: int
) -> tuple[int, Any] | None:
    """(attribute, largest code of the lower side) of the best cut, or None."""
    spans = [_span(column[members], domain) for column, domain in zip(columns, domains, strict=True)]
    for a in sorted(range(len(columns)), key=lambda a: (-spans[a], a)):
        if spans[a] == 0:
            return None
        codes = columns[a][members]
        order = np.argsort(codes, kind="stable")
        codes, below = codes[order], np.cumsum(weights[members][order])
        keys = _keys(codes, domains[a])
        gaps = np.flatnonzero(keys[1:] != keys[:-1])
        gaps = gaps[(below[gaps] >= size) & (below[-1] - below[gaps] >= size)]
        if gaps.size:
            best = gaps[np.argmin(np.abs(2 * below[gaps] - below[-1]))]
            return a, codes[best]
    return None


def _span(codes: Codes, domain: Domain) -> float:
    """The certainty penalty of the codes' tight box: their normalised span."""
    if isinstance(domain, NumericDomain):
        return float(domain.penalty(codes.min(), codes.max()))
    return float(domain.penalty(len(np.unique(codes))))


def _keys(codes: Codes, domain: Domain) -> Codes:
    """What a cut may not divide: equal codes or, under a hierarchy, one child of the lowest node over all of them."""
    if isinstance(domain, NumericDomain) or domain.hierarchy is None:
        return codes
    tree = domain.hierarchy
    node = int(tree.cover(codes[:1], codes[-1:])[0])
    return np.asarray(tree.ancestors[codes, max(0, int(tree.heights[node]) - 1)])


def _tree(nodes: list[tuple[int, Any, int, int]], columns: Sequence[Codes]) -> KdTree:
    """The nodes (attribute, threshold, left, right) as arrays, leaves numbered from left to right."""
    attribute = np.array([node[0] for node in nodes], dtype=np.int64)
    left, right = (np.array([node[side] for node in nodes], dtype=np.int64) for side in (2, 3))
    thresholds = tuple(
        np.array([node[1] if node[0] == a else 0 for node in nodes], dtype=column.dtype)
        for a, column in enumerate(columns)
    )
    leaf = np.full(len(nodes), LEAF, dtype=np.int64)
    stack, number = [0], 0
    while stack:
        node = stack.pop()
        if attribute[node] == LEAF:
            leaf[node] = number
            number += 1
        else:
            stack += [int(right[node]), int(left[node])]
    return KdTree(attribute, thresholds, left, right, leaf)
