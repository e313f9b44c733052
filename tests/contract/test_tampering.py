"""The gate: nothing unaudited gets out, and nothing of an input that changes while it is published."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anonlib
from anonlib import workflow
from anonlib.audit.verdict import Check, Verdict
from anonlib.errors import AuditRefused
from tests.contract.methods import asked, over, publishes_other
from tests.contract.planted_faults import plant
from tests.door import bucketize, people, staging, with_column
from tests.thorough import cases

pytestmark = pytest.mark.spark

VALUES_OF_60 = ("flu", *(f"illness {i:02d}" for i in range(19)))
"""As many values as the examples of the methods ask for."""
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
    cases(
        ("other frequencies", "gate"),
        ("no rows in one file", "report"),
        ("more rows", "off"),
        nightly=[(change, "gate") for change in CHANGES if change != "other frequencies"],
    ),
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


@over("an input that changes between the passes")
def test_values_that_change_after_they_were_counted(door, monkeypatch, method):
    """No task lets a record out that cannot keep the promise, whatever the audit is set to, and the sentence says why."""
    table = people(60, VALUES_OF_60)
    source = door.input(table)
    stage = []

    def change(count):
        def counted(*arguments, **named):
            statistics = count(*arguments, **named)
            if not stage:
                replaced(source, CHANGES["other frequencies"](table))
            stage.append(method)
            return statistics

        return counted

    plant(monkeypatch, "anonlib.engine.statistics:sensitive_statistics", change)
    columns = door.spec(source)["columns"]
    if not publishes_other(method):
        columns["identifiers"] = columns.pop("other")
    outcome = door.run(source, audit="off", columns=columns, method=asked(method))
    assert stage
    if (
        outcome.code == 0
    ):  # its promise bounds no counts of sensitive values: only what the manifest says of them is wrong
        code, checks = door.audit(outcome.output)
        assert code == 4
        assert {c["name"] for c in checks if not c["passed"]} == {"distribution of illness"}
    else:
        outcome.refused(1, "input change", "snapshot")


# --- the modes of the audit -----------------------------------------------------------------------------------------------------


def refusing(tables, manifest, original=None, columns=None, *, staged=False, evidence=None):
    """An audit that measures as the real one does and finds one promise broken."""
    from anonlib.audit.bucketized.audit import audit

    found = audit(tables, manifest, original, columns, staged=staged)
    broken = Check("planted check", False, "the moon", "cheese", "bucket 7")
    return Verdict((*found.checks, broken), found.achieved, found.tables)


@pytest.fixture
def refusal(monkeypatch):
    monkeypatch.setitem(workflow.AUDITORS, "bucketized", refusing)


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


def test_off_publishes_without_a_word_on_the_checks_and_a_later_audit_passes(door, monkeypatch):
    source = door.input(people())
    with monkeypatch.context() as patch:
        patch.setitem(workflow.AUDITORS, "bucketized", refusing)
        outcome = door.run(source, audit="off").published()
    audit = outcome.manifest.audit
    assert (audit.mode, audit.passed, audit.checks) == ("off", None, [])
    assert outcome.manifest.tables["qit"].rows == 60
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


def test_the_spec_decides_what_is_promised_not_the_solver(door):
    """A requirement is never read and ignored: stricter thresholds give larger buckets, and achieved shares that keep them."""
    shares = {}
    for l in cases(2, 6, nightly=[3]):  # noqa: E741
        outcome = door.run(people(), f"l{l}", method=bucketize(l=l)).published()
        shares[l] = max(Fraction(v.achieved) for v in outcome.manifest.guarantee.values)
        assert shares[l] <= Fraction(1, l)
    assert all(shares[a] > shares[b] for a, b in pairwise(sorted(shares)))
