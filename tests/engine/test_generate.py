"""Tables made from a description: every id and value once, in any type, however the ids are cut."""

from __future__ import annotations

from collections import Counter

import pytest

from anonlib.engine import generate
from tests.thorough import cases

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]
NAMES = ("bucket", "the value", "n")


def rows(frame):
    return Counter(tuple(row) for row in frame.collect())


@pytest.mark.parametrize(
    ("per_task", "chunk"), cases((4, 3), nightly=[(4, 50_000), (2_000_000, 3), (2_000_000, 50_000)])
)
def test_every_id_of_a_stretch_holds_the_same(spark, monkeypatch, chunk, per_task):
    monkeypatch.setattr(generate, "CHUNK", chunk)
    monkeypatch.setattr(generate, "ROWS_PER_TASK", per_task)
    stretches = [(0, 10, ["a", None], [2, 1]), (10, 11, ["b"], [5]), (11, 18, ["", "a"], [1, 1])]
    frame = generate.repeated_rows(spark, stretches, NAMES, "string")
    assert frame.dtypes == [("bucket", "bigint"), ("the value", "string"), ("n", "bigint")]
    assert rows(frame) == Counter(
        (b, v, c) for start, stop, values, counts in stretches for b in range(start, stop) for v, c in zip(values, counts, strict=True)
    )  # fmt: skip


def test_the_rows_of_an_id_stand_together(spark, monkeypatch):
    monkeypatch.setattr(generate, "CHUNK", 4)
    monkeypatch.setattr(generate, "ROWS_PER_TASK", 20)
    frame = generate.repeated_rows(spark, [(0, 30, ["a", "b", "c"], [1, 1, 1])], NAMES, "string")
    for part in frame.rdd.glom().collect():
        ids = [row.bucket for row in part]
        assert all(ids[k : k + 3].count(ids[k]) == 3 for k in range(0, len(ids), 3))


@pytest.mark.parametrize(
    ("kind", "texts"),
    cases(
        ("decimal(20,4)", ["9007199254740993.0001", "0.0000"]),
        ("date", ["0001-01-01", "9999-12-31"]),
        ("timestamp_ntz", ["2024-03-31 02:30:00.000001"]),
        nightly=[("int", ["-3", None]), ("boolean", ["true", "false"]), ("double", ["NaN", "Infinity"])],
    ),
)
def test_values_of_other_types(spark, kind, texts):
    frame = generate.repeated_rows(spark, [(0, 2, texts, [1] * len(texts))], NAMES, kind)
    assert dict(frame.dtypes)["the value"] == kind
    found = frame.selectExpr("CAST(`the value` AS STRING) AS t").distinct().collect()
    assert {row.t for row in found} == set(texts)


def test_no_stretches_make_an_empty_table(spark):
    frame = generate.repeated_rows(spark, [], NAMES, "string")
    assert frame.count() == 0
    assert frame.columns == list(NAMES)


def test_ids_beyond_32_bits(spark):
    frame = generate.repeated_rows(spark, [(2**40, 2**40 + 2, ["a"], [2**41])], NAMES, "string")
    assert rows(frame) == Counter([(2**40, "a", 2**41), (2**40 + 1, "a", 2**41)])
