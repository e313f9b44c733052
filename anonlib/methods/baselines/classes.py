"""What the baselines of equivalence classes share: their account of themselves, and what an explanation of a promise shows."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

from anonlib.engine.relational import DataFrame
from anonlib.methods import boxed
from anonlib.methods.boxed import Classes, Coded
from anonlib.methods.class_promises import Promise, guarantee, words
from anonlib.methods.recipe import Draft, Explanation, Grid, Run
from anonlib.release.manifest import SolverPart


def publish(
    coded: Coded,
    partitions: DataFrame,
    classes: Classes,
    purpose: str,
    promised: Promise,
    solver: SolverPart,
    started: float,
    run: Run,
) -> Draft:
    """Form classes in every partition, refuse those that do not keep the promise, and stage every record under the box of its class."""
    checked = boxed.Checked(classes, coded.sizes, promised.requirement)
    boxes = boxed.over_classes(coded, partitions, checked, purpose, run.key)
    return boxed.publish_classes(coded, boxes, guarantee(coded.table, promised), solver, run, started)


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


def explained(column: str, promised: Promise, summary: str, most: int = 20) -> Explanation:
    """A promise and what it allows, from the counts alone; `most` values are shown, those that are protected least first."""
    counts, caps = promised.counts, promised.caps or (Fraction(0),) * promised.counts.m
    first = sorted(range(counts.m), key=lambda i: (-min(Fraction(1), caps[i]), -int(counts.counts[i])))[:most]
    listed = tuple(
        (
            str(counts.values[i]),
            f"{int(counts.counts[i]):,}",
            f"{float(counts.frequency(i)):.4%}",
            "" if promised.caps is None else f"{float(min(Fraction(1), promised.caps[i])):.4%}",
        )
        for i in first
    )
    more = f"... and {counts.m - most:,} values that are protected more" if counts.m > most else ""
    return Explanation(
        words=words(column, promised),
        summary=summary,
        grids=(Grid(("value", "records", "share of the table", "at most in any class"), listed, more),),
        facts={
            "records": counts.n,
            "sensitive_values": counts.m,
            "asked": promised.asked.numbers(),
            "smallest_class": promised.requirement.smallest,
        },
        choice=promised,
    )
