"""Partitions of a coded table: which one a record belongs to, what each holds, and a kernel over all records of each at once.

    coded      : q0, q1, ... (bigint or double), s0, s1, ... (int), as `anonlib.engine.codes.encode` gives them
    located    : the same and `partition` bigint, the partition a record belongs to; and `node` bigint, where a kernel is to know more of
                 a record's place than that

A partition is what one task works on in one piece, not a partition of Spark's. Nothing here looks at sensitive values to decide where a
record goes; `partition_counts` reports them so that the driver can merge partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Codes, Int64Array
from anonlib.engine.batches import over_batches, over_groups
from anonlib.engine.codes import bounded, code_columns, sensitive_columns
from anonlib.engine.failures import TaskRefusal
from anonlib.engine.placement import seats
from anonlib.engine.relational import select, with_columns
from anonlib.errors import AnonlibError
from anonlib.keyed import Stream

PARTITION, NODE, SEAT = "partition", "node", "seat_of_partition"

PartitionKernel = Callable[[list[Codes], list[Int64Array], Int64Array, int], dict[str, Any]]
"""(code columns, sensitive columns, nodes, partition) -> {column of the schema: as many values as records come out}, lists as `Lists`."""
Locate = Callable[[list[Codes]], Int64Array]
"""code columns -> the partition of each record."""


def in_one_piece(coded: DataFrame) -> DataFrame:
    """`coded` with `partition` = 0: all records are one partition. Narrow: no shuffle here."""
    return with_columns(coded, {PARTITION: "0L"})


def located(coded: DataFrame, locate: Locate) -> DataFrame:
    """`coded` with `partition` = locate(code columns). Narrow: one pass of the codes through Arrow; Spark's partitions stay."""
    names = code_columns(coded)
    return over_batches(
        coded, lambda columns: {PARTITION: locate([columns[name] for name in names])}, {PARTITION: "bigint"}
    )


def renumbered(records: DataFrame, number: Int64Array) -> DataFrame:
    """Located records, with partition number[p] where they were in p. Narrow: a projection, or beyond `LISTED` partitions a pass through
    Arrow."""
    kept = [name for name in records.columns if name != PARTITION]
    if len(number) <= LISTED:
        listed = f"array({', '.join(f'{new}L' for new in number.tolist())})"
        return select(records, {name: name for name in kept} | {PARTITION: f"get({listed}, CAST({PARTITION} AS INT))"})
    return over_batches(records, lambda columns: {PARTITION: number[columns[PARTITION]]}, {PARTITION: "bigint"}, kept)


def partition_counts(records: DataFrame, number: int, sizes: Sequence[int]) -> Int64Array:
    """(number, sum of sizes) int64: records of each sensitive value in each partition, sensitive column after sensitive column.

    sizes : how many values each sensitive column has. A shuffle of number x m counts for each column, all of which reach the driver.
    """
    return np.concatenate([_counts(records, number, f"s{i}", m) for i, m in enumerate(sizes)], axis=1)


def _counts(records: DataFrame, number: int, column: str, m: int) -> Int64Array:
    counted = records.groupBy(PARTITION, column).agg(F.count(F.lit(1)).alias("records"))
    table = bounded(counted, number * m, "partitions by sensitive values")
    counts = np.zeros((number, m), dtype=np.int64)
    counts[table[PARTITION].to_numpy(np.int64), table[column].to_numpy(np.int64)] = table["records"].to_numpy(np.int64)
    return counts


LISTED = 1_000
"""Partitions whose new numbers may stand in an expression."""
OWN_TASK = 4
"""Up to so many partitions for each task that a shuffle has, each has a task of its own."""
MOST_TASKS = 200
"""Tasks where the session does not tell how many a shuffle has: Spark's own number."""


def _spread(records: DataFrame, held: Int64Array) -> DataFrame:
    """Located records, dealt to tasks by their partition, with `SEAT`. The shuffle that a kernel needs anyway."""
    asked = records.sparkSession.conf.get("spark.sql.shuffle.partitions", None) or ""
    tasks = int(asked) if asked.isdigit() else MOST_TASKS  # a managed session may have a word there
    seat = PARTITION  # very many are dealt evenly by any hash
    if len(held) <= LISTED:
        tasks = len(held) if len(held) <= OWN_TASK * tasks else tasks
        work = held.astype(np.float64) ** 2  # records are compared in pairs
        listed = ", ".join(f"{number}L" for number in seats(work, tasks).tolist())
        seat = f"get(array({listed}), CAST({PARTITION} AS INT))"
    return with_columns(records, {SEAT: seat}).repartition(tasks, F.col(SEAT))


def over_partitions(
    records: DataFrame, kernel: PartitionKernel, schema: str, key: bytes, purpose: str, held: Int64Array | None = None
) -> DataFrame:
    """Run `kernel` on all records of each partition at once, in an order that only `key` knows, so that no kernel can lean on the input's.

    schema : DDL of what the kernel returns. Nodes are 0 where `records` have none. One shuffle of all codes; a task holds one partition in
    memory (about 8 bytes a code, times a few). What the kernel refuses (AnonlibError) fails the run in its own words.
    held : (p,) how many records each of p partitions has, about, where the kernel takes long for so few bytes: they are then dealt to tasks
           that take about as long each (`anonlib.engine.placement`); adaptive execution would join them, by their bytes, into one or two
    """
    dealt_by = None
    if held is not None and len(held) > 1:
        records, dealt_by = _spread(records, held), SEAT
    names, sensitive = code_columns(records), sensitive_columns(records)
    has_nodes = NODE in records.columns

    def task(partition: int, group: Any) -> dict[str, Any]:
        columns = [group.column(name).to_numpy() for name in names]
        values = [group.column(name).to_numpy().astype(np.int64) for name in sensitive]
        n = group.num_rows
        nodes = group.column(NODE).to_numpy().astype(np.int64) if has_nodes else np.zeros(n, dtype=np.int64)
        order = np.lexsort((*values, *reversed(columns), nodes))  # the same records, the same order, however they came
        order = order[Stream(key, purpose, partition).permutation(n)]
        try:
            return kernel([c[order] for c in columns], [v[order] for v in values], nodes[order], partition)
        except AnonlibError as error:
            raise TaskRefusal(str(error), type(error)) from error

    return over_groups(records, PARTITION, task, schema, dealt_by)
