"""A report of a release of every method, on a table of all kinds of values and names, from the release alone."""

from __future__ import annotations

import shutil

import pytest

from anonlib import workflow
from anonlib.cli import main
from anonlib.release.opened import open_release
from anonlib.reports.worth import UNREAD
from anonlib.spec import METHODS
from tests.door import KEY
from tests.reported import Page
from tests.thorough import nightly, some

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("method", some(METHODS, "bucketize", "perturb", "sabre"))
def test_from_the_release_alone(releases, method):
    pytest.importorskip("matplotlib")
    release = open_release(releases.spark, str(releases.of(method).output))
    made = workflow.report(release, checked=True)
    assert (made.passed, made.with_original) == (True, False)
    page, manifest = Page(made.html), release.manifest
    assert [" ".join(words.split()) for words in page.words] == [" ".join(manifest.guarantee.words.split())]
    assert f"published {manifest.rows.published:,}" in page.text
    assert KEY not in made.html
    assert len(made.html) < 250_000
    listed = [check.name for check in manifest.audit.checks]
    assert all(name in page.text for name in listed)
    assert ("Rows of this release belong to no class" in page.text) == (
        "ec_id" not in made.html and manifest.layout == "generalized"
    )
    if method == "bucketize":
        records = sum(part.size * part.number for part in manifest.solver.setting)
        buckets = sum(part.number for part in manifest.solver.setting)
        assert f"{records:,} records are in {buckets:,} buckets" in page.text


def test_a_release_that_was_changed_is_reported_as_broken(releases, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    copy = tmp_path / "copy"
    shutil.copytree(releases.of("bucketize").output, copy)
    next((copy / "st").glob("*.parquet")).write_bytes(b"no table")
    out = tmp_path / "report.html"
    assert main(["report", str(copy), "-o", str(out)]) == 4
    assert "which promises are not kept" in " ".join(capsys.readouterr().err.split())
    page = Page(out.read_text(encoding="utf-8"))
    assert "Audit FAILED" in page.text
    assert page.text.count(UNREAD) == 3
    assert page.words  # what was promised stands there all the same


@nightly
def test_a_report_needs_its_charts(releases, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    assert main(["report", str(releases.of("bucketize").output), "-o", str(tmp_path / "report.html")]) == 1
    assert "anonlib[report]" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
