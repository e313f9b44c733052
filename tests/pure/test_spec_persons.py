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


LEDGER = {"path": "private/ledger", "key": "env:LEDGER_KEY"}


def test_a_ledger_skips_who_is_known_and_does_not_wait() -> None:
    ledger = parse_spec(spec(ledger=LEDGER)).ledger
    assert ledger is not None
    assert (ledger.known, ledger.wait, ledger.path) == ("skip", False, "private/ledger")
    assert "private" not in str(parse_spec(spec(ledger=LEDGER)).to_public_dict())


SECRET = "dd7eba842bcdb39ba7f51ffb8518900642d7903dd740ec557ed00549a0841a7b"
THETA = {"bucketize": {"privacy": {"theta": 8, "shares": "ledger"}}}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (spec([], ledger=LEDGER), "ledger: nothing says whose a row is; name the column under columns.person"),
        (spec(ledger={"path": "p"}), "ledger: key is missing; write e.g. ledger:"),
        (spec(ledger={"key": "env:K"}), "ledger: path is missing"),
        (spec(ledger="private"), "ledger: this is not a mapping"),
        (spec(ledger=LEDGER | {"knwon": "skip"}), "ledger: 1 of the keys here do not exist (did you mean known?)"),
        (spec(ledger=LEDGER | {SECRET: "x"}), "ledger: 1 of the keys here do not exist"),
        (spec(ledger=LEDGER | {"key": SECRET}), "ledger.key: write where the ledger's key lies"),
        (spec(ledger=LEDGER | {"known": "keep"}), "ledger.known: 'keep' is no choice here; write one of skip, error"),
        (spec(ledger=LEDGER | {"wait": "maybe"}), "ledger.wait: 'maybe' is neither true nor false"),
        (spec(ledger=LEDGER, random={"key": "env:LEDGER_KEY"}), "ledger.key: this is the release key too"),
        (spec(ledger=LEDGER | {"path": "out/ledger"}), "ledger.path: 'out/ledger' and output.path 'out' overlap"),
        (spec(ledger=LEDGER | {"path": "in.parquet/ledger"}), "overlaps with the input at 'in.parquet'"),
        (spec(method=THETA), "method.bucketize.privacy.shares: there is no ledger to take shares of"),
        (spec(ledger=LEDGER, method={"bucketize": {"privacy": {"l": 3, "shares": "ledger"}}}), "only with theta"),
    ],
)  # fmt: skip
def test_what_is_refused_of_a_ledger(asked: Any, words: str) -> None:
    said = refusal(asked)
    assert words in said
    assert SECRET not in said


def test_shares_of_the_ledger() -> None:
    assert parse_spec(spec(ledger=LEDGER, method=THETA)).method.shares_of_ledger
    assert not parse_spec(spec(ledger=LEDGER)).method.shares_of_ledger
