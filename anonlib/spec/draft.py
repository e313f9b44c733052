"""A first release spec for a table: every column in a role that its name and its counts suggest, with the reasons beside it.

Pure. What is known of a column is its name, type and counts, so no value of the table can stand in a draft. It is a draft: the roles are
a person's to decide, and whatever is doubtful is withheld.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

NEARLY_ALL = 0.9
"""Share of rows with a value of their own from which a column looks like an identifier."""
MOST_CATEGORIES = 1000
"""More distinct values than this make a text a name or a remark rather than a category."""
ORDERED = frozenset(
    ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "date", "timestamp", "timestamp_ntz")
)
SINGLE = ORDERED | {"string", "boolean", "char", "varchar"}
"""Types of single values, and those of them that can be generalized to ranges."""
_PERSON = re.compile(
    r"(?:patient|person|customer|client|member|user|subject|insured|employee|student|subscriber|pupil|citizen)_?(?:id|nr|no|num|number|key)?",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(
    r"(?:^|_)(?:id|uuid|guid|ssn|nhs|passport|iban|licen[cs]e|account|card|mrn|name|firstname|lastname|surname|e?mail|phone|tel|mobile"
    r"|fax|address|street|ip|url|login|username|plate|vin|signature|photo|note|notes|comment|remarks?)(?:_|$)",
    re.IGNORECASE,
)
_SENSITIVE = re.compile(
    r"disease|diagnos|illness|condition|icd|disorder|symptom|treatment|medication|drug|hiv|test_?result|salary|income|wage|earning|debt"
    r"|credit|religion|ethnic|race|orientation|party|vote|offen[cs]e|crime|disabil|pregnan|occupation",
    re.IGNORECASE,
)

Role = Literal["quasi_identifiers", "sensitive", "identifiers", "person"]


@dataclass(frozen=True)
class ColumnFacts:
    """What is counted of a column: its type, about how many distinct values, how many nulls, and how many cells look like a mark of one."""

    name: str
    spark_type: str
    distinct: int
    nulls: int
    marks: int = 0

    @property
    def kind(self) -> str:
        """The type without its parameters and fields."""
        return re.split(r"[(< ]", self.spark_type)[0]


@dataclass(frozen=True)
class TableFacts:
    """A table's columns and rows, and the `input` part that reads it, as key and YAML text."""

    rows: int
    columns: tuple[ColumnFacts, ...]
    source: tuple[tuple[str, str], ...]


def role_of(column: ColumnFacts, rows: int) -> tuple[Role, str]:
    """The role that a column seems to have, and why. The first of several sensitive or person columns is chosen by `draft`."""
    filled = rows - column.nulls
    one_a_row = filled > 0 and column.distinct >= NEARLY_ALL * filled and filled > 1
    whole = column.kind in ("tinyint", "smallint", "int", "bigint", "string")
    if column.kind not in SINGLE:
        return "identifiers", f"{column.kind}: it holds no single values: cast it, or leave it withheld"
    if _PERSON.fullmatch(column.name):
        return "person", "the name says whose row it is"
    if _IDENTIFIER.search(column.name):
        return "identifiers", "the name says that it points at somebody"
    if _SENSITIVE.search(column.name) and (column.distinct <= MOST_CATEGORIES or column.kind in ORDERED):
        return "sensitive", "the name says that nobody should infer it"
    if one_a_row and whole and rows >= 20:
        return "identifiers", "nearly every row has a value of its own"
    if column.kind == "string" and column.distinct > MOST_CATEGORIES:
        return "identifiers", "too many different texts for a category"
    return "quasi_identifiers", "others may know it of a person"


def draft(table: TableFacts) -> str:
    """The commented YAML. Of several columns that look sensitive the first is taken, the others are withheld; the same of persons."""
    taken: dict[Role, list[tuple[ColumnFacts, str]]] = {
        "quasi_identifiers": [], "sensitive": [], "identifiers": [], "person": []
    }  # fmt: skip
    for column in table.columns:
        role, why = role_of(column, table.rows)
        if role in ("sensitive", "person") and taken[role]:
            role, why = "identifiers", f"{why} as well: choose one {role} column, and withhold the others"
        taken[role].append((column, why))
    marked = [column for column in table.columns if column.marks]
    lines = [
        "# A draft by `anonlib init`: counts and names alone, no value of the table. What others may know of a person, nobody but you",
        "# can say: go through the roles below, then ask `anonlib explain` what this would publish.",
        f"# {table.rows:,} rows, {len(table.columns):,} columns. Distinct values are counted to within some 5 %.",
        "input:",
        *(f"  {key}: {text}" for key, text in table.source),
        "output:",
        "  path: releases/CHANGE-ME",
        "columns:",
        *_person(taken["person"]),
        "  quasi_identifiers:  # what others may know of a person",
        *_listed(taken["quasi_identifiers"], table.rows, True),
        "  sensitive:  # what nobody may infer",
        *_listed(taken["sensitive"], table.rows, True),
        "  identifiers:  # never published; `identifiers: rest` withholds whatever is not named",
        *_listed(taken["identifiers"], table.rows, False),
        "  other: []  # published as it is, and so known to everybody",
        *_missing(marked),
        "method:",
        "  bucketize:  # docs/guarantees.md says what the numbers promise",
        "    privacy: {theta: 8, offset: 0.02}",
        "audit: gate",
    ]
    return "\n".join(lines) + "\n"


def _person(columns: Sequence[tuple[ColumnFacts, str]]) -> list[str]:
    return [
        f"  person: {_text(column.name)}  # {column.kind}, {column.distinct:,} distinct; {why}"
        for column, why in columns
    ]


def _listed(columns: Sequence[tuple[ColumnFacts, str]], rows: int, typed: bool) -> list[str]:
    if not columns:
        return ["    []" if not typed else "    # CHOOSE: no column looks like one; name at least one here"]
    lines = []
    for column, why in columns:
        ordered = column.kind in ORDERED
        kind = f", type: {'numeric' if ordered else 'categorical'}" if typed else ""
        item = f"{{name: {_text(column.name)}{kind}}}" if typed else _text(column.name)
        missing = f", {column.nulls:,} missing" if column.nulls else ""
        marks = f", {column.marks:,} cells that look like a mark of a missing value" if column.marks else ""
        lines.append(f"    - {item}  # {column.kind}, {column.distinct:,} distinct{missing}{marks}; {why}")
    return lines


def _missing(marked: Sequence[ColumnFacts]) -> list[str]:
    lines = ["missing:  # error, drop or keep", "  quasi_identifiers: keep", "  sensitive: error"]
    if marked:
        names = ", ".join(_text(column.name) for column in marked)
        lines.append(
            f"  # cells of {names} look like marks of a missing value (?, NA, Unknown, -9 and the like); name them as they are spelled:"
        )
        lines.append("  # as_missing: []")
    return lines


def _text(name: str) -> str:
    """A name as YAML has it: bare where that is safe, else quoted as JSON, which is YAML too."""
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _WORDS else json.dumps(name)


_WORDS = ("true", "false", "yes", "no", "on", "off", "null", "y", "n", "rest")
