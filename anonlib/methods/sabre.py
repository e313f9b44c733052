"""SABRE: publish every record, in equivalence classes whose sensitive values are spread as in the whole table up to t.

Source: SABRE (sections 4.2 to 4.4); the default is ours. The walk, for n records, m sensitive values:

    counts        one pass for each sensitive column; m values reach the driver
    domains       at most two passes; values of categorical attributes reach the driver

the default: what a class holds follows from counts alone, which records it takes from quasi-identifiers alone
    sub-buckets   driver, from counts alone                                                     (`anonlib.methods.sabre_sub_buckets`)
    partitions    only above `partition_size`: two range shuffles, staged; equal runs of every sub-bucket along the Hilbert curve
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
from anonlib.engine import cut_by_quasi_identifiers as cut
from anonlib.engine.arrange import files
from anonlib.engine.microdata import Microdata
from anonlib.engine.quasi_identifiers import QuasiIdentifiers, box_schema, decode, domain_statistics, encode, mixed
from anonlib.engine.relational import with_columns
from anonlib.engine.statistics import SensitiveStatistics, sensitive_statistics
from anonlib.engine.tables import types
from anonlib.exact import text
from anonlib.kernels.boxes import boxes_of_classes
from anonlib.kernels.classes.equivalence_classes import Halving, Symmetric, TakeOut
from anonlib.kernels.hilbert import hilbert_positions
from anonlib.keyed import Stream
from anonlib.methods import sabre_sub_buckets as sub_buckets
from anonlib.methods.baselines.classes import CLASS_BITS, COMBINATIONS, LEAF_CELLS, box_columns, rows
from anonlib.methods.recipe import Draft, Say, Stage
from anonlib.privacy.class_requirements import KAnonymity, Requirement, all_of
from anonlib.privacy.ec_sizes import EcSizeTree, Partitions
from anonlib.privacy.sub_buckets import JointValues
from anonlib.privacy.t_closeness import GroundDistance, SeveralAttributes, TCloseness, guarantee_words
from anonlib.release import generalized
from anonlib.release.generalized import MICRODATA
from anonlib.release.manifest import GuaranteePart, SizePart, SolverPart, ValuePart
from anonlib.solvers.classes.ec_size_tree import choose, refuse_few
from anonlib.solvers.classes.kd_cut import kd_tree
from anonlib.solvers.classes.sabre_buckets import BucketPartition
from anonlib.solvers.classes.sub_buckets import Packing
from anonlib.solvers.matching.match_partitions import merged_runs
from anonlib.spec.layouts import EC_ID
from anonlib.spec.sabre import Sabre
from anonlib.words import HOW_CLASSES_CAME

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
        """m of each sensitive column."""
        return tuple(each.counts.m for each in self.statistics)

    @property
    def n(self) -> int:
        return self.statistics[0].counts.n


def together(closeness: Sequence[TCloseness]) -> Requirement:
    """The closeness of all sensitive columns, over counts of all of them side by side."""
    return closeness[0] if len(closeness) == 1 else SeveralAttributes(tuple(closeness))


def halving(domains: tuple[Domain, ...], closeness: Sequence[TCloseness], k: int) -> Halving:
    """The kernel of refined classes."""
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
        found = sensitive_statistics(table.frame, name, table.keep, table.refuse)
        if column.type == "numeric":
            distance = GroundDistance.ordered(found.counts.values)
        elif column.hierarchy is not None:
            distance = GroundDistance.hierarchical(column.hierarchy, found.counts.values)
        else:
            distance = GroundDistance.flat(found.counts.m)
        statistics.append(found)
        closeness.append(TCloseness(distance, found.counts.counts, wanted.t))
    return Asked(tuple(statistics), tuple(closeness), wanted.k)


@dataclass(frozen=True)
class Coded:
    """The table as codes: q0, q1, ..., s0, s1, ... of the records that are published."""

    table: Microdata
    quasi_identifiers: QuasiIdentifiers
    frame: Any

    @property
    def domains(self) -> tuple[Domain, ...]:
        return self.quasi_identifiers.domains


def read_coded(table: Microdata, made: Asked, say: Say) -> Coded:
    """The table's domains and codes. Raises SpecError for columns that cannot be generalized, or whose published names collide."""
    say("reading the domains of the quasi-identifiers")
    found = domain_statistics(table)
    kinds = types(table.frame)
    generalized.check_names(found, {name: kinds[name] for name in table.sensitive_columns}, classes=True)
    texts = {name: each.counts.values for name, each in zip(table.sensitive_columns, made.statistics, strict=True)}
    return Coded(table, found, encode(table.published, found, texts))


def sabre(table: Microdata, wanted: Sabre, key: bytes, stage: Stage, say: Say) -> Draft:
    """Publish `table` in t-close classes."""
    started = time.monotonic()
    made = asked(table, wanted, say)
    refuse_few(made.n, wanted.k)
    own = choose(made.closeness[0], wanted.k) if wanted.way == "published" else None
    coded = read_coded(table, made, say)
    kernel: Any
    if wanted.way == "symmetric":
        joint, packing = sub_buckets.packed(coded.frame, made.closeness, wanted.k, wanted.partition_size)
        size = wanted.partition_size
        cells = sub_buckets.cut_by_rank(coded.frame, coded.domains, joint, packing, size, key, stage, say)
        kernel = symmetric(coded.domains, made.closeness, joint, packing, wanted.k, key)
        kernel = replace(kernel, located=not sub_buckets.in_one_piece(packing, size))
        solver = _solver(wanted, packing_details(packing), started)
    elif own is None:
        cells = _cut_by_quasi_identifiers(coded, made, wanted, say)
        if cells is None:
            cells = _cut_by_rank(
                coded, made, wanted, *choose(made.closeness[0], wanted.k, refine=True), key, stage, say
            )
        kernel = halving(coded.domains, made.closeness, wanted.k)
        solver = _solver(wanted, {}, started)
    else:
        buckets, tree = own
        cells = _cut_by_rank(coded, made, wanted, buckets, tree, key, stage, say)
        neighbours = wanted.neighbours or "approximate"
        kernel = TakeOut(coded.domains, made.sizes, buckets.bucket_of, tree, neighbours, made.requirement, key)
        solver = _solver(wanted, {"buckets": buckets.b, "bound": float(buckets.bound)}, started)
        if len(made.sizes) == 1:  # the sizes of all classes are known beforehand
            sizes = [SizePart(size=size, number=number) for size, number in tree.size_histogram().items()]
            solver = solver.model_copy(update={"setting": sizes})
    say(f"forming classes of {made.n:,} records")
    schema = box_schema(coded.quasi_identifiers, sensitive=len(made.sizes), more=f"{EC_ID} bigint")
    boxed = curve_ranks.over_partitions(cells, _Boxes(kernel, coded.domains, key), schema, key, ORDER)
    kinds = types(table.frame)
    texts = {
        name: (each.counts.values, kinds[name])
        for name, each in zip(table.sensitive_columns, made.statistics, strict=True)
    }
    frame = decode(boxed, coded.quasi_identifiers, texts, keep=(EC_ID,))
    published = stage(MICRODATA, mixed(frame, files(made.n), by=EC_ID))
    return Draft(
        layout="generalized",
        tables={MICRODATA: published},
        records=MICRODATA,
        roles={MICRODATA: generalized.roles(coded.quasi_identifiers, list(table.sensitive_columns), classes=True)},
        quasi_identifiers=generalized.parts(coded.quasi_identifiers),
        guarantee=_guarantee(table, made, wanted),
        rows=rows(made.statistics[0]),
        solver=solver,
        utility={},
        partitions=made.statistics[0].partitions,
    )


@dataclass(frozen=True)
class _Boxes:
    """The task: classes, numbered in an order that only the key knows, and their boxes."""

    classes: Symmetric | Halving | TakeOut
    domains: tuple[Domain, ...]
    key: bytes

    def __call__(
        self, columns: list[Codes], sensitive: list[Int64Array], nodes: Int64Array, partition: int
    ) -> dict[str, Any]:
        classes = self.classes(columns, sensitive, nodes, partition)
        numbers = Stream(self.key, NUMBERS, partition).permutation(int(classes.max()) + 1)
        found = box_columns(boxes_of_classes(columns, self.domains, classes), classes)
        found |= {f"s{i}": codes.astype(np.int32) for i, codes in enumerate(sensitive)}
        return found | {EC_ID: (partition << CLASS_BITS) + numbers[classes]}


def _cut_by_quasi_identifiers(coded: Coded, made: Asked, wanted: Sabre, say: Say) -> Any | None:
    """The records with their partition, cut by quasi-identifiers alone and merged until each partition can be a class; None if some
    partition stays too large for a task."""
    if wanted.partition_size == "all" or made.n < 2 * int(wanted.partition_size):
        return with_columns(coded.frame, {cut.CELL: "0L", "node": "0L"})
    say("cutting the table by its quasi-identifiers")
    one_in = cut.one_in(coded.frame, made.n, COMBINATIONS)
    columns, records = cut.combinations(coded.frame, 2 * COMBINATIONS, one_in)
    smallest = max(int(wanted.partition_size), wanted.k, made.n * sum(made.sizes) // LEAF_CELLS)
    tree = kd_tree(columns, coded.domains, records, max(1, smallest // one_in))
    leaves = cut.located(coded.frame, tree.leaf_of)
    counts = np.concatenate(_leaf_counts(leaves, tree.leaves, made.sizes), axis=1)
    partition = tree.merged(counts, made.requirement)
    held = np.bincount(partition, counts[:, : made.sizes[0]].sum(axis=1))
    if held.max() > TOO_LARGE * smallest:
        say("the quasi-identifiers do not cut the table finely enough")
        return None
    say(f"{len(held):,} partitions, after merging those of {tree.leaves:,} that cannot be classes by themselves")
    located = cut.located(coded.frame, _Merged(tree.leaf_of, partition))
    return with_columns(located, {"node": "0L"})


def _leaf_counts(leaves: Any, number: int, sizes: Sequence[int]) -> list[Int64Array]:
    """Per sensitive column, (leaves, m) int64 counts."""
    return [
        cut.cell_counts(with_columns(leaves, {"s0": f"s{i}"}) if i else leaves, number, m) for i, m in enumerate(sizes)
    ]


@dataclass(frozen=True)
class _Merged:
    leaf_of: Any
    partition: Int64Array

    def __call__(self, columns: list[Codes]) -> Int64Array:
        return np.asarray(self.partition[self.leaf_of(columns)], dtype=np.int64)


def _cut_by_rank(
    coded: Coded,
    made: Asked,
    wanted: Sabre,
    buckets: BucketPartition,
    tree: EcSizeTree,
    key: bytes,
    stage: Stage,
    say: Say,
) -> Any:
    """The records with the node of the tree that each belongs to; partitions hold exactly their node's numbers of every bucket."""
    if wanted.partition_size == "all" or made.n <= int(wanted.partition_size):
        return with_columns(coded.frame, {cut.CELL: "0L", "node": "0L"})
    partitions = Partitions(tree, int(wanted.partition_size))
    say(f"ordering the records of {buckets.b:,} buckets along the Hilbert curve, for {partitions.number:,} partitions")
    salt = int(Stream(key, SALT).below(1 << 62, 1)[0])
    on_curve = curve_ranks.on_curve(coded.frame, _OnCurve(coded.domains, buckets.bucket_of))
    staged = stage("seated", curve_ranks.seated(on_curve, salt))
    cells = curve_ranks.by_rank(staged, buckets.sizes, partitions.locate)
    if len(made.sizes) == 1:
        return cells
    counts = np.concatenate(_leaf_counts(cells, partitions.number, made.sizes), axis=1)
    requirement = made.requirement
    merged = merged_runs(counts, lambda run: bool(requirement.holds(run[None, :])[0]))
    say(f"{int(merged.max()) + 1:,} partitions, after merging those that are not t-close in every sensitive column")
    return curve_ranks.recalled(cells, merged)


@dataclass(frozen=True)
class _OnCurve:
    domains: tuple[Domain, ...]
    bucket_of: Int64Array

    def __call__(self, columns: list[Codes], sensitive: Int64Array) -> tuple[Int64Array, Int64Array]:
        return self.bucket_of[sensitive], hilbert_positions(columns, self.domains)


def _guarantee(table: Microdata, made: Asked, wanted: Sabre) -> GuaranteePart:
    """The promise as the manifest states it; further sensitive columns under `also`."""
    kinds = types(table.frame)
    parts = []
    for i, (name, column) in enumerate(zip(table.sensitive_columns, table.columns.sensitive, strict=True)):
        closeness, counts = made.closeness[i], made.statistics[i].counts
        distance = closeness.distance.kind
        parts.append(
            GuaranteePart(
                model="t-closeness",
                words=guarantee_words(name, closeness, made.k if i == 0 else 1, HOW_CLASSES_CAME.get(wanted.way)),
                sensitive=name,
                sensitive_type=kinds[name],
                values=[
                    ValuePart(value=value, count=int(counts.counts[code])) for code, value in enumerate(counts.values)
                ],
                asked=_numbers(closeness, made.k),
                distance=distance,
                hierarchy=column.hierarchy.rows if distance == "hierarchical" and column.hierarchy is not None else [],
            )
        )
    return parts[0].model_copy(update={"also": parts[1:]})


def _numbers(closeness: TCloseness, k: int) -> dict[str, str]:
    return {"t": text(closeness.t), "k": str(k)}


def packing_details(packing: Packing) -> dict[str, int | float]:
    """What the driver chose from counts alone."""
    parts = packing.sub_buckets
    return {
        "sub_buckets": parts.number,
        "of_each": packing.least,
        "rest": int(parts.rest.sum()),
        "worst_distance": float(max(packing.worst)),
    }


def _solver(wanted: Sabre, details: dict[str, Any], started: float) -> SolverPart:
    name = {
        "symmetric": "symmetric sub-buckets",
        "refined": "halving",
        "published": f"sabre, {wanted.neighbours or 'approximate'} neighbours",
    }[wanted.way]
    return SolverPart(
        name=name,
        status="heuristic",
        setting=[],
        unit="classes",
        seconds=round(time.monotonic() - started, 3),
        details=details,
    )
