"""How the contract suites call each method, and which suite does not hold for one.

Every suite runs over `anonlib.spec.METHODS`. A method's parameters are those of its example, `conf/releases/census-NAME.yaml`, so that a
method which joins is run by all of them without a line here, when its example suits 240 records and twenty sensitive values.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anonlib import workflow
from anonlib.methods.recipe import Recipe, TwoFunctions
from anonlib.spec import METHODS
from anonlib.spec.layouts import RULES
from anonlib.spec.yaml_text import parse_yaml
from tests.thorough import some

EXAMPLES = Path(__file__).resolve().parents[2] / "conf" / "releases"
PARTITION_SIZE = 60
"""Several partitions of the suites' tables for every method that works in partitions."""

INSTEAD: dict[str, dict[str, Any]] = {
    # four examples show it, none of them for small tables
    "bucketize": {"privacy": {"l": 3}, "solver": "two_size", "max_bucket_size": 20},
    # under its example's rho2 a small table is one sub-table
    "perturb": {"rho2": "1/4"},
}
"""Parameters where a method's example does not suit small tables."""

IN_DEPTH = ("bucketize", "perturb", "sabre")
"""One of each layout."""

EXCEPT: dict[tuple[str, str], str] = {}
"""{(suite, method): why the suite cannot hold for the method}; a test that is left out for it is a skip with this reason."""


def missing_examples() -> list[str]:
    """The methods that no suite could run."""
    return [name for name in METHODS if name not in INSTEAD and not example(name).exists()]


def example(name: str) -> Path:
    """The release spec in conf/ that shows the method `name`."""
    return EXAMPLES / f"census-{name.replace('_', '-')}.yaml"


def asked(name: str, partition_size: int = PARTITION_SIZE) -> dict[str, Any]:
    """The method part of a spec, {name: parameters}: numbers as the text that stands in the example."""
    parameters = INSTEAD.get(name)
    if parameters is None:
        parameters = parse_yaml(example(name).read_text(encoding="utf-8"))["method"][name]
    if "partition_size" in METHODS[name].model_fields:
        parameters = parameters | {"partition_size": partition_size}
    return {name: parameters}


ONE_OF_EACH_LAYOUT = ("bucketize", "perturb", "heterogeneous")
"""Of the generalized layout the method with most random draws."""

AT_EVERY_CHANGE = ONE_OF_EACH_LAYOUT
"""The suites run over every method at night. For SABRE see `tests/engine/test_sabre.py` too, for baselines `test_baselines.py`."""


def over(suite: str, *methods: str, every_spark: bool = False) -> pytest.MarkDecorator:
    """Runs a test over every method (or over those named, which must stand for all: say why beside it); `suite` is its name in `EXCEPT`.

    Over `AT_EVERY_CHANGE` of them where it is not night. every_spark : on Spark 3.5 too, then over one method of each layout.
    """
    everything = methods or tuple(METHODS)
    now = some(everything, *([name for name in everything if name in AT_EVERY_CHANGE] or everything))
    return pytest.mark.parametrize("method", [_method(suite, name, every_spark) for name in now])


def _method(suite: str, name: str, every_spark: bool) -> Any:
    marks = [pytest.mark.every_spark] if every_spark and name in ONE_OF_EACH_LAYOUT else []
    if reason := EXCEPT.get((suite, name)):
        marks.append(pytest.mark.skip(reason=f"{suite}, {name}: {reason}"))
    return pytest.param(name, marks=marks)


def elsewhere(kind: str) -> list[str]:
    """The methods that are made again in sessions of another kind, which takes a quarter of a minute each.

    All of them in nightly runs; at every change one that works on ranked records, in a troubled session. Of one that
    works on partitions `tests/engine/test_heterogeneous.py` sees that the key and the table alone decide.
    """
    return some(METHODS, *("bucketize",) if kind == "troubled" else ONE_OF_EACH_LAYOUT)


def recipe_of(name: str) -> Recipe[Any]:
    """The recipe that `anonlib.workflow` takes for the method `name`."""
    return workflow.RECIPES[METHODS[name]]


def replace_recipe(monkeypatch: pytest.MonkeyPatch, name: str, publish: Callable[..., Any]) -> None:
    """`publish` in the place of what the method's recipe publishes by."""
    monkeypatch.setitem(workflow.RECIPES, METHODS[name], TwoFunctions(publish, recipe_of(name).explain))


def publishes_other(name: str) -> bool:
    """Whether the method publishes columns as they are."""
    return RULES[METHODS[name].layout].publishes_other


def in_depth(name: str) -> bool:
    """Whether the method stands for its layout, and is given a column of every type.

    All methods of a layout read and publish columns by the same code; the others get a number, an instant and a text.
    """
    return name in IN_DEPTH
