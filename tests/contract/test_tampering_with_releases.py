"""A published release that was changed afterwards does not pass: tables, manifests, and what only the original can tell."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anonlib
from anonlib.release.manifest import Manifest
from tests.contract.gathered import gathered
from tests.contract.methods import over
from tests.door import KEY, Outcome, cut, key_file, people, with_column, write_files
from tests.thorough import cases, some

pytestmark = pytest.mark.spark


def rewrite(release: Path, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """The table changed, in one file named as Spark names it, and listed in the manifest."""
    table = change(Outcome(0, "", "", release).arrow(name))
    table = table.replace_schema_metadata(None)  # Spark's own note of the columns as they were
    file = f"part-00000-{uuid.UUID(int=7)}-c000.snappy.parquet"
    shutil.rmtree(release / name)
    (release / name).mkdir()
    pq.write_table(table, release / name / file, store_schema=False)
    edited(
        release, lambda f: f["files"].update({name: [{"name": file, "size": (release / name / file).stat().st_size}]})
    )


def edited(release: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """The manifest changed in its place."""
    path = release / "manifest.json"
    path.write_text(changed(path.read_text(encoding="utf-8"), change).to_json(), encoding="utf-8")


def changed(text: str, change: Callable[[dict[str, Any]], Any]) -> Manifest:
    """The manifest with this JSON, changed."""
    manifest = json.loads(text)
    change(manifest)
    return Manifest.model_validate(manifest)


# --- every method ---------------------------------------------------------------------------------------------------------------

COLUMNS = {
    "an identifier": lambda c: [*c, ("ssn", "string")],
    "a column renamed": lambda c: [("Alter", c[0][1]), *c[1:]],
    "a type changed": lambda c: [(c[0][0], "binary"), *c[1:]],
    "a column left out": lambda c: c[1:],
    "a column twice": lambda c: [*c, c[0]],
}


def better_than_achieved(manifest: dict[str, Any]) -> None:
    guarantee = manifest["guarantee"]
    guarantee["achieved"] = dict.fromkeys(guarantee["achieved"], "0.001")
    for value in guarantee["values"]:
        value["achieved"] = value["achieved"] and "0.001"


def another_promise(manifest: dict[str, Any]) -> None:
    guarantee = manifest["guarantee"]
    guarantee["asked"] = dict.fromkeys(guarantee["asked"], "1")
    for value in guarantee["values"]:
        value["threshold"] = value["threshold"] and "0.999"


MANIFESTS_OF_ALL: dict[str, Callable[[dict[str, Any]], Any]] = {
    "rows dropped in silence": lambda f: f["rows"].update(input=300),
    "more rows published": lambda f: f["rows"].update(input=241, published=241),
    "a count of a value": lambda f: f["guarantee"]["values"][0].update(count=1),
    "a value left out": lambda f: f["guarantee"]["values"].pop(),
    "another checksum": lambda f: next(iter(f["tables"].values())).update(checksum="xxh64sum:0000000000000000"),
    "another row count": lambda f: list(f["tables"].values())[-1].update(rows=239),
    "other words": lambda f: f["guarantee"].update(words="Nobody learns anything."),
    "better than achieved": better_than_achieved,
    "another promise": another_promise,
}


@over("tampering")
def test_columns_and_manifests_that_do_not_fit(releases, method):
    """Facts of the untouched tables beside each changed manifest, and changed columns beside the manifest as it was."""
    seen = releases.seen(method)
    text = (releases.of(method).output / "manifest.json").read_text(encoding="utf-8")
    table = next(iter(seen.manifest.tables))
    unnoticed = [
        kind for kind, change in COLUMNS.items() if "columns" not in seen.with_columns(table, change).failures()
    ]
    unnoticed += [kind for kind, change in MANIFESTS_OF_ALL.items() if not seen.failures(changed(text, change))]
    assert unnoticed == []


@over("tampering")
def test_a_record_in_place_of_another(releases, tmp_path, method):
    """Row counts, checksums and sizes are made to fit, so that the checks of contents find nothing: what they hold does."""
    copy = Path(shutil.copytree(releases.of(method).output, tmp_path / "copy"))
    table = next(iter(releases.of(method).manifest.tables))
    rewrite(copy, table, lambda t: pa.concat_tables([t.slice(0, 119), t.slice(0, 1), t.slice(120)]))
    seen = gathered(releases.spark, copy, releases.original())
    assert f"contents of {table}" in seen.failures()
    fitted = seen.failures(seen.fitted())
    assert f"contents of {table}" not in fitted
    assert fitted | {c.name for c in seen.verdict.failures if c.name.startswith("original")}


# --- bucketize, at full depth ---------------------------------------------------------------------------------------------------

TABLE = with_column(people(240), "note", [None] * 240, pa.int64())


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("tampering") / "input", cut(TABLE, 2))


@pytest.fixture(scope="module")
def release(spark, original):
    """60 buckets of 4 under l = 3, published once; tests change copies of it."""
    path = original.parent / "release"
    anonlib.bucketize(
        spark.read.parquet(str(original)), quasi_identifiers=["age", "country"], sensitive="illness", other=["note"],
        privacy={"theta": "1.4", "offset": "0.02"}, max_bucket_size=12, output=str(path), key=f"file:{key_file(original.parent)}",
    )  # fmt: skip
    return path


@pytest.fixture(scope="module")
def untouched(spark, release):
    return gathered(spark, release)


@pytest.fixture
def tampered(release, tmp_path):
    return Path(shutil.copytree(release, tmp_path / "tampered"))


def cell(table: pa.Table, column: str, change: Callable[[list[Any]], Any]) -> pa.Table:
    values = table[column].to_pylist()
    change(values)
    return with_column(table, column, values, table[column].type)


def at(table: pa.Table, bucket: int) -> int:
    return table["bucket_id"].to_pylist().index(bucket)


TABLES = {
    "a count raised": ("st", lambda t: cell(t, "count", lambda v: v.__setitem__(0, v[0] + 1))),
    "a count of zero": ("st", lambda t: cell(t, "count", lambda v: v.__setitem__(0, 0))),
    "a negative count": ("st", lambda t: cell(t, "count", lambda v: v.__setitem__(0, -1))),
    "a row of st dropped": ("st", lambda t: t.slice(1)),
    "a row of st doubled": ("st", lambda t: pa.concat_tables([t, t.slice(0, 1)])),
    "a row of qit dropped": ("qit", lambda t: t.slice(1)),
    "a row of qit doubled": ("qit", lambda t: pa.concat_tables([t, t.slice(0, 1)])),
    "a record in another bucket": ("qit", lambda t: cell(t, "bucket_id", lambda v: v.__setitem__(at(t, 0), 1))),
    "a record in no bucket": ("qit", lambda t: cell(t, "bucket_id", lambda v: v.__setitem__(0, None))),
    "a value in another bucket": ("st", lambda t: cell(t, "bucket_id", lambda v: v.__setitem__(at(t, 0), 1))),
    "a value that nobody has": ("st", lambda t: cell(t, "illness", lambda v: v.__setitem__(0, "plague"))),
    "all buckets merged": ("qit", lambda t: cell(t, "bucket_id", lambda v: v.__setitem__(slice(None), [0] * len(v)))),
}  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    some(
        TABLES,
        "a count raised",
        "a row of qit doubled",
        "a record in another bucket",
        "a value in another bucket",
        "all buckets merged",
    ),
)
def test_a_changed_table(spark, tampered, kind):
    """The manifest's row counts and checksums are made to fit, so that the checks of contents find nothing."""
    table, change = TABLES[kind]
    rewrite(tampered, table, change)
    seen = gathered(spark, tampered)
    assert seen.failures(seen.fitted())


def test_the_sensitive_column_beside(untouched):
    assert "columns" in untouched.with_columns("qit", lambda c: [*c, ("illness", "string")]).failures()


@pytest.mark.parametrize("column", cases("country", nightly=["age"]))
def test_a_changed_cell_shows_in_the_checksum_and_with_a_fitted_one_beside_the_original(
    door, tampered, original, column
):
    other = {"age": 99, "country": "Chile"}[column]
    rewrite(tampered, "qit", lambda t: cell(t, column, lambda v: v.__setitem__(0, other)))
    seen = gathered(door.spark, tampered, door.spark.read.parquet(str(original)))
    assert seen.failures() == {"contents of qit"}
    assert seen.failures(seen.fitted()) == set()
    assert "original: records" in {check.name for check in seen.verdict.failures}


MANIFESTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a weaker threshold": lambda f: f["guarantee"]["values"][0].update(threshold="1"),
    "a stronger threshold": lambda f: f["guarantee"]["values"][0].update(threshold="0.01"),
    "a theta nobody asked for": lambda f: f["method"]["parameters"]["privacy"].update(theta="1.1"),
    "a better share than achieved": lambda f: f["guarantee"]["values"][0].update(achieved="0.01"),
    "another bucket setting": lambda f: f["solver"]["setting"][0].update(number=1),
    "fake values that are not there": lambda f: (
        f["method"]["parameters"].update(fake_values=1), f["rows"].update(fake=sum(s["number"] for s in f["solver"]["setting"])),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", MANIFESTS)
def test_a_changed_manifest(release, untouched, kind):
    text = (release / "manifest.json").read_text(encoding="utf-8")
    assert untouched.failures(changed(text, MANIFESTS[kind]))


def test_a_changed_manifest_ends_in_exit_4(door, tampered):
    edited(tampered, MANIFESTS["a weaker threshold"])
    code, checks = door.audit(tampered)
    assert code == 4
    assert any(not c["passed"] for c in checks)


def test_two_values_swapped_between_buckets_beside_the_original(door, tampered, original):
    """Sizes, counts and shares may all stay as they were: only the records tell, where they determine their value."""
    wrong = pq.read_table(tampered / "st").to_pandas()
    first = wrong.index[wrong["bucket_id"] == 0][0]
    mine = set(wrong.loc[wrong["bucket_id"] == 0, "illness"])
    for second in wrong.index[wrong["bucket_id"] != 0]:
        theirs = set(wrong.loc[wrong["bucket_id"] == wrong.at[second, "bucket_id"], "illness"])
        if wrong.at[second, "illness"] not in mine and wrong.at[first, "illness"] not in theirs:
            break
    else:
        pytest.skip("every bucket holds the same values")
    x, y = wrong.at[first, "illness"], wrong.at[second, "illness"]
    wrong.at[first, "illness"], wrong.at[second, "illness"] = y, x
    rewrite(tampered, "st", lambda t: pa.Table.from_pandas(wrong, schema=t.schema, preserve_index=False))
    seen = gathered(door.spark, tampered, door.spark.read.parquet(str(original)))
    assert {check.name for check in seen.verdict.failures} - {"contents of st"}


@pytest.mark.parametrize("text", ["", "{}", "not json", '{"format_version": 99}'])
def test_a_manifest_that_is_none(door, tampered, text):
    (tampered / "manifest.json").write_text(text, encoding="utf-8")
    outcome = door.call("audit", str(tampered))
    assert outcome.code == 2
    assert "manifest" in outcome.sentence


def test_a_release_without_one_of_its_tables(door, tampered):
    shutil.rmtree(tampered / "st")
    outcome = door.call("audit", str(tampered))
    assert outcome.code in (2, 4)
    assert "Traceback" not in outcome.err


def test_the_untouched_release_passes(door, release, untouched, original):
    assert untouched.failures() == set()
    code, checks = door.audit(release, original)
    assert code == 0
    assert len(checks) >= 19
    manifest = json.loads((release / "manifest.json").read_text(encoding="utf-8"))
    for value in manifest["guarantee"]["values"]:
        assert Fraction(value["achieved"]) <= Fraction(value["threshold"])
    assert KEY not in (release / "manifest.json").read_text(encoding="utf-8")
