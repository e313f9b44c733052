"""Tables made from a driver-side description, without a pass over any records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.engine.local_table import local_table
from anonlib.engine.statistics import typed_value

CHUNK = 50_000
"""Buckets per generated chunk: large enough to amortise a row of the plan, small enough to balance tasks."""
ROWS_PER_TASK = 2_000_000


def repeated_rows(
    spark: SparkSession,
    stretches: Iterable[tuple[int, int, Sequence[str | None], Sequence[int]]],
    names: tuple[str, str, str],
    spark_type: str,
) -> DataFrame:
    """One row per (id, value) for ids that hold the same values in stretches.

    stretches  : (start, stop, values as text, counts): every id in [start, stop) holds counts[k] of values[k]
    names      : of the id (long), value and count (long) columns
    spark_type : of the value column

    The rows of one id stand together. Cost: the stretches travel in the plan; where one task would have much
    to do, a shuffle of those few rows spreads them.
    """
    id_name, value_name, count_name = names
    chunks: list[tuple[Any, ...]] = []
    total = 0
    for start, stop, values, counts in stretches:
        total += (stop - start) * len(values)
        for left in range(start, stop, CHUNK):
            chunks.append((left, min(left + CHUNK, stop) - 1, list(values), [int(c) for c in counts]))
    frame = local_table(spark, "first long, last long, texts array<string>, counts array<long>", chunks)
    tasks = max(1, min(len(chunks), -(-total // ROWS_PER_TASK)))
    return (
        (frame.repartition(tasks, "first") if tasks > 1 else frame.coalesce(1))
        .withColumn("values", F.expr(f"transform(texts, t -> {typed_value('t', spark_type)})"))
        .select(
            F.expr("explode(sequence(first, last))").alias("id"), F.expr("arrays_zip(values, counts)").alias("held")
        )
        .select("id", F.expr("inline(held)"))
        .select(F.col("id").alias(id_name), F.col("values").alias(value_name), F.col("counts").alias(count_name))
    )
