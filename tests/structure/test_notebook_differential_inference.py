"""The notebook on differential inference runs from beginning to end; its figures are those of the theorem and of the promise."""

from __future__ import annotations

import re

import pytest

from tests.structure.test_notebook import ROOT, cells
from tests.thorough import nightly

NOTEBOOK = ROOT / "notebooks" / "differential_inference.py"


def test_the_part_on_the_theorem_needs_no_session_and_agrees_with_it(capsys) -> None:  # type: ignore[no-untyped-def]
    """100,000 seeded draws at x = 10,000: the mean's standard error is sqrt(3.6e-6 / 1e5) = 6e-6, the variance's about 1 %."""
    names: dict[str, object] = {"__name__": "notebook"}
    for cell in cells(NOTEBOOK)[:4]:
        exec(compile(cell, "notebook", "exec"), names)
    story = capsys.readouterr().out
    figure = r"([\d.]+)"
    form = (
        rf"x = +([\d,]+): mean {figure} \(theorem {figure}\), variance {figure} \(theorem {figure}\), within 0.05 in {figure}%; "
        rf"guess of Bob's value right in {figure}"
    )
    told = [[float(part.replace(",", "")) for part in line] for line in re.findall(form, story)]
    assert [line[0] for line in told] == [100, 300, 1_000, 10_000]
    assert told[-1][1] == pytest.approx(told[-1][2], abs=1e-4)  # as printed
    assert told[-1][3] == pytest.approx(told[-1][4], rel=0.3, abs=1e-6)  # six decimals of 3.6e-6
    assert told[-2][3] == pytest.approx(told[-2][4], rel=0.05)
    within = [line[5] for line in told]
    assert within == sorted(within)
    assert within[0] < 60
    assert within[-1] > 99.9
    assert told[-1][6] == pytest.approx(0.9)


@nightly
@pytest.mark.spark
def test_the_notebook_runs(spark, capsys) -> None:  # type: ignore[no-untyped-def]
    names: dict[str, object] = {"__name__": "notebook"}
    for cell in cells(NOTEBOOK):
        exec(compile(cell, "notebook", "exec"), names)
    story = capsys.readouterr().out
    largest = re.search(r"largest belief from a bucket ([\d.]+), promised 0.2000", story)
    answered = re.search(r"answers [\d.]+ / 1000\.0 = ([\d.]+), true ratio 0.9", story)
    undone = re.search(r"calculated back: ratio about (-?[\d.]+), true ratio 0.9", story)
    assert largest is not None
    assert answered is not None
    assert undone is not None
    assert float(largest[1]) <= 0.2
    assert float(answered[1]) <= 0.2
    # 100 persons without flu, each in a bucket with flu by chance 0.4: sqrt(100 x 0.24) / 1000 / 0.604 is 0.008; ten of these
    assert float(undone[1]) == pytest.approx(0.9, abs=0.08)
