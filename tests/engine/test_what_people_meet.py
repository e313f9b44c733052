"""Tables and arguments as people have them: `?` for a missing value, a pandas frame, columns of types that no box can hold."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pytest

import anonlib
from anonlib.api.arguments import as_table
from anonlib.engine import reading, repeatable
from anonlib.engine.domains import domain_statistics
from anonlib.engine.microdata import microdata
from anonlib.engine.pandas_frames import from_pandas
from anonlib.errors import SpecError
from anonlib.spec.load import load_spec
from anonlib.spec.release import Columns, Input, Missing
from tests.door import bucketize, cut, people, with_column, write_files
from tests.thorough import nightly

pytestmark = pytest.mark.spark

SCHEMA = "age INT, country STRING, note BIGINT, illness STRING"


def with_marks():
    """60 persons, of whom every sixth has an illness `?`, every tenth a country `?`, and two an age -9."""
    table = people()
    ills = ["?" if i % 6 == 0 else v for i, v in enumerate(table.column("illness").to_pylist())]
    countries = ["?" if i % 10 == 0 else v for i, v in enumerate(table.column("country").to_pylist())]
    ages = [-9 if i in (3, 4) else v for i, v in enumerate(table.column("age").to_pylist())]
    table = with_column(with_column(table, "illness", ills), "country", countries)
    return with_column(table, "age", ages, table.schema.field("age").type)


@nightly
def test_marks_of_nobody_are_read_in_the_audit_too(door):
    """Four rows are of nobody: left out by the run, and by the audit beside the whole table."""
    table = people(64).append_column("person", pa.array(["?" if i % 16 == 5 else f"p{i}" for i in range(64)]))
    roles = {"quasi_identifiers": ["age", "country"], "sensitive": "illness", "other": ["note"], "person": "person"}
    missing = {"person": "drop", "as_missing": ["?"]}
    outcome = door.run(table, columns=roles, missing=missing, persons={"repeated": "error"}).published()
    assert (outcome.manifest.rows.published, outcome.manifest.persons.nameless) == (60, 4)
    (conf,) = door.home.glob("spec-*.yaml")
    beside = door.call("audit", str(outcome.output), "--spec", str(conf))
    assert beside.code == 0, beside.err


def test_marks_of_missing_values_from_the_table_to_the_audit(door):
    table = with_marks()
    path = door.home / "people.csv"
    pa_csv.write_csv(table, path)
    source = {"path": str(path), "format": "csv", "schema": SCHEMA, "options": {"header": True}}

    plain = door.run(source, command="explain", method=bucketize(default="1/2"))
    assert plain.code == 0, plain.err
    assert "'age' has '-9'; 'country' has '?'; 'illness' has '?'" in " ".join(plain.out.split())
    assert 'as_missing: ["-9", "?"]' in " ".join(plain.out.split())

    missing = {"sensitive": "keep", "as_missing": ["?", -9]}
    method = bucketize(default="1/2", missing="1/4")
    outcome = door.run(source, missing=missing, method=method).published()
    manifest, qit = outcome.manifest, outcome.table("qit")
    assert manifest.as_missing == ["?", "-9"]
    thresholds = {v.value: v.threshold for v in manifest.guarantee.values}
    assert (thresholds[None], "?" in thresholds) == ("0.25", False)
    assert Counter(row["country"] for row in qit)[None] == 6
    assert Counter(row["age"] for row in qit)[None] == 2
    assert not {"?", -9} & {value for row in qit for value in row.values()}

    # the original named as one would, without a word on how it was read
    beside = door.call("audit", str(outcome.output), "--original", str(path), "--format", "csv", "--json")
    assert beside.code == 0, beside.err
    assert all(check["passed"] for check in json.loads(beside.out)["checks"])
    nameless = door.home / "nameless.csv"
    nameless.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[1:]), encoding="utf-8")
    headless = door.call("audit", str(outcome.output), "--original", str(nameless), "--format", "csv")
    assert (headless.code, "--spec CONF" in headless.sentence) == (2, True), headless.err
    wide = with_column(table, "age", table.column("age").to_pylist(), "int64")
    other = door.call("audit", str(outcome.output), "--original", str(write_files(door.home / "wide", cut(wide, 1))))
    assert other.code == 2
    assert "column 'age' is read as bigint, and the release was made from int" in other.sentence


def test_a_pandas_frame_is_a_table(spark, tmp_path):
    frame = people().to_pandas().set_index("note")
    frame["country"] = frame["country"].astype("category")
    frame["ward"] = pd.Series(range(60), dtype="uint8").to_numpy()
    frame["visit"] = pd.Timestamp("2026-11-29 10:00:00")
    frame.loc[7, "visit"] = None
    release = anonlib.bucketize(
        frame,
        quasi_identifiers=["country", {"name": "age", "type": "numeric"}],
        sensitive="illness",
        other=["visit", "ward"],
        privacy={"l": 3},
        output=tmp_path / "release",
    )
    assert release.manifest.rows.published == 60
    assert {c.name: c.type for c in release.manifest.tables["qit"].columns} == {
        "country": "string", "age": "int", "visit": "timestamp_ntz", "ward": "smallint", "bucket_id": "bigint"
    }  # fmt: skip
    assert release.tables["qit"].where("visit IS NULL").count() == 1
    assert anonlib.open_release(Path(release.path)).manifest == release.manifest


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"a": [1, "x"]}, "column 'a' of the pandas frame has values of several types"),
        ({3: [1, 2]}, "column 3 of the pandas frame has no text for a name"),
        ({"a": [1j, 2j]}, "or of one that Arrow has not"),
    ],
)
def test_a_pandas_frame_that_cannot_be_one(spark, columns, words):
    with pytest.raises(SpecError, match=words) as refused:
        from_pandas(spark, pd.DataFrame(columns), "df").collect()
    assert "x" not in str(refused.value).replace("text", "")


def verb(df=None, **changes):
    given = {"quasi_identifiers": ["age"], "sensitive": "illness", "privacy": {"l": 3}}
    return anonlib.bucketize(df, **(given | changes))


WRONG = {
    "nothing": (lambda df: verb(None), "df: None is no table"),
    "a path": (lambda df: verb("data/t.parquet"), "df: 'data/t.parquet' is a path; give a Spark DataFrame"),
    "a list": (lambda df: verb([1]), "df: a list is no table"),
    "letters": (lambda df: verb(df, quasi_identifiers="age"), "quasi_identifiers: 'age' is not a list of columns"),
    "a mapping of columns": (lambda df: verb(df, quasi_identifiers={"name": "age"}), "is not a list of columns"),
    "an identifier": (lambda df: verb(df, identifiers="name"), "identifiers: 'name' is not a list"),
    "another": (lambda df: verb(df, other=None), "other: an empty value is not a list"),
    "a policy": (lambda df: verb(df, missing="drop"), "missing: 'drop' is not a mapping"),
    "an output": (lambda df: verb(df, output=3), "output: 3 is not a path"),
    "no spec": (lambda df: anonlib.run(None), "spec: an empty value is no spec"),
    "a path as a release": (lambda df: anonlib.audit_release("releases/t"), "release: a str is no opened release"),
    "no release": (lambda df: anonlib.open_release(None), "path: an empty value is not a path"),
    "no original": (lambda df: anonlib.evaluate(None, df), "release: None is no opened release"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_an_argument_of_another_type(spark, kind):
    call, words = WRONG[kind]
    with pytest.raises(TypeError, match=words) as refused:
        call(spark.range(1).selectExpr("1 AS age", "'flu' AS illness"))
    assert "\n" not in str(refused.value)


def test_a_table_of_sparks_is_taken_as_it_is(spark):
    frame = spark.range(1)
    assert as_table(frame) is frame


def checked(spark, sql):
    columns = Columns.model_validate({"quasi_identifiers": ["q"], "sensitive": "illness"})
    return microdata(spark.range(3).selectExpr(f"{sql} AS q", "'flu' AS illness"), columns, Missing())


@pytest.mark.every_spark
@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("array(id)", "array<bigint>"),
        ("map('a', id)", "map<string,bigint>"),
        ("named_struct('a', id)", "struct<a:bigint>"),
        ("CAST('a' AS BINARY)", "binary"),
        ("make_dt_interval(1)", "interval day to second"),
    ],
)
def test_a_type_that_no_box_holds(spark, sql, kind):
    with pytest.raises(SpecError, match=f"'q' is of type {kind}, and a box holds sets of single values"):
        domain_statistics(checked(spark, sql))


@pytest.mark.every_spark
@pytest.mark.parametrize(("sql", "kind"), [("NULL", "void"), ("make_interval(1)", "interval")])
def test_a_type_that_no_file_holds(spark, sql, kind):
    if kind == "interval" and spark.version < "4":
        pytest.skip("pyspark 3.5 cannot say that a column is of this type")
    with pytest.raises(SpecError, match=f"column 'q' is of type {kind}, which no file can hold"):
        checked(spark, sql)


def test_texts_that_a_collation_takes_for_equal(spark):
    if spark.version < "4":
        pytest.skip("collations came with Spark 4")
    for sql in ("'a' COLLATE UTF8_LCASE", "array('a' COLLATE UNICODE_CI)"):
        with pytest.raises(SpecError, match=r"column 'q' .* different texts are equal"):
            checked(spark, sql)
    checked(spark, "'a' COLLATE UTF8_BINARY")


def test_a_draft_of_a_spec_has_no_value_of_the_table(door):
    table = with_marks().append_column("zip", [[f"0{i:04d}" for i in range(100, 160)]])
    path, conf = door.home / "people.csv", door.home / "draft.yaml"
    pa_csv.write_csv(table, path)
    outcome = door.call("init", str(path), "-o", str(conf))
    assert outcome.code == 0, outcome.err
    text, spec = conf.read_text(encoding="utf-8"), load_spec(conf)
    assert spec.input.schema_ddl == "`age` INT, `country` STRING, `note` INT, `illness` STRING, `zip` STRING"
    assert spec.columns.sensitive_names == ("illness",)
    assert {"note", "zip"} <= set(spec.columns.identifiers)
    assert "as_missing" in text
    assert not [
        v for v in {*table.column("illness").to_pylist(), *table.column("country").to_pylist()} - {"?"} if v in text
    ]
    assert door.call("init", str(path), "-o", str(conf)).code == 2
    assert door.call("init", str(door.home)).sentence.endswith("or table for a catalog table")
    bare = door.home / "bare.csv"
    bare.write_text("Peru,flu,flu\nPeru,flu,cold\n", encoding="utf-8")
    assert "cell 3 of its first line is the same as cell 2" in door.call("init", str(bare)).sentence


def test_columns_that_nobody_names(spark):
    wide = spark.range(1).selectExpr("30 AS age", "'flu' AS illness", *[f"0 AS extra_{i}" for i in range(50)])
    roles = {"quasi_identifiers": ["age"], "sensitive": "illness"}
    with pytest.raises(SpecError, match=r"50 column\(s\) .*extra_0, .*extra_49; .*identifiers: rest.*anonlib init"):
        microdata(wide, Columns.model_validate(roles), Missing())
    table = microdata(wide, Columns.model_validate(roles | {"identifiers": "rest"}), Missing())
    assert table.frame.columns == ["age", "illness"]


def test_hierarchies_made_by_a_rule(door):
    quasi = [
        {"name": "age", "hierarchy": {"intervals": [10, 20]}},
        {"name": "country", "hierarchy": {"prefix": [2]}},
    ]
    columns = {"quasi_identifiers": quasi, "sensitive": "illness", "identifiers": "rest"}
    outcome = door.run(people(), columns=columns, method={"t_incognito": {"t": "0.6", "k": 3}}).published()
    labels = {row["age_label"] for row in outcome.table("microdata")}
    assert labels <= {
        *map(str, range(20, 70)),
        "*",
        *(f"{a}..{a + 9}" for a in range(20, 70, 10)),
        "20..39",
        "40..59",
        "60..79",
    }
    assert outcome.manifest.audit.passed
    refused = door.run(
        people(),
        "other",
        columns=columns | {"quasi_identifiers": [{"name": "country", "hierarchy": {"dates": ["year"]}}, "age"]},
        method={"t_incognito": {"t": "0.6", "k": 3}},
    )
    refused.refused(2, "column 'country'", "is not a date such as 2026-11-29")


def test_folders_of_keys_and_values(spark, door):
    table, folder = people(), door.home / "by country"
    for country in ("Peru", "中国"):
        rows = table.filter(pc.equal(table.column("country"), country)).drop_columns(["country"])
        write_files(folder / f"country={country}", cut(rows, 2))
    frame = reading.read(spark, Input.model_validate({"path": str(folder)}))
    assert {row["country"]: row["count"] for row in frame.groupBy("country").count().collect()} == {
        "Peru": 20,
        "中国": 20,
    }
    assert repeatable.repeats(frame)
