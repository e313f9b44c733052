"""Bad input: one sentence that says what, where and how to mend it, the right exit code, and nothing at the output path."""

from __future__ import annotations

import os
from decimal import Decimal
from types import SimpleNamespace

import pyarrow as pa
import pytest

from anonlib.engine.microdata import _spelled
from anonlib.errors import SpecError
from anonlib.spec.release import Columns
from tests.door import VALUES, bucketize, counted, people, with_column
from tests.thorough import cases, nightly

pytestmark = pytest.mark.spark

COLUMNS = {"quasi_identifiers": [{"name": "age", "type": "numeric"}, "country"], "sensitive": "illness"}


def columns(**changes):
    return COLUMNS | {"other": ["note"]} | changes


# --- the table -------------------------------------------------------------------------------------------------------


def test_an_empty_table(door):
    door.run(people(0), "release").refused(2, "input: the table is empty", "nothing to publish")


def test_a_path_that_is_not_there(door):
    door.run(door.home / "nowhere").refused(2, "input.path", "nowhere")


def test_a_catalog_table_that_is_not_there(door):
    door.run({"table": "no_such_table"}).refused(2, "input.table 'no_such_table'")


def test_a_folder_without_files(door):
    (door.home / "bare").mkdir()
    door.run(door.home / "bare").refused(2, "input.path", "bare")


def test_input_that_is_not_parquet(door):
    folder = door.home / "text"
    folder.mkdir()
    (folder / "people.parquet").write_text("age,country\n1,Peru\n" * 20, encoding="utf-8")
    door.run(folder).refused(2, "input.path", "people.parquet")


def test_a_corrupt_file_among_good_ones(door):
    """Its footer is sound, so that the schema reads; its pages are not."""
    folder = door.input(people(2000), files=2)
    path = folder / "part-001.parquet"
    data = bytearray(path.read_bytes())
    data[4 : len(data) // 2] = os.urandom(len(data) // 2 - 4)
    path.write_bytes(bytes(data))
    door.run(folder).refused(2, "part-001.parquet")


@nightly
def test_a_truncated_file_among_good_ones(door):
    folder = door.input(people(2000), files=2)
    path = folder / "part-001.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    door.run(folder).refused(2, "part-001.parquet")


def test_files_that_disagree_on_a_column(door):
    good = people()
    text = with_column(good, "age", [str(a) for a in good["age"].to_pylist()])
    door.run([good, text]).refused(2, "age")


# --- the columns -----------------------------------------------------------------------------------------------------


def test_a_column_that_is_missing(door):
    outcome = door.run(people(), columns=columns(other=["note", "contry"]))
    outcome.refused(2, "columns.other", "'contry'", "(did you mean 'country'?). It has: age, ")


def test_a_column_that_is_missing_and_like_no_other():
    wanted = Columns.model_validate({"quasi_identifiers": ["zzzz"], "sensitive": "illness"})
    with pytest.raises(SpecError, match=r"no column 'zzzz'\. It has: age, illness$"):
        _spelled(SimpleNamespace(columns=["age", "illness"]), wanted)


def test_a_column_that_nobody_named(door):
    door.run(people(), columns=columns(other=[])).refused(2, "does not name: note", "identifiers", "other")


def test_a_column_named_twice(door):
    for second in ("age", "AGE"):
        outcome = door.run(people(), columns=columns(other=["note", second]))
        outcome.refused(2, repr(second), "quasi_identifiers", "once")


def test_a_table_with_two_columns_of_one_name_by_case(door):
    table = people().append_column("Age", people()["age"])
    door.run(table, columns=columns(other=["note"])).refused(2, "age")


def test_a_frame_with_two_columns_of_one_name(door):
    from anonlib import bucketize as publish
    from anonlib.errors import SpecError

    frame = door.spark.sql("SELECT 1 AS age, 2 AS AGE, 'x' AS illness FROM range(4)")
    with pytest.raises(SpecError, match="more than one column named 'age'"):
        publish(frame, quasi_identifiers=["age"], sensitive="illness", privacy={"l": 2})


def test_a_numeric_column_given_as_text(door):
    table = people()
    table = with_column(table, "age", [str(a) for a in table["age"].to_pylist()])
    door.run(table).refused(2, "'age'", "numeric", "string", "cast it", "categorical")


@pytest.mark.parametrize(
    ("values", "kind"), [([["a"]] * 60, "array"), ([{"a": 1}] * 60, "struct"), ([b"x"] * 60, "binary")]
)
def test_a_sensitive_column_without_single_values(door, values, kind):
    door.run(with_column(people(), "illness", values)).refused(2, "'illness'", kind, "cast it to a string")


def test_a_sensitive_column_that_is_an_identifier(door, monkeypatch):
    monkeypatch.setattr("anonlib.engine.statistics.MAX_VALUES", 50)
    outcome = door.run(with_column(people(), "illness", [f"v{i}" for i in range(60)]))
    outcome.refused(2, "'illness'", "more than 50 distinct values", "identifiers")


# --- missing values, in every role and under every policy ---------------------------------------------------------------


def holes(table: pa.Table, column: str, every: int = 10, hole: object = None) -> pa.Table:
    values = table[column].to_pylist()
    return with_column(table, column, [hole if i % every == 0 else v for i, v in enumerate(values)], table[column].type)


@pytest.mark.parametrize(("column", "part"), [("age", "quasi_identifiers"), ("illness", "sensitive")])
def test_a_null_where_it_is_refused(door, column, part):
    outcome = door.run(holes(people(), column), missing={part: "error"})
    outcome.refused(2, f"column {column!r}", "6 rows", f"missing.{part} is error", "drop", "keep")


def test_a_null_sensitive_value_is_refused_unless_allowed(door):
    door.run(holes(people(), "illness")).refused(2, "column 'illness'", "6 rows")


def test_rows_with_holes_are_dropped_and_counted(door):
    """A null or a NaN, in a quasi-identifier or in the sensitive column, each in rows of its own."""
    table = people(66)
    for column, first in (("age", 0), ("illness", 1)):
        numbers = [float(v) if column == "age" else float(i % 6) for i, v in enumerate(table["age"].to_pylist())]
        for i in range(first, 66, 11):
            numbers[i] = None if i % 2 else float("nan")
        table = with_column(table, column, numbers, pa.float64())
    source = door.input(table)
    outcome = door.run(source, missing={"quasi_identifiers": "drop", "sensitive": "drop"}).published()
    rows = outcome.manifest.rows
    assert (rows.input, rows.published, rows.dropped) == (66, 54, 12)
    assert sorted(row["note"] for row in outcome.table("qit")) == [7 * i for i in range(66) if i % 11 > 1]
    assert sum(counted(outcome.table("st"), "illness").values()) == 54
    assert door.audit(outcome.output, source)[0] == 0


@pytest.mark.parametrize(("column", "part"), cases(("age", "quasi_identifiers"), nightly=[("illness", "sensitive")]))
def test_holes_in_one_column_are_dropped_by_its_own_policy(door, column, part):
    table = holes(people(66), column, 11)
    explained = door.run(table, command="explain", missing={part: "drop"})
    assert explained.code == 0, explained.err


def test_a_kept_null_that_is_too_frequent(door):
    outcome = door.run(holes(people(), "illness", 2), missing={"sensitive": "keep"})
    outcome.refused(3, "None: 30 of 60 records", "smallest that works 0.5")


def test_kept_nulls_and_nans_are_values_like_any_other(door):
    """Two values of their own in the sensitive column; and among quasi-identifiers and others each stays what it is."""
    numbers = [(None, float("nan"), 1.5, 2.5, 3.5, 4.5)[i % 6] for i in range(60)]
    table = with_column(people(), "illness", numbers, pa.float64())
    source = door.input(holes(holes(holes(table, "age"), "country", 7), "note", 3))
    outcome = door.run(source, missing={"sensitive": "keep"}).published()
    assert counted(outcome.table("st"), "illness")[None] == 10
    assert {v.value: v.count for v in outcome.manifest.guarantee.values} == dict.fromkeys(
        ("1.5", "2.5", "3.5", "4.5", "NaN", None), 10
    )
    for column, nulls in (("age", 6), ("country", 9), ("note", 20)):
        assert counted(outcome.table("qit"), column)[None] == nulls
    assert door.audit(outcome.output, source)[0] == 0


def test_a_policy_that_drops_every_row(door):
    table = with_column(people(), "age", [None] * 60, pa.int32())
    door.run(table, missing={"quasi_identifiers": "drop"}).refused(2, "missing", "drops every row")


def test_nulls_of_the_column_that_the_table_is_partitioned_by(door):
    """The dropped folder is pruned from a scan with the policy's filter; both passes must read the same files all the same."""
    folder = door.home / "by_country"
    for number, part in enumerate(("Peru", "__HIVE_DEFAULT_PARTITION__", "Chile")):
        part_of = people(30 + 6 * number).drop_columns(["country"])
        door.input(part_of, f"by_country/country={part}", files=3)
    outcome = door.run(folder, missing={"quasi_identifiers": "drop"}).published()
    rows = outcome.manifest.rows
    assert (rows.input, rows.published, rows.dropped) == (108, 72, 36)


# --- the requirement ----------------------------------------------------------------------------------------------------


def test_a_value_too_frequent_names_every_offender(door):
    values = ["flu"] * 30 + ["cold"] * 24 + ["gout"] * 6
    outcome = door.run(with_column(people(), "illness", values), method=bucketize(l=4))
    outcome.refused(3, "2 sensitive value(s)", "'flu': 30 of 60", "'cold': 24 of 60", "smallest that works 0.5")
    assert "smallest that works 0.4" in outcome.sentence
    assert "'gout'" not in outcome.sentence


def test_fewer_distinct_values_than_l(door):
    outcome = door.run(people(60, ("flu", "cold")), method=bucketize(l=3))
    outcome.refused(3, "'flu': 30 of 60", "'cold': 30 of 60", "threshold 1/3")


def test_one_value_alone(door):
    door.run(people(60, ("flu",)), method=bucketize(l=2)).refused(3, "'flu': 60 of 60", "smallest that works 1")


def test_anatomy_refuses_as_well(door):
    door.run(people(60, ("flu", "cold")), method={"anatomy": {"l": 3}}).refused(3, "'flu': 30 of 60")


def test_a_misspelt_value_protects_nothing(door):
    method = bucketize(default="1/3", thresholds={"Flu": "0.4"})
    door.run(people(), method=method).refused(2, "privacy.thresholds", "'Flu'", "does not occur", "'flu'")


def test_buckets_too_small_for_a_threshold(door):
    method = bucketize(max_bucket_size=5, default="1/3", thresholds={"HIV": "1/6"})
    door.run(people(), method=method).refused(3, "max_bucket_size", "'HIV'")


# --- key, output and arguments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("env:NOT_SET_ANYWHERE", ["NOT_SET_ANYWHERE is not set"]),
        ("env:SHORT_KEY", ["not 64 hexadecimal digits"]),
        ("file:no/such/key", ["no/such/key", "cannot be read"]),
        ("a5" * 32, ["env:NAME or file:PATH"]),
    ],
    ids=["unset", "short", "no file", "the key itself"],
)
def test_a_bad_key(door, monkeypatch, reference, words):
    monkeypatch.setenv("SHORT_KEY", "0123")
    outcome = door.run(people(), random={"key": reference}).refused(2, "random.key", *words)
    assert "a5a5" not in outcome.err
    assert "0123" not in outcome.err


def test_an_empty_output_folder_is_used_and_one_that_holds_a_release_is_not(door):
    source = door.input(people())
    (door.home / "release").mkdir()
    first = door.run(source).published()
    before = {p: p.read_bytes() for p in first.output.rglob("*") if p.is_file()}
    again = door.run(source)
    assert again.code == 2
    assert "already holds a release" in again.sentence
    assert "choose another path" in again.sentence.replace("\n", " ")
    assert {p: p.read_bytes() for p in first.output.rglob("*") if p.is_file()} == before


def test_an_output_path_that_holds_other_files(door):
    (door.home / "release").mkdir()
    (door.home / "release" / "thesis.txt").write_text("mine", encoding="utf-8")
    outcome = door.run(people())
    assert outcome.code == 2
    assert "is not empty" in outcome.sentence
    assert (door.home / "release" / "thesis.txt").read_text(encoding="utf-8") == "mine"


def test_an_output_path_that_is_a_file(door):
    (door.home / "release").write_text("mine", encoding="utf-8")
    assert door.run(people()).code == 2
    assert (door.home / "release").read_text(encoding="utf-8") == "mine"


def test_an_output_path_below_a_file(door):
    (door.home / "file").write_text("mine", encoding="utf-8")
    outcome = door.run(people(), "file/release")
    assert outcome.code == 2
    assert "cannot be written" in outcome.sentence


def test_input_and_output_paths_with_unusual_characters(door):
    source = door.input(people(), "with space 100%25 Überträge")
    outcome = door.run(source, "with space Überträge a[b]c 100%25 a{b,c} #1 what?*").published()
    assert door.audit(outcome.output)[0] == 0


def test_a_spec_that_is_not_there(door):
    outcome = door.call("run", str(door.home / "none.yaml"))
    outcome.refused(2, "none.yaml", "cannot be read")


def test_no_spec_at_all(door):
    door.call("run").refused(2, "name the release spec once")


def test_an_unknown_option(door):
    outcome = door.call("run", "--no-such-option")
    assert outcome.code == 2
    assert "no-such-option" in outcome.err


def test_a_release_that_is_not_there(door):
    door.call("audit", str(door.home / "release")).refused(2, "holds no release")


@nightly  # the audit, to a hair, at every change: `tests/engine/test_audit_bucketized.py`
def test_decimal_thresholds_are_exact(door):
    """29 of 100 records and a threshold of 0.29: in binary floating point, floor(0.29 * 100) would be 28 and refuse."""
    values = ["flu"] * 29 + [f"v{i % 71}" for i in range(71)]
    method = bucketize(max_bucket_size=100, default="0.29")
    outcome = door.run(with_column(people(100), "illness", values), method=method).published()
    assert outcome.manifest.guarantee.values[0].threshold == "0.29"
    assert Decimal("0.29") == Decimal(29) / 100
    assert {v: n for v, n in counted(outcome.table("st"), "illness").items() if v in ("flu", *VALUES)} == {"flu": 29}
