"""Pass 1: how often each sensitive value occurs, in the table and in each of its partitions.

One scan of the sensitive column (of every quasi-identifier too, where the missing-value policy must look at them), one shuffle
of partitions x values counts. The driver receives m values, and partitions x values counts while these are at most `DRIVER_CELLS`;
beyond that the counts stay on the cluster and only their totals travel (the input is then scanned once more for them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from anonlib.arrays import Int64Array
from anonlib.engine.failures import explained
from anonlib.engine.local_table import local_table
from anonlib.errors import SpecError
from anonlib.privacy.counts import SensitiveCounts
from anonlib.sql import quoted

DRIVER_CELLS = 2_000_000
MAX_VALUES = 100_000
"""More distinct values than this is an identifier or a measurement, not a sensitive attribute one could bucketize."""

FLOATING = ("float", "double")


@dataclass(frozen=True)
class PartitionOffsets:
    """For each partition and value: the rank at which the partition's records of the value begin, and how many there are.

    by_partition : {partition id: (k, 3) int64 of value code, offset, count}, on the driver; or None, and then
    frame        : the same as a DataFrame (partition int, packed array<long>), on the cluster
    """

    by_partition: Mapping[int, Int64Array] | None
    frame: DataFrame | None


@dataclass(frozen=True)
class SensitiveStatistics:
    """What pass 1 found.

    counts     : values as text (None for a kept null), sorted, with int64 counts of the records that will be published
    hashes     : (m,) int64, xxhash64 of each value under `seed`, all different: what a record's value is known by in pass 2
    hash_sql   : the SQL expression that gives a record's hash
    input_rows : rows read; dropped : rows left out by the missing-value policy
    partitions : partitions of the input that hold rows
    """

    counts: SensitiveCounts
    hashes: Int64Array
    hash_sql: str
    input_rows: int
    dropped: int
    partitions: int
    offsets: PartitionOffsets


def is_missing(column: str, spark_type: str) -> str:
    """SQL: is the value null, or NaN in a floating column?"""
    name = quoted(column)
    return f"({name} IS NULL OR isnan({name}))" if spark_type in FLOATING else f"({name} IS NULL)"


def value_text(column: str, spark_type: str) -> str:
    """SQL: a sensitive value as text; different values have different texts, the same under any session time zone.

    An instant is told in UTC: local clocks show two instants alike when summer ends, and had odd seconds once.
    """
    name = quoted(column)
    if spark_type == "string":
        return name
    if spark_type == "timestamp":
        seconds = f"CAST(CAST(unix_micros({name}) AS DECIMAL(20, 0)) / 1000000 AS DECIMAL(18, 6))"
        return (
            f"CONCAT(CAST(TIMESTAMP_NTZ '1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, {seconds}) AS STRING), 'Z')"
        )
    return f"CAST({_normal(column, spark_type)} AS STRING)"


def _normal(column: str, spark_type: str) -> str:
    """-0.0 and 0.0 are one value; hashing must see them as one, as grouping does."""
    name = quoted(column)
    return f"({name} + CAST(0 AS {spark_type.upper()}))" if spark_type in FLOATING else name


def sensitive_statistics(
    frame: DataFrame, sensitive: str, keep: str | None, refuse: Mapping[str, str], parts: Sequence[str] = ()
) -> SensitiveStatistics:
    """Count `sensitive` per partition.

    keep   : SQL condition under which a row is published (the missing-value policy `drop`), or None for every row
    refuse : {column: SQL condition that must not hold} (the policy `error`)
    parts  : the sensitive columns that `sensitive` combines, if it is none itself

    Raises SpecError for an empty table, a refused value (column and count are named), or more than `MAX_VALUES` distinct values.
    """
    spark_type = dict(frame.dtypes)[sensitive]
    cells = _cells(frame, sensitive, spark_type, keep, refuse)
    with explained("counting the sensitive values"):
        cell_counts: pd.DataFrame = cells.limit(
            DRIVER_CELLS + 1
        ).toPandas()  # bounded: partitions x values, never more than DRIVER_CELLS + 1
    if len(cell_counts) > DRIVER_CELLS:
        with suppress(Exception):  # where caching is not allowed the counts are made again for each use
            cells = cells.persist()
        totals = cells.groupBy("text").agg(
            F.sum("n").alias("n"), F.sum("seen").alias("seen"), *[F.sum(name).alias(name) for name in _refused(refuse)]
        )
        with explained("counting the sensitive values"):
            table: pd.DataFrame = totals.limit(MAX_VALUES + 1).toPandas()  # bounded: one row per sensitive value
            partitions = cells.where("n > 0").select("partition").distinct().count()
    else:
        table = _totals(cell_counts)
        partitions = int(cell_counts[cell_counts["n"] > 0]["partition"].nunique())
    _check(table, refuse, sensitive, parts or (sensitive,))

    published = table[table["n"] > 0]
    texts = [None if not isinstance(text, str) else text for text in published["text"]]
    order = sorted(range(len(texts)), key=lambda i: (texts[i] is None, texts[i] or ""))
    counts = SensitiveCounts(
        tuple(texts[i] for i in order), np.array([int(published["n"].iloc[i]) for i in order], dtype=np.int64)
    )
    hash_sql, hashes = _hashes(frame, sensitive, spark_type, counts)
    code = {text: i for i, text in enumerate(counts.values)}
    if len(cell_counts) > DRIVER_CELLS:
        offsets = PartitionOffsets(None, _offsets_frame(cells.where("n > 0"), code, frame))
    else:
        kept = cell_counts[cell_counts["n"] > 0]
        codes = np.array([code[t if isinstance(t, str) else None] for t in kept["text"]], dtype=np.int64)
        offsets = PartitionOffsets(
            offsets_by_partition(kept["partition"].to_numpy(np.int64), codes, kept["n"].to_numpy(np.int64)), None
        )
    records = int(table["seen"].sum())
    return SensitiveStatistics(counts, hashes, hash_sql, records, records - counts.n, partitions, offsets)


def _cells(frame: DataFrame, sensitive: str, spark_type: str, keep: str | None, refuse: Mapping[str, str]) -> DataFrame:
    # frame: qi..., other..., sa  ->  records: partition, value, kept, refused_0, ...  ->  cells: partition, text, n, seen, refused_0, ...
    records = frame.select(
        F.spark_partition_id().alias("partition"),
        F.expr(quoted(sensitive)).alias("value"),
        F.expr(keep or "true").alias("kept"),
        *[F.expr(condition).alias(name) for name, condition in zip(_refused(refuse), refuse.values(), strict=True)],
    )
    counted = records.groupBy("partition", "value").agg(
        F.expr("sum(CASE WHEN kept THEN 1L ELSE 0L END)" if keep else "count(1)").alias("n"),
        F.expr("count(1)").alias("seen"),
        *[F.expr(f"sum(CASE WHEN {name} THEN 1L ELSE 0L END)").alias(name) for name in _refused(refuse)],
    )
    return counted.select(
        "partition",
        F.expr(value_text("value", spark_type)).alias("text"),
        "n",
        "seen",
        *_refused(refuse),
    )


def _totals(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells summed over partitions. Python's own dictionary tells the texts apart: pandas groups "" and "\\0" as one key."""
    code_of: dict[str | None, int] = {}
    codes = [code_of.setdefault(text if isinstance(text, str) else None, len(code_of)) for text in cells["text"]]
    sums = {}
    for name in cells.columns.difference(["partition", "text"]):
        sums[name] = np.zeros(len(code_of), dtype=np.int64)
        np.add.at(sums[name], codes, cells[name].to_numpy(np.int64))
    return pd.DataFrame({"text": pd.Series(list(code_of), dtype=object)} | sums)


def _refused(refuse: Mapping[str, str]) -> list[str]:
    return [f"refused_{k}" for k in range(len(refuse))]


def _check(table: pd.DataFrame, refuse: Mapping[str, str], sensitive: str, parts: Sequence[str]) -> None:
    if len(table) == 0:
        raise SpecError("input: the table is empty; there is nothing to publish")
    for name, column in zip(_refused(refuse), refuse, strict=True):
        bad = int(table[name].sum())
        if bad:
            part = "sensitive" if column in parts else "quasi_identifiers"
            raise SpecError(
                f"column {column!r}: {bad:,} rows have no value (null or NaN) and missing.{part} is error; "
                f"set missing: {{{part}: drop}} or {{{part}: keep}}, or mend the data"
            )
    if int(table["n"].sum()) == 0:
        raise SpecError("missing: the policy drops every row of the table; there is nothing to publish")
    if len(table) > MAX_VALUES:
        raise SpecError(
            f"column {sensitive!r} has more than {MAX_VALUES:,} distinct values: that is an identifier or a measurement; "
            "coarsen it, or name it under identifiers"
        )


def _hashes(frame: DataFrame, sensitive: str, spark_type: str, counts: SensitiveCounts) -> tuple[str, Int64Array]:
    """xxhash64 of every value, computed by Spark itself from the values' texts cast back; another seed if two should collide."""
    spark = frame.sparkSession
    values = local_table(spark, "code int, text string", list(enumerate(counts.values)))
    code = "code_" if sensitive.lower() == "code" else "code"
    typed = values.select(F.col("code").alias(code), F.expr(typed_value("text", spark_type)).alias(sensitive))
    for seed in range(16):
        hash_sql = f"xxhash64({_normal(sensitive, spark_type)}, {seed})"
        rows = typed.select(F.col(code).alias("code"), F.expr(hash_sql).alias("hash")).collect()  # m rows
        hashes = np.empty(counts.m, dtype=np.int64)
        for row in rows:
            hashes[row["code"]] = row["hash"]
        if len(np.unique(hashes)) == counts.m:
            return hash_sql, hashes
    raise AssertionError("sixteen seeds in a row gave colliding 64-bit hashes")


def typed_value(text_sql: str, spark_type: str) -> str:
    """SQL that gives back the value, of `spark_type`, whose text by `value_text` is `text_sql`."""
    return text_sql if spark_type == "string" else f"CAST({text_sql} AS {spark_type})"


def offsets_by_partition(partition: Int64Array, code: Int64Array, n: Int64Array) -> dict[int, Int64Array]:
    """Exclusive prefix sums of `n` over partitions, within each value; all three (cells,) int64."""
    order = np.lexsort((partition, code))
    partition, code, n = partition[order], code[order], n[order]
    running = np.cumsum(n) - n
    starts = np.flatnonzero(np.r_[True, code[1:] != code[:-1]])
    running = running - np.repeat(running[starts], np.diff(np.r_[starts, len(code)]))
    packed = np.stack([code, running, n], axis=1)
    by = np.argsort(partition, kind="stable")
    keys, begins = np.unique(partition[by], return_index=True)
    return {int(k): part for k, part in zip(keys, np.split(packed[by], begins[1:]), strict=True)}


def _offsets_frame(cells: DataFrame, code: Mapping[str | None, int], frame: DataFrame) -> DataFrame:
    """The same prefix sums on the cluster: a window over partitions within each value, then one packed array per partition."""
    spark = frame.sparkSession
    codes = local_table(spark, "text string, code int", list(code.items()))
    joined = (
        cells.alias("c")
        .join(codes.alias("v").hint("broadcast"), F.expr("c.text <=> v.text"))
        .select("partition", "code", "n")
    )
    before = Window.partitionBy("code").orderBy("partition").rowsBetween(Window.unboundedPreceding, -1)
    offset = F.coalesce(F.sum("n").over(before), F.lit(0))
    triple = F.array(F.col("code").cast("long"), offset.cast("long"), F.col("n").cast("long"))
    return (
        joined.select("partition", triple.alias("triple"))
        .groupBy("partition")
        .agg(F.expr("flatten(collect_list(triple))").alias("packed"))
    )
