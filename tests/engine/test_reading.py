"""What of a text file cannot be read is found, told apart and counted as it was planted, and no record of it is shown."""

from __future__ import annotations

import json
import random

import pytest

from anonlib.engine import reading
from anonlib.engine.failures import explained
from anonlib.errors import SpecError
from anonlib.spec.release import Input

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

HEADER, SCHEMA = "name,zip,age,born,disease", "name STRING, zip STRING, age INT, born DATE, disease STRING"
PUBLISHED = ["zip", "AGE", "born", "disease"]  # names as Spark compares them; `name` is withheld
FLAWS = ("age", "born", "both", "short", "long", "undecodable zip", "undecodable disease", "withheld", "none")


def record(i, flaw="none"):
    """One line of bytes with one flaw; a quoted comma and an empty cell are none."""
    cells = [
        f'"Secret, {i}"'.encode(),
        b"%05d" % (i * 331),
        b"%d" % (20 + i % 60),
        b"1970-01-%02d" % (1 + i % 28),
        b"flu",
    ]
    if i % 3 == 0 and flaw == "none":
        cells[3] = b""
    if flaw in ("age", "both"):
        cells[2] = (b"thirty", b"30.5", b"99999999999", b" 30", b"nan")[i % 5]
    if flaw in ("born", "both"):
        cells[3] = (b"31/12/1969", b"1970-02-30", b"soon")[i % 3]
    if flaw == "undecodable zip":
        cells[1] = b"\xe8" + cells[1]
    if flaw == "undecodable disease":
        cells[4] = b"Fi\xe8vre"
    if flaw == "withheld":
        cells[0] = b"\xff"
    line = b",".join(cells)
    return {"short": b",".join(cells[:-1]), "long": line + b",more"}.get(flaw, line)


def planted(n=160, seed=7):
    """(records as lines, how many of each flaw)."""
    draw = random.Random(seed)
    flaws = [draw.choice(FLAWS) for _ in range(n)]
    return [record(i, flaw) for i, flaw in enumerate(flaws)], {flaw: flaws.count(flaw) for flaw in FLAWS}


@pytest.fixture
def table(tmp_path):
    """A function that writes lines to one CSV (or JSON) file, and gives the input part of a spec."""

    def write(lines, header=HEADER, schema=SCHEMA, format="csv", unreadable="error", **options):
        folder = tmp_path / "a folder [1]"  # a name that is a pattern, and needs escapes in a URI
        folder.mkdir(exist_ok=True)
        given = [header.encode(), *lines] if header else lines
        (folder / f"part é.{format}").write_bytes(b"\n".join(given) + b"\n")
        options = {"header": "true"} | options if format == "csv" else options
        return Input(path=f"{tmp_path}/a folder*", format=format, schema=schema, options=options, unreadable=unreadable)

    return write


def refusal(spark, given, columns=PUBLISHED):
    with pytest.raises(SpecError) as refused, reading.misread_explained(spark, given, columns), explained("reading"):
        reading.read(spark, given, columns).select(*columns).collect()
    assert refused.value.__cause__ is None  # a cause of Spark's may repeat the record
    assert "Secret" not in str(refused.value)
    return str(refused.value)


def test_counts_are_those_that_were_planted(spark, table):
    lines, flaws = planted()
    given = table(lines, unreadable="missing")
    found = reading.count_unreadable(spark, given, PUBLISHED)
    assert found.lengths == flaws["short"] + flaws["long"] > 10
    assert found.cells == {"age": flaws["age"] + flaws["both"], "born": flaws["born"] + flaws["both"]}
    assert found.undecodable == {
        "zip": flaws["undecodable zip"],
        "disease": flaws["undecodable disease"],
    }
    good = flaws["none"] + flaws["withheld"]
    assert found.records == len(lines) - good

    rows = reading.read(spark, given, PUBLISHED).select(*PUBLISHED).collect()
    assert len(rows) == len(lines)
    nulls = [sum(row[i] is None for row in rows) for i in range(4)]
    empty = sum(line.split(b",")[4] == b"" for line in lines)  # the quoted name has a comma
    wrong = found.lengths
    assert nulls == [
        wrong + flaws["undecodable zip"],
        wrong + flaws["age"] + flaws["both"],
        wrong + flaws["born"] + flaws["both"] + empty,
        wrong + flaws["undecodable disease"],
    ]

    dropping = given.model_copy(update={"unreadable": "drop"})
    frame = reading.read(spark, dropping, PUBLISHED)
    whole = frame.select(*PUBLISHED).collect()
    assert len(whole) == good
    assert sum(row[2] is None for row in whole) == empty
    # whatever a pass asks for, it sees the same records
    assert [frame.select(name).count() for name in ("zip", "age", "born", "disease")] == [good] * 4
    assert frame.count() == good
    assert frame.groupBy("disease").count().collect()[0]["count"] == good


@pytest.mark.parametrize(
    ("flaw", "words"),
    [
        ("age", ("1 cell(s) of 'age' not of its column's type (int)", "nullValue")),
        ("born", ("1 cell(s) of 'born' not of its column's type (date)", "dateFormat")),
        ("short", ("1 record(s) with too few or too many cells", "quote")),
        ("long", ("1 record(s) with too few or too many cells", "multiLine")),
        ("undecodable zip", ("1 cell(s) of 'zip' with bytes that are no text in UTF-8", "encoding")),
        ("undecodable disease", ("1 cell(s) of 'disease' with bytes that are no text in UTF-8",)),
    ],
)
def test_a_record_is_refused_with_its_place_and_a_way_to_mend_it(spark, table, flaw, words):
    given = table([*[record(i) for i in range(6)], record(6, flaw), record(7)])
    said = refusal(spark, given)
    assert [word for word in (*words, "line 8 of file:", "part", "input.unreadable: missing") if word not in said] == []
    assert said.count("cell(s) of") + said.count("record(s) with") == 1  # nothing else is accused


def test_what_is_withheld_need_not_be_readable(spark, table):
    given = table([record(i, "withheld") for i in range(3)])
    assert reading.read(spark, given, PUBLISHED).select(*PUBLISHED).count() == 3
    assert "1 cell(s) of 'name'" in refusal(spark, table([record(0), record(1, "withheld")]), ["name"])


def test_the_right_encoding_is_the_mend(spark, table):
    lines = [record(0), record(1, "undecodable disease")]
    rows = reading.read(spark, table(lines, encoding="ISO-8859-1"), PUBLISHED).select("disease").collect()
    assert [row[0] for row in rows] == ["flu", "Fièvre"]
    assert "no text in US-ASCII" in refusal(spark, table(lines, encoding="US-ASCII"))


def test_records_of_many_lines(spark, table):
    lines = [b'"Secret\n0",00001,30,,"fl\nu"', b'"Secret\n1",00001,old,,"fl\nu"', b'"Secret\n2",00001,"3']
    said = refusal(spark, table(lines, multiLine="true"))
    assert "1 cell(s) of 'age'" in said
    assert "1 record(s) with too few" in said
    assert "line " not in said


def test_a_json_as_it_was_planted(spark, table):
    good = {"name": "Secret 0", "zip": "1", "age": 30, "born": "1970-01-01", "disease": "Fièvre"}
    lines = [
        *[json.dumps(good).encode()] * 3,
        json.dumps(good | {"age": "thirty"}).encode(),
        json.dumps(good | {"age": 30.5, "born": "soon"}).encode(),
        json.dumps(good).encode()[:-9],
        b"[1, 2]",
        json.dumps(good, ensure_ascii=False).encode("latin-1"),
        json.dumps({"age": 30}).encode(),  # what a JSON does not say is missing
    ]
    given = table(lines, header=None, format="json", unreadable="missing")
    found = reading.count_unreadable(spark, given, PUBLISHED)
    assert (found.records, found.lengths) == (5, 2)
    assert found.cells == {"age": 2, "born": 1}
    assert found.undecodable == {"disease": 1}
    rows = reading.read(spark, given, PUBLISHED).select("age", "zip").collect()
    assert [tuple(row) for row in rows] == [
        *[(30, "1")] * 3, (None, "1"), (None, "1"), (None, None), (None, None), (None, None), (30, None)
    ]  # fmt: skip
    said = refusal(spark, given.model_copy(update={"unreadable": "error"}))
    assert "2 record(s) that cannot be read as an object" in said

    many = table([b"[" + lines[0] + b",\n" + lines[3] + b"]"], header=None, format="json", multiLine="true")
    assert "something that cannot be read as the schema, among the 2 record(s)" in refusal(spark, many)
    # types that nobody stated are those of the records that can be read
    assert "1 record(s)" in refusal(spark, table(lines[:3] + lines[5:6], header=None, format="json", schema=None))


@pytest.mark.parametrize("schema", ["age INT, disease STRING -- of whom", "age INT,\n  disease STRING NOT NULL", None])
def test_however_a_schema_is_given(spark, table, schema):
    lines = [b"30,flu", b"31,Fi\xe8vre"]
    given = table(lines, header="age,disease", schema=schema)
    assert reading.read(spark, given).columns == ["age", "disease"]
    assert "1 cell(s) of 'disease'" in refusal(spark, given, ["age", "disease"])


def test_columns_that_come_from_folders(spark, tmp_path):
    for ward in ("a", "b"):
        (tmp_path / "t" / f"ward={ward}").mkdir(parents=True)
        (tmp_path / "t" / f"ward={ward}" / "x.csv").write_text("age\n1\nold\n")
    for schema in (None, "age INT", "ward STRING, age INT"):
        given = Input(
            path=str(tmp_path / "t"), format="csv", schema=schema, options={"header": True}, unreadable="drop"
        )
        rows = reading.read(spark, given).select("ward", "age").collect()
        expected = [("a", 1), ("b", 1)] if schema else [("a", "1"), ("a", "old"), ("b", "1"), ("b", "old")]
        assert sorted(tuple(row) for row in rows) == expected


def test_a_record_beyond_the_readers_bounds_is_not_repeated(spark, table):
    given = table([b"Secret,00001,30,,flu"], maxCharsPerColumn="5")
    assert "maxCharsPerColumn" in refusal(spark, given)


@pytest.mark.parametrize("name", ["encoding", "dateFormat", "timeZone", "pathGlobFilter"])
def test_a_value_that_an_option_cannot_have(spark, table, name):
    """Found by Spark alone, and told as a fault of the spec."""
    value = {"encoding": "utf-88", "dateFormat": "dd.MM.YYYY", "timeZone": "Mars", "pathGlobFilter": "["}[name]
    given = table([record(1)], **{name: value})
    assert "one of input.options has a value that Spark does not know: " in refusal(spark, given)


def test_a_date_is_a_whole_one(spark, table):
    """Left to itself, Spark reads all of these as 1 January 2020."""
    lines = [b"2020", b"2020-01", b"2020-1-1", b"2020-01-01 or so", b"2020-01-01T", b"2020-01-01"]
    assert "5 cell(s) of 'a'" in refusal(spark, table(lines, header="a", schema="a DATE"), ["a"])


@pytest.mark.parametrize("name", [reading.CELLS, reading.BROKEN])
@pytest.mark.parametrize("unreadable", ["error", "missing", "drop"])
def test_a_column_of_a_name_that_reading_needs(spark, table, name, unreadable):
    given = table([b"1"], header=name, schema=f"{name} INT").model_copy(update={"unreadable": unreadable})
    with pytest.raises(SpecError, match=f"'{name}' has a name that reading needs for itself; rename it"):
        reading.read(spark, given)
