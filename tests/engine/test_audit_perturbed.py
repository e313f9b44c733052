"""The audit of perturbed releases: a release that keeps its promise passes, and each way of tampering fails."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest
from pyspark.sql import functions as F

from anonlib.audit.perturbed import audit as module
from anonlib.audit.perturbed.audit import audit
from anonlib.audit.perturbed.tables import scan
from anonlib.spec.release import Columns
from tests.planted import OTHERS, QIS, people
from tests.planted_perturbed import perturbed
from tests.scans import scanning_once
from tests.thorough import cases, some

pytestmark = pytest.mark.spark

COLUMNS = Columns.model_validate({"quasi_identifiers": list(QIS), "sensitive": "illness", "other": list(OTHERS)})
VALUES = {"flu": 400, "asthma": 300, "HIV": 60, "gout": 240, "cold": 200}
PARTS = [{"flu": 400, "asthma": 300, "gout": 140, "cold": 100}, {"HIV": 60, "gout": 100, "cold": 100}]


@pytest.fixture(scope="module", autouse=True)
def _each_table_is_scanned_once():
    patch = scanning_once(module, "too_large", "scan", "numbering")
    yield
    patch.undo()


@pytest.fixture(scope="module")
def untouched(spark):
    """1,200 records in sub-tables of 940 and 260; every value is protected at (1/2, 3/4)."""
    return perturbed(spark, people(1200, VALUES), PARTS, "1/2", "3/4")


@pytest.fixture
def release(untouched):
    """A copy to tamper with."""
    return replace(untouched, facts=deepcopy(untouched.facts))


def failed(release, **more) -> set[str]:
    return {check.name for check in audit(release.tables, release.manifest, **more).failures}


def test_a_valid_release_passes(release):
    verdict = audit(release.tables, release.manifest, release.original, COLUMNS)
    assert verdict.passed, "\n".join(map(str, verdict.failures))
    assert len(verdict.checks) == 23
    assert verdict.numbers == {"rho1": "0.5", "rho2": "0.75"}
    assert verdict.achieved["flu"] == "0.75"
    assert verdict.tables["microdata"].rows == 1200


def test_a_staged_release_is_measured_not_missed(release):
    for part in release.facts["tables"].values():
        part.update(rows=-1, checksum="")
    for value in release.facts["guarantee"]["values"]:
        value["achieved"] = None
    release.facts["guarantee"]["achieved"] = {}
    assert failed(release) == {"achieved beliefs", "contents of microdata", "contents of operators"}
    assert not failed(release, staged=True, columns=COLUMNS)
    with pytest.raises(TypeError, match="staged tables are audited against the roles"):
        audit(release.tables, release.manifest, staged=True)


def edit(release, table, change):
    """The table changed, and the manifest made to fit, so that no checksum tells."""
    setattr(release, table, change(getattr(release, table)).localCheckpoint())
    return release.recorded()


def first(frame, condition, column, value):
    """One row that meets `condition` gets `value` in `column`."""
    row = frame.where(condition).limit(1).localCheckpoint()
    return frame.exceptAll(row).union(row.withColumn(column, F.expr(value)).select(*frame.columns))


WHERE = "subtable = 0"
OTHER = "subtable = 1 AND illness = 'gout'"
COUNTED = "overall counts of sensitive values"
TABLES = {
    "a row dropped": ("microdata", lambda t: t.exceptAll(t.limit(1)), "sizes of sub-tables"),
    "a row doubled": ("microdata", lambda t: t.union(t.limit(1)), "sizes of sub-tables"),
    "a value outside the domain": ("microdata", lambda t: first(t, WHERE, "illness", "'HIV'"), "values within domains"),
    "a value that nobody has": ("microdata", lambda t: first(t, WHERE, "illness", "'plague'"), "values within domains"),
    "no value": ("microdata", lambda t: first(t, WHERE, "illness", "CAST(NULL AS STRING)"), "values within domains"),
    "a record in the other sub-table": ("microdata", lambda t: first(t, OTHER, "subtable", "0"), "sizes of sub-tables"),
    "a record in no sub-table": ("microdata", lambda t: first(t, WHERE, "subtable", "CAST(NULL AS INT)"), "values within domains"),
    "an identifier": ("microdata", lambda t: t.withColumn("ssn", F.lit("1")), "columns"),
    "a type changed": ("microdata", lambda t: t.withColumn("age", F.expr("CAST(age AS BIGINT)")), "columns"),
    "a row number": ("microdata", lambda t: t.withColumn("big", F.expr("row_number() OVER (ORDER BY age) + 0L")), "no row numbers"),
    "a larger gamma": ("operators", lambda t: first(t, WHERE, "gamma_exact", "'4.1'"), "(rho1, rho2)-privacy"),
    "a gamma of 1": ("operators", lambda t: first(t, WHERE, "gamma_exact", "'1'"), "operators"),
    "a gamma beyond doubles": ("operators", lambda t: first(t, WHERE, "gamma_exact", "'1e400'"), "operators"),
    "a gamma of all but 1": ("operators", lambda t: first(t, WHERE, "gamma_exact", "concat('1.', repeat('0', 400), '1')"), "operators"),
    "no size": ("operators", lambda t: t.withColumn("size", F.lit(0).cast("bigint")), "operators"),
    "true counts beyond 64 bits": ("operators", lambda t: first(t, WHERE, "counts", "array_repeat(9223372036854775807L, 4)"), "operators"),
    "a gamma that is none": ("operators", lambda t: first(t, WHERE, "gamma_exact", "'x'"), "operators"),
    "another rounded gamma": ("operators", lambda t: first(t, WHERE, "gamma", "9D"), "operators"),
    "another retention": ("operators", lambda t: first(t, WHERE, "retention", "0.9D"), "operators"),
    "another size": ("operators", lambda t: first(t, WHERE, "size", "941L"), "operators"),
    "another domain size": ("operators", lambda t: first(t, WHERE, "domain_size", "5"), "operators"),
    "a true count raised": ("operators", lambda t: first(t, WHERE, "counts", "array(401L, 300L, 140L, 100L)"), COUNTED),
    "two true counts exchanged": ("operators", lambda t: first(t, WHERE, "counts", "array(300L, 400L, 140L, 100L)"), COUNTED),
    "a value of the domain left out": ("operators", lambda t: first(t, WHERE, "domain", "array('flu', 'asthma', 'gout')"), "operators"),
    "a value twice in the domain": ("operators", lambda t: first(t, WHERE, "domain", "array('flu', 'flu', 'gout', 'cold')"), "operators"),
    "a sub-table left out": ("operators", lambda t: t.where(WHERE), COUNTED),
    "a sub-table twice": ("operators", lambda t: t.union(t.where(WHERE)), "operators"),
    "all in one sub-table": ("microdata", lambda t: t.withColumn("subtable", F.lit(0)), "values within domains"),
}  # fmt: skip
NOW = (
    "a row dropped", "a value outside the domain", "a value that nobody has", "an identifier", "a row number", "a larger gamma",
    "true counts beyond 64 bits", "a gamma that is none", "two true counts exchanged", "all in one sub-table",
)  # fmt: skip
"""One for each check and kind of fault; `tests/pure/test_audit_judges.py` changes operators too, without Spark."""


@pytest.mark.parametrize("kind", some(TABLES, *NOW))
def test_a_changed_table(release, kind):
    table, change, found_by = TABLES[kind]
    assert found_by in failed(edit(release, table, change))


@pytest.mark.parametrize(
    "kind",
    cases(
        "a record in no sub-table", "a sub-table twice", nightly=["no value", "a row doubled", "a sub-table left out"]
    ),
)
def test_few_and_many_records_are_looked_at_in_two_ways_that_agree(release, monkeypatch, kind):
    table, change, _ = TABLES[kind]
    tables = edit(release, table, change).tables
    ways = [(True, 20_000), (False, 20_000), (True, 3)]  # the last: many in truth, which the manifest does not tell
    found = []
    for few, most in ways:
        monkeypatch.setattr("anonlib.audit.perturbed.tables.FEW_RECORDS", most)
        found.append(scan(tables["operators"], tables["microdata"], {"illness": "string"}, few))
    assert found[0] == found[1] == found[2]


MANIFESTS = {
    "a weaker rho2": (lambda f: f["method"]["parameters"].update(rho2="0.9"), "the requirement follows from the parameters"),
    "a stronger rho2": (lambda f: f["guarantee"]["asked"].update(rho2="0.6"), "the requirement follows from the parameters"),
    "fewer protected": (lambda f: f["guarantee"]["values"][0].update(threshold=None), "the requirement follows from the parameters"),
    "a better belief": (lambda f: f["guarantee"]["values"][0].update(achieved="0.01"), "achieved beliefs"),
    "a better belief overall": (lambda f: f["guarantee"]["achieved"].update(rho2="0.5"), "achieved beliefs"),
    "a count of a value": (lambda f: f["guarantee"]["values"][0].update(count=1), "sensitive values add up"),
    "a better retention": (lambda f: f["utility"].update(mean_retention=0.9), "the manifest's numbers"),
    "other sizes": (lambda f: f["solver"]["setting"][0].update(number=2), "the manifest's numbers"),
    "other words": (lambda f: f["guarantee"].update(words=f["guarantee"]["words"].replace("0.75", "0.65")), "guarantee in words"),
    "a linkage": (lambda f: f["solver"].update(details={"Ann": "flu"}), "the manifest's fields"),
    "whole": (lambda f: f["method"]["parameters"].update(partitioning="whole"), "the manifest's numbers"),
    "another checksum": (lambda f: f["tables"]["microdata"].update(checksum="xxh64sum:0"), "contents of microdata"),
    "rows dropped in silence": (lambda f: f["rows"].update(input=1300), "rows add up"),
}  # fmt: skip


@pytest.mark.parametrize("kind", MANIFESTS)
def test_a_changed_manifest(release, kind):
    change, found_by = MANIFESTS[kind]
    change(release.facts)
    assert found_by in failed(release)


def test_values_that_were_not_perturbed(release):
    """The true values are published: nothing but the counts can tell, without the original; with it, the transitions do too."""
    rows = [(*r.values(), i) for r, i in zip(release.records, release.subtable_of, strict=True)]
    bare = release.spark.createDataFrame(rows, release.microdata.schema)
    edit(release, "microdata", lambda _: bare)
    assert failed(release) == {"values are perturbed"}
    assert failed(release, original=release.original) == {"values are perturbed", "original: transitions"}


def test_a_changed_record_shows_beside_the_original(release):
    edit(release, "microdata", lambda t: first(t, "age < 60", "age", "99"))
    assert not failed(release)
    assert failed(release, original=release.original) == {"original: records"}


def test_another_original(release):
    other = release.original.withColumn("illness", F.expr("IF(illness = 'flu', 'cold', illness)"))
    assert "original: distribution of the sensitive column" in failed(release, original=other)
