"""A value's bound is held against that value's belief, whatever order the manifest lists values in; elimination by it. No session."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from anonlib.evaluation import attacks_on_generalized
from anonlib.evaluation.attacks_around import Persons
from anonlib.evaluation.generalized import ordered_values
from tests import planted_generalized as planted


def test_bounds_by_value_follow_the_codes_of_the_boxes(monkeypatch):
    held = ["10"] * 6 + ["2"] * 30
    part = planted.guarantee("illness", "int", held, {"beta": "1/10"}, distance="flat")
    assert [v.value for v in part.values] == ["10", "2"]
    prepared = SimpleNamespace(
        manifest=SimpleNamespace(guarantee=part), values=ordered_values(part), boxes=None, seed=0
    )
    assert prepared.values == ("2", "10")  # by number
    given = {}

    def of_groups(_, values, bounds):
        given.update({v.value: (Fraction(v.count, 36), of) for v, of in zip(values.values, bounds.of, strict=True)})
        return []

    monkeypatch.setattr(attacks_on_generalized, "of_groups", of_groups)
    monkeypatch.setattr(attacks_on_generalized, "_reidentification", lambda *_: None)
    monkeypatch.setattr(attacks_on_generalized, "_grouped", lambda *_: None)
    monkeypatch.setattr(attacks_on_generalized, "corruption_attacks", lambda *_: [])
    monkeypatch.setattr(attacks_on_generalized.generalized, "has_classes", lambda _: True)
    attacks_on_generalized.beliefs(prepared, None, None, 0)
    assert list(given) == ["2", "10"]
    for share, bound in given.values():
        assert bound == pytest.approx(Fraction(11, 10) * share)


def matched(asked: dict[str, str], fewest: int | None, suppressed: int = 0):
    """A release without classes, 6 of "10" and 30 of "2"; five persons, each with two or three rows around."""
    part = planted.guarantee("illness", "int", ["10"] * 6 + ["2"] * 30, asked)
    details = {} if fewest is None else {"matches": {"fewest": fewest, "most": 3, "mean": 2.5}}
    manifest = SimpleNamespace(
        guarantee=part, solver=SimpleNamespace(details=details), rows=SimpleNamespace(suppressed=suppressed)
    )
    return SimpleNamespace(manifest=manifest, values=ordered_values(part))


def test_elimination_under_beta_takes_the_fewest_matches_from_the_manifest():
    """Codes by number: 0 is "2", 1 is "10". (1 + 2) 6/36 = 1/2 of the rows may show "10", any number "2"."""
    persons = Persons((np.zeros(4),), np.array([0, 1, 0, 1]), np.ones(4))
    counts = np.array([[1.0, 1.0], [0.0, 2.0], [2.0, 0.0], [1.0, 2.0]])
    found = attacks_on_generalized.eliminated(matched({"beta": "2"}, 2), persons, counts, 5 / 6)
    assert (found.persons, found.above, found.largest, found.guarantee) == (3, 1, 1.0, 0.5)
    assert found.accuracy == pytest.approx((1 / 2 + 1 + 1) / 3)
    under_l = attacks_on_generalized.eliminated(matched({"l": "2"}, 2), persons, counts, 5 / 6)
    assert (under_l.guarantee, under_l.persons) == (0.5, 1)  # who has nothing left is passed over


@pytest.mark.parametrize(("fewest", "suppressed", "why"), [(None, 0, "the manifest does not tell"), (2, 1, "left out")])
def test_elimination_under_beta_says_why_it_is_not_played(fewest, suppressed, why):
    persons = Persons((np.zeros(1),), np.array([0]), np.ones(1))
    said = attacks_on_generalized.eliminated(
        matched({"beta": "2"}, fewest, suppressed), persons, np.array([[1.0, 1.0]]), 5 / 6
    )
    assert isinstance(said, str)
    assert why in said
