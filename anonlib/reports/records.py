"""What was read, published and left out, and how the release was made. Pure."""

from __future__ import annotations

import json
from typing import Any

from anonlib.release.manifest import Manifest
from anonlib.reports import charts, promise
from anonlib.reports.facts import Facts
from anonlib.reports.markup import Markup, figure, in_words, joined, legible, paragraph, table
from anonlib.reports.numbers import measure

ROLES = {
    "quasi_identifier": "other people may know it of a person; published as it is",
    "quasi_identifier_min": "other people may know it of a person; published as a range, this is its lower end",
    "quasi_identifier_max": "other people may know it of a person; published as a range, this is its upper end",
    "quasi_identifier_set": "other people may know it of a person; published as a set of values it may be",
    "quasi_identifier_label": "a name for the set of values beside it",
    "sensitive": "what the promise protects",
    "other": "published as it is",
    "bucket_id": "number of the bucket",
    "ec_id": "number of the class",
    "count": "how often the value occurs in the bucket",
    "subtable": "number of the sub-table within which values were perturbed",
}
POLICIES = {
    "keep": "they are kept, as a value of their own",
    "drop": "they leave their records out",
    "error": "there were none: a table with any is refused",
}
COLUMNS = {"quasi_identifiers": "columns that others may know", "sensitive": "the protected column"}
MEASURES = {
    "msbs": "mean squared bucket size (0 would be the table itself)",
    "gcp": "certainty penalty: how much wider than a value the ranges are (0 exact, 1 everything)",
    "ail": "average information loss (0 exact, 1 everything)",
    "discernibility": "discernibility: sum of squared class sizes",
    "classes": "classes",
    "mean_retention": "share of the values that were kept as they are",
    "error_bound": "stated bound of the error of a count",
    "sub_tables": "sub-tables",
}
MOST_BATCHES = 60


def read_and_published(facts: Facts) -> Markup:
    """Rows in and out, and why they differ."""
    manifest = facts.manifest
    rows = _rows_of_a_stream(manifest) if manifest.stream is not None else _rows(manifest)
    several = {"sensitive": "the protected columns"} if len(promise.of_columns(manifest)) > 1 else {}
    columns = COLUMNS | several
    policy = "; ".join(
        f"in {columns.get(role, in_words(role))} {POLICIES.get(handling, handling)}"
        for role, handling in manifest.missing.items()
    )
    marks = ", ".join(map(repr, manifest.as_missing))
    read = f" {marks} in the input was read as a missing value." if marks else ""
    parts = [
        table("Records", ("", "records"), rows),
        paragraph(f"Missing values: {policy}.{read}"),
    ]
    if facts.batches:
        newest = facts.batches[-MOST_BATCHES:]
        says = f"Records shown by each of the newest {len(newest)} batches"
        parts += [
            figure(charts.shown_by_batch([(b.number, b.shown) for b in newest], says), f"{says}."),
            table(
                f"The newest {len(newest)} batches" if len(newest) > 1 else "The only batch",
                ("batch", "records shown", "waiting after it", "audit"),
                [(f"{b.number}", f"{b.shown:,}", f"{b.waiting:,}", _state(b.passed)) for b in reversed(newest)],
                marks={"passed": "good", "FAILED": "bad"},
            ),
        ]
    return joined(parts)


def _state(passed: bool | None) -> str:
    return {True: "passed", False: "FAILED", None: "-"}[passed]


def _rows(manifest: Manifest) -> list[tuple[str, str]]:
    rows, persons = manifest.rows, manifest.persons
    lines: list[tuple[str, int]] = []
    if persons is not None:
        lines += [
            ("rows of the input", persons.rows),
            ("without a person: left out", persons.nameless),
            ("further rows of a person who has one already: left out", persons.left_out),
            ("of persons who are published already: left out", persons.known),
        ]
    lines += [
        ("records read", rows.input),
        ("published", rows.published),
        ("left out to keep the promise (suppressed)", rows.suppressed),
        ("left out for a missing value (dropped)", rows.dropped),
    ]
    if rows.dummy:
        lines.append(("published rows that belong to nobody (dummies)", rows.dummy))
    if rows.fake:
        lines.append(("listed values that belong to nobody (fakes)", rows.fake))
    if manifest.unreadable is not None:
        lines.append(("records with anything that could not be read", manifest.unreadable.records))
    if manifest.ledger is not None:
        lines.append(("persons entered in the ledger", manifest.ledger.persons))
    return [(name, f"{number:,}") for name, number in lines]


def _rows_of_a_stream(manifest: Manifest) -> list[tuple[str, str]]:
    stream = manifest.stream
    assert stream is not None
    lines = (
        ("records that have arrived", stream.arrived),
        ("published", stream.shown),
        ("waiting to be published", stream.waiting),
        ("left out for a missing value", stream.missing),
        ("left out for a value outside the stated domains", stream.outside),
        ("of those that arrived, late", stream.late),
        ("batches", stream.batches),
        ("records of a window", stream.window),
    )
    return [(name, f"{number:,}") for name, number in lines]


def columns(facts: Facts) -> Markup:
    """Every published column and what it is; nothing else was published."""
    lines = [
        (legible(column.name), legible(name), column.type, ROLES.get(column.role, in_words(column.role)))
        for name, part in facts.manifest.tables.items()
        for column in part.columns
    ]
    return joined(
        [
            paragraph(
                "These columns are published. A column of the input that is not listed here is not in the release."
            ),
            table("Published columns", ("column", "table", "type", "what it is"), lines, left=4),
        ]
    )


def how_it_was_made(facts: Facts) -> Markup:
    """Method, parameters, solver, versions, checksums. The key that draws came from is in no manifest."""
    manifest, solver = facts.manifest, facts.manifest.solver
    asked = [(f"{in_words(name)}", _written(value)) for name, value in manifest.method.parameters.items()]
    lines = [("method", manifest.method.name), *asked, ("chosen by", f"{solver.name}: {solver.status}")]
    if solver.gap is not None:
        lines.append(("distance from the best choice, at most", f"{100 * solver.gap:.2f} %"))
    lines += [(MEASURES.get(name, in_words(name)), measure(value)) for name, value in manifest.utility.items()]
    lines += [("anonlib", manifest.anonlib_version), ("Spark", manifest.spark_version)]
    tables = [(name, f"{part.rows:,}", part.checksum) for name, part in manifest.tables.items()]
    return joined(
        [
            table("Method and parameters", ("", "value"), [(name, legible(value)) for name, value in lines], left=2),
            table("Tables of the release", ("table", "rows", "checksum"), tables),
            paragraph(
                "Random draws came from a secret key, which stands neither in the release nor in this report.",
                class_="note",
            ),
        ]
    )


def _written(value: Any) -> str:
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        inner = ", ".join(f"{name}: {_written(v)}" for name, v in value.items() if v not in (None, {}))
        return inner or "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
