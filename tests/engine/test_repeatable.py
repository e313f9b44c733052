"""Which plans may be read twice, told from the printed plan alone."""

from __future__ import annotations

import pytest

from anonlib.engine.repeatable import looks_small, plan_nodes, plan_text, repeats

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

PRINTED = """== Physical Plan ==
AdaptiveSparkPlan isFinalPlan=false
+- Project [age#1, upper(name#2) AS name#5]
   +- BroadcastHashJoin [age#1], [age#7], Inner, BuildRight, false
      :- Filter isnotnull(age#1)
      :  +- *(1) ColumnarToRow
      +- BroadcastExchange HashedRelationBroadcastMode(List(cast(input[0, int, true] as bigint)),false), [plan_id=24]
         +- * FileScan parquet [age#7] Batched: true, DataFilters: [], Format: Parquet
"""


def test_the_operators_of_a_printed_plan():
    assert plan_nodes(PRINTED) == [
        "AdaptiveSparkPlan", "Project", "BroadcastHashJoin", "Filter", "ColumnarToRow", "BroadcastExchange", "FileScan",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def path(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("repeatable") / "t")
    spark.range(100).selectExpr("id", "id % 3 AS k", "CAST(id AS STRING) AS s").write.partitionBy("k").parquet(path)
    return path


CALM = [
    "SELECT * FROM t",
    "SELECT upper(s) FROM t WHERE k = 1",
    "SELECT * FROM t WHERE id > 3 UNION ALL SELECT * FROM t",
    "SELECT explode(array(id, k)) FROM t",
    "SELECT * FROM range(9)",
]
RESTLESS = [
    "SELECT * FROM t ORDER BY id",
    "SELECT DISTINCT k FROM t",
    "SELECT * FROM t LIMIT 5",
    "SELECT /*+ REPARTITION(3) */ * FROM t",
    "SELECT /*+ COALESCE(1) */ * FROM t",
    "SELECT *, rand() FROM t",
    "SELECT *, randn(3) FROM t",
    "SELECT uuid() FROM t",
    "SELECT * FROM t TABLESAMPLE (50 PERCENT)",
    "SELECT * FROM t JOIN t u USING (id)",
    "SELECT * FROM t WHERE id > (SELECT avg(id) FROM t)",
    "SELECT id, sum(k) OVER (ORDER BY id) FROM t",
    "SELECT shuffle(array(id, k)) FROM t",
    "SELECT * FROM VALUES (1), (2)",  # counted in one partition, handed to Python functions in several
]


@pytest.mark.parametrize("query", CALM)
def test_scans_and_narrow_steps_repeat(spark, path, query):
    spark.read.parquet(path).createOrReplaceTempView("t")
    frame = spark.sql(query)
    assert repeats(frame), plan_text(frame)


@pytest.mark.parametrize("query", RESTLESS)
def test_everything_else_may_not(spark, path, query):
    spark.read.parquet(path).createOrReplaceTempView("t")
    frame = spark.sql(query)
    assert not repeats(frame), plan_text(frame)


def test_looking_reads_no_data(spark, path):
    jobs = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("looking", "looking")
    try:
        assert repeats(spark.read.parquet(path).where("id > 5"))
        read = spark.read.parquet(path)
        before = len(jobs.getJobIdsForGroup("looking"))
        repeats(read.orderBy("id"))
        assert len(jobs.getJobIdsForGroup("looking")) == before
    finally:
        spark.sparkContext.setJobGroup("", "")


def test_a_very_long_plan_is_not_cut_short(spark, path):
    frame = spark.read.parquet(path).orderBy("id")
    for k in range(60):
        frame = frame.selectExpr("*", f"id * {k} + k AS a_rather_long_column_name_{k}")
    assert not repeats(frame)


def test_what_looks_small(spark, path, tmp_path):
    wide = str(tmp_path / "wide")
    spark.range(60_000).selectExpr("id", "hash(id) AS h", "xxhash64(id) AS x").write.parquet(wide)
    assert looks_small(spark.read.parquet(path))
    assert looks_small(spark.read.parquet(path).where("id > 3").selectExpr("upper(s)"))
    assert not looks_small(spark.read.parquet(wide))
    # few records on both sides, and many together
    assert not looks_small(spark.read.parquet(path).crossJoin(spark.range(10**9)))
    # of these Spark knows no size
    assert not looks_small(spark.createDataFrame([(1,)], "a int"))
