"""Bad input is refused by every method alike: the right exit code, a sentence that says how to mend it, nothing at the output path."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from anonlib.spec import METHODS
from anonlib.spec.layouts import RULES
from tests.contract.methods import asked, over, publishes_other
from tests.contract.tables import SENSITIVE
from tests.door import people, with_column

pytestmark = pytest.mark.spark

GENERALIZING = [name for name in METHODS if not publishes_other(name)]
AGE = {"name": "age", "type": "numeric"}


def columns(method: str, **changes: Any) -> dict[str, Any]:
    beside = "identifiers" if method in GENERALIZING else "other"
    return {"quasi_identifiers": [AGE, "country"], "sensitive": "illness", beside: ["note"]} | changes


def refused(door: Any, method: str, table: pa.Table, code: int, *words: str, **changes: Any) -> None:
    door.run(table, columns=columns(method, **changes), method=asked(method)).refused(code, *words)


@over("bad input")
def test_an_empty_table_a_missing_value_and_a_number_as_text(door, method):
    refused(door, method, people(0), 2, "the table is empty", "nothing to publish")
    table = with_column(people(), "illness", [None, *people()["illness"].to_pylist()[1:]])
    refused(door, method, table, 2, "column 'illness'", "1 rows", "missing: {sensitive: drop}")
    table = with_column(people(), "age", [str(i) for i in range(60)])
    refused(door, method, table, 2, "column 'age'", "numeric")


@over("a value more frequent than the bound")
def test_a_value_more_frequent_than_the_bound_allows(door, method):
    """Or the promise bounds no shares of the table, and the audit finds it kept."""
    table = with_column(people(), "illness", ["flu"] * 50 + ["HIV"] * 10)
    outcome = door.run(table, columns=columns(method), method=asked(method))
    if outcome.code == 0:
        assert outcome.published().manifest.audit.passed
    else:
        outcome.refused(3, "illness" if method == "heterogeneous" else "flu")


@over("a number that no interval can stand for", *GENERALIZING)
def test_a_number_that_no_interval_can_stand_for(door, method):
    """One kind of number, and for SABRE all: the domains of every method that generalizes are read by one function."""
    for value in (None, float("nan"), float("inf")) if method == "sabre" else (None,):
        table = with_column(people(60, SENSITIVE), "age", [value, *(30.0 + i for i in range(59))], pa.float64())
        refused(door, method, table, 2, "column 'age'", "interval", "mend" if value == float("inf") else "drop")


@over("columns that would be published unchanged", *GENERALIZING)
def test_a_column_that_would_be_published_unchanged(door, method):
    refused(door, method, people(), 2, "note", other=["note"], identifiers=[])


@over("names that the release needs")
def test_names_that_the_release_needs(door, method):
    for name in RULES[METHODS[method].layout].reserved:
        table = with_column(people(), name, ["a", "b"] * 30)
        refused(door, method, table, 2, repr(name), "rename", quasi_identifiers=[AGE, "country", name])


@over("names that boxes need", "mondrian")
def test_names_that_boxes_need(door, method):
    """`age_min` would be published twice, for itself and for the column `age`."""
    table = with_column(people(), "age_min", ["a", "b"] * 30)
    refused(door, method, table, 2, "'age_min'", "rename", quasi_identifiers=[AGE, "country", "age_min"])
