"""What stands for a missing value in a table (`?`, `NA`, -9), read as one where the spec says so; and what looks as if it should be.

A narrow projection of each pass: no job, no shuffle, partitions as they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.engine.failures import explained
from anonlib.engine.relational import aggregate, one_row
from anonlib.engine.tables import types
from anonlib.sql import literal, quoted

LIKELY_TEXTS = (
    "?",
    "-",
    "--",
    ".",
    "n/a",
    "na",
    "nan",
    "null",
    "none",
    "nil",
    "unknown",
    "missing",
    "not available",
    "",
)
"""Texts that often stand for a missing value, in lower case."""
LIKELY_NUMBERS = (-9, -99, -999, -9999)
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(?:\.[0-9]{1,18})?")
_FLOATING = ("float", "double")
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_SINGLE = ("string", "char", "varchar", "boolean", "date", "timestamp", "timestamp_ntz")


def read_as_missing(frame: DataFrame, columns: Collection[str], texts: Sequence[str]) -> DataFrame:
    """`frame` with null wherever a cell of `columns` (in any case) is one of `texts`: as text exactly, of a number its value.

    Columns of arrays, maps and structs are left as they are. Without `texts` it is `frame` itself.
    """
    if not texts:
        return frame
    named = {name.lower() for name in columns}
    conditions = {
        name: condition
        for name, kind in types(frame).items()
        if name.lower() in named and (condition := _stands_for(name, kind, texts)) is not None
    }
    return frame.select(
        *[
            F.expr(f"CASE WHEN {conditions[name]} THEN NULL ELSE {quoted(name)} END").alias(name)
            if name in conditions
            else F.col(quoted(name))
            for name in frame.columns
        ]
    )


def _stands_for(name: str, kind: str, texts: Sequence[str]) -> str | None:
    """SQL: whether the cell is one of `texts`; None where it cannot be."""
    column = quoted(name)
    base = re.split(r"[(< ]", kind)[0]
    if base in (*_WHOLE, *_FLOATING, "decimal"):
        numbers = [text for text in texts if _NUMBER.fullmatch(text)]
        if kind in _FLOATING:
            values = [f"CAST({literal(text)} AS {kind.upper()})" for text in numbers]
        else:
            values = [f"{Decimal(text):f}BD" for text in numbers]
        return f"{column} IN ({', '.join(values)})" if values else None
    if base in _SINGLE:
        return f"CAST({column} AS STRING) IN ({', '.join(literal(text) for text in texts)})"
    return None


def likely(frame: DataFrame, columns: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """{column: values in it that often stand for a missing one}, of `columns` as the frame spells them. One job, no shuffle of rows."""
    kinds, asked, meant = types(frame), {}, {}
    for i, name in enumerate(columns):
        cell = quoted(name)
        if kinds[name] in (*_WHOLE, *_FLOATING):
            tests = {str(number): f"{cell} = {number}" for number in LIKELY_NUMBERS if _fits(number, kinds[name])}
        elif kinds[name] == "string":
            tests = {text: f"lower(trim({cell})) = {literal(text)}" for text in LIKELY_TEXTS}
        else:
            continue
        for j, (text, test) in enumerate(tests.items()):
            # the cell itself, as it is spelled: one of them, whichever sorts first
            asked[f"v{i}_{j}"] = f"min(CASE WHEN {test} THEN CAST({cell} AS STRING) END)"
            meant[f"v{i}_{j}"] = (name, text)
    if not asked:
        return {}
    with explained("looking for what may stand for a missing value"):
        row = one_row(aggregate(frame, [], asked))
    spelled: dict[str, tuple[str, ...]] = {}
    for key, (name, text) in meant.items():
        if row[key] is not None:
            shown = text if kinds[name] != "string" else str(row[key])
            spelled[name] = (*spelled.get(name, ()), shown)
    return spelled


def _fits(number: int, kind: str) -> bool:
    return kind != "tinyint" or number >= -128
