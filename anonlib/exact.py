"""Exact numbers: what a guarantee rests on enters as text or integer and stays rational.

`floor(0.29 * 100)` in binary floating point is 28. Here it is 29, because `0.29` never becomes a float.

>>> floor_times(exact("0.29"), 100)
29
>>> exact("1/13")
Fraction(1, 13)
>>> exact(0.29)
Traceback (most recent call last):
...
anonlib.errors.SpecError: 0.29 is a binary float and cannot carry a guarantee: write it as text, e.g. "0.29"
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from anonlib.errors import SpecError

Exactish = int | str | Fraction | Decimal
MOST_PLACES = 1_000
"""Of a number with an exponent: 1e999999999, spelled out, would fill the memory of whoever reads it."""


def exact(number: Exactish, name: str = "") -> Fraction:
    """The rational that `number` spells: an int, decimal text ("0.02"), fraction text ("1/13"), Decimal or Fraction.

    Raises SpecError for a float (it would be a nearby binary fraction), a bool, text that is no number, or one of too many places.
    """
    prefix = f"{name}: " if name else ""
    if isinstance(number, Fraction):
        return number
    if isinstance(number, bool) or not isinstance(number, (int, str, Decimal)):
        if isinstance(number, float):
            raise SpecError(
                f'{prefix}{number!r} is a binary float and cannot carry a guarantee: write it as text, e.g. "{number!r}"'
            )
        raise SpecError(f'{prefix}{number!r} is not a number: write a decimal or a fraction, e.g. "0.02" or "1/13"')
    spelled = re.search(r"[eE][+-]?([0-9_]+)", str(number))
    if spelled and int(spelled[1][:10].replace("_", "") or 0) > MOST_PLACES:
        raise SpecError(
            f"{prefix}{str(number)[:60]!r} has more than {MOST_PLACES:,} places: write a number that is meant"
        )
    try:
        return Fraction(number)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise SpecError(
            f'{prefix}{str(number)!r} is not a number: write a decimal or a fraction, e.g. "0.02" or "1/13"'
        ) from None


def floor_times(factor: Fraction, count: int) -> int:
    """floor(factor * count), exactly: how many of `count` records a share of `factor` is at most."""
    return (factor.numerator * int(count)) // factor.denominator


def ceil_over(count: int, factor: Fraction) -> int:
    """ceil(count / factor), exactly: the smallest size in which `count` is a share of at most `factor`."""
    return -((-int(count) * factor.denominator) // factor.numerator)


def text(number: Fraction) -> str:
    """The shortest exact text: a decimal where one exists ("0.02"), else a fraction ("1/13").

    >>> text(Fraction(1, 50)), text(Fraction(1, 13)), text(Fraction(8))
    ('0.02', '1/13', '8')
    """
    denominator = number.denominator
    twos = fives = 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    if denominator != 1:
        return f"{number.numerator}/{number.denominator}"
    places = max(twos, fives)
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    sign = "-" if number < 0 else ""
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def legible(number: Fraction, down: bool = False) -> str:
    """`text` for a message: beside a fraction what it is as a decimal of four digits.

    Rounded up, so that what is promised does not look stronger than it is, and what is said to be enough is; `down` for limits from above.

    >>> legible(Fraction(1, 13)), legible(Fraction(1, 101766)), legible(Fraction(1, 50)), legible(Fraction(1, 13), down=True)
    ('1/13 (0.07693)', '1/101766 (0.000009827)', '0.02', '1/13 (0.07692)')
    """
    exactly = text(number)
    if "/" not in exactly:
        return exactly
    rounded = Context(prec=4, rounding=ROUND_FLOOR if down else ROUND_CEILING)
    return f"{exactly} ({rounded.divide(Decimal(number.numerator), Decimal(number.denominator)):f})"
