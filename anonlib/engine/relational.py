"""Relational verbs in SQL text, so that layers above the engine speak to Spark without importing it.

Columns are given as keyword -> Spark SQL expression; names inside expressions are quoted with `anonlib.sql.quoted`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.errors import AnonlibError

__all__ = ["DataFrame", "aggregate", "one_row", "rows", "select", "with_columns"]


def select(frame: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """Project `frame` on new columns: {name: SQL expression}. No shuffle."""
    return frame.select(*[F.expr(text).alias(name) for name, text in columns.items()])


def with_columns(frame: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    """`frame` and, beside or instead of its columns, {name: SQL expression}. No shuffle."""
    for name, text in columns.items():
        frame = frame.withColumn(name, F.expr(text))
    return frame


def aggregate(frame: DataFrame, by: Sequence[str], columns: Mapping[str, str]) -> DataFrame:
    """Group by the columns named in `by` (the whole frame when empty) and aggregate {name: SQL aggregate}. One shuffle."""
    return frame.groupBy(*[F.col(_back(name)) for name in by]).agg(
        *[F.expr(text).alias(name) for name, text in columns.items()]
    )


def one_row(frame: DataFrame) -> dict[str, Any]:
    """The single row of a global aggregate, as a dictionary."""
    return rows(frame, limit=1)[0]


def rows(frame: DataFrame, limit: int) -> list[dict[str, Any]]:
    """At most `limit` rows, as dictionaries. Raises if there are more: what grows with the table never reaches the driver."""
    found = frame.limit(limit + 1).collect()
    if len(found) > limit:
        raise AnonlibError(
            f"internal: a result meant to have at most {limit:,} rows has more; it was not brought to the driver"
        )
    return [row.asDict(recursive=True) for row in found]


def _back(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
