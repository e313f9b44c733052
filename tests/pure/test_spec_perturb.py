"""The parameters of small domain randomization: what may be written, and what a fault says."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from anonlib.errors import SpecError
from anonlib.spec import parse_spec
from anonlib.spec.methods.perturb import Perturb


def spec(**parameters: Any) -> dict[str, Any]:
    return {
        "input": {"path": "a"},
        "output": {"path": "b"},
        "columns": {"quasi_identifiers": ["age"], "sensitive": "illness"},
        "method": {"perturb": parameters},
    }


def method(**parameters: Any) -> Perturb:
    found = parse_spec(spec(**parameters)).method
    assert isinstance(found, Perturb)
    return found


def test_numbers_stay_exact_and_defaults_are_filled_in() -> None:
    found = method(rho1="1/13", rho2="0.29")
    assert (found.rho1, found.rho2, found.delta) == (Fraction(1, 13), Fraction(29, 100), Fraction(1, 20))
    assert (found.partitioning, found.merging) == ("small_domain", "search")
    assert found.to_public_dict()["rho1"] == "1/13"
    assert method(rho2="1/6", partitioning="whole").merging is None
    assert method(rho2="1/6").rho1 is None


@pytest.mark.parametrize("partitioning", ["small_domain", "whole"])
def test_the_public_parameters_build_the_same_method_again(partitioning: str) -> None:
    found = method(rho1="1/13", rho2="1/6", delta="0.01", partitioning=partitioning)
    assert method(**found.to_public_dict()) == found


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "method.perturb.rho2: missing; add the bound"),
        ({"rho2": 0.5}, "is a binary float"),
        ({"rho2": "1"}, "method.perturb.rho2: a belief of 1 is no bound"),
        ({"rho2": "1.5"}, "method.perturb.rho2: "),
        ({"rho2": "1/6", "rho1": "1/6"}, "method.perturb.rho1: 1/6 is not below rho2 = 1/6"),
        ({"rho2": "1/6", "delta": "1"}, "method.perturb.delta: a bound that always fails"),
        ({"rho2": "1/6", "partitioning": "wholly"}, "(did you mean whole?)"),
        ({"rho2": "1/6", "partitioning": "whole", "merging": "search"}, "method.perturb.merging: the whole table"),
        (
            {"rho2": "1/6", "memoize": "true"},
            "method.perturb.memoize: nobody is published again, also not with the same noise",
        ),
        ({"rho2": "1/6", "gamma": 5}, "method.perturb.gamma: no such key"),
    ],
)
def test_a_fault_says_what_and_how_to_mend_it(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_spec(spec(**parameters))
    assert words in str(refused.value)


def test_a_column_of_the_layouts_name_is_refused() -> None:
    given = spec(rho2="1/6")
    given["columns"]["other"] = ["SubTable"]
    with pytest.raises(SpecError, match="'SubTable' is a column that the release adds itself"):
        parse_spec(given)
