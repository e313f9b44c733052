"""Run a pure kernel over all partitions of a DataFrame and add up what the tasks found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.engine.relational import rows

Kernel = Callable[[Iterable[Any]], npt.NDArray[np.float64]]


def partial_sums(frame: DataFrame, kernel: Kernel, length: int) -> npt.NDArray[np.float64]:
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
