"""Unusual values of each type, under unusual names, as sensitive values; unusual tables, formats and paths. Of bucketization: what all
methods make of unusual quasi-identifiers is in `test_special_values_of_methods.py`."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from tests.contract.tables import NAMES, TEXTS, TYPES
from tests.door import bucketize, counted, multiset, people, with_column
from tests.thorough import cases, nightly, some

pytestmark = pytest.mark.spark


def published_types(outcome, table: str) -> dict[str, str]:
    return {c.name: c.type for c in outcome.manifest.tables[table].columns}


SENSITIVE_NAMES = ("a.b", "a b`c", "ünï'c", "n", "text", "partition", "code", "value", "size")
"""One for each type: they need quotes, or our own plans might use them."""
NAMED = dict(zip(TYPES, SENSITIVE_NAMES, strict=True))


@pytest.mark.every_spark
@pytest.mark.parametrize(("kind", "name"), [(kind, NAMED[kind]) for kind in some(TYPES, "decimal", "timestamp")])
def test_a_sensitive_column_of_each_type_and_of_an_unusual_name(door, kind, name):
    """Those at the end of the list also with fake values."""
    arrow, values = TYPES[kind]
    fakes = 2 if name in ("a b`c", "value", "size") and len(set(values)) == 4 else 0
    table = with_column(people(48), "illness", [values[i % 4] for i in range(48)], arrow)
    table = renamed({"illness": name}, table)
    source = door.input(table)
    more = {"max_bucket_size": 3, "fake_values": 2, "avoid_negative_associations": "true"} if fakes else {}
    columns = {"quasi_identifiers": ["age", "country"], "sensitive": name, "other": ["note"]}
    outcome = door.run(source, columns=columns, method=bucketize(l=2, **more)).published()
    assert published_types(outcome, "st")[name] == kind if kind != "decimal" else "decimal(20,4)"
    if fakes:
        buckets = len({row["bucket_id"] for row in outcome.table("qit")})
        assert sum(counted(outcome.table("st"), name).values()) == 48 + fakes * buckets
    else:
        assert counted(outcome.table("st"), name) == counted(table.to_pylist(), name)
    code, checks = door.audit(outcome.output, source)
    assert code == 0, [c for c in checks if not c["passed"]]


def renamed(names: dict[str, str], table: pa.Table | None = None) -> pa.Table:
    table = people() if table is None else table
    return table.rename_columns([names.get(c, c) for c in table.column_names])


@pytest.mark.every_spark
@pytest.mark.parametrize("zone", cases("Europe/Amsterdam", nightly=["Europe/Berlin", "Pacific/Apia"]))
def test_sensitive_instants_do_not_depend_on_the_session_time_zone(door, zone):
    """Two instants that a local clock shows alike are two values; zones had odd seconds before there were standard times."""
    arrow, values = TYPES["timestamp"]
    source = door.input(with_column(people(48), "illness", [values[i % 4] for i in range(48)], arrow))
    door.spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        outcome = door.run(source, method=bucketize(l=4)).published()
    finally:
        door.spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert counted(outcome.table("st"), "illness") == dict.fromkeys(values, 12)


@pytest.mark.every_spark
def test_negative_zero_is_zero(door):
    """As everywhere in SQL: -0.0 = 0.0, so it is one sensitive value, and in other columns each stays what it was."""
    zeros = [(0.0, -0.0, 1.0, 2.0)[i % 4] for i in range(48)]
    table = with_column(with_column(people(48), "illness", zeros, pa.float64()), "note", zeros, pa.float64())
    source = door.input(table)
    outcome = door.run(source, method=bucketize(l=2)).published()
    assert {v.value: v.count for v in outcome.manifest.guarantee.values} == {"0.0": 24, "1.0": 12, "2.0": 12}
    assert sorted(str(row["note"]) for row in outcome.table("qit")).count("-0.0") == 12
    assert door.audit(outcome.output)[0] == 0
    assert door.audit(outcome.output, source)[0] == 0


def test_text_of_every_kind_as_sensitive_values(door):
    values = [TEXTS[i % len(TEXTS)] for i in range(4 * len(TEXTS))]
    table = with_column(people(len(values)), "illness", values)
    source = door.input(table)
    outcome = door.run(source, method=bucketize(l=5)).published()
    assert counted(outcome.table("st"), "illness") == dict.fromkeys(TEXTS, 4)
    assert {v.value for v in outcome.manifest.guarantee.values} == set(TEXTS)
    assert door.audit(outcome.output, source)[0] == 0
    assert door.call("explain", str(door.home / "spec-1.yaml")).code == 0


def test_a_threshold_for_an_unusual_value(door):
    values = [("it's", "a`b", "", "x")[i % 4] for i in range(60)]
    method = bucketize(default="1/2", thresholds={"it's": "1/3", "": "0.4"})
    outcome = door.run(with_column(people(), "illness", values), method=method).published()
    asked = {v.value: v.threshold for v in outcome.manifest.guarantee.values}
    assert asked == {"it's": "1/3", "a`b": "0.5", "": "0.4", "x": "0.5"}


def test_columns_with_unusual_names_and_offsets_too_many_for_the_driver(door, monkeypatch):
    """Rows with a missing value are dropped by their unusual names; counts on the original are taken by them too."""
    monkeypatch.setattr("anonlib.engine.statistics.DRIVER_CELLS", 5)
    table = people()
    for name in NAMES:
        table = with_column(table, name, list(range(60)))
    columns = {"quasi_identifiers": ["age", "country", *NAMES], "sensitive": "illness", "other": ["note"]}
    source = door.input(table)
    outcome = door.run(source, columns=columns, missing={"quasi_identifiers": "drop"}).published()
    assert multiset(outcome.table("qit"), *NAMES) == multiset(table.to_pylist(), *NAMES)
    measured = door.call("evaluate", str(outcome.output), "--original", str(source), "--queries", "9", "--json")
    assert measured.code == 0, measured.err
    assert json.loads(measured.out)["relative_error"]["queries"] == 9


def test_names_that_the_release_needs_are_refused_whatever_their_case(door):
    columns = {"quasi_identifiers": ["age", "country"], "sensitive": "illness", "other": ["COUNT"]}
    door.run(renamed({"note": "COUNT"}), columns=columns).refused(2, "'COUNT'", "rename it")


def test_names_are_found_without_regard_to_case_and_published_as_the_table_spells_them(door):
    table = renamed({"age": "Age", "illness": "ILLNESS"})
    outcome = door.run(table).published()
    assert set(outcome.table("qit")[0]) == {"Age", "country", "note", "bucket_id"}
    assert "ILLNESS" in outcome.table("st")[0]


# --- shapes of tables --------------------------------------------------------------------------------------------------------


@nightly
def test_duplicate_rows_are_all_published(door):
    row = {"age": [30], "country": ["Peru"], "note": [1]}
    table = pa.table({k: v * 60 for k, v in row.items()} | {"illness": people()["illness"]})
    source = door.input(table)
    outcome = door.run(source).published()
    assert len(outcome.table("qit")) == 60
    assert door.audit(outcome.output, source)[0] == 0


@pytest.mark.every_spark
def test_partitions_that_are_empty_or_much_larger_than_the_rest(door):
    big = people(3000)
    parts = [big.slice(0, 0), big.slice(0, 1), big.slice(1, 2900), big.slice(0, 0), big.slice(2901, 99)]
    source = door.input(parts)
    door.spark.conf.set("spark.sql.files.openCostInBytes", str(64 << 20))  # each file is a partition of its own
    door.spark.conf.set("spark.sql.files.maxPartitionBytes", str(64 << 20))
    try:
        outcome = door.run(source).published()
    finally:
        door.spark.conf.unset("spark.sql.files.openCostInBytes")
        door.spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert outcome.manifest.splits.partitions == 3
    assert multiset(outcome.table("qit"), "note") == multiset(big.to_pylist(), "note")
    assert door.audit(outcome.output, source)[0] == 0


def test_a_handful_of_records(door):
    """Alike but for their values: each is published."""
    row = {"age": [30], "country": ["Peru"], "note": [1]}
    table = pa.table({name: cell * 3 for name, cell in row.items()} | {"illness": list(VALUES_FEW)})
    outcome = door.run(table, method=bucketize(l=3)).published()
    assert len(outcome.table("qit")) == 3
    assert len({row["bucket_id"] for row in outcome.table("qit")}) == 1


VALUES_FEW = ("flu", "cold", "gout")


@nightly
def test_values_longer_than_a_manifest_records_of_a_check(door):
    values = [name * 600 for name in VALUES_FEW]
    source = door.input(people(60, values))
    outcome = door.run(source, method=bucketize(l=3, max_bucket_size=6)).published()
    assert counted(outcome.table("st"), "illness") == dict.fromkeys(values, 20)
    assert door.call("audit", str(outcome.output), "--original", str(source)).code == 0


@nightly
def test_a_domain_of_many_values(door):
    """15,000; a few of them three times, the rest once."""
    many = 15_000
    values = [f"code {i:05d}" for i in range(many)] + [f"code {i:05d}" for i in range(500)] * 2
    table = with_column(people(many + 1_000), "illness", values)
    source = door.input(table)
    outcome = door.run(source, method=bucketize(theta=8, offset="0.02", max_bucket_size=50)).published()
    assert counted(outcome.table("st"), "illness") == counted(table.to_pylist(), "illness")
    assert outcome.manifest.audit.passed


@nightly  # text is read in `test_reading.py`, ORC below
@pytest.mark.parametrize("format", ["csv", "json", "orc"])
def test_inputs_of_other_formats(door, format):
    path = door.home / "table"
    frame = door.spark.createDataFrame(people().to_pylist(), "age int, country string, note bigint, illness string")
    frame.write.format(format).option("header", True).save(str(path))
    given = {"path": str(path), "format": format}
    if format == "csv":
        given |= {"options": {"header": "true"}, "schema": "age int, country string, note bigint, illness string"}
    outcome = door.run(given).published()
    assert multiset(outcome.table("qit"), "note", "country") == multiset(people().to_pylist(), "note", "country")


@pytest.mark.every_spark
@pytest.mark.parametrize("bucketed_by", cases("illness", nightly=[None]))
def test_a_catalog_table(door, bucketed_by):
    """A table that is bucketed on disk is cut by its buckets in a pass that groups, and by size in one that does not."""
    frame = door.spark.read.parquet(str(door.input(people(600))))
    writer = frame.repartition(4).write.format("parquet")
    (writer.bucketBy(4, bucketed_by) if bucketed_by else writer).saveAsTable("people_table")
    try:
        outcome = door.run({"table": "people_table"}).published()
    finally:
        door.spark.sql("DROP TABLE people_table")
    assert multiset(outcome.table("qit"), "note") == multiset(people(600).to_pylist(), "note")


@pytest.mark.every_spark
def test_a_release_in_orc(door):
    """Of a table in ORC."""
    source, path = door.input(people()), door.home / "table"
    door.spark.read.parquet(str(source)).write.orc(str(path))
    output = {"path": str(door.home / "release"), "format": "orc"}
    spec = {"input": {"path": str(path), "format": "orc"}, "output": output}
    outcome = door.run_spec(door.spec(source) | spec).published()
    rows = door.spark.read.orc(str(outcome.output / "qit"))
    assert rows.count() == 60
    assert door.audit(outcome.output, source)[0] == 0
