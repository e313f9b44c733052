"""Tables of few records are looked at in one partition, others as they lie."""

from __future__ import annotations

import pytest

from anonlib.engine.relational import aggregate, rows
from anonlib.engine.tables import FEW_RECORDS, together

pytestmark = pytest.mark.spark


def shuffles(frame) -> int:
    return frame._jdf.queryExecution().executedPlan().toString().count("Exchange hashpartitioning")


@pytest.mark.parametrize(("records", "expected"), [(FEW_RECORDS, 0), (FEW_RECORDS + 1, 1)])
def test_few_records_are_grouped_without_a_shuffle(spark, records, expected):
    table = spark.range(0, 40, 1, 4).selectExpr("id % 4 AS bucket")
    counted = aggregate(together(table, records), ["bucket"], {"n": "count(1)"})
    assert shuffles(counted) == expected
    assert {r["bucket"]: r["n"] for r in rows(counted, 4)} == dict.fromkeys(range(4), 10)
