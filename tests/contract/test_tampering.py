"""The gate: nothing unaudited gets out, and a published release that was changed afterwards does not pass."""

from __future__ import annotations

import json
import shutil
import uuid
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import anonlib
from anonlib import workflow
from anonlib.audit.verdict import Check, Verdict
from anonlib.engine.checksum import checksum
from anonlib.errors import AuditRefused
from anonlib.methods import boxed
from tests.door import KEY, bucketize, cut, key_file, people, staging, with_column, write_files

pytestmark = pytest.mark.spark

CHANGED = "the input changed between the two passes"


# --- the input changes between the passes ---------------------------------------------------------------------------------------


def between_passes(monkeypatch, act):
    """Calls `act` when the first pass is over and the second has not begun."""
    from anonlib.methods import bucketize as recipe

    choose = recipe.choose_buckets

    def chosen(*arguments):
        act()
        return choose(*arguments)

    monkeypatch.setattr(recipe, "choose_buckets", chosen)


def replaced(source: Path, parts) -> None:
    """The same file names with other contents, in place."""
    for number, part in enumerate(parts):
        pq.write_table(part, source / f"part-{number:03d}.parquet")
    for crc in source.glob(".*.crc"):
        crc.unlink()


CHANGES = {
    "more rows": lambda t: [t.slice(0, 30), pa.concat_tables([t.slice(30), t.slice(0, 6)])],
    "fewer rows": lambda t: [t.slice(0, 30), t.slice(30, 24)],
    "no rows in one file": lambda t: [t.slice(0, 30), t.slice(0, 0)],
    "a new value": lambda t: [t.slice(0, 30), with_column(t.slice(30), "illness", ["plague"] * 30)],
    "other frequencies": lambda t: [t.slice(0, 30), with_column(t.slice(30), "illness", ["flu"] * 30)],
}


@pytest.mark.parametrize(
    ("change", "mode"),
    [*((change, "gate") for change in CHANGES), ("no rows in one file", "report"), ("more rows", "off")],
)
def test_an_input_that_changes_between_the_passes(door, monkeypatch, change, mode):
    """Whatever the audit is set to; a partition with no rows left has no task that could refuse, so the rows are counted too."""
    table = people()
    source = door.input(table)
    between_passes(monkeypatch, lambda: replaced(source, CHANGES[change](table)))
    outcome = door.run(source, audit=mode)
    if outcome.code == 2:  # Spark notices that a file has another length before our tasks do
        outcome.refused(2, "part-001.parquet")
    else:
        outcome.refused(1, CHANGED, "snapshot")


def test_files_added_between_the_passes_are_not_seen(door, monkeypatch):
    """A classic session lists the files once: what is published is the table as the first pass saw it."""
    table = people()
    source = door.input(table)
    between_passes(monkeypatch, lambda: pq.write_table(table, source / "part-999.parquet"))
    assert door.run(source).published().manifest.rows.published == 60


def test_a_file_removed_between_the_passes(door, monkeypatch):
    source = door.input(people())
    between_passes(monkeypatch, (source / "part-001.parquet").unlink)
    door.run(source).refused(2, "part-001.parquet")


PARTITIONED = {
    "heterogeneous": {"l": 3, "matching": "greedy"},
    "nh": {"l": 3},
    "mondrian": {"frequency_l": 3},
    "burel": {"beta": 1},
    "sabre": {"t": "0.3"},
}


@pytest.mark.parametrize("method", PARTITIONED)
def test_values_that_change_after_they_were_counted(door, monkeypatch, method):
    """No task lets a partition out that cannot keep the promise, whatever the audit is set to, and the sentence says why."""
    table = people()
    source = door.input(table)
    code, stage = boxed.encode, []

    def changed(*arguments, **named):
        if not stage:
            replaced(source, CHANGES["other frequencies"](table))
        stage.append(method)
        return code(*arguments, **named)

    monkeypatch.setattr(boxed, "encode", changed)
    columns = door.spec(source)["columns"]
    columns["identifiers"] = columns.pop("other")
    outcome = door.run(source, audit="off", columns=columns, method={method: PARTITIONED[method]})
    assert stage
    outcome.refused(1, "input change", "snapshot")


# --- the modes of the audit -----------------------------------------------------------------------------------------------------


def refusing(tables, manifest, original=None, columns=None, *, staged=False):
    """An audit that measures as the real one does and finds one promise broken."""
    from anonlib.audit.bucketized.audit import audit

    found = audit(tables, manifest, original, columns, staged=staged)
    broken = Check("planted check", False, "the moon", "cheese", "bucket 7")
    return Verdict((*found.checks, broken), found.achieved, found.tables)


@pytest.fixture
def refusal(monkeypatch):
    monkeypatch.setitem(workflow.AUDITS, "bucketized", refusing)


@pytest.mark.usefixtures("refusal")
def test_the_gate_lets_nothing_out_that_the_audit_refuses(door):
    outcome = door.run(people())
    outcome.refused(4, "1 promise(s) not kept", "planted check", "asked the moon, found cheese", "bucket 7")


@pytest.mark.usefixtures("refusal")
def test_the_gate_is_what_is_set_when_nothing_is_said(door):
    with pytest.raises(AuditRefused, match="planted check"):
        anonlib.bucketize(
            door.spark.read.parquet(str(door.input(people()))),
            quasi_identifiers=["age", "country"],
            sensitive="illness",
            other=["note"],
            privacy={"l": 3},
            output=str(door.home / "release"),
        )
    assert not (door.home / "release").exists()
    assert not staging(door.home / "release")


@pytest.mark.usefixtures("refusal")
def test_report_publishes_and_says_what_failed(door):
    outcome = door.run(people(), audit="report").published()
    audit = outcome.manifest.audit
    assert (audit.mode, audit.passed) == ("report", False)
    assert [c.name for c in audit.checks if not c.passed] == ["planted check"]
    assert "FAILED" in outcome.out


@pytest.mark.usefixtures("refusal")
def test_off_publishes_without_a_word_on_the_checks(door):
    outcome = door.run(people(), audit="off").published()
    audit = outcome.manifest.audit
    assert (audit.mode, audit.passed, audit.checks) == ("off", None, [])
    assert outcome.manifest.tables["qit"].rows == 60


def test_a_release_made_without_audit_passes_one_later(door):
    source = door.input(people())
    outcome = door.run(source, audit="off").published()
    assert door.audit(outcome.output, source)[0] == 0


def test_a_faulty_kernel_does_not_get_past_the_gate(door, monkeypatch):
    """A planted fault in the assignment itself: every record of the smallest bucket's neighbours goes one bucket further."""
    from anonlib.methods import bucketize as recipe

    deal_right = recipe.RoundRobin

    class Shifted(deal_right):
        def __call__(self, code, rank):
            found = super().__call__(code, rank)
            found[found == 3] = 4
            return found

    import cloudpickle

    cloudpickle.register_pickle_by_value(__import__(__name__, fromlist=["x"]))
    monkeypatch.setattr(recipe, "RoundRobin", Shifted)
    door.run(people()).refused(4, "buckets of qit and st")


def test_a_working_copy_that_cannot_be_removed_is_not_published(door, monkeypatch):
    """The staged input holds every column, the sensitive one too."""
    monkeypatch.setattr("anonlib.release.storage.remove", lambda *_: None)
    frame = door.spark.read.parquet(str(door.input(people()))).repartition(3)
    with pytest.raises(anonlib.errors.AnonlibError, match="holds input, which cannot be removed"):
        anonlib.bucketize(
            frame,
            quasi_identifiers=["age", "country"],
            sensitive="illness",
            other=["note"],
            privacy={"l": 3},
            output=str(door.home / "release"),
        )
    assert not (door.home / "release").exists()
    assert not staging(door.home / "release")


# --- changes to a release that was really published --------------------------------------------------------------------------------

TABLE = with_column(people(240), "note", [None] * 240, pa.int64())


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("tampering") / "input", cut(TABLE, 2))


@pytest.fixture(scope="module")
def release(spark, original):
    """60 buckets of 4 under l = 3, published once; tests change copies of it."""
    path = original.parent / "release"
    key = key_file(original.parent)
    anonlib.bucketize(
        spark.read.parquet(str(original)),
        quasi_identifiers=["age", "country"],
        sensitive="illness",
        other=["note"],
        privacy={"theta": "1.4", "offset": "0.02"},
        max_bucket_size=12,
        output=str(path),
        key=f"file:{key}",
    )
    return path


@pytest.fixture
def tampered(release, tmp_path):
    return Path(shutil.copytree(release, tmp_path / "tampered"))


def rewrite(release: Path, name: str, change) -> None:
    """The table changed, in one file named as Spark names it, and listed in the manifest."""
    table = change(pq.read_table(release / name)).replace_schema_metadata(
        None
    )  # Spark's own note of the columns as they were
    file = f"part-00000-{uuid.UUID(int=7)}-c000.snappy.parquet"
    shutil.rmtree(release / name)
    (release / name).mkdir()
    pq.write_table(table, release / name / file, store_schema=False)
    listed = [{"name": file, "size": (release / name / file).stat().st_size}]
    facts(release, lambda found: found["files"].update({name: listed}))


def facts(release: Path, change) -> None:
    path = release / "manifest.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    change(found)
    path.write_text(json.dumps(found), encoding="utf-8")


def recorded(spark, release: Path) -> None:
    """The manifest's row counts and checksums made to fit, as whoever may edit it would."""

    def fit(found):
        for name, part in found["tables"].items():
            frame = spark.read.parquet(str(release / name))
            part["rows"], part["checksum"] = frame.count(), checksum(frame)

    facts(release, fit)


def cell(table: pa.Table, column: str, change) -> pa.Table:
    values = table[column].to_pylist()
    change(values)
    return with_column(table, column, values, table[column].type)


def at(table, bucket):
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
    "the sensitive column beside": ("qit", lambda t: with_column(t, "illness", ["flu"] * len(t))),
    "an identifier": ("qit", lambda t: with_column(t, "ssn", [f"s{i}" for i in range(len(t))])),
    "a column renamed": ("qit", lambda t: t.rename_columns(["Alter", *t.column_names[1:]])),
    "a type changed": ("qit", lambda t: with_column(t, "age", pc.cast(t["age"], pa.int64()).to_pylist(), pa.int64())),
    "a column left out": ("qit", lambda t: t.drop_columns(["country"])),
}  # fmt: skip


@pytest.mark.parametrize("kind", TABLES)
def test_a_changed_table(door, tampered, kind):
    """The manifest's row counts and checksums are made to fit, so that the checks of contents find nothing."""
    table, change = TABLES[kind]
    rewrite(tampered, table, change)
    recorded(door.spark, tampered)
    code, checks = door.audit(tampered)
    assert code == 4
    assert any(not c["passed"] for c in checks)


def test_a_changed_cell_shows_in_the_checksum(door, tampered):
    rewrite(tampered, "qit", lambda t: cell(t, "age", lambda v: v.__setitem__(0, v[0] + 1)))
    code, checks = door.audit(tampered)
    assert code == 4
    assert [c["name"] for c in checks if not c["passed"]] == ["contents of qit"]


@pytest.mark.parametrize("column", ["age", "country"])
def test_a_changed_cell_with_a_fitted_checksum_shows_beside_the_original(door, tampered, original, column):
    other = {"age": 99, "country": "Chile"}[column]
    rewrite(tampered, "qit", lambda t: cell(t, column, lambda v: v.__setitem__(0, other)))
    recorded(door.spark, tampered)
    assert door.audit(tampered)[0] == 0
    code, checks = door.audit(tampered, original)
    assert code == 4
    assert "original: records" in {c["name"] for c in checks if not c["passed"]}


MANIFESTS = {
    "a weaker threshold": lambda f: f["guarantee"]["values"][0].update(threshold="1"),
    "a stronger threshold": lambda f: f["guarantee"]["values"][0].update(threshold="0.01"),
    "a theta nobody asked for": lambda f: f["method"]["parameters"]["privacy"].update(theta="1.1"),
    "a better share than achieved": lambda f: f["guarantee"]["values"][0].update(achieved="0.01"),
    "a count of a value": lambda f: f["guarantee"]["values"][0].update(count=1),
    "a value left out": lambda f: f["guarantee"]["values"].pop(),
    "rows dropped in silence": lambda f: f["rows"].update(input=300),
    "more rows published": lambda f: f["rows"].update(input=241, published=241),
    "another bucket setting": lambda f: f["solver"]["setting"][0].update(number=1),
    "another checksum": lambda f: f["tables"]["qit"].update(checksum="xxh64sum:0000000000000000"),
    "another row count": lambda f: f["tables"]["st"].update(rows=1),
    "fake values that are not there": lambda f: (
        f["method"]["parameters"].update(fake_values=1), f["rows"].update(fake=sum(s["number"] for s in f["solver"]["setting"])),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", MANIFESTS)
def test_a_changed_manifest(door, tampered, kind):
    facts(tampered, MANIFESTS[kind])
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
    recorded(door.spark, tampered)
    assert door.audit(tampered, original)[0] == 4


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


def test_the_untouched_release_passes(door, release, original):
    code, checks = door.audit(release, original)
    assert code == 0
    assert len(checks) >= 19
    manifest = json.loads((release / "manifest.json").read_text(encoding="utf-8"))
    for value in manifest["guarantee"]["values"]:
        assert Fraction(value["achieved"]) <= Fraction(value["threshold"])
    assert KEY not in (release / "manifest.json").read_text(encoding="utf-8")


def test_the_spec_decides_what_is_promised_not_the_solver(door):
    """A requirement is never read and ignored: stricter thresholds give larger buckets, and achieved shares that keep them."""
    shares = {}
    for l in (2, 3, 6):  # noqa: E741
        outcome = door.run(people(), f"l{l}", method=bucketize(l=l)).published()
        shares[l] = max(Fraction(v.achieved) for v in outcome.manifest.guarantee.values)
        assert shares[l] <= Fraction(1, l)
    assert shares[2] > shares[3] > shares[6]
