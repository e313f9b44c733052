"""What heterogeneous generalization may be asked for, and the sentence that says what not."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from anonlib import words as sentences
from anonlib.audit.promised import generalized
from anonlib.errors import SpecError
from anonlib.methods.heterogeneous import words
from anonlib.spec.load import parse_spec
from anonlib.spec.methods.heterogeneous import Heterogeneous


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
        ({"l": 3, "remainder": "dummy"}, "under l buckets always come out even, .* leave it out"),
        ({"l": 3, "remainder": "suppress"}, "under l buckets always come out even"),
        ({"beta": 3, "remainder": "pool"}, "dummy"),
    ],
)
def test_a_bad_parameter_is_named(method: dict[str, Any], sentence: str) -> None:
    columns = {"quasi_identifiers": ["a"], "sensitive": "b"}
    with pytest.raises(SpecError, match=sentence):
        parse_spec({"columns": columns, "method": {"heterogeneous": method}}, given_frame=True)


@pytest.mark.parametrize("promise", [{"l": 4, "beta": None}, {"l": None, "beta": Fraction(3)}])
def test_the_promise_says_that_insiders_are_left_out(promise: dict[str, Any]) -> None:
    for leaking in ((), ("refine",)):
        said = sentences.matches("occupation", leaking=leaking, **promise)
        assert said.endswith(" Nothing is promised against someone who knows other persons' values of occupation.")


def test_what_a_remainder_gives_up_is_said_where_one_is_asked_for() -> None:
    """By default nothing is left over; the paper's buckets are asked for by name, and the guarantee says against whom they do not hold."""
    assert Heterogeneous(beta=2).remainder is None
    assert "does not hold" not in words("illness", Heterogeneous(beta=2))
    for remainder, what in (("dummy", "made up"), ("suppress", "left out")):
        said = words("illness", Heterogeneous(beta=2, remainder=remainder))
        assert (
            f"who knows who matches whom and how often each value occurs, which tells the values that were {what} (remainder)"
            in said
        )
    far = Heterogeneous(l=3, far_apart=True, remainder="suppress", allow_minimality_leak=True)
    assert "remainder" not in words("illness", far)


def test_the_audit_says_the_same_of_a_remainder() -> None:
    for remainder in (None, "dummy", "suppress"):
        wanted = Heterogeneous(beta="1.5", remainder=remainder)
        part = SimpleNamespace(sensitive="illness", asked={"beta": "3/2"})
        method = SimpleNamespace(name="heterogeneous", parameters=wanted.to_public_dict())
        assert generalized(SimpleNamespace(method=method), part, classes=False) == words("illness", wanted)
