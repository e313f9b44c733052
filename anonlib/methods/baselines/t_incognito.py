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

from anonlib.arrays import Codes, Int64Array
from anonlib.engine import cut_by_quasi_identifiers as cut
from anonlib.engine.microdata import Microdata
from anonlib.engine.quasi_identifiers import box_schema
from anonlib.errors import Unsatisfiable
from anonlib.kernels.boxes import boxes_of_classes
from anonlib.methods.baselines import classes
from anonlib.methods.baselines.promises import Asked, Promise, promise
from anonlib.methods.recipe import Draft, Explanation, Say, Stage
from anonlib.privacy.counts import SensitiveCounts
from anonlib.solvers.classes.full_domain_lattice import ClassFinder, Combinations, search
from anonlib.spec.layouts import EC_ID
from anonlib.spec.t_incognito import TIncognito

CELLS = 2_000_000
"""Combinations of quasi-identifiers and sensitive values that the driver takes: about 200 MB with seven attributes."""


def promised(table: Microdata, counts: SensitiveCounts, wanted: TIncognito) -> Promise:
    """What the spec asks of every class."""
    return promise(table, counts, Asked(k=wanted.k, t=Fraction(wanted.t)))


def t_incognito(table: Microdata, wanted: TIncognito, key: bytes, stage: Stage, say: Say) -> Draft:
    """Publish `table` at the levels that keep the promise and lose least. `key` plays no part: nothing is drawn."""
    started = time.monotonic()
    statistics = classes.count(table, say)
    made = promised(table, statistics.counts, wanted)
    coded = classes.read_coded(table, statistics, True, say)
    say("counting the combinations of quasi-identifiers and sensitive values")
    combinations = _combinations(coded)
    say(f"searching the levels for {len(combinations.columns[0]):,} combinations")
    chosen = search(combinations, coded.domains, made.requirement)
    heights = dict(zip(table.quasi_identifiers, chosen.heights, strict=True))
    say(f"levels {heights}; checked {chosen.checked:,} of {chosen.nodes:,} choices")
    finder = ClassFinder.of(combinations.columns, coded.domains, chosen.heights)
    boxes = boxes_of_classes(combinations.columns, coded.domains, chosen.classes)
    boxed = cut.over_batches(
        coded.frame, _Lookup(finder, boxes), box_schema(coded.quasi_identifiers, more=f"{EC_ID} bigint")
    )
    solver = classes.solver_part(
        "full_domain_lattice", started, levels=heights, checked=chosen.checked, choices=chosen.nodes
    )
    return classes.publish_boxed(coded, boxed, made, "equivalence classes", solver, stage)


def explain(table: Microdata, wanted: TIncognito, say: Say) -> Explanation:
    """What would be promised: one scan for the counts. Which levels keep it, only the combinations tell."""
    made = promised(table, classes.count(table, say).counts, wanted)
    summary = f"Recodes {made.counts.n:,} records, every quasi-identifier at one level for the whole table"
    return classes.explained(table.sensitive, made, summary)


@dataclass(frozen=True)
class _Lookup:
    """The record kernel."""

    finder: ClassFinder
    boxes: list[Any]

    def __call__(self, columns: list[Codes], sensitive: Int64Array) -> dict[str, Any]:
        number = self.finder(columns)
        return classes.box_columns(self.boxes, number) | {"s0": sensitive.astype(np.int32), EC_ID: number}


def _combinations(coded: classes.Coded) -> Combinations:
    try:
        columns, values, records = cut.combinations_with_values(coded.frame, CELLS)
    except cut.TooMany as error:
        raise Unsatisfiable(
            f"full-domain recoding works on the driver, and {error}; give fewer or coarser quasi-identifiers, or use mondrian: "
            "{t: ..., k: ...}"
        ) from None
    of = cut.numbered(columns)
    _, first = np.unique(of, return_index=True)
    return Combinations(tuple(column[first] for column in columns), of, values, records, coded.statistics.counts.m)
