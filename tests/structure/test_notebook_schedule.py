"""The notebook of four months runs from beginning to end and tells what it says it tells."""

from __future__ import annotations

import re

import pytest

from tests.data import table_path
from tests.structure.test_notebook import ROOT, cells

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_the_notebook_of_four_months_runs(spark, capsys, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("ANONLIB_DATA", str(table_path("diabetes_130us").parent))
    names: dict[str, object] = {"__name__": "notebook"}
    told = []
    for cell in cells(ROOT / "notebooks" / "schedule_diabetes.py"):
        exec(compile(cell, "notebook", "exec"), names)
        told.append(capsys.readouterr().out)
    story = "".join(told)
    assert re.search(r"columns.person: [\d,]+ persons have several rows", story)
    published, patients = re.findall(r"^([\d,]+) records published, ([\d,]+) patients in all$", story, re.MULTILINE)[0]
    assert published == patients
    assert len(re.findall(r"^release \d: [\d,]+ persons, published, its manifest the same$", story, re.MULTILINE)) == 4
    assert "all agrees" in story
    assert "everybody is left for next time" in told[-1]
