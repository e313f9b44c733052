"""The checksum: any order, any cut, both Spark lines; and what xxhash64 alone would confuse."""

from __future__ import annotations

from functools import reduce

import pytest
from pyspark.sql import DataFrame

from anonlib.engine.checksum import checksum, combine, row_hash
from anonlib.errors import SpecError

pytestmark = pytest.mark.spark

WIDE = """
    SELECT id, IF(id % 7 = 0, NULL, concat('v', id % 11)) AS s, CAST(id * 1.25 AS DECIMAL(12, 2)) AS d,
           CAST(id AS DECIMAL(38, 4)) AS wide, date_add(DATE'2020-01-31', CAST(id AS INT)) AS day,
           timestamp_micros(id * 86400000001) AS t, id % 2 = 0 AS b, CAST(id AS DOUBLE) / 3 AS f,
           array(id, NULL, id % 3) AS a, named_struct('x', id % 5, 'y', IF(id % 2 = 0, NULL, 'y')) AS st,
           map('k', id, 'l', NULL) AS m, CAST(concat('b', id) AS BINARY) AS bin, 9007199254740993 + id AS big,
           IF(id % 3 = 0, NULL, array(id)) AS n, IF(id % 3 = 1, NULL, map(id, id)) AS nm
    FROM range(200)
"""


def hashes(spark, *expressions: str) -> list[int]:
    """The hash of the row that each of them selects. One job."""
    frames = [spark.sql(f"SELECT {expression}") for expression in expressions]
    rows = [frame.selectExpr(f"{k} AS k", f"{row_hash(frame)} AS hash") for k, frame in enumerate(frames)]
    return [row.hash for row in sorted(reduce(DataFrame.union, rows).collect())]


def test_order_files_and_partitions_do_not_count(spark):
    frame = spark.sql(WIDE)
    expected = checksum(frame)
    assert checksum(frame.orderBy("s", frame["id"].desc())) == expected
    assert checksum(frame.repartition(7)) == expected
    assert checksum(frame.select(*reversed(frame.columns))) == expected


@pytest.mark.every_spark
def test_the_session_time_zone_does_not_count(spark):
    frame = spark.sql(WIDE).localCheckpoint()
    expected = checksum(frame)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    try:
        assert checksum(frame) == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.every_spark
def test_a_recorded_value_holds_on_every_spark_version(spark):
    assert checksum(spark.sql(WIDE)) == "xxh64sum:fc36fbe6419545c8"


def test_rows_lost_doubled_or_changed_show(spark):
    frame = spark.sql(WIDE)
    sums = {
        "whole": checksum(frame),
        "lost": checksum(frame.where("id <> 17")),
        "doubled": checksum(frame.union(frame.where("id = 17"))),
        "twice doubled": checksum(frame.union(frame.where("id = 17")).union(frame.where("id = 17"))),
        "changed": checksum(frame.withColumn("big", frame["big"] + (frame["id"] == 17).cast("int"))),
    }
    assert len(set(sums.values())) == len(sums)


CONFUSED = (
    ("'a' AS p, CAST(NULL AS STRING) AS q", "CAST(NULL AS STRING) AS p, 'a' AS q"),
    ("'' AS p", "CAST(NULL AS STRING) AS p"),
    ("'ab' AS p, 'c' AS q", "'a' AS p, 'bc' AS q"),
    ("array(1, NULL) AS p", "array(NULL, 1) AS p"),
    ("array(1, NULL) AS p", "array(1) AS p"),
    ("array(array(1), array(2)) AS p", "array(array(1, 2)) AS p"),
    ("array(array(1), array()) AS p", "array(array(1)) AS p"),
    ("CAST(array() AS ARRAY<INT>) AS p", "CAST(NULL AS ARRAY<INT>) AS p"),
    ("named_struct('x', 1, 'y', NULL) AS p", "named_struct('x', NULL, 'y', 1) AS p"),
    ("map('k', 1, 'l', 2) AS p", "map('k', 2, 'l', 1) AS p"),
    ("map('k', NULL) AS p", "map('k', 0) AS p"),
    ("map('k', array(1)) AS p", "map('k', array(1, 1)) AS p"),
    ("map() AS p", "NULL AS p"),
    ("X'00' AS p", "X'0000' AS p"),
)
EQUAL = (
    ("map('k', 1, 'l', 2) AS p", "map('l', 2, 'k', 1) AS p"),
    ("-0.0D AS p", "0.0D AS p"),
    ("double('NaN') AS p", "-double('NaN') AS p"),
)


@pytest.mark.every_spark
def test_what_xxhash64_alone_confuses_is_told_apart_and_what_is_equal_hashes_equal(spark):
    pairs = (*CONFUSED, *EQUAL)
    found = hashes(spark, *(side for pair in pairs for side in pair))
    alike = [pair for pair, left, right in zip(pairs, found[::2], found[1::2], strict=True) if left == right]
    assert alike == list(EQUAL)


def test_more_columns_than_fit_one_null_word(spark):
    wide = ", ".join(f"CAST(NULL AS INT) AS c{i:03d}" for i in range(130))
    other = wide.replace("CAST(NULL AS INT) AS c129", "0 AS c129")
    one, two = hashes(spark, wide, other)
    assert one != two


@pytest.mark.every_spark
def test_empty_and_sums_modulo_2_to_the_64(spark):
    assert checksum(spark.sql(WIDE).where("id < 0")) == "xxh64sum:0000000000000000"
    assert combine((0, 0, 1 << 20)) == "xxh64sum:0000000000000000"
    assert combine((5, 1, 0)) == f"xxh64sum:{5 + (1 << 22):016x}"


@pytest.mark.every_spark
def test_salt_changes_the_hash_and_names_with_backticks_work(spark):
    frame = spark.sql("SELECT 1 AS `a``b c.d`")
    hashes = {frame.selectExpr(row_hash(frame, salt=salt)).collect()[0][0] for salt in (None, 1, -2, 2**62)}
    assert len(hashes) == 4


def test_variant_columns_are_refused_by_name(spark):
    if spark.version.startswith("3."):
        pytest.skip("Spark 3.5 has no variant type")
    with pytest.raises(SpecError, match="column 'v' of type variant"):
        checksum(spark.sql("SELECT parse_json('1') AS v"))
