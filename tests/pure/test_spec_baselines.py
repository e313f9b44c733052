"""What a spec may ask of the baselines, and what each fault says."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from anonlib.errors import SpecError
from anonlib.spec.load import parse_spec


def method(given: dict[str, Any], **columns: Any) -> Any:
    spec = {
        "input": {"path": "t"},
        "output": {"path": "r"},
        "columns": {"quasi_identifiers": ["age"], "sensitive": "illness", **columns},
        "method": given,
    }
    return parse_spec(spec).method


def test_numbers_stay_exact() -> None:
    asked = method({"mondrian": {"k": "10", "beta": "0.29", "t": "1/3", "partition_size": "all"}})
    assert (asked.k, asked.beta, asked.t, asked.partition_size) == (10, Fraction(29, 100), Fraction(1, 3), "all")
    assert asked.to_public_dict() == {
        "k": 10,
        "beta": "0.29",
        "t": "1/3",
        "cuts": "strict",
        "partition_size": "all",
    }
    assert method({"nh": {"l": 3, "partition_size": 50}}).partition_size == 50
    assert method({"burel": {"beta": 0, "refine": "false"}}).refine is False
    assert method({"t_incognito": {"t": "0.35"}}).k == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"mondrian": {}},
            "method.mondrian: nothing is promised; give one or more of k, distinct_l, frequency_l, beta",
        ),
        (
            {"mondrian": {"beta": 1, "enhanced_beta": 1}},
            "enhanced_beta: beta and enhanced_beta are two bounds of one kind",
        ),
        ({"mondrian": {"k": 0}}, "method.mondrian.k: 0 is too small"),
        ({"mondrian": {"k": 2, "l": 3}}, "method.mondrian.l: no such key"),
        ({"mondrian": {"t": 0.5}}, "is a binary float"),
        ({"mondrian": {"t": 1}}, "write a number above 0 and below 1"),
        ({"mondrian": {"k": 2, "cuts": "loose"}}, "'loose' is no choice here; write one of strict, relaxed"),
        (
            {"mondrian": {"k": 2, "partition_size": 0}},
            "partition_size: 0 is no number of records; write e.g. 100000, or all",
        ),
        ({"mondrian": {"k": 2, "partition_size": "most"}}, "'most' is no number of records"),
        ({"nh": {}}, "method.nh.l: missing; add how many records"),
        ({"nh": {"l": 1}}, "1 is too small; write a whole number of at least 2"),
        ({"burel": {"beta": "-1"}}, "-1 is negative"),
        ({"t_incognito": {"k": 6}}, "method.t_incognito.t: missing"),
        ({"t_incognito": {"t": 0}}, "is no distance to keep"),
    ],
)
def test_each_fault_says_how_to_mend_it(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError) as refused:
        method(given)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "given", [{"mondrian": {"k": 2}}, {"nh": {"l": 2}}, {"burel": {"beta": 1}}, {"t_incognito": {"t": "0.5"}}]
)
def test_no_column_is_published_unchanged_and_no_name_is_taken_twice(given: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="'note' would stand unchanged beside generalized columns"):
        method(given, other=["note"])
    with pytest.raises(SpecError, match="'ec_id' is a column that the release adds itself"):
        method(given, quasi_identifiers=["ec_id"])
