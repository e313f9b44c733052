"""What the baselines on the generalized layout share: reading a table as codes, cutting it for the tasks, publishing classes.

coded     a pass for the sensitive counts, at most two for the domains; values of an attribute reach the driver, no record does
cells     tables above the partition size: a k-d tree from counts of combinations of quasi-identifiers (a bounded number of them
          reach the driver; a pass over more than a million records says how many there are), a pass for the counts of each leaf,
          and leaves that cannot keep the promise merged with their neighbours
classes   one shuffle of codes, a kernel per partition; one shuffle of what is published, into an order that says nothing
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonlib.arrays import Codes, Int64Array
from anonlib.domains import Domain
from anonlib.engine import cut_by_quasi_identifiers as cut
from anonlib.engine.arrange import files
from anonlib.engine.microdata import Microdata
from anonlib.engine.quasi_identifiers import QuasiIdentifiers, box_schema, decode, domain_statistics, encode, mixed
from anonlib.engine.relational import with_columns
from anonlib.engine.statistics import SensitiveStatistics, sensitive_statistics
from anonlib.engine.tables import types
from anonlib.kernels.boxes import Interval, boxes_of_classes
from anonlib.kernels.classes.equivalence_classes import refuse_broken
from anonlib.methods.baselines.promises import Promise, guarantee, words
from anonlib.methods.recipe import Draft, Explanation, Grid, Say, Stage
from anonlib.privacy.class_requirements import Requirement
from anonlib.release import generalized
from anonlib.release.generalized import MICRODATA
from anonlib.release.manifest import RowsPart, SolverPart
from anonlib.solvers.classes.kd_cut import kd_tree
from anonlib.spec.layouts import EC_ID

Classes = Callable[[list[Codes], Int64Array, int], Int64Array]
"""(code columns, sensitive codes, partition) -> the class of each record, numbered without a hole; pickled."""

COMBINATIONS = 1_000_000
"""Combinations of quasi-identifiers that a cut is chosen from; above that, a share of them chosen by hash."""
LEAF_CELLS = 4_000_000
"""Leaves x sensitive values whose counts the driver takes: 32 MB."""
CLASS_BITS = 32


@dataclass(frozen=True)
class Coded:
    """A table read as codes. frame : q0, q1, ..., s0 of the records that are published."""

    table: Microdata
    statistics: SensitiveStatistics
    quasi_identifiers: QuasiIdentifiers
    frame: Any

    @property
    def domains(self) -> tuple[Domain, ...]:
        return self.quasi_identifiers.domains

    @property
    def n(self) -> int:
        return self.statistics.counts.n


def read_coded(table: Microdata, statistics: SensitiveStatistics, classes: bool, say: Say) -> Coded:
    """The table's domains and codes. Raises SpecError for columns that cannot be generalized, or whose published names collide."""
    say("reading the domains of the quasi-identifiers")
    found = domain_statistics(table)
    generalized.check_names(found, {table.sensitive: types(table.frame)[table.sensitive]}, classes)
    frame = encode(table.published, found, {table.sensitive: statistics.counts.values})
    return Coded(table, statistics, found, frame)


def count(table: Microdata, say: Say) -> SensitiveStatistics:
    """Pass 1: the sensitive values."""
    say("counting the sensitive values")
    return sensitive_statistics(table.frame, table.sensitive, table.keep, table.refuse)


def cells(coded: Coded, size: int | str, requirement: Requirement, say: Say) -> tuple[Any, int]:
    """(the records with the partition each belongs to, how many partitions). By quasi-identifiers alone; each keeps `requirement` if the
    table does, and has `size` records or more."""
    m = coded.statistics.counts.m
    if size == "all" or coded.n < 2 * int(size):
        return with_columns(coded.frame, {cut.CELL: "0L"}), 1
    say("cutting the table by its quasi-identifiers")
    one_in = cut.one_in(coded.frame, coded.n, COMBINATIONS)
    columns, records = cut.combinations(coded.frame, 2 * COMBINATIONS, one_in)
    smallest = max(int(size), coded.n * m // LEAF_CELLS)
    tree = kd_tree(columns, coded.domains, records, max(1, smallest // one_in))
    leaves = cut.located(coded.frame, tree.leaf_of)
    partition = tree.merged(cut.cell_counts(leaves, tree.leaves, m), requirement)
    number = int(partition.max()) + 1
    say(f"{number:,} partitions, after merging those of {tree.leaves:,} that could not keep the promise by themselves")
    return cut.located(coded.frame, _Partitions(tree.leaf_of, partition)), number


@dataclass(frozen=True)
class _Partitions:
    leaf_of: Callable[[list[Codes]], Int64Array]
    partition: Int64Array

    def __call__(self, columns: list[Codes]) -> Int64Array:
        return np.asarray(self.partition[self.leaf_of(columns)], dtype=np.int64)


def box_columns(boxes: list[Any], of: Int64Array) -> dict[str, Any]:
    """The columns of `anonlib.engine.quasi_identifiers.box_columns` for records whose boxes are number `of`."""
    found: dict[str, Any] = {}
    for i, box in enumerate(boxes):
        if isinstance(box, Interval):
            found |= {f"q{i}_lo": box.low[of], f"q{i}_hi": box.high[of]}
        else:
            found[f"q{i}_set"] = box.listed()[of]
    return found


@dataclass(frozen=True)
class _ClassesAndBoxes:
    classes: Classes
    domains: tuple[Domain, ...]
    m: int
    requirement: Requirement

    def __call__(self, columns: list[Codes], sensitive: Int64Array, partition: int) -> dict[str, Any]:
        number = self.classes(columns, sensitive, partition)
        refuse_broken(number, [sensitive], [self.m], self.requirement)
        found = box_columns(boxes_of_classes(columns, self.domains, number), number)
        return found | {"s0": sensitive.astype(np.int32), EC_ID: (partition << CLASS_BITS) + number}


def publish_classes(
    coded: Coded,
    cells: Any,
    kernel: Classes,
    purpose: str,
    key: bytes,
    made: Promise,
    model: str,
    solver: SolverPart,
    stage: Stage,
) -> Draft:
    """Run `kernel` on every partition, and stage every record under the tight box of its class."""
    schema = box_schema(coded.quasi_identifiers, more=f"{EC_ID} bigint")
    task = _ClassesAndBoxes(kernel, coded.domains, coded.statistics.counts.m, made.requirement)
    boxed = cut.over_cells(cells, task, schema, key, purpose)
    return publish_boxed(coded, boxed, made, model, solver, stage)


def publish_boxed(coded: Coded, boxed: Any, made: Promise, model: str, solver: SolverPart, stage: Stage) -> Draft:
    """Stage boxes with classes as the generalized layout."""
    table, counts = coded.table, coded.statistics.counts
    started = time.monotonic()
    kind = types(table.frame)[table.sensitive]
    frame = decode(boxed, coded.quasi_identifiers, {table.sensitive: (counts.values, kind)}, keep=(EC_ID,))
    published = stage(MICRODATA, mixed(frame, files(counts.n), by=EC_ID))
    return Draft(
        layout="generalized",
        tables={MICRODATA: published},
        records=MICRODATA,
        roles={MICRODATA: generalized.roles(coded.quasi_identifiers, [table.sensitive], classes=True)},
        quasi_identifiers=generalized.parts(coded.quasi_identifiers),
        guarantee=guarantee(table, made, model),
        rows=rows(coded.statistics),
        solver=solver.model_copy(update={"seconds": round(solver.seconds + time.monotonic() - started, 3)}),
        utility={},
        partitions=coded.statistics.partitions,
    )


def rows(statistics: SensitiveStatistics) -> RowsPart:
    """Every record that the missing-value policy lets through is published."""
    return RowsPart(input=statistics.input_rows, published=statistics.counts.n, dropped=statistics.dropped)


def solver_part(name: str, started: float, **details: Any) -> SolverPart:
    """A baseline's own account. No bound is proven of it."""
    return SolverPart(
        name=name,
        status="heuristic",
        setting=[],
        unit="classes",
        seconds=round(time.monotonic() - started, 3),
        details=details,
    )


def explained(column: str, made: Promise, summary: str, most: int = 20) -> Explanation:
    """A promise and what it allows, from the counts alone; `most` values are shown, the most frequent first."""
    counts = made.counts
    first = np.argsort(-counts.counts, kind="stable")[:most].tolist()
    listed = tuple(
        (
            str(counts.values[i]),
            f"{int(counts.counts[i]):,}",
            f"{float(counts.frequency(i)):.4%}",
            "" if made.caps is None else f"{float(min(1, made.caps[i])):.4%}",
        )
        for i in first
    )
    more = f"... and {counts.m - most:,} less frequent values" if counts.m > most else ""
    return Explanation(
        words=words(column, made),
        summary=summary,
        grids=(Grid(("value", "records", "share of the table", "at most in any class"), listed, more),),
        facts={
            "records": counts.n,
            "sensitive_values": counts.m,
            "asked": made.asked.numbers(),
            "smallest_class": made.requirement.smallest,
        },
        choice=made,
    )
