"""What a manifest says of a release, in lines: nobody's rows are named, nothing is told as asked that was not, no gap is rounded away."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from anonlib.queries.means import MeanEstimate
from anonlib.release.account import bounds_lines, chosen_line, proven, rows_line
from anonlib.release.answers import groups
from anonlib.release.manifest import RowsPart, SolverPart


def manifest(method: str, parameters: dict[str, str], asked: dict[str, str], achieved: dict[str, str]) -> Any:
    """As much of a manifest as its bounds are told from."""
    return SimpleNamespace(
        method=SimpleNamespace(name=method, parameters=parameters),
        guarantee=SimpleNamespace(asked=asked, achieved=achieved, sensitive="illness", also=[]),
        layout="generalized",
    )


def test_rows_of_nobody_are_named() -> None:
    line = rows_line(RowsPart(input=101_766, published=101_766, dummy=229))
    assert line.startswith("101,766 read = 101,766 published + 0 suppressed + 0 dropped; ")
    assert "229 dummies" in line
    assert "1,200 fake ones" in rows_line(RowsPart(input=9, published=9, fake=1_200))
    assert ";" not in rows_line(RowsPart(input=9, published=8, dropped=1))


@pytest.mark.parametrize(
    ("method", "parameters", "name", "number", "told"),
    [
        ("perturb", {"rho2": "1/6"}, "rho1", "0.07", "not asked for, and kept at 0.07"),
        ("perturb", {"rho2": "1/6", "rho1": "1/13"}, "rho1", "1/13", "asked 1/13 (0.07693)"),
        ("sabre", {"t": "0.35", "k": "1"}, "k", "1", "not asked for, and kept at 1"),
        ("sabre", {"t": "0.35", "k": "5"}, "k", "5", "asked 5"),
        ("burel", {"beta": "3"}, "enhanced_beta", "3", "not asked for, and kept at 3"),
        ("heterogeneous", {"l": "10"}, "l", "10", "asked 10"),
        ("of another version", {"z": "1"}, "z", "a word", "not asked for, and kept at a word"),
    ],
)
def test_a_bound_that_nobody_asked_for_is_not_told_as_asked(
    method: str, parameters: dict[str, str], name: str, number: str, told: str
) -> None:
    one = manifest(method, parameters, {name: number}, {})
    assert bounds_lines(one) == [(name, told)]
    assert bounds_lines(manifest(method, parameters, {name: number}, {name: "2/3"})) == [
        (name, f"{told}, achieved 2/3 (0.6667)")
    ]


def test_of_further_columns_it_is_told_whose_bound_it_is() -> None:
    two = manifest("heterogeneous", {"l": "3"}, {"l": "3"}, {"l": "3"})
    two.guarantee.also = [SimpleNamespace(asked={"l": "3"}, achieved={"l": "4"}, sensitive="drug")]
    assert bounds_lines(two) == [("l", "asked 3, achieved 3"), ("l of drug", "asked 3, achieved 4")]
    two.layout = "bucketized"  # where the first is of combinations, and says it of both columns
    assert bounds_lines(two) == [("l", "asked 3, achieved 3")]


def test_a_gap_is_not_rounded_away_and_none_is_told_where_there_is_none() -> None:
    assert proven("optimal", "time_limit", 1e-7) == (
        "optimal: stopped at its time limit, proven within 0.01% of the best"
    )
    assert proven("optimal", "time_limit", 0.0351).endswith("within 3.51% of the best")
    assert proven("two_size", "optimal", 0.0) == "two_size: proven to be the best of at most two sizes"
    assert "time limit" not in proven("multi_size", "heuristic", 0.02)
    part = SolverPart(name="halving", status="heuristic", setting=[], seconds=1.0)
    assert chosen_line(part) == "halving: heuristic"


def test_a_mean_over_nobody_is_no_exact_nan() -> None:
    told = str(MeanEstimate.exact(math.nan))
    assert "nan" not in told
    assert "nobody" in told
    assert str(MeanEstimate.exact(2.5)) == "2.5 (exact)"


def test_an_unknown_group_is_told_every_column() -> None:
    with pytest.raises(Exception, match=r"no column 'ag' .* are age, sex, disease \(sensitive\)"):
        groups(["ag"], {"age": "int", "sex": "string", "disease": "string"}, ["disease"])
    with pytest.raises(Exception, match=r"are age, disease \(sensitive\)"):
        groups(["ag"], {"age": "int"}, ["disease"])
