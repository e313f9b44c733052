"""Retention over rho2, and its chart."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from anonlib.errors import Unsatisfiable
from anonlib.evaluation.retention import retention_by_rho2, retention_chart
from anonlib.privacy.counts import SensitiveCounts

COUNTS = SensitiveCounts(tuple(range(80)), np.array([9_000 // (i + 3) for i in range(80)]))


def test_a_weaker_bound_retains_more_and_sub_tables_more_than_none():
    points = retention_by_rho2(COUNTS, ["1/3", "1/6", "1/5", "1/4"])
    assert [p.rho2 for p in points] == [Fraction(1, k) for k in (6, 5, 4, 3)]
    assert all(p.retention > p.uniform_retention for p in points)
    assert all(p.error_bound < p.uniform_error_bound for p in points)
    for name in ("retention", "uniform_retention"):
        values = [getattr(p, name) for p in points]
        assert values == sorted(values)


def test_what_cannot_be_kept_is_left_out_unless_nothing_can():
    share = Fraction(3000, COUNTS.n)
    assert [p.rho2 for p in retention_by_rho2(COUNTS, [share, "1/3"])] == [Fraction(1, 3)]
    with pytest.raises(Unsatisfiable, match="any rho2 above"):
        retention_by_rho2(COUNTS, [share])


@pytest.mark.long
def test_the_chart_shows_every_point(tmp_path):
    pytest.importorskip("matplotlib", reason="needs the extra evaluate: pip install 'anonlib[evaluate]'")
    points = retention_by_rho2(COUNTS, ["1/6", "1/3"])
    figure = retention_chart(points, str(tmp_path / "chart.png"), "test")
    kept, bound = figure.axes
    lines = {line.get_label(): line.get_ydata() for line in kept.get_lines()}
    assert lines["sub-tables"] == pytest.approx([100 * p.retention for p in points])
    assert lines["uniform perturbation"] == pytest.approx([100 * p.uniform_retention for p in points])
    assert {line.get_label() for line in bound.get_lines()} == set(lines)
    assert [label.get_text() for label in kept.get_xticklabels()] == ["1/6", "1/3"]
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
