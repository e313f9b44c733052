"""Small driver-side tables for joins (sensitive values, thresholds, query masks), and the values that codes stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.engine.statistics import typed_value
from anonlib.sql import quoted


def small_table(beside: DataFrame, schema: str, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    """`rows` as a DataFrame of `beside`'s session, marked for broadcast. `schema` is DDL, e.g. "value string, code int"."""
    return beside.sparkSession.createDataFrame(list(rows), schema).hint("broadcast")


def with_values(
    frame: DataFrame, code: str, texts: Sequence[Sequence[str | None]], types: Mapping[str, str]
) -> DataFrame:
    """`frame` with new columns `types` {name: Spark type}, the k-th from texts[code][k]; `code` is SQL of an int in range.

    One broadcast join of as many rows as there are texts; partitions and the order of rows stay.
    """
    inner = [f"anonlib value {k}" for k in range(len(types))]
    schema = ", ".join(["`anonlib code` int", *(f"{quoted(name)} string" for name in inner)])
    values = small_table(frame, schema, [(i, *row) for i, row in enumerate(texts)]).select(
        "anonlib code",
        *[
            F.expr(typed_value(quoted(k), kind)).alias(name)
            for k, (name, kind) in zip(inner, types.items(), strict=True)
        ],
    )
    # a left join, so that no filter on the code is made up and moved below the task that computes it
    joined = frame.withColumn("anonlib coded", F.expr(code)).join(
        values.hint("broadcast"), F.expr("`anonlib coded` = `anonlib code`"), "left"
    )
    return joined.drop("anonlib coded", "anonlib code")
