"""Cut a table into partitions that hold exact numbers of records of each group, neighbours along a curve kept together.

    coded     : q0, q1, ... (bigint or double), s0, s1, ... (int), as `anonlib.engine.quasi_identifiers.encode` gives them
    on_curve  : the same and `grp` int, `curve` bigint: which group a record belongs to, and where it lies
    seated    : the same and `seat` bigint: written out in the order of (group, curve), which a range shuffle made; must be staged, since
                a second run of a range shuffle may cut elsewhere
    by_rank   : coded, `cell` bigint and `node` bigint: the partition that the record's exact rank in its group falls in

Records at one place of the curve stand in an order that only a salt of the release key knows, and equal rows are interchangeable, so the
cut is a function of the table's rows as a set and of the key, whatever the input's order or partitions. One range shuffle of the codes, one
scan for (task x group) counts on the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Codes, Int64Array
from anonlib.engine.failures import TaskRefusal, explained
from anonlib.engine.ranks import CHANGED
from anonlib.engine.relational import rows
from anonlib.errors import AnonlibError
from anonlib.keyed import Stream

Curve = Callable[[list[Codes], Int64Array], tuple[Int64Array, Int64Array]]
"""(code columns, first sensitive codes) -> (group, place on the curve) of each record."""
Locate = Callable[[Int64Array, Int64Array], tuple[Int64Array, Int64Array]]
"""(group, rank within it) -> (partition, node) of each record."""
Kernel = Callable[[list[Codes], list[Int64Array], Int64Array, int], dict[str, Any]]
"""(code columns, sensitive columns, nodes, partition) -> {column of the schema: as many values as records come out}."""

MAX_COUNTS = 4_000_000
_ARROW = {"bigint": pa.int64(), "double": pa.float64(), "int": pa.int32()}


def on_curve(coded: DataFrame, curve: Curve) -> DataFrame:
    """Each record's group and place on the curve. Narrow: one pass of the codes through Arrow."""
    names = code_columns(coded)

    def kernel(columns: dict[str, Codes]) -> dict[str, Codes]:
        group, place = curve([columns[name] for name in names], columns["s0"].astype(np.int64))
        return {"grp": group.astype(np.int32), "curve": place}

    return with_codes(coded, kernel, {"grp": "int", "curve": "bigint"})


def seated(records: DataFrame, salt: int) -> DataFrame:
    """`records` ordered by group and curve, with each one's seat: (task << 33) + place. One range shuffle."""
    codes = [name for name in records.columns if name not in ("grp", "curve")]
    keys = [F.col("grp"), F.col("curve"), F.expr(f"xxhash64({salt}L, {', '.join(codes)})"), *map(F.col, codes)]
    return (
        records.repartitionByRange(*keys)
        .sortWithinPartitions(*keys)
        .withColumn("seat", F.monotonically_increasing_id())
    )


def by_rank(staged: DataFrame, sizes: Int64Array, locate: Locate) -> DataFrame:
    """The partition of every record of a staged `seated` table, by its exact rank within its group.

    sizes : (groups,) int64, what each group must hold. Raises AnonlibError when the staged table holds something else.
    """
    with explained("counting the records of each group"):
        found = rows(
            staged.groupBy(F.expr("shiftright(seat, 33)").alias("task"), "grp").agg(F.count(F.lit(1)).alias("n")),
            MAX_COUNTS,
        )
    shift = _shifts(found, sizes)

    def kernel(columns: dict[str, Codes]) -> dict[str, Codes]:
        group, seat = columns["grp"].astype(np.int64), columns["seat"]
        rank = (seat & ((1 << 33) - 1)) + shift.at(seat >> 33, group)
        cell, node = locate(group, rank)
        return {"cell": cell, "node": node}

    return with_codes(staged, kernel, {"cell": "bigint", "node": "bigint"}).drop("grp", "curve", "seat")


class _shifts:  # noqa: N801  (a table with a lookup)
    """What to add to a record's place in its task to get its rank in its group."""

    def __init__(self, found: list[dict[str, Any]], sizes: Int64Array) -> None:
        task = np.array([row["task"] for row in found], dtype=np.int64)
        group = np.array([row["grp"] for row in found], dtype=np.int64)
        n = np.array([row["n"] for row in found], dtype=np.int64)
        if not np.array_equal(np.bincount(group, n, minlength=len(sizes)).astype(np.int64), sizes):
            raise AnonlibError(CHANGED)
        order = np.lexsort((group, task))
        task, group, n = task[order], group[order], n[order]
        within = np.cumsum(n) - n
        first = np.searchsorted(task, task)
        within -= within[first]  # where the group begins in the task
        by_group = np.lexsort((task, group))
        ahead = np.cumsum(n[by_group]) - n[by_group]
        start = np.searchsorted(group[by_group], group[by_group])
        rank = np.empty(len(n), dtype=np.int64)
        rank[by_group] = ahead - ahead[start]
        self.groups = len(sizes)
        self.keys = task * self.groups + group  # ascending
        self.shift = rank - within

    def at(self, task: Int64Array, group: Int64Array) -> Int64Array:
        return np.asarray(self.shift[np.searchsorted(self.keys, task * self.groups + group)], dtype=np.int64)


def recalled(cells: DataFrame, names: Int64Array) -> DataFrame:
    """`cells` with each cell called names[cell] instead. Narrow."""
    return with_codes(
        cells.withColumnRenamed("cell", "old"), lambda c: {"cell": names[c["old"]]}, {"cell": "bigint"}
    ).drop("old")


def sampled(coded: DataFrame, at_most: int, of: int) -> tuple[list[Codes], list[Int64Array]]:
    """(code columns, sensitive columns) of about `at_most` of a table's `of` records, never more, on the driver. One scan."""
    share = min(1.0, at_most / max(1, of))
    some = coded if share == 1 else coded.where(F.rand(0) < share)
    with explained("reading a sample"):
        table: pd.DataFrame = some.limit(at_most).toPandas()  # bounded
    sensitive = [name for name in table.columns if name.startswith("s")]
    return [table[name].to_numpy() for name in code_columns(coded)], [
        table[name].to_numpy(np.int64) for name in sensitive
    ]


def over_partitions(frame: DataFrame, kernel: Kernel, schema: str, key: bytes, purpose: str) -> DataFrame:
    """Run `kernel` on all records of each `cell` at once, in an order that only `key` knows, so that no kernel can lean on the input's.

    schema : DDL of what the kernel returns. One shuffle of all codes; a task holds one cell in memory. What the kernel refuses
    (AnonlibError) fails the run in its own words.
    """
    names = code_columns(frame)
    sensitive = [name for name in frame.columns if name.startswith("s") and name[1:].isdigit()]
    wanted = [part.strip().split(" ")[0] for part in schema.split(", ")]

    def task(group: pd.DataFrame) -> pd.DataFrame:
        cell = int(group["cell"].iloc[0])
        columns = [group[name].to_numpy() for name in names]
        values = [group[name].to_numpy(np.int64) for name in sensitive]
        nodes = group["node"].to_numpy(np.int64)
        order = np.lexsort((*values, *reversed(columns), nodes))  # the same records, the same order, however they came
        order = order[Stream(key, purpose, cell).permutation(len(order))]
        try:
            found = kernel([c[order] for c in columns], [v[order] for v in values], nodes[order], cell)
        except AnonlibError as error:
            raise TaskRefusal(str(error), type(error)) from error
        return pd.DataFrame({name: found[name] for name in wanted})

    return frame.groupBy("cell").applyInPandas(task, schema)


def code_columns(coded: DataFrame) -> list[str]:
    """q0, q1, ... in order."""
    return [name for name in coded.columns if name.startswith("q") and name[1:].isdigit()]


def with_codes(
    frame: DataFrame, kernel: Callable[[dict[str, Codes]], dict[str, Codes]], added: dict[str, str]
) -> DataFrame:
    """`frame` with more columns, {name: kind} bigint, double or int: what `kernel` says of the columns that are there. Narrow."""
    kinds = [*frame.dtypes, *added.items()]
    schema = pa.schema([(name, _ARROW[kind]) for name, kind in kinds])

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            names = batch.schema.names
            found = kernel({name: batch.column(i).to_numpy(zero_copy_only=False) for i, name in enumerate(names)})
            kept = [batch.column(i).cast(schema.field(i).type) for i in range(len(names))]
            new = [pa.array(found[name], _ARROW[kind]) for name, kind in added.items()]
            yield pa.RecordBatch.from_arrays([*kept, *new], schema=schema)

    return frame.mapInArrow(task, ", ".join(f"{name} {kind}" for name, kind in kinds))
