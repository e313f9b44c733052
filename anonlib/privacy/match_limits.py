"""What may be among the matches of a record: at most a share of one value, and of all values under one node of their hierarchy.

A record has one candidate in each of the mu buckets of its pool, and a person is in each bucket with probability 1/mu. So a person is
believed to have a value of a set S with |B_S| / mu at most, where B_S are the buckets that hold any value of S. A limit f on S is kept
where |B_S| <= f mu. A pool that keeps it has no more than f of its records in S, so no table with more than f n of them can be published;
and every other one can, since n buckets of one record keep all limits at once. All comparisons are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from anonlib.arrays import BoolArray, Int64Array
from anonlib.exact import ceil_over
from anonlib.hierarchy import Hierarchy
from anonlib.privacy.match_buckets import MatchBuckets
from anonlib.privacy.value_tree import value_tree

_SAFE = 1 << 62


@dataclass(frozen=True, eq=False)
class MatchLimits:
    """Limits on each of m values, and on K nodes above them.

    values  : f_v, above 0 and at most 1; nodes : f_N, the same
    parents : (K,) int64, the node with a limit above each, -1 for none; each stands behind those below it
    above   : (m,) int64, the lowest such node above each value, -1 for none
    labels  : of the nodes
    """

    values: tuple[Fraction, ...]
    nodes: tuple[Fraction, ...]
    parents: Int64Array
    above: Int64Array
    labels: tuple[str, ...]

    @cached_property
    def members(self) -> BoolArray:
        """(K, m) bool: which values stand under each node."""
        held = np.zeros((len(self.nodes), len(self.values)), dtype=np.bool_)
        under = np.flatnonzero(self.above >= 0)
        held[self.above[under], under] = True
        for k, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                held[parent] |= held[k]
        return held

    def records(self, counts: Int64Array) -> Int64Array:
        """(m + K,) int64: records of each value and under each node, from (m,) counts."""
        return np.concatenate([counts, self.members @ counts])

    def allowed(self, mu: int) -> Int64Array:
        """(m + K,) int64: floor(f mu), how many of mu buckets may hold a value, or any value under a node."""
        top, bottom = self._fractions
        if len(top) and int(top.max()) * mu >= _SAFE:
            top, bottom = top.astype(object), bottom.astype(object)
        return np.asarray(top * mu // bottom, dtype=np.int64)

    def eligible(self, counts: Int64Array) -> BoolArray:
        """(m + K,) bool: of which sets so few records are here that some pools keep their limit. counts : (m,) int64."""
        return np.asarray(self.records(counts) <= self.allowed(int(counts.sum())))

    def held_by(self, buckets: MatchBuckets) -> Int64Array:
        """(m + K,) int64: |B_S|, how many buckets hold the value, or any value under the node."""
        under = [len(np.unique(buckets.bucket[member[buckets.value]])) for member in self.members]
        return np.concatenate([buckets.held_by, np.array(under, dtype=np.int64)])

    def kept_by(self, pools: Sequence[MatchBuckets]) -> bool:
        """Whether every pool keeps every limit."""
        return all(bool((self.held_by(pool) <= self.allowed(pool.mu)).all()) for pool in pools)

    @cached_property
    def matches_needed(self) -> Int64Array:
        """(m + K,) int64: ceil(1 / f), the fewest matches of which one may be of the set (or a number above all)."""
        needed = [min(ceil_over(1, f), _SAFE) for f in (*self.values, *self.nodes)]
        return np.array(needed, dtype=np.int64)

    def of_values(self, chosen: Int64Array) -> MatchLimits:
        """The same of some of the values, and of one more without a limit and under no node, behind them. chosen : (k,) int64."""
        values = (*(self.values[v] for v in chosen.tolist()), Fraction(1))
        return MatchLimits(values, self.nodes, self.parents, np.append(self.above[chosen], -1), self.labels)

    @cached_property
    def _fractions(self) -> tuple[Any, Any]:
        every = (*self.values, *self.nodes)
        large = any(f.numerator >= _SAFE or f.denominator >= _SAFE for f in every)
        dtype: Any = object if large else np.int64
        return np.array([f.numerator for f in every], dtype), np.array([f.denominator for f in every], dtype)


def match_limits(
    values: Sequence[str | None],
    bounds: Sequence[Fraction],
    own: Mapping[str, Fraction],
    hierarchy: Hierarchy | None,
) -> MatchLimits:
    """The limits on a table's values, each once, and on those nodes above them that have a threshold.

    bounds : of every value, what holds of it anyway; own : {value or node: its threshold}, which is kept beside

    Raises SpecError for a value that is no leaf of the hierarchy, but for None, a missing one.
    """
    stricter = [f if v is None else min(f, own.get(v, f)) for v, f in zip(values, bounds, strict=True)]
    if hierarchy is None:
        nobody = np.zeros(0, dtype=np.int64)
        return MatchLimits(tuple(stricter), (), nobody, np.full(len(stricter), -1, dtype=np.int64), ())
    tree = value_tree(values, hierarchy, own)
    limited = [k for k, label in enumerate(tree.labels) if label in own]
    parents, above = tree.only(limited)
    labels = tuple(tree.labels[k] for k in limited)
    return MatchLimits(tuple(stricter), tuple(own[label] for label in labels), parents, above, labels)
