"""The table to publish, checked against the release spec: every column in one role, types as stated, missing values as asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from pyspark.sql import DataFrame

from anonlib.engine import tables, valid_text
from anonlib.engine.columnar.source import ParquetSource
from anonlib.engine.statistics import is_missing
from anonlib.errors import SpecError
from anonlib.spec.release import Columns, Missing

NUMERIC = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
UNBUCKETABLE = ("array", "map", "struct", "binary", "variant", "interval", "geometry", "geography")
"""Types a sensitive column cannot have: they have no text that tells all their values apart."""


@dataclass(frozen=True)
class Microdata:
    """A checked table. Reads no data by itself.

    frame  : quasi-identifiers, other columns, sensitive columns, in this order, spelled as the table spells them
    sensitive : the first sensitive column; sensitive_columns : all of them
    columns   : the roles as the spec states them: types and hierarchies, in the same order (names spelled as in the spec)
    keep   : SQL condition of the rows to publish (policy `drop`), or None for all
    refuse : {column: SQL condition that no row may meet} (policy `error`)
    before : {sensitive value's text: records} that earlier releases published, where what is promised follows from them too
    source : the files that `frame` is, where it is nothing else; whoever replaces `frame` need not think of it
    """

    frame: DataFrame
    quasi_identifiers: tuple[str, ...]
    other: tuple[str, ...]
    sensitive_columns: tuple[str, ...]
    columns: Columns
    keep: str | None
    refuse: Mapping[str, str]
    before: Mapping[str | None, int] = field(default_factory=dict)
    source: ParquetSource | None = None

    @property
    def sensitive(self) -> str:
        """The sensitive column, or the first of several."""
        return self.sensitive_columns[0]

    @property
    def published(self) -> DataFrame:
        """The rows that the missing-value policy lets through. A narrow filter: partitions stay as they are.

        Spark must not push it into the scan: pruned folders or skipped files would cut the input otherwise than pass 1 saw it. A
        condition that looks non-deterministic stays where it is.
        """
        if self.keep is None:
            return self.frame
        return self.frame.where(f"CASE WHEN {self.keep} THEN true ELSE spark_partition_id() < 0 END")


def microdata(frame: DataFrame, columns: Columns, missing: Missing) -> Microdata:
    """Check `frame` against the spec's columns. Raises SpecError for a column that is missing, unnamed, doubled or of the wrong type."""
    spelled = _spelled(frame, columns)
    types = tables.types(frame)
    quasi_identifiers = tuple(spelled[c.name] for c in columns.quasi_identifiers)
    sensitive = tuple(spelled[c.name] for c in columns.sensitive)
    other = tuple(spelled[name] for name in columns.other)
    for column in (*columns.quasi_identifiers, *columns.sensitive):
        _check_type(spelled[column.name], types[spelled[column.name]], column.type)
    for role, name in columns.roles():
        if role != "identifiers":
            _check_publishable(spelled[name], types[spelled[name]])
    for name in sensitive:
        _check_sensitive(name, types[name])
    conditions: dict[str, list[tuple[str, str]]] = {"drop": [], "error": [], "keep": []}
    for name in quasi_identifiers:
        conditions[missing.quasi_identifiers].append((name, is_missing(name, types[name])))
    conditions[missing.sensitive] += [(name, is_missing(name, types[name])) for name in sensitive]
    keep = " AND ".join(f"NOT {condition}" for _, condition in conditions["drop"]) or None
    return Microdata(
        valid_text.project(frame, [*quasi_identifiers, *other, *sensitive]),
        quasi_identifiers,
        other,
        sensitive,
        columns,
        keep,
        dict(conditions["error"]),
    )


def _spelled(frame: DataFrame, columns: Columns) -> dict[str, str]:
    """{name in the spec: name in the table}, compared as Spark compares names."""
    doubled = [name for name, times in Counter(name.lower() for name in frame.columns).items() if times > 1]
    if doubled:
        raise SpecError(f"input: the table has more than one column named {doubled[0]!r}; rename one of them")
    there = {name.lower(): name for name in frame.columns}
    for role, name in columns.roles():
        if name.lower() not in there:
            close = get_close_matches(name.lower(), there, 1)
            hint = f" (did you mean {there[close[0]]!r}?)" if close else ""
            raise SpecError(
                f"columns.{role}: the table has no column {name!r}{hint}. It has: {', '.join(frame.columns)}"
            )
    named = {name.lower() for name in columns.all_names}
    unnamed = [name for name in frame.columns if name.lower() not in named]
    if unnamed and not columns.withholds_rest:
        raise SpecError(
            f"columns: the table has {len(unnamed)} column(s) that the spec does not name: {', '.join(unnamed)}; name each under "
            "quasi_identifiers, sensitive, identifiers (never published) or other, or write identifiers: rest, which withholds them all; "
            "anonlib init drafts a spec with every column"
        )
    return {name: there[name.lower()] for name in columns.all_names}


def _check_type(name: str, spark_type: str, wanted: str) -> None:
    if wanted == "numeric" and not spark_type.startswith((*NUMERIC, "date", "timestamp")):
        raise SpecError(
            f"column {name!r} is declared numeric but the table has it as {spark_type}; "
            "cast it in the input (or give input.schema), or declare it type: categorical"
        )


_COLLATION = re.compile(r"\bcollate (?!utf8_binary\b)(\w+)", re.IGNORECASE)


def _check_publishable(name: str, spark_type: str) -> None:
    """Refuses types of which nobody can say when two values are one, or that no file can hold."""
    if collation := _COLLATION.search(spark_type):
        raise SpecError(
            f"column {name!r} is of type {spark_type}: under the collation {collation[1]} different texts are equal, and what is promised "
            f"is counted by the letter; give one spelling to each value in a view, e.g. lower({name}) COLLATE UTF8_BINARY AS {name}"
        )
    if spark_type in ("void", "interval"):
        raise SpecError(
            f"column {name!r} is of type {spark_type}, which no file can hold; cast it in the input, or name it under identifiers, and it "
            "is withheld"
        )


def _check_sensitive(name: str, spark_type: str) -> None:
    if spark_type.startswith(UNBUCKETABLE):
        raise SpecError(
            f"the sensitive column {name!r} is of type {spark_type}; it must have single values: cast it to a string in the input"
        )
