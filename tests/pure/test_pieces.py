"""Conditions as sets of numbers: against trying every number."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
import sqlglot
from sqlglot import exp

from anonlib.errors import SpecError
from anonlib.queries.pieces import NumberSet, number_set

OPERATORS = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
NUMBERS = [Fraction(k, 2) for k in range(-4, 26)]


def parsed(text: str):
    return sqlglot.parse_one(text, dialect="spark", into=exp.Condition)


def holds(found: NumberSet, number: Fraction) -> bool:
    return any(
        (p.low < number or (p.low == number and p.low_in)) and (number < p.high or (number == p.high and p.high_in))
        for p in found.pieces
    )


@pytest.mark.parametrize(
    ("zone", "hours"),
    [("UTC", 0), ("Z", 0), ("Asia/Tokyo", 9), ("+02:00", 2), ("-0330", -3.5), ("GMT+2", 2), ("UTC-01:30", -1.5)],
)
def test_moments_are_read_in_the_sessions_time_zone(zone: str, hours: float) -> None:
    found = number_set(parsed("x = '1970-01-02 00:00:00'"), "timestamp", zone)
    assert found.pieces[0].low == Fraction(24 - hours) * 3_600_000_000


def test_a_time_zone_that_nobody_knows() -> None:
    with pytest.raises(
        SpecError, match=r"time zone 'Mars/Olympus' is none that Python knows; write .* with its offset"
    ):
        number_set(parsed("x < '2020-01-01'"), "timestamp", "Mars/Olympus")


def random_condition(draw: random.Random, depth: int = 3):
    """(text, its truth for a number)"""
    if depth == 0 or draw.random() < 0.3:
        kind, a, b = draw.choice((*OPERATORS, "between", "in")), draw.randrange(10), draw.randrange(10)
        if kind == "between":
            return f"x BETWEEN {a} AND {b}", lambda x: a <= x <= b
        if kind == "in":
            return f"x IN ({a}, {b}.5)", lambda x: x in (a, b + Fraction(1, 2))
        if draw.random() < 0.3:
            return f"{a} {kind} x", lambda x: OPERATORS[kind](a, x)
        return f"x {kind} {a}", lambda x: OPERATORS[kind](x, a)
    (one, first), (two, second) = (random_condition(draw, depth - 1) for _ in range(2))
    word = draw.choice(("AND", "OR", "NOT"))
    if word == "NOT":
        return f"NOT ({one})", lambda x: not first(x)
    join = (lambda x: first(x) and second(x)) if word == "AND" else (lambda x: first(x) or second(x))
    return f"({one}) {word} ({two})", join


def test_random_conditions_hold_for_the_same_numbers() -> None:
    draw = random.Random(1)
    for _ in range(500):
        text, truth = random_condition(draw)
        found = number_set(parsed(text), "decimal(10,0)", "UTC")
        assert [holds(found, number) for number in NUMBERS] == [truth(number) for number in NUMBERS], text
        whole = {
            k
            for first, last in found.whole()
            for k in range(-3 if first is None else first, 14 if last is None else last + 1)
        }
        assert {k for k in range(13) if truth(k)} == whole & set(range(13)), text
        edges = [(p.low, p.high) for p in found.pieces]
        assert all(a[1] <= b[0] for a, b in zip(edges, edges[1:])), "pieces overlap"  # noqa: B905, RUF007


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("x = 12.345", "decimal(10,2)", Fraction(12345, 10)),
        ("x = -7", "int", Fraction(-7)),
        ("x = DATE '1970-01-03'", "date", Fraction(2)),
        ("x = '1970-01-01 01:00:00'", "timestamp", Fraction(3_600_000_000 - 7_200_000_000)),
        ("x = '1970-01-01 01:00:00'", "timestamp_ntz", Fraction(3_600_000_000)),
        ("x = 0.1", "double", Fraction(0.1)),
    ],
)
def test_literals_stand_where_codes_do(text: str, kind: str, code: Fraction) -> None:
    (piece,) = number_set(parsed(text), kind, "Etc/GMT-2").pieces
    assert piece.low == piece.high == code
