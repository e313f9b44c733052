"""Hierarchies that a rule makes of the values that occur, and the sentences for rules that cannot be."""

from __future__ import annotations

import pytest

from anonlib.errors import SpecError
from anonlib.hierarchy import Hierarchy
from anonlib.spec.hierarchy_rules import HierarchyRule
from anonlib.spec.load import parse_spec


def columns(hierarchy, **column):
    age = {"name": "age", "hierarchy": hierarchy} | column
    base = {"input": {"path": "t"}, "output": {"path": "r"}, "method": {"mondrian": {"k": 2}}}
    return parse_spec(
        base | {"columns": {"quasi_identifiers": [age], "sensitive": "illness"}}
    ).columns.quasi_identifiers[0]


MADE = {
    "intervals": (
        {"intervals": ["5", 10]},
        ["-3", "4", "23", "9", "100"],
        [["-3", "-5..-1", "-10..-1", "*"], ["4", "0..4", "0..9", "*"], ["9", "5..9", "0..9", "*"],
         ["23", "20..24", "20..29", "*"], ["100", "100..104", "100..109", "*"]],
    ),
    "dates": (
        {"dates": ["day", "month", "quarter", "year", "decade"]},
        ["2026-11-29", "1999-12-31", "2026-10-01"],
        [["1999-12-31", "1999-12", "1999-Q4", "1999", "1990s", "*"], ["2026-10-01", "2026-10", "2026-Q4", "2026", "2020s", "*"],
         ["2026-11-29", "2026-11", "2026-Q4", "2026", "2020s", "*"]],
    ),
    "years alone": ({"dates": ["year"]}, ["2026-11-29"], [["2026-11-29", "2026", "*"]]),
    "codes": (
        {"prefix": [3, 1]},
        ["30131", "30", "3", "405"],
        [["3", "3__**", "3****", "*"], ["30", "30_**", "3****", "*"], ["30131", "301**", "3****", "*"], ["405", "405**", "4****", "*"]],
    ),
    "codes of one length": ({"prefix": [3, 1]}, ["AB1", "AC2"], [["AB1", "AB1", "A**", "*"], ["AC2", "AC2", "A**", "*"]]),
}  # fmt: skip


@pytest.mark.parametrize("kind", MADE)
def test_the_hierarchy_of_a_rule(kind):
    rule, values, rows = MADE[kind]
    tree = columns(rule).hierarchy_over(values)
    assert tree.rows == rows
    assert tree.source.startswith("{")


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({}, "made by one rule"),
        ({"intervals": [5], "dates": ["year"]}, "made by one rule"),
        ({"interval": [5]}, r"hierarchy.interval: no such rule \(did you mean intervals\?\)"),
        ({"intervals": []}, "is not a list of steps"),
        ({"intervals": 5}, "is not a list of steps"),
        ({"intervals": [5, 12]}, "12 is not made of whole intervals of 5"),
        ({"intervals": [10, 10]}, "not made of whole intervals"),
        ({"intervals": [1, 5]}, "width 1 is the value itself"),
        ({"intervals": [5, "x"]}, r"intervals\[1\]: 'x' is not a whole number"),
        ({"prefix": [1, 3]}, "3 characters are not fewer than 1"),
        ({"prefix": [0]}, r"prefix\[0\]: 0 is not a whole number of at least 1"),
        ({"dates": ["day", "months"]}, r"dates\[1\]: 'months' is no part of a date \(did you mean month\?\)"),
        ({"dates": ["year", "month"]}, "the parts do not go up"),
        ({"dates": ["day"]}, "a day is the value itself"),
    ],
)
def test_a_rule_that_cannot_be(rule, words):
    with pytest.raises(SpecError, match=words):
        columns(rule)


@pytest.mark.parametrize(
    ("rule", "values", "words"),
    [
        ({"intervals": [5]}, ["5", "05"], "'05' is not a whole number"),
        ({"intervals": [5]}, ["1.5"], "'1.5' is not a whole number"),
        ({"dates": ["year"]}, ["2026-11"], "'2026-11' is not a date"),
        ({"dates": ["year"]}, ["2026-02-30"], "'2026-02-30' is no day of the calendar"),
        ({"prefix": [1]}, ["a", ""], "is empty or has a"),
        ({"prefix": [1]}, ["a*"], "is empty or has a"),
        ({"prefix": [1]}, [], "has no value to stand over"),
    ],
)
def test_values_that_a_rule_has_no_place_for(rule, values, words):
    with pytest.raises(SpecError, match=words):
        columns(rule).hierarchy_over(values)


def test_a_file_stays_what_it_was(tmp_path):
    (tmp_path / "h.csv").write_text("flu,any\ncold,any\n", encoding="utf-8")
    column = columns(str(tmp_path / "h.csv"))
    assert isinstance(column.hierarchy, Hierarchy)
    assert column.hierarchy_over(["flu"]) is column.hierarchy is column.told_hierarchy
    assert columns({"prefix": [1]}).told_hierarchy is None
    assert columns({"prefix": [1]}).hierarchy == HierarchyRule("prefix", (1,))
    with pytest.raises(SpecError, match="a numeric column is generalized to ranges"):
        columns({"intervals": [5]}, type="numeric")


def test_a_method_that_bounds_nodes_takes_no_rule():
    base = {"input": {"path": "t"}, "output": {"path": "r"}, "method": {"bucketize": {"privacy": {"l": 2}}}}
    illness = {"name": "illness", "hierarchy": {"prefix": [3, 1]}}
    with pytest.raises(SpecError, match="bucketize bounds nodes that are known before the table is; name a CSV file"):
        parse_spec(base | {"columns": {"quasi_identifiers": ["age"], "sensitive": illness}})
