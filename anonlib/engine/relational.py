"""Relational verbs in SQL text, so that layers above the engine speak to Spark without importing it.

Columns are given as keyword -> Spark SQL expression; names inside expressions are quoted with `anonlib.sql.quoted`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Generic, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.errors import AnonlibError

__all__ = [
    "DataFrame",
    "Row",
    "Small",
    "aggregate",
    "collected",
    "one_row",
    "rows",
    "select",
    "with_columns",
]

Answer = TypeVar("Answer")
Row = dict[str, Any]


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


def rows(frame: DataFrame, limit: int) -> list[Row]:
    """At most `limit` rows, as dictionaries. Raises if there are more: what grows with the table never reaches the driver."""
    return _within([row.asDict(recursive=True) for row in frame.limit(limit + 1).collect()], limit)


@dataclass(frozen=True)
class Small(Generic[Answer]):
    """An answer that rests on a few rows, still to be asked for: see `collected`.

    frames : (frame, how many rows it may have) of each result; read : the rows of each, in this order -> the answer
    """

    frames: tuple[tuple[DataFrame, int], ...]
    read: Callable[[list[list[Row]]], Answer]

    @staticmethod
    def of_row(frame: DataFrame, read: Callable[[Row], Answer]) -> Small[Answer]:
        """An answer read from the single row of a global aggregate."""
        return Small(((frame, 1),), lambda results: read(results[0][0]))

    @staticmethod
    def of_rows(frame: DataFrame, limit: int, read: Callable[[list[Row]], Answer]) -> Small[Answer]:
        """An answer read from the rows of `frame`, at most `limit` of them; more raise when it is collected."""
        return Small(((frame, limit),), lambda results: read(results[0]))

    @staticmethod
    def of(parts: Sequence[Small[Any]], read: Callable[[list[Any]], Answer]) -> Small[Answer]:
        """An answer read from the answers to `parts`, in their order."""

        def answer(results: list[list[Row]]) -> Answer:
            rest = iter(results)
            return read([part.read([next(rest) for _ in part.frames]) for part in parts])

        return Small(tuple(frame for part in parts for frame in part.frames), answer)


def collected(asked: Sequence[Small[Any]]) -> list[Any]:
    """The answers to all that is `asked`, in order, in one job: planning and starting one costs more than a small table's work.

    Each result is a branch of one union, as a struct column of its own; scans and shuffles are those of the results by themselves, and a
    shuffle of the at most `limit` + 1 rows of a result that several tasks share. Raises as `rows` does.
    """
    frames = [pair for small in asked for pair in small.frames]
    results = iter([rows(frame, limit) for frame, limit in frames] if len(frames) < 2 else _together(frames))
    return [small.read([next(results) for _ in small.frames]) for small in asked]


def _together(frames: Sequence[tuple[DataFrame, int]]) -> Iterator[list[Row]]:
    branches = [
        frame.limit(limit + 1).select(
            F.lit(k).alias("result"), F.struct(*[F.col(_back(name)) for name in frame.columns]).alias(f"row{k}")
        )
        for k, (frame, limit) in enumerate(frames)
    ]
    results: list[list[Row]] = [[] for _ in frames]
    for row in reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), branches).collect():
        k = row["result"]
        results[k].append(row[f"row{k}"].asDict(recursive=True))
    for result, (_, limit) in zip(results, frames, strict=True):
        yield _within(result, limit)


def _within(result: list[Row], limit: int) -> list[Row]:
    if len(result) > limit:
        raise AnonlibError(
            f"internal: a result meant to have at most {limit:,} rows has more; it was not brought to the driver"
        )
    return result


def _back(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
