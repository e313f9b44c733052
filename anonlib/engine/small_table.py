"""Small driver-side tables for joins: sensitive values, thresholds, query masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame


def small_table(beside: DataFrame, schema: str, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    """`rows` as a DataFrame of `beside`'s session, marked for broadcast. `schema` is DDL, e.g. "value string, code int"."""
    return beside.sparkSession.createDataFrame(list(rows), schema).hint("broadcast")
