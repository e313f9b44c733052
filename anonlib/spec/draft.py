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

NEARLY_ONE_A_ROW = 0.5
"""Distinct values per filled row from which a column looks like an identifier, whatever its type."""
MOST_CATEGORIES = 1000
"""More distinct values than this make a name, a number or a remark rather than a category."""
FEWEST_ROWS = 20
"""Fewer filled rows than this cannot show whether values are shared."""
ORDERED = frozenset(
    ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "date", "timestamp", "timestamp_ntz")
)
SINGLE = ORDERED | {"string", "boolean", "char", "varchar"}
"""Types of single values, and those of them that can be generalized to ranges."""
DATED = ("date", "timestamp", "timestamp_ntz")
_PERSON = re.compile(
    r"(?:patient|person|customer|client|member|user|subject|insured|employee|student|subscriber|pupil|citizen)_?(?:id|nr|no|num|number|key)?",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(
    r"(?:^|[_\d])(?:ids?|uuid|guid|ssn|nhs|nino|cpf|aadhaar|passport|iban|imei|imsi|mac|device|serial|token|cookie|licen[cs]e|account|card|mrn"
    r"|[a-z]*names?|e_?mail|[a-z]*phone|phone[a-z]*|tel|mobile|fax|[a-z]*address|street|ip|url|login|plate|vin|signature|photo|notes?"
    r"|comments?|remarks?|[a-z]*birth[a-z]*|dob|born|lat|lon|lng|long|latitude|longitude|geo|geo(?:hash|code|loc|location|point|metry|m)"
    r"|gps|coords?|coordinates?)(?=[_\d]|$)|(?:^|_)(?:number|num|nr)$",
    re.IGNORECASE,
)
_SENSITIVE = re.compile(
    r"disease|diagnos|illness|condition|disorder|symptom|treatment|medication|drug|test_?result|salary|income|earning|debt"
    r"|credit|religion|ethnic|orientation|offen[cs]e|crime|disabil|pregnan|occupation|(?<![a-z])(?:icd|hiv|wage|race|party|vote)",
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
    """The role that a column seems to have, and why. The first of several sensitive or person columns is chosen by `draft`.

    rows : of the table. A quasi-identifier is what has few values, each shared by rows enough to tell, and a name that points at nobody;
    whatever else is neither the person nor sensitive by its name is withheld.
    """
    name = _words(column.name)
    if column.kind not in SINGLE:
        return "identifiers", f"{column.kind}: it holds no single values: cast it, or leave it withheld"
    if _PERSON.fullmatch(name):
        return "person", "the name says whose row it is"
    if _IDENTIFIER.search(name):
        return "identifiers", "the name says that it points at somebody, or where and when somebody was"
    if column.kind in DATED:
        return "identifiers", "a day or a time can point at somebody: a month or a year may do instead"
    filled = rows - column.nulls
    if _SENSITIVE.search(name) and (column.kind in ORDERED or _is_category(column, filled)):
        return "sensitive", "the name says that nobody should infer it"
    return _by_counts(column, filled)


def _is_category(column: ColumnFacts, filled: int) -> bool:
    return column.distinct <= MOST_CATEGORIES and (filled < FEWEST_ROWS or not _nearly_one_a_row(column, filled))


def _nearly_one_a_row(column: ColumnFacts, filled: int) -> bool:
    return column.distinct >= NEARLY_ONE_A_ROW * filled


def _by_counts(column: ColumnFacts, filled: int) -> tuple[Role, str]:
    if filled < FEWEST_ROWS:
        return "identifiers", f"{filled} rows with a value are too few to tell: withheld until you say what it is"
    if _nearly_one_a_row(column, filled):
        return "identifiers", "so many different values that many rows have one of their own"
    if column.distinct > MOST_CATEGORIES:
        return "identifiers", "too many different values for a category"
    return "quasi_identifiers", "few values, shared by many rows: others may know it of a person"


def _words(name: str) -> str:
    """A column's name with its words parted by underscores.

    >>> _words("patientName"), _words("zip code"), _words("e-mail")
    ('patient_Name', 'zip_code', 'e_mail')
    """
    return re.sub(r"\W+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))


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
        *_first_line(table.source),
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


def _first_line(source: Sequence[tuple[str, str]]) -> list[str]:
    if ("format", "csv") not in source:
        return []
    return [
        "# The first line of the CSV is taken for the names of its columns: were it a record, its cells would stand below."
    ]


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
    """A name as YAML has it: bare where that is safe, else quoted."""
    safe = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _WORDS
    return name if safe else yaml_quoted(name)


def yaml_quoted(text: str) -> str:
    """`text` as a quoted YAML scalar, on one line: as JSON has it, with nothing escaped but what YAML cannot hold as it is.

    >>> print(yaml_quoted("x😀"), yaml_quoted("a\\u2028b"))
    "x😀" "a\\u2028b"
    """
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


_UNPRINTABLE = re.compile("[\\x7f-\\x9f\\u2028\\u2029\\ud800-\\udfff\\ufeff\\ufffe\\uffff]")
"""Breaks of lines, and what YAML counts as no character; JSON leaves them as they are."""
_WORDS = ("true", "false", "yes", "no", "on", "off", "null", "y", "n", "rest")
