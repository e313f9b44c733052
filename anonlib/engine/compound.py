"""Several sensitive columns as one: each combination of values that occurs is a value of its own, and its text can be taken apart again.

The text of a combination is its columns' texts joined by `|`; a `|` or backslash in a text has a backslash before it, and a null is `\\0`.
Different combinations therefore have different texts, as different values of one column have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import functions as F

from anonlib.engine.microdata import Microdata
from anonlib.engine.statistics import value_text
from anonlib.engine.tables import types
from anonlib.sql import literal

NULL = "\\0"
_PIECE = re.compile(r"(\\.|\|)", re.DOTALL)


def name(columns: Sequence[str]) -> str:
    """What the combination of these columns is called: "age and country", or the column itself."""
    return " and ".join(columns)


def with_compound(table: Microdata) -> tuple[Microdata, str]:
    """`table`, and the column that holds its sensitive value: the sensitive column itself or, of several, a new one with their texts.

    A narrow step: rows and partitions stay. Its name is none of the table's.
    """
    if len(table.sensitive_columns) == 1:
        return table, table.sensitive
    kinds = types(table.frame)
    column = name(table.sensitive_columns)
    while column.lower() in {c.lower() for c in table.frame.columns}:
        column += "_"
    text = compound_text({c: kinds[c] for c in table.sensitive_columns})
    return replace(table, frame=table.frame.withColumn(column, F.expr(text))), column


def compound_text(columns: Mapping[str, str]) -> str:
    """SQL: the text of a combination of {column: Spark type}, in this order."""
    escape, bar = literal("\\"), literal("|")
    texts = []
    for column, spark_type in columns.items():
        text = value_text(column, spark_type)
        escaped = f"replace(replace({text}, {escape}, {literal(chr(92) * 2)}), {bar}, {literal(chr(92) + '|')})"
        texts.append(f"coalesce({escaped}, {literal(NULL)})")
    return f"concat_ws({bar}, {', '.join(texts)})"


def text_of(columns: Mapping[str, str]) -> str:
    """SQL: the text of a sensitive value, of one column or of several {column: Spark type}, as the manifest writes it."""
    return compound_text(columns) if len(columns) > 1 else value_text(*next(iter(columns.items())))


def parts_of(text: str, columns: int) -> tuple[str | None, ...]:
    """The texts of a combination's columns, None for a null.

    >>> parts_of("30|a\\\\|b|\\\\0", 3)
    ('30', 'a|b', None)
    """
    parts: list[str | None] = []
    piece = ""
    null = False
    for token in [*_PIECE.split(text), "|"]:
        if token == "|":
            parts.append(None if null else piece)
            piece, null = "", False
        elif token == NULL:
            null = True
        else:
            piece += token[1:] if token.startswith("\\") else token
    if len(parts) != columns:
        raise ValueError(f"{text!r} is no text of {columns} columns")
    return tuple(parts)
