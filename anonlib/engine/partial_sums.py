"""One vector summed over a whole table: each task adds up its own, the driver receives one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.engine.failures import explained

Kernel = Callable[[Mapping[str, npt.NDArray[Any]]], npt.NDArray[np.float64]]
"""{column: array of a batch} -> (length,) float64."""


def partial_sums(frame: DataFrame, kernel: Kernel, length: int, doing: str) -> npt.NDArray[np.float64]:
    """The sum of `kernel` over batches of `frame`, (length,) float64.

    Columns are plain numbers or lists of numbers, without nulls; a list column reaches the kernel as its lists one after the other
    (their lengths are for the query to give as a column of its own). How rows fall into batches must not matter to the kernel.

    One job: a pass over `frame`, then a shuffle of at most `length` (position, value) pairs per task; `length` pairs reach the
    driver. The last digits of a sum depend on the order of additions. `doing` names the step in errors.
    """

    def tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = np.zeros(length)
        for batch in batches:
            if batch.num_rows:
                total += kernel({name: _array(batch.column(i)) for i, name in enumerate(batch.schema.names)})
        (position,) = np.nonzero(total)
        yield pa.RecordBatch.from_arrays(
            [pa.array(position, pa.int32()), pa.array(total[position], pa.float64())], names=["position", "value"]
        )

    sums = frame.mapInArrow(tasks, "position int, value double").groupBy("position").agg(F.sum("value").alias("value"))
    found = np.zeros(length)
    with explained(doing):
        for row in sums.collect():  # bounded: at most `length` rows
            found[row["position"]] = row["value"]
    return found


def _array(column: pa.Array) -> npt.NDArray[Any]:
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column = column.flatten()
    return column.to_numpy(zero_copy_only=False)
