"""What heterogeneous generalization may be asked for, and the sentence that says what not."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from anonlib import words
from anonlib.errors import SpecError
from anonlib.spec.load import parse_spec


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        ({"l": 3, "far_apart": True}, "allow_minimality_leak: true"),
        ({"l": 3, "refine": True}, "refine lets quasi-identifiers decide .* allow_minimality_leak: true"),
        ({"l": 3, "allow_minimality_leak": True}, "nothing here leaks"),
        ({"beta": 2, "far_apart": True, "allow_minimality_leak": True}, "only l-diversity has a far_apart mode"),
        ({}, "one promise"),
        ({"l": 3, "beta": 2}, "one promise"),
        ({"l": 3, "matching": "best"}, "hungarian"),
    ],
)
def test_a_bad_parameter_is_named(method: dict[str, Any], sentence: str) -> None:
    columns = {"quasi_identifiers": ["a"], "sensitive": "b"}
    with pytest.raises(SpecError, match=sentence):
        parse_spec({"columns": columns, "method": {"heterogeneous": method}}, given_frame=True)


@pytest.mark.parametrize("promise", [{"l": 4, "beta": None}, {"l": None, "beta": Fraction(3)}])
def test_the_promise_says_that_insiders_are_left_out(promise: dict[str, Any]) -> None:
    for leaking in ((), ("refine",)):
        said = words.matches("occupation", leaking=leaking, **promise)
        assert said.endswith(" Nothing is promised against someone who knows other persons' values of occupation.")
