"""What a SABRE task does with the records of its partition: form classes, and let none go whose true distance is too large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonlib.arrays import BoolArray, Codes, Float64Array, Int64Array
from anonlib.domains import Domain
from anonlib.errors import AnonlibError
from anonlib.kernels.classes.halving import Records, halved
from anonlib.kernels.classes.symmetric_classes import symmetric_classes
from anonlib.kernels.classes.take_out import approximate, exact
from anonlib.kernels.hilbert import hilbert_positions
from anonlib.keyed import Stream
from anonlib.privacy.class_requirements import Requirement
from anonlib.privacy.ec_sizes import EcSizeTree
from anonlib.privacy.sub_buckets import JointValues, SubBuckets

CELLS = 1 << 22
"""Counts (classes x sensitive values) held at once: 32 MB."""
BROKEN = (
    "an equivalence class does not keep what was asked of it; nothing is published. Did the input change while it was read? Publish from a "
    "table that nobody writes to, e.g. a snapshot"
)


@dataclass(frozen=True, eq=False)
class TakeOut:
    """SABRE's own classes: the tree of sizes is gone on with inside the partition, and takeOut fills each leaf.

    bucket_of : (m,) the bucket of each (first) sensitive code; sizes : how many values each sensitive attribute has
    neighbours : "approximate" (along the Hilbert curve) or "exact"
    requirement : over counts of all sensitive attributes side by side; classes that do not keep it are merged with their neighbours
    """

    domains: tuple[Domain, ...]
    sizes: tuple[int, ...]
    bucket_of: Int64Array
    tree: EcSizeTree
    neighbours: str
    requirement: Requirement
    key: bytes

    PURPOSE = "sabre: the records that classes start from"

    def __call__(
        self, columns: Sequence[Codes], sensitive: Sequence[Int64Array], nodes: Int64Array, partition: int
    ) -> Int64Array:
        """(n,) int64 classes, numbered without a hole. nodes : (n,) int64, the record's node of the tree; records of one tree node are
        one subtree (several when partitions were merged)."""
        axes = scaled(columns, self.domains)
        curve = hilbert_positions(columns, self.domains)
        bucket = self.bucket_of[sensitive[0]]
        classes, number = np.empty(len(bucket), dtype=np.int64), 0
        for place, node in enumerate(np.unique(nodes).tolist()):
            members = np.flatnonzero(nodes == node)
            seeds = Stream(self.key, self.PURPOSE, partition, place).permutation(len(members))
            own = self._subtree(axes[members], curve[members], bucket[members], node, seeds)
            classes[members] = number + own
            number += int(own.max()) + 1
        return merged_until_kept(classes, curve, sensitive, self.sizes, self.requirement)

    def _subtree(
        self, axes: Float64Array, curve: Int64Array, bucket: Int64Array, node: int, seeds: Int64Array
    ) -> Int64Array:
        counts = self.tree.counts[node]
        held = np.bincount(bucket, minlength=len(counts))
        times = max(1, int(held.sum() // max(1, counts.sum())))
        if not np.array_equal(held, times * counts):
            raise AnonlibError("a partition does not hold the records that the tree of class sizes gives it")
        sizes = [self.tree.counts[leaf].tolist() for _ in range(times) for leaf in self.tree.leaves(node)]
        if self.neighbours == "exact":
            return exact(axes, bucket, sizes, seeds)
        return approximate(curve.tolist(), bucket, sizes, seeds)


@dataclass(frozen=True, eq=False)
class Halving:
    """Classes by splitting the partition on, while both halves keep the promise and loss falls (`anonlib.kernels.classes.halving`).

    position_of  : (m,) where each code of the first sensitive attribute stands in the order of its ground distance
    requirements : what to split by, the strictest first, the last one what is asked: splits are made by each in turn. Holding a little of
                   t back until no more can be split makes for more and smaller classes.
    """

    domains: tuple[Domain, ...]
    sizes: tuple[int, ...]
    position_of: Int64Array
    requirements: tuple[Requirement, ...]
    k: int

    def __call__(
        self, columns: Sequence[Codes], sensitive: Sequence[Int64Array], nodes: Int64Array, partition: int
    ) -> Int64Array:
        """(n,) int64 classes, numbered without a hole. Raises AnonlibError for a partition that does not keep the promise as a whole."""
        curve = hilbert_positions(columns, self.domains)
        ties = np.empty(len(curve), dtype=np.int64)
        ties[np.argsort(curve, kind="stable")] = np.arange(len(curve))
        records = Records(columns, self.domains, sensitive, self.sizes, self.position_of[sensitive[0]], ties)
        classes = np.zeros(len(curve), dtype=np.int64)
        for requirement in self.requirements:
            classes = halved(records, classes, requirement, self.k)
        refuse_broken(classes, sensitive, self.sizes, self.requirements[-1])
        if np.bincount(classes).min() < self.k:
            raise AnonlibError(BROKEN)
        return classes


@dataclass(frozen=True, eq=False)
class Symmetric:
    """Classes that take the same number of records of every sub-bucket and treat all sub-buckets alike (`symmetric_classes`).

    joint        : the sensitive values, or their combinations; sub_buckets : which of them share a sub-bucket
    least        : at least so many records of each sub-bucket in a class
    located      : whether nodes say the sub-bucket of each record (0 for the rest, else its number + 1), as they must where the partition
                   is not the whole table; else sub-buckets are drawn here, for each value by itself
    requirement  : over counts of all sensitive attributes side by side; kept by construction, and checked
    """

    domains: tuple[Domain, ...]
    joint: JointValues
    sub_buckets: SubBuckets
    least: int
    located: bool
    requirement: Requirement
    k: int
    key: bytes

    DEAL = "sabre: which records of a value go to which sub-bucket"
    NOISE = "sabre: noise between records of equal value"

    def __call__(
        self, columns: Sequence[Codes], sensitive: Sequence[Int64Array], nodes: Int64Array, partition: int
    ) -> Int64Array:
        """(n,) int64 classes, numbered without a hole. Raises AnonlibError for records that are not those the counts foretold."""
        bucket = nodes - 1 if self.located else self._drawn(sensitive)
        noise = Stream(self.key, self.NOISE, partition).permutation(len(bucket))
        dealt = np.flatnonzero(bucket != SubBuckets.REST)
        classes = np.zeros(len(bucket), dtype=np.int64)
        if dealt.size:
            held = np.unique(bucket[dealt], return_counts=True)[1]
            if held.min() != held.max() or len(held) != self.sub_buckets.number:
                raise AnonlibError(BROKEN)
            own = symmetric_classes([c[dealt] for c in columns], self.domains, bucket[dealt], noise[dealt], self.least)
            classes[dealt] = own + (1 if len(dealt) < len(bucket) else 0)
        refuse_broken(classes, sensitive, self.joint.sizes, self.requirement)
        if np.bincount(classes).min() < self.k:
            raise AnonlibError(BROKEN)
        return classes

    def _drawn(self, sensitive: Sequence[Int64Array]) -> Int64Array:
        """(n,) int64, the sub-bucket of each record: the records of a value in a random order, whatever their quasi-identifiers."""
        value = self.joint.number(sensitive)
        if not np.array_equal(np.bincount(value[value >= 0], minlength=len(self.joint.counts)), self.joint.counts):
            raise AnonlibError(BROKEN)
        order = Stream(self.key, self.DEAL).permutation(len(value))
        order = order[np.argsort(value[order], kind="stable")]
        slot = np.empty(len(value), dtype=np.int64)
        slot[order] = np.arange(len(value)) - np.searchsorted(value[order], value[order])
        return self.sub_buckets.of(value, slot)


def scaled(columns: Sequence[Codes], domains: Sequence[Domain]) -> Float64Array:
    """(n, d) float64: each quasi-identifier as an axis from 0 to 1; a categorical one by the order of its codes (leaves)."""
    axes = np.empty((len(columns[0]), len(columns)), dtype=np.float64)
    for i, (column, domain) in enumerate(zip(columns, domains, strict=True)):
        axes[:, i] = domain.share(column)
    return axes


def class_counts(classes: Int64Array, sensitive: Sequence[Int64Array], sizes: Sequence[int], number: int) -> Int64Array:
    """(number, sum of sizes) int64: how many records of each class have each sensitive value, attribute after attribute.

    classes : (n,) int64 in [0, number); sensitive : per attribute (n,) int64 codes; sizes : how many values each attribute has
    """
    parts = [
        np.bincount(classes * size + codes, minlength=number * size).reshape(number, size)
        for codes, size in zip(sensitive, sizes, strict=True)
    ]
    return np.concatenate(parts, axis=1)


def broken_classes(
    classes: Int64Array, sensitive: Sequence[Int64Array], sizes: Sequence[int], requirement: Requirement
) -> Int64Array:
    """The classes that do not keep the requirement, (b,) int64 ascending, by their true counts.

    As `class_counts`; at most `CELLS` counts are held at once. O(n log n + classes x values).
    """
    number, step = int(classes.max(initial=-1)) + 1, max(1, CELLS // sum(sizes))
    order = np.argsort(classes, kind="stable")
    bounds = np.searchsorted(classes[order], np.arange(0, number + step, step))
    broken = []
    for part in range(len(bounds) - 1):
        records, first = order[bounds[part] : bounds[part + 1]], part * step
        classes_of_part = min(step, number - first)
        counts = class_counts(classes[records] - first, [codes[records] for codes in sensitive], sizes, classes_of_part)
        broken.append(first + np.flatnonzero(~requirement.holds(counts)))
    return np.concatenate(broken) if broken else np.zeros(0, dtype=np.int64)


def refuse_broken(
    classes: Int64Array, sensitive: Sequence[Int64Array], sizes: Sequence[int], requirement: Requirement
) -> None:
    """Raises AnonlibError if any class does not keep the requirement."""
    if broken_classes(classes, sensitive, sizes, requirement).size:
        raise AnonlibError(BROKEN)


def merged_until_kept(
    classes: Int64Array,
    curve: Int64Array,
    sensitive: Sequence[Int64Array],
    sizes: Sequence[int],
    requirement: Requirement,
) -> Int64Array:
    """Merge classes with their neighbours along the curve until each keeps the requirement; with one sensitive attribute none has to.

    Distances never rise in a merge of two classes beyond the larger of the two, so what the classes keep already they still keep.
    In rounds: every class that is broken takes the next one along the curve (the last one the one before), so that a run of broken
    classes halves in number; at most log2 of their number of rounds.
    Raises AnonlibError when even all together do not keep it.
    """
    while True:
        broken = broken_classes(classes, sensitive, sizes, requirement)
        number = int(classes.max(initial=-1)) + 1
        if not broken.size:
            return classes
        if number == 1:
            raise AnonlibError(BROKEN)
        middle = np.bincount(classes, curve.astype(np.float64), minlength=number) / np.bincount(classes)
        order = np.argsort(middle, kind="stable")
        bad = np.zeros(number, dtype=bool)
        bad[broken] = True
        group = np.empty(number, dtype=np.int64)
        group[order] = np.cumsum(~_joins(bad[order].tolist())) - 1
        classes = group[classes]


def _joins(bad: list[bool]) -> BoolArray:
    """Which classes join the one before: each broken one takes the next that is not yet in a pair, the last one the one before."""
    joins = np.zeros(len(bad), dtype=bool)
    at = 0
    while at < len(bad):
        if bad[at] and at + 1 < len(bad):
            joins[at + 1] = True
            at += 1
        elif bad[at]:
            joins[at] = True
        at += 1
    return joins
