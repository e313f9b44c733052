"""Predicates: what is accepted, what is refused and with which words, and where the two sides part."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as some

from anonlib.errors import SpecError
from anonlib.queries.predicate import Predicate, parse, parse_by_column
from anonlib.sql import literal

COLUMNS = {
    "age": "int",
    "Country": "string",
    "born": "date",
    "seen": "timestamp",
    "pay.in`cash": "decimal(10,2)",
    "smoker": "boolean",
    "tags": "array<string>",
    "illness": "string",
}


def read(text: str) -> Predicate:
    return parse(text, COLUMNS, "illness")


def x(text: str) -> str:
    return literal(text)


@pytest.mark.parametrize(
    ("text", "visible", "sensitive"),
    [
        (
            "age BETWEEN 30 AND 40 AND illness IN ('x','y')",
            "(`age` BETWEEN 30 AND 40)",
            f"(`illness` IN ({x('x')}, {x('y')}))",
        ),
        ("illness = 'x'", "TRUE", f"(`illness` = {x('x')})"),
        ("AGE = -3 and ILLNESS <> 'x'", "(`age` = -3)", f"(`illness` <> {x('x')})"),
        ("30 < age", "(`age` > 30)", "TRUE"),
        ("'x' <=> illness", "TRUE", f"(`illness` <=> {x('x')})"),
        ("age = '7'", "(`age` = 7)", "TRUE"),
        ("country IS NOT NULL AND illness IS NULL", "(NOT (`Country` IS NULL))", "(`illness` IS NULL)"),
        ("NOT (age = 1 OR age = 2)", "(NOT ((`age` = 1) OR (`age` = 2)))", "TRUE"),
        ("((age = 1) AND (illness = 'x' AND age < 5))", "(`age` = 1) AND (`age` < 5)", f"(`illness` = {x('x')})"),
        (
            "born >= DATE '2020-01-01' AND born < '2021-01-01'",
            "(`born` >= DATE'2020-01-01') AND (`born` < DATE'2021-01-01')",
            "TRUE",
        ),
        ("seen < TIMESTAMP '2020-01-01 10:00:00'", "(`seen` < CAST('2020-01-01 10:00:00' AS timestamp))", "TRUE"),
        ("`pay.in``cash` > 1.50", "(`pay.in``cash` > 1.50)", "TRUE"),
        ("smoker = TRUE", "(`smoker` = TRUE)", "TRUE"),
        ("tags IS NULL AND TRUE", "(`tags` IS NULL) AND TRUE", "TRUE"),
        ('country = "O\'Hara" -- a remark', f"(`Country` = {x(chr(79) + chr(39) + 'Hara')})", "TRUE"),
        ("age NOT IN (1, 2) OR age = 7", "((NOT (`age` IN (1, 2))) OR (`age` = 7))", "TRUE"),
        (
            "illness LIKE '428%' AND NOT country LIKE 'P%'",
            "(NOT startswith(`Country`, decode(X'50','UTF-8')))",
            "startswith(`illness`, decode(X'343238','UTF-8'))",
        ),
    ],
)
def test_accepted(text, visible, sensitive):
    parsed = read(text)
    assert (parsed.visible, parsed.sensitive) == (visible, sensitive)
    assert " AND ".join(part for part in parsed.parts if part != "TRUE") in visible


def test_parts_are_the_visible_conditions_by_the_columns_that_they_read():
    parsed = read("age > 30 AND country = 'x' AND age < 50 AND illness = 'y' AND (age = 1 OR country = 'z') AND TRUE")
    assert len(parsed.parts) == 3
    assert parsed.parts[0] == "(`age` > 30) AND (`age` < 50)"
    assert read("illness = 'y'").parts == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not a condition"),
        ("age =", "is not a condition"),
        ("age = 1; DROP TABLE t", "is not a condition"),
        ("1", "cannot stand in a predicate"),
        ("age", "cannot stand in a predicate"),
        ("upper(country) = 'X'", "'UPPER\\(country\\)' cannot stand in a predicate; what can: comparisons"),
        ("age + 1 = 2", "cannot stand in a predicate"),
        ("-age < 3", "cannot stand in a predicate"),
        ("age = age", "cannot stand in a predicate"),
        ("age IN (SELECT 1)", "cannot stand in a predicate"),
        ("EXISTS (SELECT 1)", "cannot stand in a predicate"),
        ("country LIKE '%x'", "only beginnings are read"),
        ("country LIKE 'x_%'", "only beginnings are read"),
        ("country LIKE 'x%%'", "only beginnings are read"),
        ("country LIKE illness", "cannot stand in a predicate"),
        ("country LIKE 'x%' ESCAPE '!'", "cannot stand in a predicate"),
        ("country ILIKE 'x%'", "cannot stand in a predicate"),
        ("age LIKE '3%'", "only text begins with something"),
        ("country RLIKE 'x'", "cannot stand in a predicate"),
        ("CASE WHEN age = 1 THEN TRUE END", "cannot stand in a predicate"),
        ("age = :p", "cannot stand in a predicate"),
        ("country = X'12'", "cannot stand in a predicate"),
        ("age = CAST('1' AS INT)", "cannot stand in a predicate"),
        ("weight = 1", "no column 'weight' in this release; its columns are age, Country, born"),
        ("t.age = 1", "write the column's name alone"),
        ("country = 'O''Hara'", "Spark joins adjacent strings"),
        ("age = NULL", "never true; write age IS NULL"),
        ("country = 7", "holds text; write '7' in quotes"),
        ("age = 'seven'", "'seven' is not a number, but the column 'age' holds int"),
        ("age > -1e400", "-1e400 is beyond every number that a column can hold"),
        ("age = -'7'", "cannot stand in a predicate"),
        ("born = '2020-13-01'", "not a moment"),
        ("tags = 'a'", "which holds array<string>"),
        ("smoker = 1", "which holds boolean"),
        ("age = 1 OR illness = 'x'", "mixes the sensitive column 'illness' with age"),
        ("NOT (age = 1 AND illness = 'x')", "mixes the sensitive column"),
        ("age = 1" + " " * 1_000_001, "characters"),
    ],
)
def test_refused_with_a_sentence(text, words):
    with pytest.raises(SpecError, match=words) as refusal:
        read(text)
    assert "\n" not in str(refusal.value)


def test_long_predicates_are_read_and_deep_ones_refused_without_a_crash():
    assert read(" AND ".join(["age <> 1"] * 500)).visible.count("<>") == 500
    assert read("illness IN (" + ", ".join(f"'v{i}'" for i in range(5000)) + ")").sensitive.count("decode") == 5000
    with pytest.raises(SpecError, match=r"nested too deeply|is not a condition"):
        read("NOT (" * 3000 + "age = 1" + ")" * 3000)


@given(some.text())
def test_any_string_value_survives_and_nothing_of_it_is_pasted(value):
    written = value.replace("\\", "\\\\").replace("'", "\\'")
    assert read(f"illness = '{written}'").sensitive == f"(`illness` = {x(value)})"


@given(some.text(max_size=40))
def test_any_text_is_read_or_refused_never_crashes(text):
    with contextlib.suppress(SpecError):
        read(text)


TREE = {"illness": [["flu", "lungs", "any"], ["asthma", "lungs", "any"], ["gout", "joints", "any"]]}


def test_a_node_stands_for_its_leaves():
    def sensitive(text):
        return parse(text, COLUMNS, "illness", TREE).sensitive

    assert sensitive("illness IN NODE 'lungs'") == sensitive("illness IN ('flu', 'asthma')")
    assert sensitive("NOT illness in node 'lungs'") == sensitive("illness NOT IN ('flu', 'asthma')")
    assert sensitive("illness NOT IN NODE 'lungs'") == sensitive("NOT illness IN ('flu', 'asthma')")
    assert sensitive("illness IN NODE 'gout' OR illness IN NODE 'any'") == sensitive(
        "illness IN ('gout') OR illness IN ('flu', 'asthma', 'gout')"
    )
    assert sensitive("illness IN ('in node x')") == f"(`illness` IN ({literal('in node x')}))"
    by_column = parse_by_column("illness IN NODE 'lungs' AND age > 3", COLUMNS, TREE)
    assert by_column["illness"].over("element", "string") == f"(`element` IN ({literal('flu')}, {literal('asthma')}))"


def test_nodes_that_a_release_has_not_are_refused_by_name():
    with pytest.raises(SpecError, match=r"the hierarchy of 'illness' has no node 'lugns' \(did you mean 'lungs'\?\)"):
        parse("illness IN NODE 'lugns'", COLUMNS, "illness", TREE)
    with pytest.raises(SpecError, match="no hierarchy of 'age', so IN NODE cannot be read; it has one of illness"):
        parse("age IN NODE 'old'", COLUMNS, "illness", TREE)
    with pytest.raises(SpecError, match="no hierarchy of 'illness', so IN NODE cannot be read; write IN"):
        parse_by_column("illness IN NODE 'lungs'", COLUMNS)
    with pytest.raises(SpecError, match="illness IN NODE 'lungs' OR age = 3\" mixes the sensitive column"):
        parse("illness IN NODE 'lungs' OR age = 3", COLUMNS, "illness", TREE)
