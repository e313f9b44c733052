"""Sensitive values that mean nearly the same: the values of a table under the nodes of their hierarchy.

Who learns that a person has one of `circulatory`'s values has learnt that the heart is ill, whichever value it is. So a node may have a
threshold too (`anonlib.privacy.f_privacy:Thresholds`), on the records of all values under it together.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from anonlib.arrays import BoolArray, Int64Array
from anonlib.errors import SpecError
from anonlib.hierarchy import Hierarchy


@dataclass(frozen=True, eq=False)
class ValueTree:
    """The nodes that stand above values of a table, without the root, under which everybody is.

    labels  : K nodes, each behind the nodes below it
    parents : (K,) int64, the node above each, -1 where that is the root
    above   : (m,) int64, the lowest of the nodes above each value, -1 for none (so it is for a kept null)
    paths   : (m, levels) int64, the nodes above each value from below the root down to the value itself, each as the place of its
              first leaf: sorted by them from left to right, the values of every node are neighbours
    """

    labels: tuple[str, ...]
    parents: Int64Array
    above: Int64Array
    paths: Int64Array

    @property
    def nodes(self) -> int:
        """K, how many nodes there are."""
        return len(self.labels)

    def members(self) -> BoolArray:
        """(K, m) bool: which values stand under each node. O(K m)."""
        held = np.zeros((self.nodes, len(self.above)), dtype=np.bool_)
        under = np.flatnonzero(self.above >= 0)
        held[self.above[under], under] = True
        for k in range(self.nodes):
            if self.parents[k] >= 0:
                held[self.parents[k]] |= held[k]
        return held

    def records(self, counts: Int64Array) -> Int64Array:
        """How many records stand under each node, (K,) or (K, q) int64, from those of the values, (m,) or (m, q)."""
        held = np.zeros((self.nodes, *counts.shape[1:]), dtype=np.int64)
        under = np.flatnonzero(self.above >= 0)
        np.add.at(held, self.above[under], counts[under])
        for k in range(self.nodes):
            if self.parents[k] >= 0:
                held[self.parents[k]] += held[k]
        return held

    def only(self, nodes: Sequence[int]) -> tuple[Int64Array, Int64Array]:
        """(parents, above) as of a tree of these nodes alone, ascending; the others are passed over."""
        place = np.full(self.nodes + 1, -1, dtype=np.int64)
        place[np.asarray(nodes, dtype=np.int64)] = np.arange(len(nodes))
        for k in range(self.nodes - 1, -1, -1):  # from above: who is passed over stands for the next node above it
            if place[k] < 0:
                place[k] = place[self.parents[k]] if self.parents[k] >= 0 else -1
        parents = self.parents[np.asarray(nodes, dtype=np.int64)]
        return place[parents], place[self.above]


def value_tree(values: Sequence[str | None], hierarchy: Hierarchy, named: Collection[str] = ()) -> ValueTree:
    """The tree of a table's values, each once: all nodes above two values or more, and those that are `named`. O(m levels).

    Raises SpecError for a value that is no leaf of the hierarchy, but for None, a missing one.
    """
    present = [i for i, value in enumerate(values) if value is not None]
    leaves = hierarchy.positions(str(values[i]) for i in present)
    under = np.zeros(len(hierarchy.labels), dtype=np.int64)
    for level in range(hierarchy.levels):
        new = hierarchy.heights[hierarchy.ancestors[leaves, level]] == level  # a label may stay itself for some levels
        np.add.at(under, hierarchy.ancestors[leaves, level][new], 1)
    inner = np.arange(len(under)) >= hierarchy.leaves
    inner[hierarchy.root] = False
    wanted = np.array([label in named for label in hierarchy.labels])
    chosen = np.flatnonzero(inner & (under > 0) & ((under > 1) | wanted))
    chosen = chosen[np.argsort(hierarchy.heights[chosen], kind="stable")]
    place = np.full(len(under), -1, dtype=np.int64)
    place[chosen] = np.arange(len(chosen))
    above = np.full(len(values), -1, dtype=np.int64)
    above[present] = [_first_at_or_above(hierarchy, place, int(hierarchy.parents[leaf])) for leaf in leaves]
    parents = [_first_at_or_above(hierarchy, place, int(hierarchy.parents[node])) for node in chosen]
    paths = np.full((len(values), hierarchy.levels - 1), hierarchy.leaves, dtype=np.int64)
    paths[present] = hierarchy.first[hierarchy.ancestors[leaves][:, -2::-1]]
    return ValueTree(tuple(hierarchy.labels[node] for node in chosen), np.array(parents, dtype=np.int64), above, paths)


def unknown_names(names: Collection[str], values: Collection[str | None], hierarchy: Hierarchy | None) -> list[str]:
    """Those of the names that are neither a value of the table nor, where there is a hierarchy, a leaf or node of it, in order.

    A name that the hierarchy has is not misspelt: it may be in next month's table. Raises SpecError as `value_tree` does.
    """
    known = set(values)
    if hierarchy is not None:
        hierarchy.positions(
            str(value) for value in values if value is not None
        )  # a value that is no leaf is named first
        known.update(hierarchy.labels)
    return sorted(set(names) - known)


def refuse_root(names: Collection[str], hierarchy: Hierarchy, key: str = "privacy.thresholds") -> None:
    """Raise SpecError when the root is named, of which everybody knows that a person is under it. key : where the names stand."""
    root = hierarchy.labels[hierarchy.root]
    if root in names and hierarchy.root >= hierarchy.leaves:
        raise SpecError(
            f"{key}: {root!r} stands above all values, so everybody is under it; leave it out, or name a node below"
        )


def _first_at_or_above(hierarchy: Hierarchy, place: Int64Array, node: int) -> int:
    while node >= 0 and place[node] < 0:
        node = int(hierarchy.parents[node])
    return -1 if node < 0 else int(place[node])
