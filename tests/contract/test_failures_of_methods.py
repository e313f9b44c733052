"""Bad input is refused by every method alike: the right exit code, a sentence that says how to mend it, nothing at the output path."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.door import people, with_column

pytestmark = pytest.mark.spark

METHODS = {
    "perturb": {"rho2": "1/3"},
    "heterogeneous": {"l": 3},
    "sabre": {"t": "0.4", "k": 3},
    "mondrian": {"frequency_l": 3},
    "nh": {"l": 3},
    "burel": {"beta": 2},
    "t_incognito": {"t": "0.5", "k": 3},
}
GENERALIZING = [name for name in METHODS if name != "perturb"]
BOUND_ON_A_VALUE = ["perturb", "heterogeneous", "mondrian", "nh"]


def refused(door, method: str, table: pa.Table, code: int, *words: str, **changes) -> None:
    columns = {"quasi_identifiers": [{"name": "age", "type": "numeric"}, "country"], "sensitive": "illness"}
    columns["other" if method == "perturb" else "identifiers"] = ["note"]
    door.run(table, columns=columns | changes, method={method: METHODS[method]}).refused(code, *words)


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_table(door, method):
    refused(door, method, people(0), 2, "the table is empty", "nothing to publish")


@pytest.mark.parametrize("method", METHODS)
def test_a_missing_sensitive_value(door, method):
    table = with_column(people(), "illness", [None, *people()["illness"].to_pylist()[1:]])
    refused(door, method, table, 2, "column 'illness'", "1 rows", "missing: {sensitive: drop}")


@pytest.mark.parametrize("method", METHODS)
def test_a_number_given_as_text(door, method):
    refused(door, method, with_column(people(), "age", [str(i) for i in range(60)]), 2, "column 'age'", "numeric")


@pytest.mark.parametrize("method", GENERALIZING)
@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_a_number_that_no_interval_can_stand_for(door, method, value):
    table = with_column(people(), "age", [value, *(30.0 + i for i in range(59))], pa.float64())
    refused(door, method, table, 2, "column 'age'", "interval", "mend" if value == float("inf") else "drop")


@pytest.mark.parametrize("method", GENERALIZING)
def test_a_column_that_would_be_published_unchanged(door, method):
    refused(door, method, people(), 2, "note", other=["note"], identifiers=[])


@pytest.mark.parametrize("method", BOUND_ON_A_VALUE)
def test_a_value_more_frequent_than_the_bound_allows(door, method):
    refused(
        door,
        method,
        with_column(people(), "illness", ["flu"] * 50 + ["HIV"] * 10),
        3,
        "illness" if method == "heterogeneous" else "flu",
    )


@pytest.mark.parametrize("method", GENERALIZING)
@pytest.mark.parametrize("name", ["ec_id", "age_min"])
def test_names_that_the_release_needs(door, method, name):
    """`ec_id` is a column of the release; `age_min` would be published twice, for itself and for the column `age`."""
    table = with_column(people(), name, ["a", "b"] * 30)
    refused(
        door,
        method,
        table,
        2,
        repr(name),
        "rename",
        quasi_identifiers=[{"name": "age", "type": "numeric"}, "country", name],
    )
