"""Exact numbers: what is accepted, what is refused, and floors that floating point gets wrong."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonlib.errors import SpecError
from anonlib.exact import ceil_over, exact, floor_times, text

shares = st.fractions(min_value=Fraction(1, 10**6), max_value=1)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("0.29", Fraction(29, 100)),
        ("1/13", Fraction(1, 13)),
        ("1e-3", Fraction(1, 1000)),
        (" 0.5 ", Fraction(1, 2)),
        (8, Fraction(8)),
        (Decimal("0.02"), Fraction(1, 50)),
        (Fraction(2, 6), Fraction(1, 3)),
    ],
)
def test_a_number_is_what_its_text_says(written, meant):
    assert exact(written) == meant


def test_a_float_is_refused_with_the_text_to_write_instead():
    with pytest.raises(SpecError, match=r'theta: 0\.29 is a binary float .* write it as text, e\.g\. "0\.29"'):
        exact(0.29, "theta")


@pytest.mark.parametrize(
    "written", ["", "abc", "1/0", "0,5", "nan", "inf", Decimal("Infinity"), Decimal("NaN"), True, None, [1]]
)
def test_what_is_no_number_is_refused_by_name(written):
    with pytest.raises(SpecError, match=r"^offset: .* is not a number"):
        exact(written, "offset")


@pytest.mark.parametrize("written", ["1e999999999", "1E-99_999_999_999", "1e1001", Decimal("1e1001")])
def test_a_number_that_would_fill_the_memory_is_refused(written):
    assert exact("1e1000") == 10**1000
    with pytest.raises(SpecError, match=r"l: '1[eE].*' has more than 1,000 places"):
        exact(written, "l")


def test_the_floors_that_floating_point_gets_wrong():
    wrong = [
        (cents, size)
        for cents in range(1, 100)
        for size in range(1, 101)
        if floor(cents / 100 * size) != floor_times(exact(f"0.{cents:02}"), size)
    ]
    assert (29, 100) in wrong
    assert len(wrong) == 5
    assert floor_times(exact("0.29"), 100) == 29


@given(shares, st.integers(0, 10**12))
def test_floor_and_ceiling_are_those_of_the_rationals(share, count):
    assert floor_times(share, count) == floor(share * count)
    assert ceil_over(count, share) == ceil(count / share)


@given(shares, st.integers(1, 1000))
def test_the_smallest_size_is_the_first_with_room_for_so_many(share, count):
    size = ceil_over(count, share)
    assert floor_times(share, size) >= count > floor_times(share, size - 1)


@given(st.fractions())
def test_text_comes_back_as_the_same_number(number):
    assert exact(text(number)) == number


@pytest.mark.parametrize(
    ("number", "shortest"),
    [("0.0200", "0.02"), ("1/13", "1/13"), ("8.0", "8"), ("-5/4", "-1.25"), ("0", "0"), ("1/1024", "0.0009765625")],
)
def test_text_is_the_shortest_exact_form(number, shortest):
    assert text(exact(number)) == shortest
