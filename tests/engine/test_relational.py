"""Small answers are collected together, in one job, and are what they are by themselves; short lists stand in expressions."""

from __future__ import annotations

import pytest

from anonlib.engine.local_table import local_table
from anonlib.engine.relational import Small, aggregate, collected, rows, select
from anonlib.engine.session import run_settings
from anonlib.engine.values import SHORT, SHORT_TEXT, is_short, position_of, small_table, text_at, with_values
from anonlib.errors import AnonlibError

pytestmark = pytest.mark.spark

TEXTS = ("a", "", None, "it's", "\\0", "\0", "ß中", "`b`")


def jobs(spark, work):
    """(what `work` returns, how many jobs it took)."""
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    before = scheduler.numTotalJobs()
    return work(), scheduler.numTotalJobs() - before


def test_answers_of_one_job_are_those_of_each_by_itself(spark):
    table = spark.range(0, 40, 1, 1).selectExpr(
        "id", "IF(id % 4 = 3, NULL, id % 4) AS bucket", "array(id) AS `odd name`"
    )
    total = aggregate(table, [], {"n": "count(1)", "most": "max(struct(id, bucket))"})
    groups = aggregate(table, ["bucket"], {"n": "count(1)"})
    nobody = table.where("id < 0")
    asked = [
        Small.of_row(total, dict),
        Small.of_rows(groups, 4, list),
        Small.of_rows(nobody, 1, list),
        Small.of([Small.of_rows(table, 40, len), Small.of_rows(groups, 4, len)], sum),
        Small((), lambda _: "nothing"),
    ]
    answers, taken = jobs(spark, lambda: collected(asked))
    assert taken == 1
    assert answers[0] == rows(total, 1)[0] == {"n": 40, "most": {"id": 39, "bucket": None}}
    assert sorted(answers[1], key=str) == sorted(rows(groups, 4), key=str)
    assert answers[2:] == [[], 44, "nothing"]
    assert collected([Small((), lambda _: 1)]) == [1]
    assert collected([]) == []


@pytest.mark.parametrize("beside", [0, 1])
def test_an_answer_of_too_many_rows_is_refused(spark, beside):
    table = spark.range(0, 10, 1, 2)
    asked = [Small.of_rows(table, 9, list), *[Small.of_rows(table, 10, list)] * beside]
    with pytest.raises(AnonlibError, match="at most 9 rows has more"):
        collected(asked)


def test_a_local_table_is_looked_at_without_a_job(spark):
    held = [(1, None, ["x", None], [1, 2]), (None, "\0", [], None), (1 << 62, "", None, [])]
    with run_settings(spark):
        table = local_table(spark, "code long, text string, texts array<string>, counts array<long>", held)
        found, taken = jobs(spark, lambda: rows(select(table, {"code": "code", "more": "code + 1", "text": "text"}), 3))
        everything = [tuple(row) for row in table.collect()]
    assert taken == 0
    assert everything == held
    assert [row["code"] for row in found] == [1, None, 1 << 62]
    assert small_table(table, "code long", []).count() == 0


def test_texts_in_expressions_are_those_of_the_list(spark):
    codes = spark.range(-1, len(TEXTS) + 1, 1, 1)
    there = select(codes, {"id": "id", "text": text_at("id", TEXTS, "string")})
    found = {row["id"]: row["text"] for row in rows(there, 20)}
    assert found == {-1: None, **dict(enumerate(TEXTS)), len(TEXTS): None}
    back = select(there.where(f"id BETWEEN 0 AND {len(TEXTS) - 1}"), {"id": "id", "at": position_of("text", TEXTS)})
    assert all(row["id"] == row["at"] for row in rows(back, 20))
    other = spark.range(1).selectExpr("'b' AS text")
    assert rows(select(other, {"at": position_of("text", TEXTS)}), 1) == [{"at": None}]


def test_what_a_short_list_is():
    assert is_short(["a"] * SHORT)
    assert not is_short(["a"] * (SHORT + 1))
    assert is_short([None, "a" * SHORT_TEXT])
    assert not is_short(["a" * (SHORT_TEXT // 2), None, "b" * (SHORT_TEXT // 2 + 1)])
    assert not is_short([])


@pytest.mark.parametrize("m", [SHORT, SHORT + 1])
def test_short_and_long_lists_give_the_same_values(spark, m):
    texts = [(str(i) if i % 5 else None, f"2020-01-{i % 28 + 1:02d}") for i in range(m)]
    own = "anonlib code"  # what the generated rows of buckets of two columns call it
    frame = spark.range(0, m, 1, 2).withColumnRenamed("id", own)
    table = with_values(frame, f"CAST(`{own}` AS INT)", texts, {"a number": "bigint", "day": "date"})
    assert table.columns == [own, "a number", "day"]
    assert [kind for _, kind in table.dtypes] == ["bigint", "bigint", "date"]
    found = {row[own]: (row["a number"], str(row["day"])) for row in rows(table, m)}
    assert found == {i: (int(a) if a else None, b) for i, (a, b) in enumerate(texts)}
