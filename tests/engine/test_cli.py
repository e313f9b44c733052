"""The command line: what stands where, JSON and human output, exit codes, and a driver that is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from anonlib.evaluation.attacks_registry import REGISTRY
from anonlib.reports.page import FROM_THE_ORIGINAL
from tests.door import KEY, VALUES, bucketize, multiset, of_its_own, people, staging, with_column
from tests.reported import Page
from tests.thorough import nightly

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.every_spark
def test_run_tells_the_guarantee_the_choice_the_audit_and_the_place(door):
    outcome = door.run(people()).published()
    told = (
        "Published",
        str(outcome.output),
        "The guarantee",
        "60 published",
        "Buckets",
        "Audit",
        "passed",
        "qit/",
        "st/",
    )
    for words in told:
        assert words in outcome.out, words
    assert "counting the sensitive values (first pass)" in outcome.err
    assert "published at" in outcome.err
    assert KEY not in outcome.out + outcome.err


def test_json_on_standard_output_and_nothing_else(door):
    source = door.input(people())
    outcome = door.run(source)
    conf = door.home / "spec-1.yaml"
    conf.write_text(conf.read_text(encoding="utf-8").replace("/release", "/second"), encoding="utf-8")
    pytest.importorskip("matplotlib")
    report = door.home / "report.html"
    refused = door.call("run", str(conf), "--report", str(door.home / "second" / "report.html"))
    assert (refused.code, "lies in the release" in refused.sentence) == (2, True)
    found = json.loads(door.call("run", str(conf), "--json", "--report", str(report)).out)
    assert outcome.manifest.guarantee.words in Page(report.read_text(encoding="utf-8")).words
    assert not (door.home / "second" / "report.html").exists()
    assert found["release"] == str(door.home / "second")
    written = json.loads((door.home / "second" / "manifest.json").read_text(encoding="utf-8"))
    assert found["manifest"] == written
    assert outcome.manifest.tables["qit"].checksum == written["tables"]["qit"]["checksum"]


def test_the_spec_as_an_option_and_not_twice(door):
    door.run(people(), command="explain")
    conf = str(door.home / "spec-1.yaml")
    assert door.call("explain", "--conf", conf).code == 0
    assert door.call("explain", conf, "--conf", conf).code == 2


def test_explain_in_words_and_in_json(door):
    outcome = door.run(people(), command="explain")
    assert outcome.code == 0
    assert "bucket size" in outcome.out
    assert not outcome.output.exists()
    found = json.loads(door.call("explain", str(door.home / "spec-1.yaml"), "--json").out)
    assert found["records"] == 60
    assert found["sensitive_values"] == 6
    assert sum(part["size"] * part["number"] for part in found["setting"]) == 60
    assert {v["threshold"] for v in found["values"]} == {"1/3"}
    assert found["trade_off"]["name"] == "l"
    assert found["trade_off"]["asked"] == "3"
    assert "l: 3 is where giving more stops paying (see the table of l)" in " ".join(outcome.out.split())


def test_explain_refuses_as_run_would(door):
    assert door.run(people(60, ("flu", "cold")), command="explain").refused(
        3, "'flu': 30 of 60", "l: 2 gives a release in buckets of at most 20 records"
    )


@nightly  # of thresholds on nodes at every change: `test_nodes.py`
def test_explain_and_run_choose_alike(door):
    source = door.input(people(601))
    explained = door.run(source, command="explain")
    assert explained.code == 0
    found = json.loads(door.call("explain", str(door.home / "spec-1.yaml"), "--json").out)
    published = door.run(source).published().manifest.solver
    assert found["setting"] == [part.model_dump() for part in published.setting]
    assert found["loss"] == published.loss


def test_audit_in_words_and_in_json_and_beside_a_table_that_is_not_the_original(door):
    source = door.input(people())
    outcome = door.run(source).published()
    shown = door.call("audit", str(outcome.output), "--original", str(source))
    assert shown.code == 0
    assert "F'-privacy" in shown.out
    assert "passed" in shown.out
    code, checks = door.audit(outcome.output, door.input(people(66), "other"))
    assert code == 4
    assert any(c["name"].startswith("original") and not c["passed"] for c in checks)
    (outcome.output / "manifest.json").write_text(
        (outcome.output / "manifest.json").read_text(encoding="utf-8").replace('"input": 60', '"input": 61'),
        encoding="utf-8",
    )
    refused = door.call("audit", str(outcome.output))
    assert refused.code == 4
    assert "FAILED" in refused.out
    assert "rows add up" in refused.sentence
    found = json.loads(door.call("audit", str(outcome.output), "--json").out)
    assert found["passed"] is False


@nightly
@pytest.mark.parametrize(
    "method",
    [bucketize(l=3), {"perturb": {"rho2": "1/3"}}, {"heterogeneous": {"l": 3}}, {"sabre": {"t": "0.5", "k": 3}}],
    ids=lambda method: next(iter(method)),
)
def test_a_report_beside_the_original_with_everything_measured(door, method):
    pytest.importorskip("matplotlib")
    source, out = door.input(people()), door.home / "report.html"
    columns = {"quasi_identifiers": [{"name": "age", "type": "numeric"}, "country"], "sensitive": "illness"}
    path = str(door.run(source, method=method, columns=columns | {"identifiers": ["note"]}).published().output)
    told = json.loads(door.call("report", path, "--original", str(source), "-o", str(out), "--json").out)
    assert told == {"release": path, "report": str(out), "passed": True, "original": True}
    written = out.read_text(encoding="utf-8")
    page = Page(written)
    assert "This report is not an anonymized release." in page.text
    assert out.stat().st_mode & 0o077 == 0
    assert "against the original table" in page.text
    sections = dict(re.findall(r'<section id="(\w+)">(.*?)</section>', written, re.DOTALL))
    assert {anchor for anchor, _, _ in FROM_THE_ORIGINAL} <= set(sections)
    for attack in REGISTRY:
        assert attack.name in sections["attacks"]
    assert "intervals hold the true count" in sections["estimates"]
    assert "Counts by country and illness" in sections["estimates"]


@nightly
def test_values_that_look_like_markup_are_shown_as_they_are(door):
    values = [("[/b]", "[red]", "a\\", "[link=x]", "\\[", "]")[i % 6] for i in range(60)]
    source = door.input(with_column(people(), "illness", values))
    outcome = door.run(source, audit="off").published()
    for value in ("[/b]", "[red]", "[link=x]"):
        assert value in outcome.out
    explained = door.run(source, command="explain")
    assert explained.code == 0
    assert "[/b]" in explained.out


def test_what_cannot_be_shown_is_published_all_the_same(door, monkeypatch):
    """Exit code 0 and a release, or any other code and none."""
    monkeypatch.setattr("anonlib.cli.show_release", lambda release: 1 / 0)
    outcome = door.run(people(), audit="off").published()
    assert "cannot be shown here" in outcome.err


def test_a_fault_of_our_own_is_told_as_one_and_publishes_nothing(door, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("a planted fault")

    monkeypatch.setattr("anonlib.methods.bucketize.choose_buckets", broken)
    outcome = door.run(people())
    assert outcome.code == 1
    assert "unexpected ZeroDivisionError: a planted fault" in outcome.err
    assert "ANONLIB_DEBUG=1" in outcome.err.replace("\n", " ")
    assert "Traceback" not in outcome.err
    assert not outcome.output.exists()
    assert not staging(outcome.output)
    monkeypatch.setenv("ANONLIB_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        door.call("run", str(door.home / "spec-1.yaml"))


def test_an_interrupt_publishes_nothing(door, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("anonlib.methods.bucketize.choose_buckets", interrupted)
    outcome = door.run(people())
    assert outcome.code == 1
    assert "stopped; nothing was published" in outcome.err
    assert not outcome.output.exists()
    assert not staging(outcome.output)


def test_help_and_no_command(door):
    assert door.call("--help").code == 0
    assert door.call("run", "--help").code == 0
    assert door.call().code == 2
    assert door.call("publish").code == 2


# --- a killed driver -----------------------------------------------------------------------------------------------------------------

RUN = """
import os, signal, sys, time
from anonlib.engine import tables

write = tables.write

def stopped(frame, path, format, doing):
    if os.environ["STOP_BEFORE"] in doing:
        print("HERE", flush=True)
        time.sleep(600)
    write(frame, path, format, doing)

tables.write = stopped
from anonlib.cli import main
sys.exit(main(["run", sys.argv[1], "--master", "local[1]"]))
"""


@nightly  # at every change: nothing is visible before all of it is there, and an interrupt leaves nothing
@pytest.mark.parametrize("signalled", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_driver_leaves_nothing_that_reads_as_a_release_and_a_rerun_publishes(door, signalled):
    """Killed after `qit` and before `st`: the half that exists is hidden, and the rerun says that it is there."""
    source = door.input(people())
    conf = door.home / "spec.yaml"
    import yaml

    conf.write_text(yaml.safe_dump(door.spec(source)), encoding="utf-8")
    running = subprocess.Popen(
        [sys.executable, "-c", RUN, str(conf)], env=of_its_own(STOP_BEFORE="writing st"), cwd=ROOT, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        assert running.stdout.readline().strip() == "HERE"
        running.send_signal(signalled)
        running.wait(60)
        assert running.returncode != 0
    finally:
        for _ in range(50):  # the gateway's Java ends when its driver does
            try:
                os.killpg(running.pid, 0)
            except ProcessLookupError:
                break
            time.sleep(0.2)
    output = door.home / "release"
    assert not output.exists()
    left = staging(output)
    if signalled == signal.SIGKILL:
        assert len(left) == 1
        assert (left[0] / "qit").exists()
        assert left[0].stat().st_mode & 0o077 == 0
    else:
        assert left == []  # an orderly end cleans up
    opened = door.call("audit", str(output))
    assert (opened.code, "holds no release" in opened.sentence) == (2, True)
    again = door.run_spec(door.spec(source, audit="off"))
    assert again.code == 0, again.err
    assert multiset(again.table("qit"), "note") == multiset(people().to_pylist(), "note")
    if left:
        assert f"an interrupted run left {left[0]}" in again.err.replace("\n", "")


def test_a_reader_sees_no_release_until_the_whole_of_it_is_there(door, monkeypatch):
    """Looked at before every step of the publication."""
    from anonlib.engine import tables
    from anonlib.release import storage

    output, seen = door.home / "release", []

    def watched(module, name):
        act = getattr(module, name)

        def look(*arguments, **named):
            seen.append((name, output.exists()))
            return act(*arguments, **named)

        monkeypatch.setattr(module, name, look)

    for module, name in ((storage, "begin"), (tables, "write"), (tables, "read_back"), (storage, "publish")):
        watched(module, name)
    outcome = door.run(people(), method=bucketize(l=3)).published()
    assert [name for name, _ in seen] == ["begin", "write", "read_back", "write", "read_back", "publish"]
    assert not any(there for _, there in seen)
    assert pq.read_table(outcome.output / "st").num_rows
    assert len(VALUES) == 6
