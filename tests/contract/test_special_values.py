"""Unusual values, types and names come through unchanged, and each may be a sensitive value."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.door import bucketize, counted, multiset, people, with_column

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

UTC = dt.timezone.utc
BIG = 2**53
TYPES = {
    "decimal": (pa.decimal128(20, 4), [Decimal("0.0001"), Decimal("-1.5000"), Decimal("9007199254740993.0001"), Decimal(0)]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(1582, 10, 15), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    "timestamp": (
        pa.timestamp("us", tz="UTC"),
        [
            dt.datetime(1890, 5, 1, 0, 0, 1, tzinfo=UTC),
            dt.datetime(2024, 10, 27, 0, 30, tzinfo=UTC),  # this and the next are 02:30 in Berlin, before and after
            dt.datetime(2024, 10, 27, 1, 30, tzinfo=UTC),
            dt.datetime(2024, 10, 27, 1, 30, 0, 1, tzinfo=UTC),
        ],
    ),
    "timestamp_ntz": (pa.timestamp("us"), [dt.datetime(2024, 3, 31, 2, 30, 0, n) for n in (0, 1, 999_999, 500_000)]),
    "boolean": (pa.bool_(), [True, False, True, False]),
    "bigint": (pa.int64(), [BIG, BIG + 1, -(2**63), 2**63 - 1]),
    "double": (pa.float64(), [0.1, 1e300, float("inf"), 5e-324]),
    "float": (pa.float32(), [0.10000000149011612, 1.5, float("-inf"), 16777216.0]),
    "tinyint": (pa.int8(), [-128, 0, 1, 127]),
}  # fmt: skip
TEXTS = (
    "", " ", "  ", "\t", "\n", "a\nb", "'", '"', "`", "\\", "\\n", "%", "[/b]", "[red]", "\u0000", "x" * 100_000, "x" * 99_999 + "y",
    "Österreich", "O\u0308sterreich", "中国", "👩‍👩‍👧", "\u202eabc", "null", "NULL", "None", "NaN", "true", "0", "0.0", "-0.0", "a,b", "{}",
    "$1", "${env:HOME}", "A", "a", "a ",
)  # fmt: skip


def published_types(outcome, table: str) -> dict[str, str]:
    return {c.name: c.type for c in outcome.manifest.tables[table].columns}


@pytest.mark.parametrize("kind", TYPES)
def test_a_sensitive_column_of_each_type(door, kind):
    arrow, values = TYPES[kind]
    table = with_column(people(48), "illness", [values[i % 4] for i in range(48)], arrow)
    source = door.input(table)
    outcome = door.run(source, method=bucketize(l=2)).published()
    assert published_types(outcome, "st")["illness"] == kind if kind != "decimal" else "decimal(20,4)"
    assert counted(outcome.table("st"), "illness") == counted(table.to_pylist(), "illness")
    code, checks = door.audit(outcome.output, source)
    assert code == 0, [c for c in checks if not c["passed"]]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Europe/Amsterdam", "Pacific/Apia"])
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


def all_types(n: int = 60) -> pa.Table:
    """`people` with a column of each type, every fifth value null, and nested columns."""
    table = people(n)
    for kind, (arrow, values) in TYPES.items():
        table = with_column(table, kind, [None if i % 5 == 4 else values[i % 4] for i in range(n)], arrow)
    cycle = lambda *values: [values[i % len(values)] for i in range(n)]  # noqa: E731
    table = with_column(table, "text", cycle(*TEXTS[:20], None))
    table = with_column(table, "odd", cycle(-0.0, float("nan"), None, 0.0, float("inf")), pa.float64())
    table = with_column(table, "bytes", cycle(b"", b"\x00\xff", None), pa.binary())
    table = with_column(table, "tags", cycle([], None, ["a", None], ["x"] * 50), pa.list_(pa.string()))
    table = with_column(table, "big_list", cycle([BIG + 1, None], [None], None), pa.list_(pa.int64()))
    table = with_column(table, "scores", cycle([("a", 1), ("b", None)], [], None), pa.map_(pa.string(), pa.int32()))
    nested = pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.list_(pa.string()))]))])
    return with_column(
        table, "nested", cycle({"x": BIG + 1, "y": {"z": [None, ""]}}, {"x": None, "y": None}, None), nested
    )


def test_every_type_among_the_other_columns_comes_out_unchanged(door):
    table = all_types()
    source = door.input(table)
    other = [name for name in table.column_names if name not in ("age", "country", "illness")]
    columns = {
        "quasi_identifiers": [{"name": "age", "type": "numeric"}, "country"],
        "sensitive": "illness",
        "other": other,
    }
    outcome = door.run(source, columns=columns).published()
    names = ["age", "country", *other]
    assert multiset(outcome.table("qit"), *names) == multiset(table.to_pylist(), *names)
    before = dict(door.spark.read.parquet(str(source)).dtypes)
    assert published_types(outcome, "qit") == {n: before[n] for n in names} | {"bucket_id": "bigint"}
    assert door.audit(outcome.output, source)[0] == 0


def test_every_type_as_quasi_identifier_comes_out_unchanged(door):
    table = all_types()
    source = door.input(table)
    numeric = ("decimal", "date", "timestamp", "timestamp_ntz", "bigint", "double", "float", "tinyint", "age", "odd")
    names = [name for name in table.column_names if name not in ("note", "illness")]
    quasi = [{"name": n, "type": "numeric" if n in numeric else "categorical"} for n in names]
    columns = {"quasi_identifiers": quasi, "sensitive": "illness", "other": ["note"]}
    outcome = door.run(source, columns=columns).published()
    assert multiset(outcome.table("qit"), *names) == multiset(table.to_pylist(), *names)
    assert door.audit(outcome.output, source)[0] == 0


NAMES = (
    "a.b", "a b", "a`b", "a'b", 'a"b', "ünïcode 中", "a;b,c", "{x}", "a=b", "x\ty", "select", "n", "text",
    "partition", "packed", "1st",
)  # fmt: skip


def renamed(names: dict[str, str], n: int = 60) -> pa.Table:
    table = people(n)
    return table.rename_columns([names.get(c, c) for c in table.column_names])


@pytest.mark.parametrize("large", [False, True])
def test_columns_with_unusual_names(door, monkeypatch, large):
    """Also names that our own plans might use, on both ways that offsets travel."""
    if large:
        monkeypatch.setattr("anonlib.engine.statistics.DRIVER_CELLS", 5)
    table = people()
    for name in NAMES:
        table = with_column(table, name, list(range(60)))
    source = door.input(table)
    columns = {"quasi_identifiers": ["age", "country", *NAMES], "sensitive": "illness", "other": ["note"]}
    outcome = door.run(source, columns=columns, missing={"quasi_identifiers": "drop"}).published()
    assert multiset(outcome.table("qit"), *NAMES) == multiset(table.to_pylist(), *NAMES)
    assert door.audit(outcome.output, source)[0] == 0


RESERVED_INSIDE = ("n", "text", "partition", "code", "value", "size")


@pytest.mark.parametrize("name", ["a.b", "a b`c", "ünï'c", *RESERVED_INSIDE])
def test_a_sensitive_column_with_an_unusual_name(door, name):
    table = renamed({"illness": name})
    columns = {"quasi_identifiers": ["age", "country"], "sensitive": name, "other": ["note"]}
    outcome = door.run(table, columns=columns).published()
    assert counted(outcome.table("st"), name) == counted(table.to_pylist(), name)


@pytest.mark.parametrize("name", ["a`b", "size", "value"])
def test_fake_values_with_an_unusual_name(door, name):
    table = renamed({"illness": name})
    columns = {"quasi_identifiers": ["age", "country"], "sensitive": name, "other": ["note"]}
    method = bucketize(l=2, max_bucket_size=3, fake_values=2, avoid_negative_associations="true")
    outcome = door.run(table, columns=columns, method=method).published()
    assert sum(counted(outcome.table("st"), name).values()) == 60 + 2 * 30


@pytest.mark.parametrize("name", ["bucket_id", "COUNT"])
def test_names_that_the_release_needs_are_refused(door, name):
    columns = {"quasi_identifiers": ["age", "country"], "sensitive": "illness", "other": [name]}
    door.run(renamed({"note": name}), columns=columns).refused(2, repr(name), "rename it")


def test_names_are_found_without_regard_to_case_and_published_as_the_table_spells_them(door):
    table = renamed({"age": "Age", "illness": "ILLNESS"})
    outcome = door.run(table).published()
    assert set(outcome.table("qit")[0]) == {"Age", "country", "note", "bucket_id"}
    assert "ILLNESS" in outcome.table("st")[0]


# --- shapes of tables --------------------------------------------------------------------------------------------------------


def test_duplicate_rows_are_all_published(door):
    row = {"age": [30], "country": ["Peru"], "note": [1]}
    table = pa.table({k: v * 60 for k, v in row.items()} | {"illness": people()["illness"]})
    source = door.input(table)
    outcome = door.run(source).published()
    assert len(outcome.table("qit")) == 60
    assert door.audit(outcome.output, source)[0] == 0


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


@pytest.mark.parametrize("n", [2, 3])
def test_a_handful_of_records(door, n):
    outcome = door.run(people(n, VALUES_FEW[:n]), method=bucketize(l=n)).published()
    assert len({row["bucket_id"] for row in outcome.table("qit")}) == 1


VALUES_FEW = ("flu", "cold", "gout")


def test_a_domain_of_15000_values(door):
    """Half of them once, the rest three times."""
    values = [f"code {i:05d}" for i in range(15_000)] + [f"code {i:05d}" for i in range(7_500)] * 2
    table = with_column(people(30_000), "illness", values)
    source = door.input(table)
    outcome = door.run(source, method=bucketize(theta=8, offset="0.02", max_bucket_size=50)).published()
    assert counted(outcome.table("st"), "illness") == counted(table.to_pylist(), "illness")
    assert outcome.manifest.audit.passed


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


@pytest.mark.parametrize("bucketed_by", [None, "illness"])
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


def test_a_release_in_orc(door):
    source = door.input(people())
    spec = {"output": {"path": str(door.home / "release"), "format": "orc"}}
    outcome = door.run_spec(door.spec(source) | spec).published()
    rows = door.spark.read.orc(str(outcome.output / "qit"))
    assert rows.count() == 60
    assert door.audit(outcome.output, source)[0] == 0
