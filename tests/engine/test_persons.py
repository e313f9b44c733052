"""One record a person, at the door: who is one, which of his rows is taken, and what is told of it."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from anonlib import workflow
from anonlib.engine import persons
from anonlib.engine.microdata import microdata
from anonlib.engine.repeatable import plan_nodes, plan_text
from anonlib.spec.load import parse_spec
from anonlib.spec.release import Columns, Missing
from tests.contract.methods import asked, over, publishes_other
from tests.door import VALUES, people, with_column
from tests.thorough import cases, nightly

pytestmark = pytest.mark.spark

N = 60


TWENTY = tuple(f"illness {i:02}" for i in range(20))


def visits(n: int = N, each: int = 3, values: tuple[str, ...] = VALUES) -> pa.Table:
    """Each of n persons `each` times: an identity, a day of the visit (the later rows first), and else what `people` has."""
    table = people(n * each)
    order = range(n * each)
    return (
        with_column(table, "patient", [f"patient {i % n}" for i in order])
        .append_column("day", pa.array([each - i // n for i in order], pa.int32()))
        .set_column(3, "illness", [[values[(i % n) % len(values)] for i in order]])
    )


def columns(
    person: Any = "patient", withheld: tuple[str, ...] = ("day",), other: tuple[str, ...] = ("note",)
) -> dict[str, Any]:
    return {
        "quasi_identifiers": [{"name": "age", "type": "numeric"}, "country"],
        "sensitive": "illness",
        "other": list(other),
        "identifiers": list(withheld),
        "person": person,
    }


def noted(outcome: Any, name: str = "qit") -> list[int]:
    return sorted(row["note"] for row in outcome.table(name))


@pytest.mark.parametrize("command", cases("explain", nightly=["run"]))
def test_several_rows_of_a_person_are_refused_and_counted(door, command):
    outcome = door.run(visits(), command=command, columns=columns())
    outcome.refused(2, "columns.person: 60 persons have several rows, 180 in all", "repeated: latest", "(now patient)")
    assert "patient 7" not in outcome.err


@nightly
def test_one_row_each_is_published_as_it_would_be_without_persons(door):
    table = visits(each=1)
    plain = columns(withheld=("day", "patient"))
    plain.pop("person")
    first = door.run(table, "first", columns=plain).published()
    second = door.run(table, "second", columns=columns()).published()
    assert second.manifest.tables == first.manifest.tables
    assert first.manifest.persons is None
    assert second.manifest.persons.model_dump() == {
        "repeated": "error", "rows": N, "persons": N, "nameless": 0, "left_out": 0, "known": 0
    }  # fmt: skip
    assert "patient" not in json.dumps(json.loads(second.manifest.to_json()))
    assert door.audit(second.output)[0] == 0
    assert "60 rows of 60 persons" in second.err.replace("\n", " ")


@nightly
@pytest.mark.parametrize(("repeated", "days"), [("latest", 0), ("first", 2)])
def test_first_and_latest_go_by_the_order_column_and_not_by_rows(door, repeated, days):
    """The latest visit stands first in the table, and the first last."""
    table = visits()
    policy = {"repeated": repeated, "order": "DAY"}
    wanted = sorted(table["note"].to_pylist()[days * N : (days + 1) * N])
    outcome = door.run(table, "release", columns=columns(), persons=policy).published()
    assert noted(outcome) == wanted
    told = outcome.manifest.persons
    assert (told.rows, told.persons, told.left_out) == (3 * N, N, 2 * N)
    assert outcome.manifest.rows.input == outcome.manifest.rows.published == N
    assert door.audit(outcome.output)[0] == 0
    turned = table.take(list(range(len(table) - 1, -1, -1)))
    again = door.run(turned, "again", columns=columns(), persons=policy, random={"key": "env:OTHER_KEY"}).published()
    assert noted(again) == wanted


@nightly
def test_rows_that_the_order_does_not_tell_apart_are_drawn_by_the_key(door):
    """In one order of rows and in another the same rows; under another key others; never two of a person."""
    table = with_column(visits(), "day", [1] * (3 * N), pa.int32())
    policy = {"repeated": "latest", "order": "day"}
    turned = table.take(list(range(len(table) - 1, -1, -1)))
    taken = [
        noted(door.run(rows, f"r{k}", columns=columns(), persons=policy, random={"key": key}).published())
        for k, (rows, key) in enumerate([(table, "env:RELEASE_KEY"), (table, "env:OTHER_KEY")])
    ]
    # a stored key is for repeating a run: rows in another order are another run, which is looked at apart
    (door.home / "apart").mkdir()
    other_way = door.run(turned, "apart/r", columns=columns(), persons=policy).published()
    assert noted(other_way) == taken[0] != taken[1]
    assert all(sorted(note // 7 % N for note in notes) == list(range(N)) for notes in taken)


@nightly
def test_a_row_without_an_order_is_taken_only_where_there_is_no_other(door):
    days = [None if i < N or i % N == 5 else 3 - i // N for i in range(3 * N)]
    table = with_column(visits(), "day", days, pa.int32())
    outcome = door.run(table, columns=columns(), persons={"repeated": "latest", "order": "day"}).published()
    notes = noted(outcome)
    assert [note for note in notes if note // 7 % N != 5] == [7 * (N + i) for i in range(N) if i != 5]
    assert len(notes) == N


@nightly
def test_random_takes_each_different_row_about_as_often(spark):
    """2,000 persons with rows a, a and b: b for half of them, since equal rows count once."""
    rows = [(p, kind) for p in range(2_000) for kind in ("a", "a", "b")]
    frame = spark.createDataFrame(rows, "person int, kind string")
    whose = _rows(spark, frame)
    taken = Counter(row["kind"] for row in persons.one_each(whose.hashed, False, bytes(range(32))).collect())
    assert sum(taken.values()) == 2_000
    assert abs(taken["b"] - 1_000) < 5 * (2_000 * 0.25) ** 0.5


def _rows(spark: Any, frame: Any) -> persons.Rows:
    given = frame.selectExpr("*", "'x' AS job")
    spec = Columns.model_validate({"quasi_identifiers": ["kind"], "sensitive": "job", "person": "person"})
    return persons.rows_of_persons(given, microdata(given, spec, Missing()), spec.person, None, bytes(range(32)))


@pytest.mark.every_spark
def test_the_count_shuffles_hashes_and_no_rows(spark, tmp_path):
    path = str(tmp_path / "t")
    spark.createDataFrame([(i, "a" * 50) for i in range(100)], "person int, kind string").write.parquet(path)
    whose = _rows(spark, spark.read.parquet(path))
    groups = persons.aggregate(whose.hashed, [persons.PERSON], {"n": "count(1)"})
    plan = plan_text(groups)
    assert plan_nodes(plan).count("Exchange") == 1
    assert "kind" not in plan.split("== Physical Plan ==")[-1]
    assert bytes(range(32)).hex() not in plan_text(groups, "extended")
    assert persons.counted(whose.hashed) == persons.PersonCounts(100, 0, 100, 0, 0)


@pytest.mark.every_spark
def test_who_is_one_person(spark):
    """A number and its text are one; parts of a person never run together; case and blanks tell apart."""
    frame = spark.sql(
        "SELECT * FROM VALUES ('a|b', 'c'), ('a', 'b|c'), ('a', 'b'), ('A', 'b'), ('a ', 'b'), ('a\\\\', '|b'), ('a', NULL) AS t(x, y)"
    ).selectExpr("*", "'k' AS kind", "'j' AS job")
    spec = Columns.model_validate({"quasi_identifiers": ["kind"], "sensitive": "job", "person": ["x", "y"]})
    whose = persons.rows_of_persons(frame, microdata(frame, spec, Missing()), spec.person, None, bytes(range(32)))
    assert persons.counted(whose.hashed) == persons.PersonCounts(7, 1, 6, 0, 0)
    hashes = [
        bytes(_rows(spark, spark.sql(f"SELECT {person} AS person, 'k' AS kind")).hashed.collect()[0][persons.PERSON])
        for person in ("7", "7L", "'7'", "CAST(7 AS DECIMAL(9, 0))")
    ]
    assert len(set(hashes)) == 1
    assert len(hashes[0]) == persons.HASH_BYTES


@pytest.mark.parametrize("kind", ["CAST(1.5 AS DOUBLE)", "array(1)", "map('a', 1)"])
def test_a_column_that_tells_nobody_apart_for_certain(spark, kind):
    from anonlib.errors import SpecError

    with pytest.raises(SpecError, match=r"columns.person: 'person' is of type .* cast it"):
        _rows(spark, spark.sql(f"SELECT {kind} AS person, 'k' AS kind"))


@nightly
def test_rows_without_a_person(door):
    who = [None if i % 10 == 0 else f"p{i}" for i in range(N)]
    table = with_column(visits(each=1), "patient", who)
    door.run(table, columns=columns()).refused(2, "6 rows have no person", "missing.person is error", "person: drop")
    outcome = door.run(table, columns=columns(), missing={"person": "drop"}).published()
    told = outcome.manifest.persons
    assert (told.rows, told.persons, told.nameless) == (N, N - 6, 6)
    assert outcome.manifest.rows.published == N - 6
    assert door.audit(outcome.output)[0] == 0


@nightly
def test_a_table_of_nobody(door):
    nobody = with_column(visits(each=1), "patient", [None] * N, pa.string())
    door.run(nobody, columns=columns(), missing={"person": "drop"}).refused(2, "missing.person", "every row")
    door.run(visits().slice(0, 0), columns=columns()).refused(2, "the table is empty")


@nightly
def test_an_input_whose_plan_does_not_repeat_is_written_out_with_hashes_alone(door, monkeypatch):
    written = []
    keep = workflow.tables.write
    monkeypatch.setattr(
        workflow.tables, "write", lambda frame, *rest: (written.append(frame.columns), keep(frame, *rest))[1]
    )
    frame = door.spark.read.parquet(str(door.input(visits()))).repartition(3)
    asked_for = door.spec("unused", columns=columns(), persons={"repeated": "random"})
    asked_for.pop("input")
    release = workflow.run(parse_spec(asked_for, given_frame=True), door.spark, frame)
    assert release.manifest.rows.published == N
    assert {"patient", "day"}.isdisjoint(name for names in written for name in names)
    assert [persons.PERSON in names for names in written[:2]] == [True, True]
    assert {p.name for p in (door.home / "release").iterdir()} == {"qit", "st", "manifest.json"}


@nightly
def test_explain_says_it(door):
    outcome = door.run(visits(), command="explain", columns=columns(), persons={"repeated": "random"})
    assert outcome.code == 0, outcome.err
    assert "180 rows of 60 persons; 120 left out (one of each person is drawn by the key)" in " ".join(
        outcome.out.split()
    )


@nightly
def test_a_release_that_left_rows_out_is_not_held_against_all_of_them(door):
    table = visits()
    source = door.input(table, "all")
    outcome = door.run(source, columns=columns(), persons={"repeated": "latest", "order": "day"}).published()
    found = door.call("audit", str(outcome.output), "--original", str(source))
    assert found.code == 2
    assert "made of 60 of 180 rows, one a person" in " ".join(found.sentence.split())
    # the latest visits stand first
    code, checks = door.audit(outcome.output, door.input(table.slice(0, N), "taken"))
    assert code == 0
    assert all(check["passed"] for check in checks)


@nightly
@over("persons")
def test_every_method_publishes_one_record_a_person(door, method):
    other = ("note",) if publishes_other(method) else ()
    withheld = ("day",) if other else ("day", "note")
    outcome = door.run(
        visits(240, 2, TWENTY),
        columns=columns(withheld=withheld, other=other),
        persons={"repeated": "latest", "order": "day"},
        method=asked(method),
    ).published()
    assert outcome.manifest.rows.input == 240
    assert outcome.manifest.persons.left_out == 240
    assert outcome.manifest.audit.passed
    checks = {check.name for check in outcome.manifest.audit.checks}
    assert "one record a person" in checks
