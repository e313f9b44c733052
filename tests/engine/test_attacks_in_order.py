"""A value's bound is held against that value's belief, whatever order the manifest lists values in. No session."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace

import pytest

from anonlib.evaluation import attacks_on_generalized
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
