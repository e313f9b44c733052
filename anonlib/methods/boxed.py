"""What the methods on the generalized layout share: read codes, cut them into partitions that keep a promise, run a kernel, publish boxes.

    coded         a pass for the sensitive counts, at most two for the domains; values of an attribute reach the driver, no record does
    partitions    tables above the partition size: a k-d tree from counts of combinations of quasi-identifiers (a bounded number of them
                  reach the driver; a pass over more than a million records says how many there are), a pass for the counts of each leaf,
                  and leaves that cannot keep the promise merged with their neighbours
    classes       one shuffle of codes, a kernel per partition; one shuffle of what is published, into an order that says nothing
    matches       the same; boxes and what the audit needs, and nobody may publish, staged together first

One sensitive column and several go the same way: counts of several stand side by side, and a record is counted once in each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anonlib.arrays import Codes, Int64Array
from anonlib.domains import Domain
from anonlib.engine.boxes import box_schema, box_types, decode
from anonlib.engine.codes import combinations, encode, one_in
from anonlib.engine.domains import QuasiIdentifiers, domain_statistics
from anonlib.engine.microdata import Microdata
from anonlib.engine.order import arranged, files
from anonlib.engine.partitions import PartitionKernel, in_one_piece, located, over_partitions, partition_counts
from anonlib.engine.relational import DataFrame, select
from anonlib.engine.statistics import SensitiveStatistics, sensitive_statistics
from anonlib.engine.tables import together, types
from anonlib.kernels.boxes import Box, Interval, boxes_of_classes
from anonlib.kernels.classes.equivalence_classes import refuse_broken
from anonlib.keyed import Stream
from anonlib.methods.recipe import Draft, Run, Say
from anonlib.privacy.class_requirements import Requirement
from anonlib.release import generalized
from anonlib.release.generalized import MATCHES, MICRODATA
from anonlib.release.manifest import GuaranteePart, RowsPart, SolverPart
from anonlib.solvers.classes.kd_cut import KdTree, kd_tree
from anonlib.spec.layouts import EC_ID

Classes = Callable[[list[Codes], list[Int64Array], Int64Array, int], Int64Array]
"""(code columns, sensitive columns, nodes, partition) -> the class of each record, numbered without a hole; pickled."""
Matches = Callable[[list[Codes], Int64Array, int], dict[str, Any]]
"""(code columns, sensitive codes, partition) -> boxes (`box_columns`), s0, `EVIDENCE` and q0, q1, ..., a row a record; pickled."""

COMBINATIONS = 1_000_000
"""Combinations of quasi-identifiers that a cut is chosen from; above that, a share of them chosen by hash."""
LEAF_CELLS = 4_000_000
"""Leaves x sensitive values whose counts the driver takes: 32 MB."""
CLASS_BITS = 32
EVIDENCE = "partition bigint, record int, own int, dummy boolean, matches array<int>, assigned int"
OWN = ("own", "own1")
"""The columns of a record's own sensitive codes, of which `EVIDENCE` has the first."""


@dataclass(frozen=True)
class Coded:
    """A table read as codes.

    statistics : one a sensitive column, in the spec's order
    frame      : q0, q1, ..., s0, s1, ... of the records that are published
    """

    table: Microdata
    statistics: tuple[SensitiveStatistics, ...]
    quasi_identifiers: QuasiIdentifiers
    frame: DataFrame

    @property
    def domains(self) -> tuple[Domain, ...]:
        return self.quasi_identifiers.domains

    @property
    def n(self) -> int:
        return self.statistics[0].counts.n

    @property
    def input_rows(self) -> int:
        """The rows that are read to find the n records, those that the missing-value policy leaves out too."""
        return self.statistics[0].input_rows

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each sensitive column has, in the order of `statistics`."""
        return tuple(each.counts.m for each in self.statistics)

    @property
    def values(self) -> dict[str, tuple[Sequence[str | None], str]]:
        """{sensitive column: (its values as text in the order of their codes, its Spark type)}."""
        kinds = types(self.table.frame)
        names = self.table.sensitive_columns
        return {name: (each.counts.values, kinds[name]) for name, each in zip(names, self.statistics, strict=True)}


def count(table: Microdata, say: Say) -> SensitiveStatistics:
    """Pass 1: the values of the sensitive column."""
    say("counting the sensitive values")
    return sensitive_statistics(table.frame, table.sensitive, table.keep, table.refuse)


def read_coded(table: Microdata, statistics: Sequence[SensitiveStatistics], classes: bool, say: Say) -> Coded:
    """The table's domains and codes. Raises SpecError for columns that cannot be generalized, or whose published names collide.

    classes : whether the release tells equivalence classes
    """
    say("reading the domains of the quasi-identifiers")
    few = replace(table, frame=together(table.frame, statistics[0].input_rows))
    domains, kinds = domain_statistics(few), types(table.frame)
    generalized.check_names(domains, {name: kinds[name] for name in table.sensitive_columns}, classes)
    texts = {name: each.counts.values for name, each in zip(table.sensitive_columns, statistics, strict=True)}
    return Coded(table, tuple(statistics), domains, encode(few.published, domains, texts))


@dataclass(frozen=True)
class Cut:
    """The located records, how many partitions they are in, how many records the largest holds, and how many each was to hold at least."""

    records: DataFrame
    number: int
    largest: int
    least: int


def cut_by_tree(coded: Coded, size: int | str, requirement: Requirement, say: Say) -> Cut:
    """Partitions by quasi-identifiers alone, of `size` records or more, or one of "all".

    Each keeps `requirement`, over the counts of all sensitive columns side by side, if the table does.
    """
    if size == "all" or coded.n < 2 * int(size):
        return Cut(in_one_piece(coded.frame), 1, coded.n, coded.n)
    say("cutting the table by its quasi-identifiers")
    slots = one_in(coded.frame, coded.n, COMBINATIONS)
    columns, records = combinations(coded.frame, 2 * COMBINATIONS, slots)
    least = max(int(size), coded.n * sum(coded.sizes) // LEAF_CELLS)
    tree = kd_tree(columns, coded.domains, records, max(1, least // slots))
    counts = partition_counts(located(coded.frame, tree.leaf_of), tree.leaves, coded.sizes)
    partition = tree.merged(counts, requirement)
    held = np.bincount(partition, counts[:, : coded.sizes[0]].sum(axis=1))
    say(
        f"{len(held):,} partitions, after merging those of {tree.leaves:,} that could not keep the promise by themselves"
    )
    return Cut(located(coded.frame, _MergedLeaves(tree, partition)), len(held), int(held.max()), least)


@dataclass(frozen=True)
class _MergedLeaves:
    tree: KdTree
    partition: Int64Array

    def __call__(self, columns: list[Codes]) -> Int64Array:
        return np.asarray(self.partition[self.tree.leaf_of(columns)], dtype=np.int64)


def box_columns(boxes: Sequence[Box], of: Int64Array) -> dict[str, Any]:
    """The columns of `anonlib.engine.boxes.box_types` for records whose boxes are number `of`; sets as `Lists`."""
    columns: dict[str, Any] = {}
    for i, box in enumerate(boxes):
        if isinstance(box, Interval):
            columns |= {f"q{i}_lo": box.low[of], f"q{i}_hi": box.high[of]}
        else:
            columns[f"q{i}_set"] = box.lists().take(of)
    return columns


@dataclass(frozen=True)
class Checked:
    """`classes`, of which none leaves its task that does not keep `requirement`. sizes : m of each sensitive column."""

    classes: Classes
    sizes: tuple[int, ...]
    requirement: Requirement

    def __call__(
        self, columns: list[Codes], sensitive: list[Int64Array], nodes: Int64Array, partition: int
    ) -> Int64Array:
        number = self.classes(columns, sensitive, nodes, partition)
        refuse_broken(number, sensitive, self.sizes, self.requirement)
        return number


@dataclass(frozen=True)
class Renumbered:
    """`classes`, numbered in an order that only the key knows."""

    classes: Classes
    key: bytes
    purpose: str

    def __call__(
        self, columns: list[Codes], sensitive: list[Int64Array], nodes: Int64Array, partition: int
    ) -> Int64Array:
        number = self.classes(columns, sensitive, nodes, partition)
        return Stream(self.key, self.purpose, partition).permutation(int(number.max()) + 1)[number]


@dataclass(frozen=True)
class ClassBoxes:
    """The task: every record of a partition under the tight box of its class."""

    classes: Classes
    domains: tuple[Domain, ...]

    def __call__(
        self, columns: list[Codes], sensitive: list[Int64Array], nodes: Int64Array, partition: int
    ) -> dict[str, Any]:
        number = self.classes(columns, sensitive, nodes, partition)
        values = {f"s{i}": codes.astype(np.int32) for i, codes in enumerate(sensitive)}
        boxes = box_columns(boxes_of_classes(columns, self.domains, number), number)
        return boxes | values | {EC_ID: (partition << CLASS_BITS) + number}


def class_schema(coded: Coded) -> str:
    """DDL of what `over_classes` publishes: boxes in codes, sensitive codes, and the class of each record."""
    return box_schema(coded.quasi_identifiers, sensitive=len(coded.sizes), more=f"{EC_ID} bigint")


def over_classes(
    coded: Coded, partitions: DataFrame, classes: Classes, purpose: str, key: bytes, held: Int64Array | None = None
) -> DataFrame:
    """Every record under the tight box of its class, as codes. purpose : of the order in which a partition's records are given;
    held : records of each partition, as `over_partitions` takes them."""
    return over_partitions(partitions, ClassBoxes(classes, coded.domains), class_schema(coded), key, purpose, held)


def over_matches(
    coded: Coded,
    partitions: DataFrame,
    matches: PartitionKernel,
    purpose: str,
    key: bytes,
    held: Int64Array | None = None,
) -> DataFrame:
    """Every record under the box of its matches, as codes, and beside it the evidence: `EVIDENCE` and the record's own codes. purpose,
    held : as in `over_classes`.

    matches : boxes (`box_columns`), s0 and `EVIDENCE` (of two sensitive columns s1 and own1 too) and q0, q1, ..., a row a record
    """
    columns = len(coded.sizes)
    own = [f"{name} int" for name in OWN[1:columns]]
    own += [f"{name} {kind}" for name, kind in coded.frame.dtypes if name.startswith("q")]
    schema = box_schema(coded.quasi_identifiers, sensitive=columns, more=", ".join([EVIDENCE, *own]))
    return over_partitions(partitions, matches, schema, key, purpose, held)


@dataclass(frozen=True)
class OneSensitive:
    """`matches` of a table with one sensitive column, as a kernel of partitions."""

    matches: Matches

    def __call__(
        self, columns: list[Codes], sensitive: list[Int64Array], nodes: Int64Array, partition: int
    ) -> dict[str, Any]:
        return self.matches(columns, sensitive[0], partition)


def publish_classes(
    coded: Coded,
    boxed: DataFrame,
    guarantee: GuaranteePart,
    solver: SolverPart,
    run: Run,
    started: float | None = None,
) -> Draft:
    """Stage boxes of classes (`class_schema`) as the generalized layout.

    started : the monotonic time that the method began at, if its seconds are to count this too
    """
    frame = decode(boxed, coded.quasi_identifiers, coded.values, keep=(EC_ID,))
    published = run.stage(MICRODATA, arranged(frame, files(coded.n), by=EC_ID))
    solver = solver if started is None else _timed(solver, started)
    return _draft(coded, published, True, guarantee, rows(coded.statistics[0]), solver, {})


def publish_matches(
    coded: Coded,
    working: DataFrame,
    guarantee: GuaranteePart,
    rows: RowsPart,
    solver: SolverPart,
    started: float,
    run: Run,
) -> Draft:
    """Stage the boxes of `over_matches`, which must be staged already, as the generalized layout, and give the rest to the audit.

    started : the monotonic time that the method began at; its seconds count this too
    """
    run.say("writing the records")
    own = {f"s{i}": name for i, name in enumerate(OWN[: len(coded.sizes)])}
    boxed = working.select(*box_types(coded.quasi_identifiers), *own)
    published = run.stage(MICRODATA, arranged(decode(boxed, coded.quasi_identifiers, coded.values), files(coded.n)))
    codes = [f"q{i}" for i in range(len(coded.domains))]
    same = {name: name for name in ("partition", "record", *codes, "dummy", "matches", "assigned")}
    evidence = {MATCHES: select(working, same | own)}
    return _draft(coded, published, False, guarantee, rows, _timed(solver, started), evidence)


def _timed(solver: SolverPart, started: float) -> SolverPart:
    return solver.model_copy(update={"seconds": round(time.monotonic() - started, 3)})


def _draft(
    coded: Coded,
    published: DataFrame,
    classes: bool,
    guarantee: GuaranteePart,
    rows: RowsPart,
    solver: SolverPart,
    evidence: dict[str, DataFrame],
) -> Draft:
    sensitive = list(coded.table.sensitive_columns)
    return Draft(
        layout="generalized",
        tables={MICRODATA: published},
        records=MICRODATA,
        roles={MICRODATA: generalized.roles(coded.quasi_identifiers, sensitive, classes=classes)},
        quasi_identifiers=generalized.parts(coded.quasi_identifiers),
        guarantee=guarantee,
        rows=rows,
        solver=solver,
        utility={},
        partitions=coded.statistics[0].partitions,
        evidence=evidence,
    )


def rows(statistics: SensitiveStatistics) -> RowsPart:
    """Every record that the missing-value policy lets through is published."""
    return RowsPart(input=statistics.input_rows, published=statistics.counts.n, dropped=statistics.dropped)
