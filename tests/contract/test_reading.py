"""What was read is what was meant: a text file that Spark would read by position, or in part, is refused, and no cell of it is shown."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.door import people, with_column

pytestmark = pytest.mark.spark

HEADER, SCHEMA = "name,age,illness", "name STRING, age INT, illness STRING"
ROWS = [f"Person {i},{20 + i},{('flu', 'gout', 'HIV')[i % 3]}" for i in range(12)]
COLUMNS = {"quasi_identifiers": [{"name": "age", "type": "numeric"}], "sensitive": "illness", "identifiers": ["name"]}


def text_files(door, *files: list[str], format="csv", schema=None, encoding="utf-8", unreadable=None, **options):
    """An input part over a new folder with one file per list of lines."""
    folder = door.home / "text"
    folder.mkdir()
    for number, lines in enumerate(files):
        (folder / f"part-{number}.{format}").write_bytes(("\n".join(lines) + "\n").encode(encoding))
    source = {"path": str(folder), "format": format, "options": options or {"header": True}}
    if schema:
        source["schema"] = schema
    if format == "json":
        del source["options"]
    return source | ({"unreadable": unreadable} if unreadable else {})


def explain(door, *files: list[str], columns=COLUMNS, **source):
    return door.run(
        text_files(door, *files, **source), command="explain", columns=columns, method={"anatomy": {"l": 2}}
    )


def publish(door, *files: list[str], **source):
    columns = {"quasi_identifiers": ["name", {"name": "age", "type": "numeric"}], "sensitive": "illness"}
    method = {"anatomy": {"l": 2}}
    return door.run(text_files(door, *files, **({"schema": SCHEMA} | source)), columns=columns, method=method)


def refused(outcome, *words):
    outcome.refused(2, *words)
    assert "Person" not in outcome.err  # nobody's cell is shown
    return outcome


def test_files_in_another_order(door):
    """With types inferred or not, one file's header is what the others are read by."""
    other = ["illness,age,name", *(",".join(reversed(row.split(","))) for row in ROWS)]
    columns = COLUMNS | {"quasi_identifiers": ["age"]}
    refused(explain(door, [HEADER, *ROWS], other, columns=columns), ".csv", "header", "another name")


def test_a_file_without_the_header(door):
    refused(explain(door, [HEADER, *ROWS], ROWS, schema=SCHEMA), "part-1.csv", "'name'")


def test_a_schema_that_lacks_a_column(door):
    columns = COLUMNS | {"identifiers": [], "quasi_identifiers": ["name"]}
    refused(explain(door, [HEADER, *ROWS], schema="name STRING, illness STRING", columns=columns), "3 columns", "2")


@pytest.mark.parametrize("row", ["Person x,30", "Person x,30,flu,more"], ids=["short", "long"])
def test_a_record_of_a_wrong_length(door, row):
    refused(explain(door, [HEADER, *ROWS, row], schema=SCHEMA), "part-0.csv", "too few or too many cells")


def test_a_cell_of_another_type(door):
    columns = COLUMNS | {
        "quasi_identifiers": ["name"],
        "identifiers": [],
        "sensitive": {"name": "age"},
        "other": ["illness"],
    }
    wrong = explain(door, [HEADER, *ROWS, "Person x,thirty,flu"], schema=SCHEMA, columns=columns)
    refused(wrong, "part-0.csv", "not of its column's type", "nullValue")


def test_a_record_of_json_that_cannot_be_read(door):
    good = [f'{{"name": "Person {i}", "age": {20 + i}, "illness": "flu{i % 3}"}}' for i in range(12)]
    wrong = explain(door, [*good, '{"name": "Person x", "age": 1, "illness": '], format="json", schema=SCHEMA)
    refused(wrong, "part-0.json", "cannot be read")


def test_a_file_as_it_should_be(door):
    assert explain(door, [HEADER, *ROWS], [HEADER, *ROWS], schema=SCHEMA.upper()).code == 0


def test_without_a_header_a_schema_is_by_position(door):
    assert explain(door, ROWS, schema=SCHEMA, header=False).code == 0


# --- cells that cannot be read, published -----------------------------------------------------------------------------------------

FLAWED = [HEADER, *ROWS, "Person x,thirty,flu", "Person y,30", "Person z,30,flu,more", "Personé,30,flu"]
BACKWARDS = ["illness,age,name", *(",".join(reversed(row.split(","))) for row in ROWS)]
KINDS = {
    "a schema in another order": (
        [HEADER, *ROWS],
        {"schema": "illness STRING, age INT, name STRING"},
        ("another name",),
    ),
    "files in another order": (BACKWARDS, {}, ("part-1.csv", "'name'", "another name")),
    "a cell of another type": (
        [HEADER, FLAWED[13]],
        {},
        ("1 cell(s) of 'age'", "(int)", "line 2 of file:", "nullValue"),
    ),
    "a short record": (
        [HEADER, FLAWED[14]],
        {},
        ("1 record(s) with too few", "line 2 of file:", "part-1.csv", "quote"),
    ),
    "a long record": ([HEADER, FLAWED[15]], {}, ("1 record(s) with too few", "line 2 of file:", "part-1.csv", "sep")),
    "bytes that are no text": (
        [HEADER, FLAWED[16]],
        {},
        ("1 cell(s) of 'name'", "UTF-8", "line 2 of file:", "encoding"),
    ),
    "all of them": (
        [HEADER, *FLAWED[13:]],
        {},
        ("1 cell(s) of 'age'", "2 record(s)", "1 cell(s) of 'name' with bytes", "input.unreadable: missing"),
    ),
    "an option that does not exist": (
        [HEADER, *ROWS],
        {"headr": True},
        ("input.options.headr", "did you mean header?"),
    ),
    "an option with another value": (
        [HEADER, *ROWS],
        {"header": "yes"},
        ("input.options.header", "neither true nor false"),
    ),
    "records left out in silence": (
        FLAWED,
        {"header": True, "mode": "DROPMALFORMED"},
        ("input.options.mode", "two scans need not leave out the same", "input.unreadable: drop"),
    ),
    "cells lost in silence": (FLAWED, {"header": True, "mode": "PERMISSIVE"}, ("input.options.mode", "in silence")),
    "files left out in silence": ([HEADER, *ROWS], {"ignoreCorruptFiles": True}, ("ignoreCorruptFiles", "in silence")),
}


@pytest.mark.every_spark
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_read_is_what_was_meant(door, kind):
    """Also in columns that the solver's statistics never look at: the pass that would publish them does."""
    lines, source, words = KINDS[kind]
    refused(publish(door, [HEADER, *ROWS], lines, encoding="latin-1", **source), *words)


def test_a_session_that_leaves_out_files(door):
    setting = "spark.sql.files.ignoreCorruptFiles"
    source = text_files(door, [HEADER, *ROWS], schema=SCHEMA)
    (door.home / "text" / "part-1.csv.gz").write_bytes(b"no archive")
    door.spark.conf.set(setting, True)
    try:
        door.run(source, columns=COLUMNS, method={"anatomy": {"l": 2}}).refused(2, "part-1.csv.gz", "cannot be read")
        assert door.spark.conf.get(setting) == "true"
    finally:
        door.spark.conf.unset(setting)


def test_or_read_as_missing_and_counted(door):
    flawed = publish(door, FLAWED, encoding="latin-1", unreadable="missing")
    flawed.refused(2, "illness")  # a record of a wrong length has no illness either, and `missing` refuses that
    (door.home / "text").rename(door.home / "before")
    made = publish(door, [*FLAWED[:14], FLAWED[16]], encoding="latin-1", unreadable="missing").published()
    assert made.manifest.unreadable.model_dump() == {
        "handling": "missing", "records": 2, "lengths": 0, "cells": {"age": 1}, "undecodable": {"name": 1}
    }  # fmt: skip
    rows = {(row["name"], row["age"]) for row in made.table("qit")}
    assert rows >= {("Person x", None), (None, 30)}
    assert made.manifest.rows.published == 14
    assert "2 record(s)" in made.err
    assert door.audit(made.output)[0] == 0

    # an original is read as the release's input was, when its spec is given; read otherwise it is no original, and nobody is accused
    spec = next(door.home.glob("spec-2.yaml"))
    assert door.call("audit", str(made.output), "--spec", str(spec)).code == 0
    as_text = door.call("audit", str(made.output), "--original", str(door.home / "text"), "--format", "csv")
    assert (as_text.code, "--spec" in as_text.sentence) == (2, True)


def test_or_left_out_and_counted(door):
    made = publish(door, FLAWED, encoding="latin-1", unreadable="drop").published()
    assert made.manifest.unreadable.model_dump() == {
        "handling": "drop", "records": 4, "lengths": 2, "cells": {"age": 1}, "undecodable": {"name": 1}
    }  # fmt: skip
    assert {row["name"] for row in made.table("qit")} == {f"Person {i}" for i in range(12)}
    assert made.manifest.rows.input == 12


def test_one_parquet_file_without_a_column(door):
    whole = people(12)
    other = with_column(whole, "age", [300] * 12, pa.int16())
    lacking = door.run([whole, whole.drop_columns(["country"])])
    lacking.refused(2, "part-001.parquet", "'country'", "missing values")
    door.run([whole, other]).refused(2, "part-001.parquet", "'age' of another type")


@pytest.mark.every_spark
@pytest.mark.parametrize("column", ["country", "illness"])
def test_text_of_a_parquet_file_that_is_none(door, column):
    """Python would make one value of the two, or fail."""
    offsets, data = (
        pa.py_buffer(b"".join(i.to_bytes(4, "little") for i in range(13))),
        pa.py_buffer(bytes(range(0xE8, 0xF4))),
    )
    table = people(12)
    kept = table.column(column).to_pylist()
    raw = pa.concat_arrays([pa.array(kept[2:]), pa.Array.from_buffers(pa.string(), 2, [None, offsets, data])])
    door.run(with_column(table, column, raw)).refused(2, f"column '{column}'", "bytes that are no UTF-8")
