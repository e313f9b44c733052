"""A draft is a spec that can be read, with every column in the role that its name and counts suggest."""

from __future__ import annotations

import pytest

from anonlib.errors import SpecError
from anonlib.spec.draft import ColumnFacts, TableFacts, draft, role_of
from anonlib.spec.load import parse_spec
from anonlib.spec.yaml_text import parse_yaml

FACTS = {
    "patient_id": ("bigint", 100, 0), "full_name": ("string", 99, 0), "age": ("int", 60, 3), "zip code": ("string", 40, 0),
    "born": ("date", 80, 0), "visit": ("int", 100, 0), "disease": ("string", 7, 0), "income": ("double", 100, 0),
    "remarks": ("string", 50, 0), "tags": ("array<string>", 0, 0), "no": ("boolean", 2, 0), "days": ("interval day", 3, 0),
    "odd\n#: 'x'": ("decimal(5,2)", 3, 0),
}  # fmt: skip
ROLES = {
    "patient_id": "person", "full_name": "identifiers", "age": "quasi_identifiers", "zip code": "quasi_identifiers",
    "born": "quasi_identifiers", "visit": "identifiers", "disease": "sensitive", "income": "sensitive",
    "remarks": "identifiers", "tags": "identifiers", "no": "quasi_identifiers", "days": "identifiers",
    "odd\n#: 'x'": "quasi_identifiers",
}  # fmt: skip
COLUMNS = tuple(ColumnFacts(name, kind, distinct, nulls) for name, (kind, distinct, nulls) in FACTS.items())
SOURCE = (("path", '"data/p.csv"'), ("format", "csv"))


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_the_role_that_a_column_seems_to_have(column):
    assert role_of(column, 100)[0] == ROLES[column.name]


def test_a_draft_is_a_spec():
    text = draft(TableFacts(100, COLUMNS, SOURCE))
    spec = parse_spec(parse_yaml(text))
    assert spec.columns.person == ("patient_id",)
    assert spec.columns.sensitive_names == ("disease",)
    assert "income" in spec.columns.identifiers  # a second that looks sensitive is withheld, not published
    assert {c.name: c.type for c in spec.columns.quasi_identifiers} == {
        "age": "numeric", "zip code": "categorical", "born": "numeric", "no": "categorical", "odd\n#: 'x'": "numeric"
    }  # fmt: skip
    assert set(spec.columns.all_names) == set(FACTS)
    assert "60 distinct, 3 missing" in text
    assert "as_missing" not in text


def test_a_draft_says_what_is_left_to_choose():
    marked = ColumnFacts("a", "string", 5, 0, marks=4)
    text = draft(TableFacts(100, (marked,), SOURCE))
    assert "4 cells that look like a mark" in text
    assert "# as_missing: []" in text
    assert "# CHOOSE: no column looks like one" in text
    with pytest.raises(SpecError, match=r"columns.sensitive"):
        parse_spec(parse_yaml(text))


def test_a_few_rows_make_no_identifier():
    assert role_of(ColumnFacts("ward", "string", 10, 0), 10)[0] == "quasi_identifiers"


def columns(**changes):
    base = {"quasi_identifiers": ["age"], "sensitive": "illness"}
    return {
        "input": {"path": "t"}, "output": {"path": "r"}, "columns": base | changes, "method": {"anatomy": {"l": 2}}
    }  # fmt: skip


def test_the_rest_withheld():
    spec = parse_spec(
        columns(identifiers="rest", person="id") | {"persons": {"repeated": "latest", "order": "admitted"}}
    )
    assert spec.columns.withholds_rest
    assert spec.columns.all_names == ("age", "illness", "id")
    assert spec.used_columns == ["age", "illness", "id", "admitted"]
    assert not parse_spec(columns(identifiers=["rest"])).columns.withholds_rest  # a column of that name


@pytest.mark.parametrize(("given", "words"), [("name", "or rest for all"), ([1], r"identifiers\[0\]: 1 is not text")])
def test_identifiers_that_are_no_list(given, words):
    with pytest.raises(SpecError, match=words):
        parse_spec(columns(identifiers=given))
