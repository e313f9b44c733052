"""SABRE: publish every record, in equivalence classes whose sensitive values are spread as in the whole table up to t.

Source: SABRE (sections 4.2 to 4.4); the default is ours. The walk, for n records, m sensitive values:

    counts        one pass for each sensitive column; m values reach the driver
    domains       at most two passes; values of categorical attributes reach the driver

the default: what a class holds follows from counts alone, which records it takes from quasi-identifiers alone
    sub-buckets   driver, from counts alone                                                     (`anonlib.methods.sabre_sub_buckets`)
    partitions    only above `partition_size`: two range shuffles (sorts in one task up to 500,000 records), staged; equal runs of every
                  sub-bucket along the Hilbert curve
    classes       one shuffle of codes; a class takes the same number of records of every sub-bucket

`refine: true`, for comparisons: true distances decide with quasi-identifiers
    partitions    only above `partition_size`: a k-d tree over the quasi-identifiers, subtrees merged until each can be a class
    classes       one shuffle of codes; a partition is halved on while both halves keep their true distance and loss falls

as published (`neighbours`, or `refine: false`), for comparisons:
    buckets       driver, from counts alone                                             (functions bucketCat, bucketNum)
    class sizes   driver, from counts alone; b + 1 nodes a level, no list of classes            (Theorem 4, function ECSize)
    partitions    only above `partition_size`: a range shuffle along the Hilbert curve within each bucket, staged; exact ranks cut it
                  so that every partition holds a tree node's numbers of each bucket
    classes       one shuffle of codes; takeOut fills the classes of the tree

    microdata     one shuffle of what is published, into an order that says nothing

Where the quasi-identifiers cannot cut the table finely enough (too few combinations, or t too tight for any region), the refined way takes
its partitions from the published one. Every class's true distance is checked before it leaves its task.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.arrays import Codes, Int64Array
from anonlib.domains import Domain
from anonlib.engine import curve_ranks
from anonlib.engine.microdata import Microdata
from anonlib.engine.partitions import in_one_piece, partition_counts, renumbered
from anonlib.engine.relational import DataFrame
from anonlib.engine.statistics import SensitiveStatistics, sensitive_statistics
from anonlib.engine.tables import types
from anonlib.exact import text
from anonlib.kernels.classes.equivalence_classes import Halving, Symmetric, TakeOut
from anonlib.kernels.hilbert import hilbert_positions
from anonlib.keyed import Stream
from anonlib.methods import boxed
from anonlib.methods import sabre_sub_buckets as sub_buckets
from anonlib.methods.boxed import Coded
from anonlib.methods.class_promises import ground_distance, guarantee_part
from anonlib.methods.recipe import Draft, Run, Say
from anonlib.privacy.class_requirements import KAnonymity, Requirement, all_of
from anonlib.privacy.ec_sizes import EcSizeTree, Partitions
from anonlib.privacy.sub_buckets import JointValues
from anonlib.privacy.t_closeness import SeveralAttributes, TCloseness, guarantee_words
from anonlib.release.manifest import GuaranteePart, SizePart, SolverPart
from anonlib.solvers.classes.ec_size_tree import choose, refuse_few
from anonlib.solvers.classes.sabre_buckets import BucketPartition
from anonlib.solvers.classes.sub_buckets import Packing
from anonlib.solvers.matching.match_partitions import merged_runs
from anonlib.spec.methods.sabre import Sabre
from anonlib.words import CLOSENESS, HOW_CLASSES_CAME

ORDER = "sabre: order of the records of a partition"
NUMBERS = "sabre: numbers of the classes of a partition"
SALT = "sabre: order of records at one place of the curve"
FIRST = Fraction(9, 10)
"""The share of t that refined classes are split by at first; measured: 0.9, then 1, loses least over tables, distances and t."""
TOO_LARGE = 4
"""A partition of more than so many times the wanted size is too much for a task: the table is then cut by exact ranks."""


@dataclass(frozen=True)
class Asked:
    """What is asked of every class: t of each sensitive column, and k. One statistics and one closeness a column, in the spec's order."""

    statistics: tuple[SensitiveStatistics, ...]
    closeness: tuple[TCloseness, ...]
    k: int

    @property
    def requirement(self) -> Requirement:
        """Over counts of all sensitive columns side by side, where a record is counted once a column."""
        return all_of([KAnonymity(self.k * len(self.closeness)), together(self.closeness)])

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each sensitive column has, in the order of `statistics`."""
        return tuple(each.counts.m for each in self.statistics)

    @property
    def n(self) -> int:
        return self.statistics[0].counts.n


def together(closeness: Sequence[TCloseness]) -> Requirement:
    """The closeness of all sensitive columns, over counts of all of them side by side."""
    return closeness[0] if len(closeness) == 1 else SeveralAttributes(tuple(closeness))


def halving(domains: tuple[Domain, ...], closeness: Sequence[TCloseness], k: int) -> Halving:
    """The kernel of refined classes: a partition is halved on while all sensitive columns stay close."""
    first = together([replace(each, t=each.t * FIRST) for each in closeness])
    sizes = tuple(each.distance.m for each in closeness)
    return Halving(domains, sizes, closeness[0].distance.positions, (first, together(closeness)), k)


def symmetric(
    domains: tuple[Domain, ...],
    closeness: Sequence[TCloseness],
    joint: JointValues,
    packing: Packing,
    k: int,
    key: bytes,
) -> Symmetric:
    """The kernel of the default, for a table in one piece."""
    return Symmetric(domains, joint, packing.sub_buckets, packing.least, False, together(closeness), k, key)


def asked(table: Microdata, wanted: Sabre, say: Say) -> Asked:
    """Count the sensitive columns and state what is asked. Raises SpecError for values that the distance has no place for."""
    statistics, closeness = [], []
    for name, column in zip(table.sensitive_columns, table.columns.sensitive, strict=True):
        say(f"counting the values of {name}")
        counted = sensitive_statistics(table.frame, name, table.keep, table.refuse)
        statistics.append(counted)
        closeness.append(TCloseness(ground_distance(column, counted.counts), counted.counts.counts, wanted.t))
    return Asked(tuple(statistics), tuple(closeness), wanted.k)


def sabre(table: Microdata, wanted: Sabre, run: Run) -> Draft:
    """Publish `table` in t-close classes."""
    started = time.monotonic()
    promised = asked(table, wanted, run.say)
    refuse_few(promised.n, wanted.k)
    own = choose(promised.closeness[0], wanted.k) if wanted.way == "published" else None
    coded = boxed.read_coded(table, promised.statistics, True, run.say)
    if wanted.way == "symmetric":
        way = _symmetric(coded, promised, wanted, run)
    elif own is None:
        way = _refined(coded, promised, wanted, run)
    else:
        way = _published(coded, promised, wanted, *own, run)
    solver = _solver(wanted, way, started)
    run.say(f"forming classes of {promised.n:,} records")
    classes = boxed.Renumbered(way.classes, run.key, NUMBERS)
    boxes = boxed.over_classes(coded, way.partitions, classes, ORDER, run.key, way.held)
    return boxed.publish_classes(coded, boxes, _guarantee(table, promised, wanted), solver, run)


@dataclass(frozen=True)
class _Way:
    """A way to classes: the located records, the kernel of a partition, what the driver chose for it, and how many records each
    partition has, about (None where nothing depends on it)."""

    partitions: DataFrame
    classes: Symmetric | Halving | TakeOut
    details: dict[str, Any]
    setting: tuple[SizePart, ...] = ()
    held: Int64Array | None = None


def _symmetric(coded: Coded, promised: Asked, wanted: Sabre, run: Run) -> _Way:
    joint, packing = sub_buckets.packed(coded.frame, promised.closeness, wanted.k, wanted.partition_size)
    partitions = sub_buckets.cut_by_rank(coded, joint, packing, wanted.partition_size, run)
    classes = symmetric(coded.domains, promised.closeness, joint, packing, wanted.k, run.key)
    located = not sub_buckets.one_task(packing, wanted.partition_size)
    number = sub_buckets.partitions(packing, wanted.partition_size)
    held = np.full(number, coded.n // number)
    return _Way(partitions, replace(classes, located=located), packing_details(packing), held=held)


def _refined(coded: Coded, promised: Asked, wanted: Sabre, run: Run) -> _Way:
    size = wanted.partition_size if wanted.partition_size == "all" else max(int(wanted.partition_size), wanted.k)
    cut = boxed.cut_by_tree(coded, size, promised.requirement, run.say)
    partitions = cut.records
    if cut.largest > TOO_LARGE * cut.least:
        run.say("the quasi-identifiers do not cut the table finely enough")
        partitions = _cut_by_rank(coded, promised, wanted, *choose(promised.closeness[0], wanted.k, refine=True), run)
    return _Way(partitions, halving(coded.domains, promised.closeness, wanted.k), {})


def _published(
    coded: Coded, promised: Asked, wanted: Sabre, buckets: BucketPartition, tree: EcSizeTree, run: Run
) -> _Way:
    partitions = _cut_by_rank(coded, promised, wanted, buckets, tree, run)
    neighbours, requirement = wanted.neighbours or "approximate", promised.requirement
    classes = TakeOut(coded.domains, coded.sizes, buckets.bucket_of, tree, neighbours, requirement, run.key)
    setting: tuple[SizePart, ...] = ()
    if len(coded.sizes) == 1:  # the sizes of all classes are known beforehand
        setting = tuple(SizePart(size=size, number=number) for size, number in tree.size_histogram().items())
    return _Way(partitions, classes, {"buckets": buckets.b, "bound": float(buckets.bound)}, setting)


def _cut_by_rank(
    coded: Coded, promised: Asked, wanted: Sabre, buckets: BucketPartition, tree: EcSizeTree, run: Run
) -> DataFrame:
    """The records with the node of the tree that each belongs to; partitions hold exactly their node's numbers of every bucket."""
    if wanted.partition_size == "all" or promised.n <= int(wanted.partition_size):
        return in_one_piece(coded.frame)
    partitions = Partitions(tree, int(wanted.partition_size))
    run.say(
        f"ordering the records of {buckets.b:,} buckets along the Hilbert curve, for {partitions.number:,} partitions"
    )
    salt = int(Stream(run.key, SALT).below(1 << 62, 1)[0])
    on_curve = curve_ranks.on_curve(coded.frame, _OnCurve(coded.domains, buckets.bucket_of))
    staged = run.stage(curve_ranks.SEATED, curve_ranks.seated(on_curve, salt, coded.input_rows))
    records = curve_ranks.by_rank(staged, buckets.sizes, partitions.locate)
    if len(coded.sizes) == 1:
        return records
    counts = partition_counts(records, partitions.number, coded.sizes)
    requirement = promised.requirement
    merged = merged_runs(counts, lambda row: bool(requirement.holds(row[None, :])[0]))
    run.say(f"{int(merged.max()) + 1:,} partitions, after merging those that are not t-close in every sensitive column")
    return renumbered(records, merged)


@dataclass(frozen=True)
class _OnCurve:
    domains: tuple[Domain, ...]
    bucket_of: Int64Array

    def __call__(self, columns: list[Codes], sensitive: Int64Array) -> tuple[Int64Array, Int64Array]:
        return self.bucket_of[sensitive], hilbert_positions(columns, self.domains)


def _guarantee(table: Microdata, promised: Asked, wanted: Sabre) -> GuaranteePart:
    """The promise as the manifest states it; further sensitive columns under `also`."""
    kinds, how, parts = types(table.frame), HOW_CLASSES_CAME.get(wanted.way), []
    for i, (name, column) in enumerate(zip(table.sensitive_columns, table.columns.sensitive, strict=True)):
        closeness, counts = promised.closeness[i], promised.statistics[i].counts
        words = guarantee_words(name, closeness, promised.k if i == 0 else 1, how)
        asked = {"t": text(closeness.t), "k": str(promised.k)}
        parts.append(guarantee_part(CLOSENESS, words, name, kinds[name], column, counts, asked, closeness))
    return parts[0].model_copy(update={"also": parts[1:]})


def packing_details(packing: Packing) -> dict[str, int | float]:
    """For the manifest: which sub-buckets were chosen, from counts alone, and the largest distance a class may come to."""
    parts = packing.sub_buckets
    return {
        "sub_buckets": parts.number,
        "of_each": packing.least,
        "rest": int(parts.rest.sum()),
        "worst_distance": float(max(packing.worst)),
    }


def _solver(wanted: Sabre, way: _Way, started: float) -> SolverPart:
    name = {
        "symmetric": "symmetric sub-buckets",
        "refined": "halving",
        "published": f"sabre, {wanted.neighbours or 'approximate'} neighbours",
    }[wanted.way]
    return SolverPart(
        name=name,
        status="heuristic",
        setting=list(way.setting),
        unit="classes",
        seconds=round(time.monotonic() - started, 3),
        details=way.details,
    )
