"""Run a pure kernel over all partitions of a DataFrame and add up what the tasks found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Float64Array
from anonlib.engine.relational import aggregate, rows

Kernel = Callable[[Iterable[Any]], Float64Array]


def partial_sums(frame: DataFrame, kernel: Kernel, length: int) -> Float64Array:
    """The sum over all partitions of `kernel(record batches of the partition)`, a float64 vector of `length`.

    kernel : gets the iterator of the partition's Arrow record batches, and returns (length,) float64. It is pickled: the package
             that holds it must be importable on the workers. An empty partition may call it with no batch, or not at all.

    One job: each task emits one vector, the vectors are added by position (one shuffle of tasks x length rows), and `length` rows
    reach the driver. Sums of doubles may differ in their last digits from run to run. Raises ValueError inside the task when the
    kernel's vector has another length.
    """

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = np.asarray(kernel(batches), dtype=np.float64)
        if found.shape != (length,):
            raise ValueError(f"the kernel returned shape {found.shape}, not ({length},)")
        at = np.flatnonzero(found)
        yield pa.RecordBatch.from_arrays([pa.array(at.astype(np.int32)), pa.array(found[at])], names=["at", "part"])

    summed = frame.mapInArrow(task, "at int, part double").groupBy("at").agg(F.sum("part").alias("total"))
    total = np.zeros(length, dtype=np.float64)
    for row in rows(summed, length):
        total[row["at"]] = row["total"]
    return total


def merged(
    frame: DataFrame,
    kernel: Callable[[Iterable[Any]], Mapping[str, Any]],
    schema: str,
    by: Sequence[str],
    aggregates: Mapping[str, str],
    limit: int,
) -> list[dict[str, Any]]:
    """What `kernel` finds in each partition, merged on the cluster.

    kernel : gets the partition's Arrow record batches and returns {column of `schema`: array}, few rows; it is pickled
    by, aggregates : how the rows of different tasks are merged, {name: SQL aggregate}

    One job; at most `limit` rows reach the driver, more are an error.
    """
    fields = [part.strip().split(" ")[0] for part in schema.split(",")]
    arrow = {"int": pa.int32(), "bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}
    kinds = [arrow[part.strip().split(" ")[1]] for part in schema.split(",")]

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = kernel(batches)
        yield pa.RecordBatch.from_arrays(
            [pa.array(found[f], k) for f, k in zip(fields, kinds, strict=True)], names=fields
        )

    return rows(aggregate(frame.mapInArrow(task, schema), by, aggregates), limit)
