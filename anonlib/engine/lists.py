"""A pure kernel over Arrow lists: new columns of doubles beside the others, item by item."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from anonlib.arrays import Float64Array

ListKernel = Callable[..., Mapping[str, Float64Array]]
"""(one Arrow column for each name asked for) -> {column: a number for each item of the lists, one list after the other; NaN for none}."""


def over_lists(
    frame: DataFrame, kernel: ListKernel, taken: Sequence[str], like: str, added: Sequence[str]
) -> DataFrame:
    """`frame` and, beside its columns, those `added`: lists of doubles, as long as those of the column `like`, that `kernel` computes.

    taken : the columns that the kernel gets, in order. All columns pass through Arrow untouched. Narrow: rows and partitions stay.
    """
    numbers = [T.StructField(name, T.ArrayType(T.DoubleType())) for name in added]
    schema = T.StructType([*frame.schema.fields, *numbers])

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            place = {name: i for i, name in enumerate(batch.schema.names)}
            answers = kernel(*(batch.column(place[name]) for name in taken))
            sizes = batch.column(place[like]).value_lengths().to_numpy(zero_copy_only=False)
            ends = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
            lists = [pa.ListArray.from_arrays(ends, _or_null(answers[name])) for name in added]
            yield pa.RecordBatch.from_arrays([*batch.columns, *lists], names=[*batch.schema.names, *added])

    return frame.mapInArrow(task, schema)


def _or_null(numbers: Float64Array) -> Any:
    return pa.array(numbers, pa.float64(), mask=np.isnan(numbers))
