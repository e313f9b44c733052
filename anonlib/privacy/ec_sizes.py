"""The tree of class sizes that SABRE chooses on the driver and its tasks go on with: how many records from which bucket.

Written with a path's bits as a number R, a node at depth L holds floor((N_i + R) / 2^L) records of bucket i, so a level has at most b + 1
different nodes: the tree is kept as those, with two links each, and is never listed as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from anonlib.arrays import BoolArray, Int64Array


@dataclass(frozen=True, eq=False)
class EcSizeTree:
    """The tree of class sizes, equal nodes kept once; node 0 is the root. Links point to later nodes.

    counts      : (nodes, b) int64, records from each bucket
    left, right : (nodes,) int64, the halves of a node, or -1 in a leaf
    """

    counts: Int64Array
    left: Int64Array
    right: Int64Array

    @cached_property
    def classes(self) -> list[int]:
        """How many leaves stand below each node: the equivalence classes it becomes."""
        return self._summed([1] * len(self.counts), self.left < 0)

    def _summed(self, own: list[int], stops: BoolArray) -> list[int]:
        """For each node, the sum of `own` over the first stopping nodes at or below it. Links point forward, so one pass back does."""
        sums = list(own)
        for node in range(len(sums) - 1, -1, -1):
            if not stops[node]:
                sums[node] = sums[self.left[node]] + sums[self.right[node]]
        return sums

    def leaves(self, node: int = 0) -> Iterator[int]:
        """The leaves below a node from left to right, one number a class. Iterative; as long as the classes below."""
        stack = [node]
        while stack:
            below = stack.pop()
            if self.left[below] < 0:
                yield below
            else:
                stack += [int(self.right[below]), int(self.left[below])]

    def size_histogram(self) -> dict[int, int]:
        """{size of a class: how many classes have it}, without listing the classes."""
        times = [0] * len(self.counts)
        times[0] = 1
        histogram: dict[int, int] = {}
        for node, size in enumerate(self.counts.sum(axis=1).tolist()):
            if self.left[node] < 0:
                histogram[size] = histogram.get(size, 0) + times[node]
            else:
                times[self.left[node]] += times[node]
                times[self.right[node]] += times[node]
        return dict(sorted(histogram.items()))


@dataclass(frozen=True, eq=False)
class Partitions:
    """The EC-size tree cut off at subtrees of at most `size` records (or at leaves): what one task works on.

    Partition numbers run from left to right. A record is known by its bucket and its rank in the bucket's order; it goes to the
    partition whose share of the bucket covers that rank.
    """

    tree: EcSizeTree
    size: int

    @cached_property
    def _stops(self) -> BoolArray:
        return cast("BoolArray", (self.tree.left < 0) | (self.tree.counts.sum(axis=1) <= self.size))

    @cached_property
    def _below(self) -> Int64Array:
        """(nodes,) how many partitions stand at or below each node."""
        return np.array(self.tree._summed([1] * len(self._stops), self._stops), dtype=np.int64)

    @property
    def number(self) -> int:
        """How many partitions the tree is cut into."""
        return int(self._below[0])

    def locate(self, bucket: Int64Array, rank: Int64Array) -> tuple[Int64Array, Int64Array]:
        """(partition, node of the tree) of each record, both (N,) int64, given bucket (N,) and rank within it (N,) int64.

        A walk down the tree for all records at once: O(N log(n / size)).
        """
        node = np.zeros(len(bucket), dtype=np.int64)
        partition, rank = np.zeros(len(bucket), dtype=np.int64), np.array(rank, dtype=np.int64)
        going = np.flatnonzero(~self._stops[node])
        while going.size:
            at_node = node[going]
            to_left = self.tree.counts[self.tree.left[at_node], bucket[going]]
            right = rank[going] >= to_left
            rank[going] -= np.where(right, to_left, 0)
            partition[going] += np.where(right, self._below[self.tree.left[at_node]], 0)
            node[going] = np.where(right, self.tree.right[at_node], self.tree.left[at_node])
            going = going[~self._stops[node[going]]]
        return partition, node
