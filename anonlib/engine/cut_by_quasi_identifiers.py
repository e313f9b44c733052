"""Counting and routing records by their quasi-identifiers, and running a kernel on all records of a partition at once.

    coded     : q0, q1, ... (bigint or double), s0 (int), as `anonlib.engine.quasi_identifiers.encode` gives them
    located   : the same and `cell` bigint, the partition a record belongs to

Nothing here looks at sensitive values to decide where a record goes; `cell_counts` reports them so that the driver can merge cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Codes, Int64Array
from anonlib.engine.failures import TaskRefusal, explained
from anonlib.engine.relational import aggregate, one_row
from anonlib.errors import AnonlibError
from anonlib.keyed import Stream

Kernel = Callable[[list[Codes], Int64Array, int], dict[str, Any]]
"""(code columns, sensitive codes, partition) -> {column of the schema: as many values as records come out}."""

CELL = "cell"


class TooMany(AnonlibError):
    """More rows than the driver takes."""


def code_columns(coded: DataFrame) -> list[str]:
    """q0, q1, ... in order."""
    return [name for name in coded.columns if name.startswith("q")]


def one_in(coded: DataFrame, n: int, most: int) -> int:
    """In how many slots the combinations of quasi-identifiers of n records fall by hash, so that one has about `most` of them.

    What counts is how many combinations there are, not records: a billion records of ten thousand combinations need no slots. One pass
    without a shuffle, and none where n is at most `most`.
    """
    if n <= most:
        return 1
    distinct = f"approx_count_distinct(xxhash64({', '.join(code_columns(coded))}))"
    with explained("counting combinations of quasi-identifiers"):
        return max(1, -(-int(one_row(aggregate(coded, [], {"d": distinct}))["d"]) // most))


def combinations(coded: DataFrame, limit: int, one_in: int = 1) -> tuple[list[Codes], Int64Array]:
    """(code columns of the distinct combinations of quasi-identifiers, how many records have each).

    one_in : take only the combinations whose hash falls in one of so many slots. One shuffle of distinct combinations; at most `limit`
    reach the driver, TooMany if there are more.
    """
    names = code_columns(coded)
    found = coded.groupBy(*names).agg(F.count(F.lit(1)).alias("records"))
    if one_in > 1:
        found = found.where(F.expr(f"pmod(xxhash64({', '.join(names)}), {one_in}) = 0"))
    table = _bounded(found, limit, "combinations of quasi-identifiers")
    return [table[name].to_numpy() for name in names], table["records"].to_numpy(np.int64)


def combinations_with_values(coded: DataFrame, limit: int) -> tuple[list[Codes], Int64Array, Int64Array]:
    """(code columns, sensitive codes, records) of the distinct combinations of both. As `combinations`."""
    names = code_columns(coded)
    found = coded.groupBy(*names, "s0").agg(F.count(F.lit(1)).alias("records"))
    table = _bounded(found, limit, "combinations of quasi-identifiers and sensitive values")
    table = table.sort_values([*names, "s0"], ignore_index=True)
    return (
        [table[name].to_numpy() for name in names],
        table["s0"].to_numpy(np.int64),
        table["records"].to_numpy(np.int64),
    )


def located(coded: DataFrame, locate: Callable[[list[Codes]], Int64Array]) -> DataFrame:
    """`coded` with `cell` = locate(code columns). Narrow: one pass of the codes through Arrow; partitions stay."""
    names = code_columns(coded)
    schema = pa.schema([*[(name, _ARROW[kind]) for name, kind in coded.dtypes], (CELL, pa.int64())])

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            at = batch.schema.names
            columns = [batch.column(at.index(name)).to_numpy(zero_copy_only=False) for name in names]
            cells = locate(columns) if batch.num_rows else np.zeros(0, dtype=np.int64)
            kept = [batch.column(i).cast(schema.field(i).type) for i in range(len(at))]
            yield pa.RecordBatch.from_arrays([*kept, pa.array(cells, pa.int64())], schema=schema)

    return coded.mapInArrow(task, ", ".join(f"{name} {kind}" for name, kind in [*coded.dtypes, (CELL, "bigint")]))


_ARROW = {"bigint": pa.int64(), "double": pa.float64(), "int": pa.int32()}


def cell_counts(cells: DataFrame, number: int, m: int) -> Int64Array:
    """(number, m) int64: records of each sensitive value in each cell. One shuffle of cells x m counts, all of which reach the driver."""
    found = _bounded(
        cells.groupBy(CELL, "s0").agg(F.count(F.lit(1)).alias("records")), number * m, "cells by sensitive values"
    )
    counts = np.zeros((number, m), dtype=np.int64)
    counts[found[CELL].to_numpy(np.int64), found["s0"].to_numpy(np.int64)] = found["records"].to_numpy(np.int64)
    return counts


def over_cells(cells: DataFrame, kernel: Kernel, schema: str, key: bytes, purpose: str) -> DataFrame:
    """Run `kernel` on all records of each cell at once, in an order that only `key` knows, so that no kernel can lean on the input's.

    schema : DDL of what the kernel returns. One shuffle of all codes; a task holds one cell in memory (about 8 bytes a code, times a few).
    What the kernel refuses (AnonlibError) fails the run in its own words.
    """
    names = code_columns(cells)
    wanted = [part.strip().split(" ")[0] for part in schema.split(", ")]

    def task(group: pd.DataFrame) -> pd.DataFrame:
        cell = int(group[CELL].iloc[0])
        columns, sensitive = [group[name].to_numpy() for name in names], group["s0"].to_numpy(np.int64)
        order = np.lexsort(
            (sensitive, *reversed(columns))
        )  # the same records, the same order, whatever was fetched first
        order = order[Stream(key, purpose, cell).permutation(len(order))]
        try:
            found = kernel([column[order] for column in columns], sensitive[order], cell)
        except AnonlibError as error:
            raise TaskRefusal(str(error), type(error)) from error
        return pd.DataFrame({name: found[name] for name in wanted})

    return cells.groupBy(CELL).applyInPandas(task, schema)


def over_batches(
    coded: DataFrame, kernel: Callable[[list[Codes], Int64Array], dict[str, Any]], schema: str
) -> DataFrame:
    """Run `kernel` on batch after batch of code columns and sensitive codes, which are never null. Narrow: one pass through pandas."""
    names = code_columns(coded)
    wanted = [part.strip().split(" ")[0] for part in schema.split(", ")]

    def task(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            if len(batch):
                found = kernel([batch[name].to_numpy() for name in names], batch["s0"].to_numpy(np.int64))
                yield pd.DataFrame({name: found[name] for name in wanted})

    return coded.mapInPandas(task, schema)


def _bounded(frame: DataFrame, limit: int, what: str) -> pd.DataFrame:
    with explained(f"counting {what}"):
        table = frame.limit(limit + 1).toPandas()  # bounded by `limit`
    if len(table) > limit:
        raise TooMany(f"there are more than {limit:,} {what}, which is too much for the driver")
    return table


def numbered(columns: Sequence[Codes]) -> Int64Array:
    """(n,) int64: equal rows of codes have equal numbers, without a hole, in order of the codes."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        codes = np.unique(column, return_inverse=True)[1].astype(np.int64)
        key = np.unique(key * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].astype(np.int64)
    return key
