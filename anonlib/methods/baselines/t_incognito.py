"""Full-domain recoding under t-closeness, the baseline: one level of detail per quasi-identifier for the whole table.

Source: Li, Li and Venkatasubramanian, ICDE 2007, as compared with in SABRE (section 6). Classes are published by their tight boxes, like
everybody's, not by the nodes of their levels. The walk, for n records:

    counts        pass 1 over the sensitive column
    domains       at most two passes
    combinations  one shuffle of the distinct combinations of quasi-identifiers and sensitive value; all of them reach the driver, and
                  more than `CELLS` are refused: a table that needs more wants coarser attributes, or another method
    levels        driver; see `anonlib.solvers.classes.full_domain_lattice`
    microdata     a narrow pass that looks every record's class up; one shuffle of what is published
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.arrays import Codes
from anonlib.engine.batches import fields, over_batches
from anonlib.engine.codes import TooMany, combinations_with_values, numbered
from anonlib.engine.microdata import Microdata
from anonlib.engine.ranks import CHANGED
from anonlib.errors import AnonlibError, Unsatisfiable
from anonlib.kernels.boxes import Box, boxes_of_classes
from anonlib.methods import boxed, class_promises
from anonlib.methods.baselines import classes
from anonlib.methods.boxed import Coded
from anonlib.methods.class_promises import Asked, Promise, class_promise
from anonlib.methods.recipe import Draft, Explanation, Run, Say
from anonlib.privacy.counts import SensitiveCounts
from anonlib.solvers.classes.full_domain_lattice import ClassFinder, Combinations, search
from anonlib.spec.layouts import EC_ID
from anonlib.spec.methods.t_incognito import TIncognito

CELLS = 2_000_000
"""Combinations of quasi-identifiers and sensitive values that the driver takes: about 200 MB with seven attributes."""


def promised(table: Microdata, counts: SensitiveCounts, wanted: TIncognito) -> Promise:
    """What the spec asks of every class."""
    return class_promise(table, counts, Asked(k=wanted.k, t=Fraction(wanted.t)))


def t_incognito(table: Microdata, wanted: TIncognito, run: Run) -> Draft:
    """Publish `table` at the levels that keep the promise and lose least. The key plays no part: nothing is drawn."""
    started = time.monotonic()
    statistics = boxed.count(table, run.say)
    promise = promised(table, statistics.counts, wanted)
    coded = boxed.read_coded(table, [statistics], True, run.say)
    run.say("counting the combinations of quasi-identifiers and sensitive values")
    combinations = _combinations(coded)
    _refuse_other_counts(combinations, statistics.counts)
    run.say(f"searching the levels for {len(combinations.columns[0]):,} combinations")
    chosen = search(combinations, coded.domains, promise.requirement)
    heights = dict(zip(table.quasi_identifiers, chosen.heights, strict=True))
    run.say(f"levels {heights}; checked {chosen.checked:,} of {chosen.nodes:,} choices")
    finder = ClassFinder.of(combinations.columns, coded.domains, chosen.heights)
    boxes = boxes_of_classes(combinations.columns, coded.domains, chosen.classes)
    published = over_batches(coded.frame, _Lookup(finder, boxes), fields(boxed.class_schema(coded)), kept=())
    solver = classes.solver_part(
        "full_domain_lattice", started, levels=heights, checked=chosen.checked, choices=chosen.nodes
    )
    guarantee = class_promises.guarantee(table, promise)
    return boxed.publish_classes(coded, published, guarantee, solver, run, started)


def _refuse_other_counts(combinations: Combinations, counts: SensitiveCounts) -> None:
    """Raises AnonlibError when the combinations are those of other records than were counted: no level could be blamed for that."""
    records = np.bincount(combinations.value, combinations.count, counts.m).astype(np.int64)
    if (records != counts.counts).any():
        raise AnonlibError(f"counting the combinations of quasi-identifiers and sensitive values: {CHANGED}")


def explain(table: Microdata, wanted: TIncognito, say: Say) -> Explanation:
    """What would be promised: one scan for the counts. Which levels keep it, only the combinations tell."""
    promise = promised(table, boxed.count(table, say).counts, wanted)
    summary = f"Recodes {promise.counts.n:,} records, every quasi-identifier at one level for the whole table"
    return classes.explained(table.sensitive, promise, summary)


@dataclass(frozen=True)
class _Lookup:
    """The kernel on batches: looks up the class of each record, from its codes, and the box of that class."""

    finder: ClassFinder
    boxes: list[Box]

    def __call__(self, columns: dict[str, Codes]) -> dict[str, Any]:
        number = self.finder([columns[f"q{i}"] for i in range(len(self.boxes))])
        return boxed.box_columns(self.boxes, number) | {"s0": columns["s0"], EC_ID: number}


def _combinations(coded: Coded) -> Combinations:
    try:
        columns, values, records = combinations_with_values(coded.frame, CELLS)
    except TooMany as error:
        raise Unsatisfiable(
            f"full-domain recoding works on the driver, and {error}; give fewer or coarser quasi-identifiers, or use mondrian: "
            "{t: ..., k: ...}"
        ) from None
    of = numbered(columns)
    _, first = np.unique(of, return_index=True)
    return Combinations(tuple(column[first] for column in columns), of, values, records, coded.sizes[0])
