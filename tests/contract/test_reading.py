"""What was read is what was meant: a text file that Spark would read by position, or in part, is refused, and no cell of it is shown."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.spark

HEADER, SCHEMA = "name,age,illness", "name STRING, age INT, illness STRING"
ROWS = [f"Person {i},{20 + i},{('flu', 'gout', 'HIV')[i % 3]}" for i in range(12)]
COLUMNS = {"quasi_identifiers": [{"name": "age", "type": "numeric"}], "sensitive": "illness", "identifiers": ["name"]}


def explain(door, *files: list[str], format="csv", columns=COLUMNS, schema=None, **options):
    folder = door.home / "text"
    folder.mkdir()
    for number, lines in enumerate(files):
        (folder / f"part-{number}.{format}").write_bytes(("\n".join(lines) + "\n").encode())
    source = {"path": str(folder), "format": format, "options": options or {"header": True}}
    if schema:
        source["schema"] = schema
    if format == "json":
        del source["options"]
    return door.run(source, command="explain", columns=columns, method={"anatomy": {"l": 2}})


def refused(outcome, *words):
    outcome.refused(2, *words)
    assert "Person" not in outcome.err  # nobody's cell is shown
    return outcome


def test_a_schema_in_another_order_than_the_header(door):
    wrong = explain(door, [HEADER, *ROWS], schema="illness STRING, age INT, name STRING")
    refused(wrong, "part-0.csv", "'illness'", "another name")


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
