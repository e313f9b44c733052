"""Pure kernels over Arrow batches of records: new columns batch by batch, or sums over what the tasks say.

A kernel is pickled: the package that holds it must be importable on the workers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Codes, Float64Array, Lists
from anonlib.engine.relational import Small, aggregate, collected, rows

BatchKernel = Callable[[dict[str, Codes]], Mapping[str, Any]]
"""{column: (n,) codes} of n records -> {new column: as many values, `Lists` for a column of lists}."""
GroupKernel = Callable[[int, Any], Mapping[str, Any]]
"""(value of the grouping column, Arrow table of the group's records) -> {column of the schema: as many values as rows come out}."""
PartitionSum = Callable[[Iterable[Any]], Float64Array]
"""(the record batches of a partition) -> (length,) float64."""
PartitionRows = Callable[[Iterable[Any]], Mapping[str, Any]]
"""(the record batches of a partition) -> {column: values}, few rows."""

ARROW = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "array<int>": pa.list_(pa.int32()),
}
"""Arrow's types of the Spark types that kernels give."""


def fields(schema: str) -> dict[str, str]:
    """{column: Spark type} of DDL such as "q0 bigint, q1_set array<int>"."""
    return dict(part.strip().split(" ") for part in schema.split(","))


def arrow_array(values: Any, kind: str) -> pa.Array:
    """A column of the Spark type `kind` (one of `ARROW`) as Arrow has it. values : an array, a list, or `Lists` for "array<int>"."""
    if isinstance(values, Lists):
        return pa.ListArray.from_arrays(pa.array(values.bounds, pa.int32()), pa.array(values.values, pa.int32()))
    return pa.array(values, ARROW[kind])


def over_batches(
    frame: DataFrame, kernel: BatchKernel, added: Mapping[str, str], kept: Sequence[str] | None = None
) -> DataFrame:
    """The columns `kept` of `frame` (all of them when None), untouched, and `added` {name: Spark type}: what `kernel` says of each batch.

    frame : columns of codes, bigint, double or int, without nulls. Narrow: one pass through Arrow; rows and partitions stay.
    """
    kinds = dict(frame.dtypes)
    kinds = {name: kinds[name] for name in (frame.columns if kept is None else kept)} | dict(added)
    schema = pa.schema([(name, ARROW[kind]) for name, kind in kinds.items()])

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            columns = {name: batch.column(i) for i, name in enumerate(batch.schema.names)}
            values = kernel({name: column.to_numpy(zero_copy_only=False) for name, column in columns.items()})
            computed = {name: arrow_array(values[name], added[name]) for name in added}
            passed = {name: column.cast(schema.field(name).type) for name, column in columns.items() if name in kinds}
            yield pa.RecordBatch.from_arrays([(passed | computed)[name] for name in kinds], schema=schema)

    return frame.mapInArrow(task, ", ".join(f"{name} {kind}" for name, kind in kinds.items()))


def over_groups(frame: DataFrame, by: str, kernel: GroupKernel, schema: str, dealt_by: str | None = None) -> DataFrame:
    """What `kernel` says of all records that have one value of the bigint column `by`, group by group.

    schema : DDL of what the kernel returns, of the types in `ARROW`. One shuffle, where the records of a group do not lie together yet, and
    a sort of each task by `by`; a group is in a worker's memory at once, as Arrow has it. A null in `by` fails the task.
    dealt_by : a column by which rows were dealt to tasks, the same throughout a group, which the kernel is not shown
    """
    kinds = fields(schema)
    returned = pa.schema([(name, ARROW[kind]) for name, kind in kinds.items()])
    hidden = [_HELD] if dealt_by is None else [_HELD, dealt_by]

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for value, group in _runs(batches, by):
            if group.num_rows != group.column(_HELD)[0].as_py():
                raise AssertionError(f"the records with {by} {value} have come apart")
            computed = kernel(value, group.drop_columns(hidden))
            arrays = [arrow_array(computed[name], kind) for name, kind in kinds.items()]
            yield pa.RecordBatch.from_arrays(arrays, schema=returned)

    # a window brings the records of a group together as a grouping does, and tells how many there are
    groups = by if dealt_by is None else f"{dealt_by}, {by}"
    counted = frame.withColumn(_HELD, F.expr(f"count(1) OVER (PARTITION BY {groups})"))
    return counted.mapInArrow(task, schema)


def _runs(batches: Iterable[pa.RecordBatch], by: str) -> Iterator[tuple[int, pa.Table]]:
    """(value of `by`, the records that have it) of each run of records with the same one, whatever batches it is in."""
    held: list[pa.RecordBatch] = []
    value = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        key = batch.column(batch.schema.get_field_index(by)).to_numpy()
        starts = [0, *(np.flatnonzero(key[1:] != key[:-1]) + 1).tolist(), len(key)]
        for first, stop in pairwise(starts):
            if held and key[first] != value:
                yield value, pa.Table.from_batches(held)
                held = []
            value = int(key[first])
            held.append(batch.slice(first, stop - first))
    if held:
        yield value, pa.Table.from_batches(held)


_HELD = "records_of_group"


def partial_sums(frame: DataFrame, kernel: PartitionSum, length: int) -> Float64Array:
    """The sum over all partitions of `kernel(record batches of the partition)`, a float64 vector of `length`.

    kernel : gets the iterator of the partition's Arrow record batches, and returns (length,) float64. An empty partition may call it with
             no batch, or not at all.

    One job: each task emits one vector, the vectors are added by position (one shuffle of tasks x length rows), and `length` rows
    reach the driver. Sums of doubles may differ in their last digits from run to run. Raises ValueError inside the task when the
    kernel's vector has another length.
    """
    total: Float64Array = collected([summed(frame, kernel, length)])[0]
    return total


def summed(frame: DataFrame, kernel: PartitionSum, length: int) -> Small[Float64Array]:
    """The sum that `partial_sums` returns, as a result to be collected together with others."""

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        vector = np.asarray(kernel(batches), dtype=np.float64)
        if vector.shape != (length,):
            raise ValueError(f"the kernel returned shape {vector.shape}, not ({length},)")
        at = np.flatnonzero(vector)
        yield pa.RecordBatch.from_arrays([pa.array(at.astype(np.int32)), pa.array(vector[at])], names=["at", "part"])

    def added(by_place: list[dict[str, Any]]) -> Float64Array:
        total = np.zeros(length, dtype=np.float64)
        for row in by_place:
            total[row["at"]] = row["total"]
        return total

    by_place = _mapped(frame, task, "at int, part double").groupBy("at").agg(F.sum("part").alias("total"))
    return Small.of_rows(by_place, length, added)


def merged(
    frame: DataFrame,
    kernel: PartitionRows,
    schema: str,
    by: Sequence[str],
    aggregates: Mapping[str, str],
    limit: int,
) -> list[dict[str, Any]]:
    """The rows of `tallied`. One job; at most `limit` rows reach the driver, more are an error."""
    return rows(tallied(frame, kernel, schema, by, aggregates), limit)


def tallied(
    frame: DataFrame, kernel: PartitionRows, schema: str, by: Sequence[str], aggregates: Mapping[str, str]
) -> DataFrame:
    """What `kernel` finds in each partition, merged on the cluster.

    kernel : gets the partition's Arrow record batches and returns {column of `schema`: array}, few rows
    by, aggregates : how the rows of different tasks are merged, {name: SQL aggregate}

    One shuffle of what the tasks found; a row for each that differs in `by`.
    """
    kinds = fields(schema)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        values = kernel(batches)
        columns = [pa.array(values[name], ARROW[kind]) for name, kind in kinds.items()]
        yield pa.RecordBatch.from_arrays(columns, names=list(kinds))

    return aggregate(_mapped(frame, task, schema), by, aggregates)


def _mapped(
    frame: DataFrame, task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: str
) -> DataFrame:
    """`frame.mapInArrow`, whatever the columns are called: it looks them up by unquoted names, and fails at a backtick or a dot in one."""
    names = frame.columns
    if all(map(_PLAIN.fullmatch, names)):
        return frame.mapInArrow(task, schema)

    def renamed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return task(pa.RecordBatch.from_arrays(batch.columns, names=names) for batch in batches)

    return frame.toDF(*[f"c{i}" for i in range(len(names))]).mapInArrow(renamed, schema)


_PLAIN = re.compile(r"\w+", re.ASCII)
