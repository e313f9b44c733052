"""`columns.person` and `persons`: what is read, and what each fault says."""

from __future__ import annotations

from typing import Any

import pytest

from anonlib.errors import SpecError
from anonlib.spec import parse_spec


def spec(person: Any = "ssn", persons: Any = None, **changed: Any) -> dict[str, Any]:
    columns = {"quasi_identifiers": ["age"], "sensitive": "job", "identifiers": ["admitted"], "person": person}
    asked = {
        "input": {"path": "in.parquet"},
        "output": {"path": "out"},
        "columns": columns,
        "method": {"anatomy": {"l": 3}},
    }
    return asked | ({} if persons is None else {"persons": persons}) | changed


def refusal(asked: Any) -> str:
    with pytest.raises(SpecError) as caught:
        parse_spec(asked)
    return str(caught.value)


def test_one_column_or_several() -> None:
    assert parse_spec(spec()).columns.person == ("ssn",)
    assert parse_spec(spec(["country_of_birth", "number"])).columns.person == ("country_of_birth", "number")
    assert parse_spec(spec([])).columns.person == ()


def test_by_default_several_rows_of_a_person_are_refused() -> None:
    assert parse_spec(spec()).persons.repeated == "error"
    assert parse_spec(spec()).missing.person == "error"


def test_the_person_is_in_no_public_record() -> None:
    told = parse_spec(spec(persons={"repeated": "latest", "order": "admitted"})).to_public_dict()
    assert "ssn" not in str(told)
    assert "admitted" not in str(told)
    assert told["missing"]["person"] == "error"


def test_without_persons_nothing_is_told_of_them() -> None:
    assert "person" not in parse_spec(spec([])).to_public_dict()["missing"]


def test_what_must_be_readable() -> None:
    ordered = parse_spec(spec(persons={"repeated": "first", "order": "Admitted"}))
    assert set(ordered.used_columns) == {"age", "job", "ssn", "admitted"}
    assert set(parse_spec(spec()).used_columns) == {"age", "job", "ssn"}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (spec(persons={"repeated": "first"}), "persons.order: first by which column? rows have no order of their own"),
        (spec(persons={"repeated": "latest"}), "persons.order: latest by which column?"),
        (spec(persons={"repeated": "random", "order": "admitted"}), "persons.order: random makes no use of an order"),
        (spec(persons={"order": "admitted"}), "persons.order: error makes no use of an order"),
        (spec(persons={"repeated": "last"}), "persons.repeated: 'last' is no choice here; write one of error, first, latest"),
        (spec(persons={"repeated": "latest", "order": "date"}), "persons.order: 'date' is named nowhere under columns"),
        (spec(persons={"repeated": "latest", "order": "JOB"}), "persons.order: 'JOB' is sensitive"),
        (spec(persons={"repeated": "latest", "order": "ssn"}), "persons.order: 'ssn' is the same in all rows of a person"),
        (spec([], persons={"repeated": "random"}), "persons: nothing says whose a row is"),
        (spec([], missing={"person": "drop"}), "missing.person: columns.person names nobody"),
        (spec(missing={"person": "keep"}), "missing.person: 'keep' is no choice here"),
        (spec("age"), "columns.person: 'age' is already named under quasi_identifiers"),
        (spec("ADMITTED"), "'ADMITTED' is already named under identifiers as 'admitted'"),
        (spec(7), "columns.person: 7 is not a list of column names"),
        (spec(persons="latest"), "persons: 'latest' is not a mapping; its keys are repeated, order"),
    ],
)  # fmt: skip
def test_what_is_refused(asked: Any, words: str) -> None:
    assert words in refusal(asked)
