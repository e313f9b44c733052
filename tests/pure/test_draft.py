"""A draft is a spec that can be read, with every column in the role that its name and counts suggest."""

from __future__ import annotations

import pytest

from anonlib.errors import SpecError
from anonlib.spec.csv_names import check_names
from anonlib.spec.draft import ColumnFacts, TableFacts, draft, role_of, yaml_quoted
from anonlib.spec.load import parse_spec
from anonlib.spec.yaml_text import parse_yaml

FACTS = {
    "patient_id": ("bigint", 100, 0), "full_name": ("string", 99, 0), "age": ("int", 40, 3), "zip code": ("string", 40, 0),
    "born": ("date", 80, 0), "visit": ("int", 100, 0), "disease": ("string", 7, 0), "income": ("double", 100, 0),
    "remarks": ("string", 50, 0), "tags": ("array<string>", 0, 0), "no": ("boolean", 2, 0), "days": ("interval day", 3, 0),
    "odd\n#: 'x'": ("decimal(5,2)", 3, 0),
}  # fmt: skip
ROLES = {
    "patient_id": "person", "full_name": "identifiers", "age": "quasi_identifiers", "zip code": "quasi_identifiers",
    "born": "identifiers", "visit": "identifiers", "disease": "sensitive", "income": "sensitive",
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
        "age": "numeric", "zip code": "categorical", "no": "categorical", "odd\n#: 'x'": "numeric"
    }  # fmt: skip
    assert set(spec.columns.all_names) == set(FACTS)
    assert "40 distinct, 3 missing" in text
    assert "as_missing" not in text


def test_a_draft_says_what_is_left_to_choose():
    marked = ColumnFacts("a", "string", 5, 0, marks=4)
    text = draft(TableFacts(100, (marked,), SOURCE))
    assert "4 cells that look like a mark" in text
    assert "# as_missing: []" in text
    assert "# CHOOSE: no column looks like one" in text
    with pytest.raises(SpecError, match=r"columns.sensitive"):
        parse_spec(parse_yaml(text))


DOUBTFUL = {
    "patientName": ("string", 700), "KUNNR": ("decimal(10,0)", 1000), "latitude": ("double", 1000), "birthdate": ("date", 300),
    "birthYear": ("int", 60), "DOB": ("string", 300), "dateofbirth": ("string", 300), "homeLat": ("float", 90), "geo_hash": ("string", 90),
    "geohash": ("string", 90), "E-Mail": ("string", 90), "address2": ("string", 90), "creditNumber": ("bigint", 90),
    "weight": ("double", 500), "flag": ("boolean", 0), "admitted": ("timestamp", 12), "visited": ("date", 12),
    "diagnosis_text": ("string", 600), "trace": ("string", 600),
}  # fmt: skip
"""{name: (type, distinct values)} of 1,000 rows."""
PLAIN = {
    "weight": ("double", 499), "KUNNR": ("decimal(10,0)", 9), "country": ("string", 90), "latency": ("int", 12), "archive": ("string", 3),
    "zipCode": ("string", 300),
}  # fmt: skip


@pytest.mark.parametrize(("name", "facts"), DOUBTFUL.items(), ids=DOUBTFUL)
def test_what_is_doubtful_is_withheld(name, facts):
    assert role_of(ColumnFacts(name, *facts, nulls=1000 if not facts[1] else 0), 1000)[0] == "identifiers"


@pytest.mark.parametrize(("name", "facts"), PLAIN.items(), ids=PLAIN)
def test_few_values_that_many_rows_share_are_a_quasi_identifier(name, facts):
    assert role_of(ColumnFacts(name, *facts, nulls=0), 1000)[0] == "quasi_identifiers"


def test_more_values_than_categories_are_withheld_however_many_rows_there_are():
    for kind in ("int", "double", "string"):
        assert role_of(ColumnFacts("code", kind, 1001, 0), 10**6)[0] == "identifiers"
        assert role_of(ColumnFacts("code", kind, 1000, 0), 10**6)[0] == "quasi_identifiers"


def test_too_few_rows_to_tell_withhold_whatever_no_name_decides():
    assert role_of(ColumnFacts("ward", "string", 2, 0), 19) == (
        "identifiers", "19 rows with a value are too few to tell: withheld until you say what it is"
    )  # fmt: skip
    assert role_of(ColumnFacts("ward", "string", 2, 981), 1000)[0] == "identifiers"
    assert role_of(ColumnFacts("ward", "string", 2, 980), 1000)[0] == "quasi_identifiers"
    assert role_of(ColumnFacts("disease", "string", 10, 0), 10)[0] == "sensitive"


@pytest.mark.parametrize(
    "name", ["x😀", "größe", "中国", "a\u2028b", "a\u0085b", "\ufeffa", 'q"\\', "tab\t\x07", "\u007f", "yes"]
)
def test_a_name_of_a_draft_is_the_name_of_its_table(name):
    columns = (ColumnFacts(name, "string", 5, 0, marks=1), ColumnFacts("illness", "string", 5, 0))
    source = (("table", yaml_quoted(f"db.{name}")),)
    raw = parse_yaml(draft(TableFacts(100, columns, source)))
    assert raw["columns"]["quasi_identifiers"] == [{"name": name, "type": "categorical"}]
    assert raw["input"] == {"table": f"db.{name}"}
    assert parse_spec(raw).columns.all_names == (name, "illness")


def test_a_draft_of_a_csv_says_what_its_names_were_taken_from():
    assert "# The first line of the CSV is taken for the names" in draft(TableFacts(100, COLUMNS, SOURCE))
    assert "first line" not in draft(TableFacts(100, COLUMNS, (("path", "p"), ("format", "parquet"))))


CELLS = {
    "": "empty", " ": "empty", "\ufeff": "empty", "?": "a mark", "-": "a mark", "N/A": "a mark", "true": "a truth value",
    "39": "a number", " 77516": "a number", "-9": "a number", "1,234.50": "a number", "1e5": "a number", "$5": "a number",
    "12 %": "a number", "<=50K": "a number", "01234": "a number", "2020-01-31": "a date", "31.1.2020": "a date", "1/2/99": "a date",
    "12:30": "a date", "2020-01-31T10:00:00Z": "a date", "12 Mar 2020": "a date", "March 12, 2020": "a date", "ann@host.org": "an address",
    "https://host/x": "an address", "123-45-6789": "like an identifier", "+49 (30) 1234": "like an identifier",
    "50-60": "like an identifier",
    "P-00123": "like an identifier", "AB123456C": "like an identifier", "123e4567-e89b-12d3-a456-426614174000": "like an identifier",
    "d41d8cd98f00b204e9800998ecf8427e": "like an identifier", "AGE": "the same as cell 1", " age ": "the same as cell 1",
}  # fmt: skip


@pytest.mark.parametrize(("cell", "fault"), CELLS.items(), ids=range(len(CELLS)))
def test_a_first_line_that_looks_like_a_record_is_refused_without_its_cells(cell, fault):
    with pytest.raises(
        SpecError, match=f"^'people.csv': cell 2 of its first line is {fault}.*put a line of names"
    ) as raised:
        check_names(["age", cell, None], "'people.csv'")
    assert len(cell.strip()) < 5 or cell.strip() not in str(raised.value)


def test_a_cell_that_is_not_there_is_empty():
    with pytest.raises(SpecError, match="cell 2 of its first line is empty"):
        check_names(["age", None], "t")


def test_names_that_are_names():
    check_names(
        [
            "q0",
            "q1",
            "q2",
            "_1",
            "x😀",
            "icd10",
            "income_2019",
            "30_day_mortality",
            "1st visit",
            "Na",
            "中国",
            "<name>",
        ],
        "t",
    )
    check_names(
        ["\ufeffage", "zip code", "B19013_001E", "sha256", "no", "deadbeef", "Jan 2020", "e-mail", "may", "date"], "t"
    )


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
