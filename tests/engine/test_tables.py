"""Tables of few records are looked at in one partition, others as they lie; partitions whose kernel takes long have tasks of their own."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from anonlib.arrays import Lists
from anonlib.engine.batches import over_groups
from anonlib.engine.partitions import over_partitions, renumbered
from anonlib.engine.relational import aggregate, rows
from anonlib.engine.repeatable import plan_text
from anonlib.engine.tables import FEW_RECORDS, together, write

pytestmark = pytest.mark.spark


def shuffles(frame) -> int:
    return frame._jdf.queryExecution().executedPlan().toString().count("Exchange hashpartitioning")


@pytest.mark.parametrize(("records", "expected"), [(FEW_RECORDS, 0), (FEW_RECORDS + 1, 1)])
def test_few_records_are_grouped_without_a_shuffle(spark, records, expected):
    table = spark.range(0, 40, 1, 4).selectExpr("id % 4 AS bucket")
    counted = aggregate(together(table, records), ["bucket"], {"n": "count(1)"})
    assert shuffles(counted) == expected
    assert {r["bucket"]: r["n"] for r in rows(counted, 4)} == dict.fromkeys(range(4), 10)


@pytest.mark.parametrize(("number", "tasks"), [(None, None), (1, None), (2, 2), (50, 50), (65, 16), (2_000, 16)])
def test_partitions_of_a_slow_kernel_are_not_joined_by_their_bytes(spark, number, tasks):
    """Spark joins small shuffles (`ENSURE_REQUIREMENTS`), and none whose tasks are told (`REPARTITION_BY_NUM`)."""
    located = spark.range(4).selectExpr("id AS q0", "0 AS s0", "id AS partition")
    held = None if number is None else np.ones(number, dtype=np.int64)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    try:
        spark.conf.set("spark.sql.shuffle.partitions", "16")
        plan = plan_text(over_partitions(located, lambda *_: {}, "n bigint", bytes(32), "a test", held))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    # the plan as it is before Spark adds the shuffles that a grouping needs: told ones alone
    assert plan.count("Exchange hashpartitioning") == (tasks is not None)
    assert (f", {tasks}), REPARTITION_BY_NUM" in plan) == (tasks is not None)


@pytest.mark.parametrize("dealt_by", [None, "seat"])
def test_groups_are_whole_however_they_come(spark, dealt_by):
    """From several tasks, in batches of three records, several groups a batch and several batches a group; no kernel sees a seat, which
    two groups share."""
    table = spark.range(0, 40, 1, 4).selectExpr("id", "(id * id) % 5 AS bucket")
    if dealt_by is not None:
        table = table.selectExpr("*", "bucket DIV 4 AS seat").repartition(3, "seat")

    def seen(bucket, group):
        ids = np.sort(group.column("id").to_numpy()).astype(np.int32)
        return {
            "bucket": [bucket],
            "ids": Lists(ids, np.array([0, len(ids)])),
            "columns": [",".join(group.column_names)],
        }

    before = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    try:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "3")
        groups = over_groups(table, "bucket", seen, "bucket bigint, ids array<int>, columns string", dealt_by).collect()
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", before)
    expected = {b: [i for i in range(40) if i * i % 5 == b] for b in (0, 1, 4)}
    assert sorted((row["bucket"], row["ids"], row["columns"]) for row in groups) == [
        (b, ids, "id,bucket") for b, ids in expected.items()
    ]


@pytest.mark.parametrize("partitions", [3, 1_001])
def test_partitions_are_renumbered(spark, partitions):
    located = spark.range(partitions).selectExpr("id AS q0", "0 AS s0", "id AS partition")
    number = np.arange(partitions)[::-1] // 2
    new = renumbered(located, number)
    assert new.columns == located.columns
    assert {r["q0"]: r["partition"] for r in new.collect()} == dict(enumerate(number.tolist()))


@pytest.mark.every_spark
def test_bucket_ids_are_written_without_a_dictionary(spark, tmp_path):
    """There are too many of them for one; other columns, and other formats, are written as Spark writes them."""
    table = spark.range(0, 400, 1, 1).selectExpr("id AS bucket_id", "id % 3 AS age")
    write(table, str(tmp_path / "qit"), "parquet", "writing qit")
    write(table, str(tmp_path / "orc"), "orc", "writing qit")
    (file,) = (tmp_path / "qit").glob("*.parquet")
    columns = pq.ParquetFile(file).metadata.row_group(0)
    encoded = {columns.column(k).path_in_schema: columns.column(k).has_dictionary_page for k in range(2)}
    assert encoded == {"bucket_id": False, "age": True}
    assert spark.read.orc(str(tmp_path / "orc")).count() == 400
