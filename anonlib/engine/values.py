"""Small driver-side tables for joins (sensitive values, thresholds, query masks), and the values that codes stand for, and back.

A short list of values stands in the expression itself, which costs less than a join with it: Spark runs a job for every table that it
broadcasts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.engine.local_table import local_table
from anonlib.engine.statistics import typed_value
from anonlib.sql import literal, quoted

SHORT = 64
"""Values of a list that may stand in an expression: going down it takes about as long as looking a value up in a hash table."""
SHORT_TEXT = 100_000
"""Characters of such a list, all values together: an expression is written out, parsed and sent along with every task."""


def is_short(texts: Sequence[str | None]) -> bool:
    """Whether a list of values may stand in an expression: 1 to `SHORT` of them, of at most `SHORT_TEXT` characters together."""
    return 0 < len(texts) <= SHORT and sum(len(text or "") for text in texts) <= SHORT_TEXT


def text_at(code: str, texts: Sequence[str | None], spark_type: str) -> str:
    """SQL: the value of `spark_type` whose text is texts[code]; null for a code out of range. For lists that are short (`is_short`)."""
    return f"get(array({', '.join(typed_value(literal(text), spark_type) for text in texts)}), {code})"


def position_of(text: str, texts: Sequence[str | None]) -> str:
    """SQL: the bigint i with texts[i] equal to `text`, two nulls being equal; null where it is none of them.

    For lists that are short (`is_short`).
    """
    cases = " ".join(f"WHEN {text} <=> {literal(known)} THEN {i}L" for i, known in enumerate(texts))
    return f"CASE {cases} END"


def small_table(beside: DataFrame, schema: str, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    """`rows` as a DataFrame of `beside`'s session, marked for broadcast. `schema` is DDL, e.g. "value string, code int"."""
    return local_table(beside.sparkSession, schema, rows).hint("broadcast")


def with_values(
    frame: DataFrame, code: str, texts: Sequence[Sequence[str | None]], types: Mapping[str, str]
) -> DataFrame:
    """`frame` with new columns `types` {name: Spark type}, the k-th from texts[code][k]; `code` is SQL of an int in range.

    A projection or, where the texts are no short list, one broadcast join of as many rows as there are texts; partitions and the order of
    rows stay.
    """
    if all(is_short([row[k] for row in texts]) for k in range(len(types))):
        values = {
            name: F.expr(text_at("`anonlib coded`", [row[k] for row in texts], kind))
            for k, (name, kind) in enumerate(types.items())
        }
        return frame.withColumn("anonlib coded", F.expr(code)).withColumns(values).drop("anonlib coded")
    inner = [f"anonlib value {k}" for k in range(len(types))]
    schema = ", ".join(["`anonlib listed` int", *(f"{quoted(name)} string" for name in inner)])
    known = small_table(frame, schema, [(i, *row) for i, row in enumerate(texts)]).select(
        "anonlib listed",
        *[
            F.expr(typed_value(quoted(k), kind)).alias(name)
            for k, (name, kind) in zip(inner, types.items(), strict=True)
        ],
    )
    # a left join, so that no filter on the code is made up and moved below the task that computes it
    joined = frame.withColumn("anonlib coded", F.expr(code)).join(
        known.hint("broadcast"), F.expr("`anonlib coded` = `anonlib listed`"), "left"
    )
    return joined.drop("anonlib coded", "anonlib listed")
