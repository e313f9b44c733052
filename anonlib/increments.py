"""Which rows of the input a release is made of: one for each person.

Without persons in the spec every row is one record, as it stands. With them (`columns.person`) the rows are counted by person first, and
where somebody has several, or a ledger is kept, the rows that were chosen are written out once, with a keyed hash instead of the person.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

from anonlib.engine import persons, tables
from anonlib.engine.failures import explained
from anonlib.engine.microdata import Microdata
from anonlib.engine.persons import PersonCounts
from anonlib.engine.relational import DataFrame
from anonlib.engine.repeatable import repeats
from anonlib.errors import SpecError
from anonlib.keyed import derive
from anonlib.release.manifest import PersonsPart
from anonlib.spec.persons import Repeated
from anonlib.spec.release import ReleaseSpec

Say = Callable[[str], None]
WrittenOut = Callable[[str, DataFrame], DataFrame]
"""(name, table) -> the same, written where nobody sees it and read back."""
ROWS, INPUT = "rows", "input"
"""What is written out: rows with whose they are, and the rows of the release."""


@dataclass(frozen=True)
class Increment:
    """table : one row a person; persons : what the manifest tells of them, None where the spec names none."""

    table: Microdata
    persons: PersonsPart | None


def chosen(
    spec: ReleaseSpec, frame: DataFrame, table: Microdata, key: bytes | None, written_out: WrittenOut | None, say: Say
) -> Increment:
    """One row for each person of the input.

    frame : the input; table : the same, checked; key : of the run, that rows are drawn by; None for a fresh one
    written_out : how to keep what no plan may work out twice; None where nothing may be written, and nobody minds

    Raises SpecError for rows of nobody, or of somebody with several, where the spec refuses them.
    """
    if not spec.columns.person:
        return Increment(table, None)
    own = derive(key or os.urandom(32), "rows of persons")
    rows = persons.rows_of_persons(frame, table, spec.columns.person, spec.persons.order, own)
    hashed = rows.hashed
    copied = written_out is not None and not repeats(rows.frame)
    if written_out is not None and copied:
        say("writing the input out once, since its plan may not repeat itself (it shuffles, caches or runs Python)")
        hashed = written_out(ROWS, hashed)
    say("counting the rows of each person")
    with explained("counting the rows of each person"):
        counts = persons.counted(hashed)
    _refuse(spec, counts)
    say(in_words(counts, spec.persons.repeated))
    part = PersonsPart(
        repeated=spec.persons.repeated,
        rows=counts.rows,
        persons=counts.persons,
        nameless=counts.nameless,
        left_out=counts.left_out,
    )
    if counts.left_out:
        say("taking one row of each person")
        taken = persons.one_each(hashed, spec.persons.repeated == "latest", derive(own, "draws among rows"))
        taken = taken if written_out is None else written_out(INPUT, taken)
    else:
        taken = persons.somebodys(hashed) if copied else rows.named if counts.nameless else rows.frame
    return Increment(replace(table, frame=tables.project(taken, list(rows.publish))), part)


def _refuse(spec: ReleaseSpec, counts: PersonCounts) -> None:
    if not counts.rows:
        raise SpecError("input: the table is empty; there is nothing to publish")
    if counts.nameless and spec.missing.person == "error":
        raise SpecError(
            f"columns.person: {counts.nameless:,} rows have no person (null in {_columns(spec)}) and missing.person is error; "
            "set missing: {person: drop}, or mend the data"
        )
    if not counts.persons:
        raise SpecError("missing.person: the policy drops every row of the table; there is nothing to publish")
    if counts.several and spec.persons.repeated == "error":
        raise SpecError(
            f"columns.person: {counts.several:,} persons have several rows, {counts.rows_of_several:,} in all, and a promise about one "
            f"record does not hold for a person with more; take one of each, e.g. persons: {{repeated: latest, order: COLUMN}} or "
            f"persons: {{repeated: random}}, or name under columns.person all columns that tell persons apart (now {_columns(spec)})"
        )


def _columns(spec: ReleaseSpec) -> str:
    return ", ".join(spec.columns.person)


HOW = {
    "error": "",
    "first": " (the first of each person is taken)",
    "latest": " (the latest of each person is taken)",
    "random": " (one of each person is drawn by the key)",
}


def in_words(counts: PersonCounts | PersonsPart, repeated: Repeated) -> str:
    """Rows and persons in a sentence."""
    words = f"{counts.rows:,} rows of {counts.persons:,} persons"
    if counts.left_out:
        words += f"; {counts.left_out:,} left out{HOW[repeated]}"
    if counts.nameless:
        words += f"; {counts.nameless:,} without a person dropped"
    return words
