"""A bound against what it costs: what is asked is among the points, costs are the solvers', and nothing is proposed that leaves nothing."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from anonlib.errors import Unsatisfiable
from anonlib.exact import exact
from anonlib.methods.trade_offs import grids, sentence
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy
from anonlib.privacy.rho_privacy import RhoPrivacy
from anonlib.privacy.subtables import beliefs
from anonlib.solvers.buckets import choose
from anonlib.solvers.buckets.wanted import f_privacy
from anonlib.solvers.subtables.perturbation_partitioning import solve
from anonlib.solvers.trade_offs import of_beliefs, of_thresholds
from anonlib.solvers.trade_offs.registry import from_counts
from anonlib.solvers.trade_offs.trade_off import Point, TradeOff, knee
from anonlib.spec.methods import METHODS

COUNTS = SensitiveCounts(tuple("ABCDEFGHIJKL"), np.array([300, 260, 200, 150, 120, 90, 60, 40, 30, 20, 10, 5]))
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "theta": ("bucketize", {"privacy": {"theta": "5", "offset": "0.02"}}),
    "default": ("bucketize", {"privacy": {"default": "2/7"}}),
    "l": ("bucketize", {"privacy": {"l": "4"}}),
    "l of anatomy": ("anatomy", {"l": "4"}),
    "rho2": ("perturb", {"rho2": "2/5"}),
    "l of matches": ("heterogeneous", {"l": "4"}),
    "beta": ("heterogeneous", {"beta": "5/2"}),
    "beta of classes": ("burel", {"beta": "3", "refine": "false"}),
    "beta of classes that are cut on": ("burel", {"beta": "3"}),
}


def of(name: str) -> TradeOff:
    method, parameters = ASKED[name]
    trade_off = from_counts(METHODS[method].model_validate(parameters), COUNTS)
    assert trade_off is not None
    return trade_off


@pytest.mark.long
@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_is_among_the_points_and_they_grow_looser(name: str) -> None:
    trade_off = of(name)
    assert trade_off.name == name.split()[0]
    bounds = [point.bound for point in trade_off.points]
    assert bounds == sorted(set(bounds), reverse=trade_off.name == "l")
    assert trade_off.at_asked.measures
    assert trade_off.proposed in [point.bound for point in trade_off.kept if not point.note]
    costs = [point.measures[trade_off.cost] for point in trade_off.kept]
    assert costs[0] > costs[-1]
    told = trade_off.to_dict()
    assert exact(told["asked"]) == trade_off.asked
    assert len(told["points"]) == len(bounds)
    assert all(set(trade_off.measures) <= set(p) for p in told["points"] if trade_off.cost in p)


@pytest.mark.long
def test_costs_are_those_of_the_solvers() -> None:
    asked = f_privacy(METHODS["bucketize"].model_validate(ASKED["theta"][1]).privacy)
    best = choose.solve(COUNTS, asked.thresholds(COUNTS), "multi_size", 50)
    assert of("theta").at_asked.measures["msbs"] == best.setting.msbs
    chosen = solve(COUNTS, RhoPrivacy(None, Fraction(2, 5)))
    assert of("rho2").at_asked.measures["retention"] == chosen.subtables.mean_retention
    assert of("rho2").at_asked.measures["count_error"] == chosen.count_error
    assert of("l of matches").at_asked.measures["matches"] == 4


def test_the_most_that_is_believed_of_each_value() -> None:
    subtables = solve(COUNTS, RhoPrivacy(None, Fraction(2, 5))).subtables
    believed = beliefs(subtables, COUNTS.m)
    assert max(believed) == max(t.posterior for t in subtables) <= Fraction(2, 5)
    for t in subtables:
        for code, count in zip(t.codes.tolist(), t.counts.tolist(), strict=True):
            share, kept = Fraction(count, t.size), t.retention  # Bayes' rule on the operator of equation (5)
            other = (1 - kept) / t.domain_size
            assert believed[code] >= share * (kept + other) / (share * kept + other)


def test_bounds_that_leave_or_protect_nothing_are_named_and_not_proposed() -> None:
    few = SensitiveCounts(("a", "b", "c"), np.array([54, 36, 10]))
    loose = from_counts(METHODS["bucketize"].model_validate({"privacy": {"theta": "12"}}), few)
    assert loose is not None
    assert loose.at_asked.note.startswith("protects nothing of 100.00% of the records")
    assert loose.proposed is not None
    assert loose.proposed * Fraction(54, 100) < 1
    rare = SensitiveCounts(tuple("abcdefg"), np.array([1, 1, 1, 100, 100, 100, 97]))
    matches = from_counts(METHODS["heterogeneous"].model_validate({"beta": "1"}), rare)
    assert matches is not None
    assert "leaves nothing of" in matches.at_asked.note
    assert "others, all there are in its pool" in matches.at_asked.note
    noise = from_counts(METHODS["perturb"].model_validate({"rho2": "0.55"}), few)
    assert noise is not None
    assert noise.at_asked.note.startswith("leaves nothing: counts are off by")
    one = SensitiveCounts(("a", "b"), np.array([3, 7]))
    whole = from_counts(METHODS["bucketize"].model_validate({"privacy": {"theta": "1"}}), one)
    assert whole is not None
    assert whole.at_asked.note == "leaves nothing: one bucket of the whole table"


def test_nothing_is_proposed_where_every_bound_has_a_flaw() -> None:
    flawed = [Point(Fraction(k), {"x": 9.0 - k}, "leaves nothing") for k in range(1, 5)]
    none = TradeOff("theta", Fraction(1), {"x": "x"}, "x", (*flawed, Point(Fraction(9), {}, "cannot be kept")))
    assert none.proposed is None
    told = sentence(none, "leaves nothing")
    assert told.startswith(
        ". As asked it leaves nothing. Every theta that was tried leaves nothing, or protects nothing, of some"
    )
    two = TradeOff(
        "theta", Fraction(8), {"x": "x"}, "x", (Point(Fraction(8), {"x": 2.0}), Point(Fraction(9), {"x": 1.0}))
    )
    assert two.proposed is None
    assert sentence(two) == sentence(None) == ""
    assert [row[-1] for row in grids(none)[0].rows] == [
        "asked; leaves nothing",
        *["leaves nothing"] * 3,
        "cannot be kept",
    ]


def test_a_knee_is_where_the_curve_bends() -> None:
    curve = [(Fraction(t), cost) for t, cost in ((1, 10.0), (2, 9.0), (3, 2.0), (4, 1.5), (5, 1.0))]
    assert knee(curve) == 3
    assert knee([(Fraction(most), cost) for most, cost in ((10, 10.0), (5, 2.0), (2, 1.0))]) == 5
    assert knee([(Fraction(1), 1.0), (Fraction(2), 1.0), (Fraction(3), 1.0)]) == 1


@pytest.mark.parametrize(
    ("privacy", "key"), [({"theta": "1"}, "offset"), ({"default": "1/40"}, "default"), ({"l": "40"}, "l")]
)
def test_what_a_refusal_offers_gives_a_release_and_nothing_stricter_does(privacy: dict[str, str], key: str) -> None:
    wanted = METHODS["bucketize"].model_validate({"privacy": privacy, "max_bucket_size": 50})
    offered = of_thresholds.offer(COUNTS, f_privacy(wanted.privacy), 50, None, as_l="l" in privacy)
    number = exact(offered.split(f"{key}: ")[1].split()[0])
    step = {"offset": Fraction(1, of_thresholds.STEPS), "default": None, "l": None}[key]

    def does(bound: Fraction) -> bool:
        share = {"offset": lambda: FPrivacy.linear(1, bound), "default": lambda: FPrivacy.uniform(bound)}
        asked = share[key]() if key in share else FPrivacy.l_diversity(int(bound))
        try:
            choose.solve(COUNTS, asked.thresholds(COUNTS), "two_size", 50)
        except Unsatisfiable:
            return False
        return True

    stricter = number - step if step else 1 / (1 / number + 1) if key == "default" else number + 1
    assert does(number)
    assert not does(stricter)


def test_nothing_is_offered_where_nothing_would_do() -> None:
    most = SensitiveCounts(("a", "b"), np.array([90, 10]))
    assert of_thresholds.offer(most, FPrivacy.l_diversity(2), 50, as_l=True) == ""
    assert of_thresholds.offer(most, FPrivacy.linear(1, 0, {"a": "0.5"}), 50) == ""
    assert of_thresholds.offer(most, FPrivacy(own={"a": Fraction(1, 2)}), 50) == ""


def test_no_offset_is_offered_that_protects_nothing() -> None:
    """a fills buckets of at most 5 only with a threshold of 1; beside it, c needs an offset that a smaller theta leaves room for."""
    frequent = SensitiveCounts(("a", "b"), np.array([90, 10]))
    assert of_thresholds.offer(frequent, FPrivacy.linear(1), 5) == ""
    uneven = SensitiveCounts(("a", "b", "c"), np.array([500, 480, 20]))
    offered = of_thresholds.offer(uneven, FPrivacy.linear(2), 10)
    assert offered.startswith("theta: 1.5 with offset: 0.07 gives a release")
    for theta, offset in (("2", "0.06"), ("1.5", "0.07")):
        thresholds = FPrivacy.linear(theta, offset).thresholds(uneven)
        choose.solve(uneven, thresholds, "two_size", 10)
        assert (max(thresholds.fractions) == 1) == (theta == "2")


def test_a_belief_is_offered_that_retains_something() -> None:
    offered = of_beliefs.offer(COUNTS, METHODS["perturb"].model_validate({"rho2": "1/20"}))
    number = exact(offered.split("rho2: ")[1].split()[0])
    assert solve(COUNTS, RhoPrivacy(None, number)).subtables.mean_retention > 0.05
