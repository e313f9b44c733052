"""The audit of bucketized releases: a release that keeps its promise passes, and each way of tampering fails."""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from anonlib import words
from anonlib.audit.bucketized import audit as module
from anonlib.audit.bucketized.audit import audit
from anonlib.audit.bucketized.tables import scan
from anonlib.spec.release import Columns
from tests.planted import OTHERS, QIS, people, planted
from tests.scans import scanning_once
from tests.thorough import cases, trials
from tests.thorough import some as those

pytestmark = pytest.mark.spark

VALUES = {"flu": 40, "asthma": 30, "HIV": 6, "gout": 24, "cold": 20}


@pytest.fixture(scope="module", autouse=True)
def _each_table_is_scanned_once():
    patch = scanning_once(module, "fresh_salt", "scan", "numbering")
    yield
    patch.undo()


@pytest.fixture(scope="module")
def untouched(spark):
    """120 records in 12 buckets of 10: flu 3 or 4, asthma 2 or 3, HIV 0 or 1, gout 2, cold 1 or 2 in each."""
    return planted(spark, people(120, VALUES), 12, {"theta": "1", "offset": "0.1"})


@pytest.fixture
def release(untouched):
    """A copy to tamper with."""
    return replace(untouched, facts=deepcopy(untouched.facts))


@pytest.fixture
def distinct(spark):
    """24 records in 8 buckets of 3 distinct values, with 2 fake values each."""
    values = dict.fromkeys("abcdefgh", 3)
    return planted(spark, people(24, values), 8, {"l": 3}, fake_values=2)


def failed(release, **more) -> set[str]:
    verdict = audit(release.tables, release.manifest, **more)
    return {check.name for check in verdict.failures}


def columns() -> Columns:
    return Columns.model_validate(
        {"quasi_identifiers": list(QIS), "sensitive": "illness", "identifiers": ["name"], "other": list(OTHERS)}
    )


def test_a_valid_release_passes_with_its_shares(release):
    verdict = audit(release.tables, release.manifest, release.original, columns())
    assert verdict.passed, "\n".join(map(str, verdict.failures))
    assert verdict.achieved == {"flu": "0.4", "asthma": "0.3", "HIV": "0.1", "gout": "0.2", "cold": "0.2"}
    assert verdict.tables["qit"].rows == 120
    assert len(verdict.checks) == 23


def test_a_valid_release_with_fake_values_passes(distinct):
    verdict = audit(distinct.tables, distinct.manifest, distinct.original, columns())
    assert verdict.passed, "\n".join(map(str, verdict.failures))
    assert verdict.tables["st"].rows == 24 + 16


def test_a_staged_release_is_measured_not_missed(release):
    recorded = {name: dict(part) for name, part in release.facts["tables"].items()}
    for part in release.facts["tables"].values():
        part["checksum"], part["rows"] = "", 0
    for part in release.facts["guarantee"]["values"]:
        part["achieved"] = None
    verdict = audit(release.tables, release.manifest, columns=columns(), staged=True)
    assert verdict.passed
    assert {n: (m.rows, m.checksum) for n, m in verdict.tables.items()} == {
        n: (p["rows"], p["checksum"]) for n, p in recorded.items()
    }
    assert failed(release) == {"contents of qit", "contents of st", "achieved shares"}


# --- tampering with tables; the checksums are made to fit, unless the test is about them -------------------------------


def tamper_st(release, condition: str, change: str):
    """Replaces `count`, `illness` or `bucket_id` in the rows of st that meet `condition`."""
    names = ("bucket_id", "illness", "count")
    column, expression = change.split(" = ", 1)
    release.st = release.st.selectExpr(
        *[f"IF({condition}, {expression}, {n}) AS {n}" if n == column else n for n in names]
    ).localCheckpoint()
    return release


def test_one_count_changed(release):
    tamper_st(release, "bucket_id = 3 AND illness = 'gout'", "count = count + 1").recorded()
    assert {"buckets of qit and st", "bucket sizes", "overall counts of sensitive values", "published rows"} <= failed(
        release
    )


def test_a_count_moved_between_two_values_of_a_bucket(release):
    tamper_st(release, "bucket_id = 3 AND illness = 'gout'", "count = count + 1")
    tamper_st(release, "bucket_id = 3 AND illness = 'flu'", "count = count - 1").recorded()
    assert "overall counts of sensitive values" in failed(release)


def test_two_counts_changed_so_that_the_overall_counts_stay(release):
    tamper_st(release, "bucket_id = 3 AND illness = 'gout'", "count = count + 1")
    tamper_st(release, "bucket_id = 4 AND illness = 'gout'", "count = count - 1").recorded()
    assert "buckets of qit and st" in failed(release)


@pytest.mark.parametrize(
    ("table", "recorded"), cases(("qit", True), ("st", False), nightly=[("qit", False), ("st", True)])
)
def test_one_row_dropped(release, table, recorded):
    frame = getattr(release, table)
    rest = frame.limit(frame.count() - 1).localCheckpoint()
    setattr(release, table, rest)
    if recorded:
        release.recorded()
    found = failed(release)
    assert {"published rows", "buckets of qit and st"} <= found
    assert (f"contents of {table}" in found) == (not recorded)


@pytest.mark.parametrize("table", cases("qit", nightly=["st"]))
def test_one_row_doubled(release, table):
    frame = getattr(release, table)
    setattr(release, table, frame.union(frame.limit(1)).localCheckpoint())
    release.recorded()
    assert {"published rows", "buckets of qit and st"} <= failed(release)


def test_one_row_dropped_and_another_doubled(release):
    release.qit = release.qit.where("bucket_id <> 5").union(release.qit.where("bucket_id = 5").limit(9))
    release.qit = release.qit.union(release.qit.where("bucket_id = 6").limit(1)).localCheckpoint()
    release.recorded()
    verdict = audit(release.tables, release.manifest)
    assert [c.name for c in verdict.failures] == ["buckets of qit and st"]
    assert verdict.failures[0].evidence == "bucket 5: 9 rows in qit, 10 records in st"


def test_a_record_altered_within_its_bucket_is_seen_with_the_original(release):
    lowest = "age = min(age) OVER (PARTITION BY bucket_id) AND bucket_id = 5"
    release.qit = release.qit.selectExpr(
        f"IF({lowest}, age + 1, age) AS age", *[c for c in release.qit.columns if c != "age"]
    ).localCheckpoint()
    assert not failed(release.recorded())
    assert "original: records" in failed(release, original=release.original)


def swap_two_values(release):
    """Two values swapped between buckets, so that sizes, overall counts and (here) all thresholds stay as they were."""
    one = "bucket_id = 0 AND illness = 'HIV'"
    assert release.st.where(one).count() == 1
    assert release.st.where("bucket_id = 11 AND illness = 'HIV'").count() == 0
    tamper_st(release, one, "bucket_id = 11L")
    tamper_st(release, "bucket_id = 11 AND illness = 'cold'", "count = count - 1")
    return tamper_st(release, "bucket_id = 0 AND illness = 'cold'", "count = count + 1")


def test_two_sensitive_values_swapped_between_buckets(release):
    swap_two_values(release)
    release.st = release.st.where("count > 0").localCheckpoint()
    assert failed(release) >= {"contents of st"}
    verdict = audit(release.recorded().tables, release.manifest, release.original)
    names = [c.name for c in verdict.failures]
    assert "original: values in their buckets" in names
    evidence = verdict.failures[names.index("original: values in their buckets")].evidence
    assert re.fullmatch(r"bucket (0|11): \d+ records have '(HIV|cold)', st counts \d+", evidence)


def test_a_value_split_over_two_rows(spark):
    """100 of 200 records have `a`, 20 buckets of 10, thresholds 0.55: six in one bucket would show, twice three would not."""
    whole = planted(spark, people(200, {"a": 100, "b": 60, "c": 40}), 20, {"theta": "1", "offset": "0.05"})
    assert audit(whole.tables, whole.manifest).passed
    split = whole.st.where("NOT (bucket_id = 7 AND illness = 'a')").union(
        spark.sql("SELECT 7L, 'a', 3L UNION ALL SELECT 7L, 'a', 2L")
    )
    whole.st = split.localCheckpoint()
    whole.recorded()
    verdict = audit(whole.tables, whole.manifest)
    doubled = next(c for c in verdict.failures if c.name == "one row per bucket and value")
    assert doubled.evidence == "bucket 7: 'a' in 2 rows"
    equal = whole.st.where("NOT (bucket_id = 8 AND illness = 'b')").union(
        spark.sql("SELECT 8L, 'b', 1L UNION ALL SELECT 8L, 'b', 1L UNION ALL SELECT 8L, 'b', 1L")
    )
    whole.st = equal.localCheckpoint()
    assert (
        "2 buckets" in next(c for c in audit(whole.tables, whole.manifest).failures if c.name == doubled.name).achieved
    )


def test_a_bucket_id_changed_in_qit(release):
    release.qit = release.qit.selectExpr(
        "age",
        "country",
        "joined",
        "tags",
        "big",
        "IF(bucket_id = 2 AND row_number() OVER (PARTITION BY bucket_id ORDER BY age) = 1, 3L, bucket_id) AS bucket_id",
    ).localCheckpoint()
    assert failed(release.recorded()) == {"buckets of qit and st"}


@pytest.mark.parametrize("table", cases("st", nightly=["qit"]))
def test_a_null_bucket(release, table):
    frame = getattr(release, table)
    names = [f"IF(bucket_id = 2, NULL, {n}) AS {n}" if n == "bucket_id" else n for n in frame.columns]
    setattr(release, table, frame.selectExpr(*names).localCheckpoint())
    found = failed(release.recorded())
    assert "buckets of qit and st" in found
    assert ("rows of st" in found) == (table == "st")


def test_null_buckets_in_both_tables_do_not_cancel(release):
    for table in ("qit", "st"):
        frame = getattr(release, table)
        names = [f"IF(bucket_id = 2, NULL, {n}) AS {n}" if n == "bucket_id" else n for n in frame.columns]
        setattr(release, table, frame.selectExpr(*names).localCheckpoint())
    assert {"buckets of qit and st", "rows of st"} <= failed(release.recorded())


def test_an_identifier_column_added(release):
    release.qit = release.qit.selectExpr("*", "uuid() AS name").localCheckpoint()
    assert failed(release) == {"columns"}
    release.facts["tables"]["qit"]["columns"].append({"name": "name", "type": "string", "role": "other"})
    assert not failed(release.recorded())
    assert failed(release, columns=columns()) == {"columns"}


@pytest.mark.parametrize("name", cases("Illness", nightly=["illness"]))
def test_the_sensitive_column_beside_the_quasi_identifiers(release, name):
    release.qit = release.qit.selectExpr("*", f"'flu' AS {name}").localCheckpoint()
    release.facts["tables"]["qit"]["columns"].append({"name": name, "type": "string", "role": "other"})
    assert failed(release.recorded()) == {"columns"}


def test_a_column_of_another_type(release):
    release.qit = release.qit.withColumn("age", release.qit["age"].cast("double")).localCheckpoint()
    assert failed(release.recorded()) == {"columns"}


def test_a_threshold_exceeded_names_the_bucket(release):
    tamper_st(release, "bucket_id = 3 AND illness = 'flu'", "count = count + 2")
    tamper_st(release, "bucket_id = 3 AND illness = 'gout'", "count = count - 1")
    tamper_st(release, "bucket_id = 3 AND illness = 'asthma'", "count = count - 1").recorded()
    verdict = audit(release.tables, release.manifest)
    check = next(c for c in verdict.failures if c.name == "F'-privacy")
    assert re.fullmatch("bucket 3: [56] of 10", check.evidence)


def test_thresholds_are_met_exactly_and_not_by_a_hair(spark):
    """29 of 100 records per bucket with threshold 0.29, which a binary float would call exceeded or not by luck."""
    exact = planted(spark, people(200, {"a": 58, "b": 142}), 2, {"theta": "0", "offset": "1"})
    exact.facts["method"]["parameters"] = {"privacy": {"default": "1", "thresholds": {"a": "0.29"}}}
    exact.facts["guarantee"]["values"][0]["threshold"] = "0.29"
    assert failed(exact) == {"guarantee in words"}
    exact.facts["guarantee"]["words"] = words.thresholds("illness", ("a", Fraction(29, 100)), ("b", Fraction(1)))
    assert not failed(exact)
    exact.facts["method"]["parameters"]["privacy"]["thresholds"]["a"] = "0.2900000000000000000000000000001"
    exact.facts["guarantee"]["values"][0]["threshold"] = "0.2900000000000000000000000000001"
    above = Fraction("0.2900000000000000000000000000001")
    exact.facts["guarantee"]["words"] = words.thresholds("illness", ("a", above), ("b", Fraction(1)))
    assert not failed(exact)
    tamper_st(exact, "bucket_id = 0 AND illness = 'a'", "count = count + 1")
    assert "F'-privacy" in failed(exact)


def test_counts_of_zero_negative_null_and_huge(release, spark):
    for bad in cases("0L", "CAST(NULL AS BIGINT)", nightly=["-1L", "9223372036854775807L"]):
        whole = release.st
        tamper_st(release, "bucket_id = 3 AND illness = 'gout'", f"count = {bad}").recorded()
        verdict = audit(release.tables, release.manifest)
        check = next(c for c in verdict.failures if c.name == "rows of st")
        assert check.evidence.startswith("bucket 3: 'gout', count ")
        release.st = whole


@pytest.mark.parametrize("value", cases("'plague'", nightly=["NULL"]))
def test_unknown_values(release, value):
    tamper_st(release, "bucket_id = 3 AND illness = 'gout'", f"illness = {value}").recorded()
    found = failed(release)
    assert {"rows of st", "overall counts of sensitive values"} <= found


TAMPERED = {
    "nothing": "count = count",
    "a null value": "illness = IF(bucket_id = 3 AND illness = 'gout', NULL, illness)",
    "an unknown value": "illness = IF(bucket_id < 3, 'plague', illness)",
    "a value in two rows": "illness = IF(illness = 'cold', 'flu', illness)",
    "no bucket": "bucket_id = IF(bucket_id > 8, NULL, bucket_id)",
    "counts out of range": "count = IF(illness = 'flu', -1L, IF(illness = 'gout', 9223372036854775807L, NULL))",
    "another bucket": "bucket_id = bucket_id DIV 2",
}


@pytest.mark.parametrize("kind", those(TAMPERED, "an unknown value", "no bucket", "counts out of range"))
def test_few_and_many_records_are_looked_at_in_two_ways_that_agree(release, kind):
    tables = tamper_st(release, "true", TAMPERED[kind]).tables
    few, many = (
        scan(tables["qit"], tables["st"], "illness", [*VALUES, None], 11, 1, salt=7, few=few) for few in (True, False)
    )
    assert few == many


def test_more_unknown_values_than_the_driver_fetches(release):
    release.st = release.st.selectExpr("bucket_id", "uuid() AS illness", "count", "explode(sequence(1, 50))").drop(
        "col"
    )
    release.st = release.st.localCheckpoint()
    assert "rows of st" in failed(release)


def test_a_table_replaced_by_anothers(release, spark):
    other = planted(spark, people(120, VALUES, seed=1), 12, {"theta": "1", "offset": "0.1"})
    release.qit = other.qit
    assert "contents of qit" in failed(release)
    assert "original: records" in failed(release.recorded(), original=release.original)


# --- tampering with the manifest ------------------------------------------------------------------------------------


def edit(facts, path: str, value):
    *parents, last = path.split("/")
    for part in parents:
        facts = facts[int(part)] if isinstance(facts, list) else facts[part]
    facts[int(last) if isinstance(facts, list) else last] = value


@pytest.mark.parametrize(
    ("path", "value", "check"),
    [
        ("guarantee/values/0/threshold", "0.5", "thresholds follow from the stated requirement"),
        ("guarantee/values/0/threshold", "2", "thresholds follow from the stated requirement"),
        ("method/parameters/privacy", {"theta": "2", "offset": "0.1"}, "thresholds follow from the stated requirement"),
        ("method/parameters/privacy", {}, "thresholds follow from the stated requirement"),
        (
            "method/parameters/privacy",
            {"theta": "1", "offset": "0.1", "thresholds": {"HIv": "0.01"}},
            "thresholds follow from the stated requirement",
        ),
        ("method/parameters/privacy", {"default": "0.01"}, "thresholds follow from the stated requirement"),
        ("method/parameters/max_bucket_size", 9, "bucket sizes"),
        ("method/parameters/fake_values", 1, "bucket sizes"),
        ("guarantee/values/0/count", 7, "sensitive values add up"),
        ("guarantee/values/0/value", "AIDS", "rows of st"),
        ("guarantee/values/0/achieved", "0.05", "achieved shares"),
        ("rows/input", 121, "rows add up"),
        ("rows/published", 119, "published rows"),
        ("rows/fake", 1, "overall counts of sensitive values"),
        ("solver/setting/0/number", 11, "bucket sizes"),
        ("solver/loss", 1, "bucket sizes"),
        ("utility/msbs", 1.0, "bucket sizes"),
        ("tables/qit/rows", 121, "contents of qit"),
        ("tables/st/checksum", "xxh64sum:0000000000000000", "contents of st"),
        ("tables/st/checksum", "", "contents of st"),
        ("guarantee/words", "Nobody can believe anything.", "guarantee in words"),
        ("solver/details", {"linkage": {"Ann": "flu"}}, "the manifest's fields"),
        ("solver/status", "Ann: flu; Bob: HIV", "the manifest's fields"),
        ("method/parameters/note", "Ann: flu", "the manifest's fields"),
        ("utility/7311", 3.0, "the manifest's fields"),
        ("splits/settings", {"Ann": "flu"}, "the manifest's fields"),
        ("guarantee/achieved", {"Ann": "1"}, "the manifest's fields"),
        ("missing", {"Ann": "flu"}, "the manifest's fields"),
    ],
)
def test_the_manifest_edited(release, path, value, check):
    edit(release.facts, path, value)
    assert check in failed(release)


def test_the_manifests_counts_of_two_values_swapped(release):
    values = release.facts["guarantee"]["values"]
    values[0]["count"], values[1]["count"] = values[1]["count"], values[0]["count"]
    assert {"overall counts of sensitive values", "thresholds follow from the stated requirement"} <= failed(release)


def test_counts_that_are_not_the_originals(release):
    """A release of other people's values, consistent in itself, is not a release of this original."""
    other = release.original.selectExpr(
        "age", "country", "joined", "tags", "big", "IF(illness = 'flu', 'cold', illness) AS illness"
    )
    assert "original: distribution of the sensitive column" in failed(release, original=other)
    assert failed(release, original=release.original.drop("age")) == {"original: columns"}


# --- what looks like a record's number ------------------------------------------------------------------------------


def test_a_row_number_among_the_other_columns(spark):
    records = people(1200, dict.fromkeys("abcdefgh", 150))
    for number, record in enumerate(records):
        record["big"] = 10**12 + number
    whole = planted(spark, records, 100, {"theta": "2"})
    verdict = audit(whole.tables, whole.manifest)
    assert [c.name for c in verdict.failures] == ["no row numbers"]
    assert "'big': 1,200 distinct values" in verdict.failures[0].evidence
    records[0]["big"] = records[1]["big"]
    assert not failed(planted(spark, records, 100, {"theta": "2"}))


# --- other sensitive types, and the audit against an obvious twin ---------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "values"),
    cases(
        ("boolean", [True, False, None]),
        nightly=[("int", [None, 1, 2, 30]), ("string", ["", " ", "a'b`c", None])],
    ),
)
def test_other_types_of_sensitive_column_and_kept_nulls(spark, kind, values):
    records = [{"age": i % 7, "illness": values[i % len(values)]} for i in range(24)]
    whole = planted(spark, records, 4, {"theta": "1", "offset": "0.5"}, schema=f"age int, illness {kind}")
    for part, value in zip(whole.facts["guarantee"]["values"], sorted(set(values), key=str), strict=True):
        part["value"] = str(value).lower() if isinstance(value, bool) else part["value"]
    verdict = audit(whole.tables, whole.manifest, whole.original)
    assert verdict.passed, "\n".join(map(str, verdict.failures))


st_rows = some.lists(
    some.tuples(some.integers(0, 2), some.sampled_from(["a", "b", "c"]), some.integers(1, 3)), min_size=1, max_size=12
)


@settings(max_examples=trials(15, 6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st_rows, tenths=some.integers(4, 10), few=some.booleans())
def test_privacy_and_doubled_rows_against_a_twin(spark, rows, tenths, few):
    """Any st table: the audit finds a threshold exceeded, or a value in two rows, exactly when counting by hand does."""
    sizes = {b: sum(c for x, _, c in rows if x == b) for b, _, _ in rows}
    values = {v: sum(c for _, w, c in rows if w == v) for v in sorted({v for _, v, _ in rows})}
    n = sum(values.values())
    if any(10 * count > tenths * n for count in values.values()):
        return
    whole = planted(spark, people(n, values), 1, {"theta": "0", "offset": f"{tenths / 10}"})
    whole.st = spark.createDataFrame(rows, "bucket_id bigint, illness string, count bigint")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("anonlib.audit.bucketized.audit.FEW_RECORDS", n if few else 0)
        found = failed(whole)
    assert ("F'-privacy" in found) == any(10 * c > tenths * sizes[b] for b, _, c in rows)
    assert ("one row per bucket and value" in found) == (len({(b, v) for b, v, _ in rows}) < len(rows))
