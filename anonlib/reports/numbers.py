"""Numbers as a reader sees them: exact text with its decimal, shares in percent, counts with commas. Pure."""

from __future__ import annotations

from anonlib.errors import AnonlibError
from anonlib.exact import exact

SPACE = "\u00a0"
"""A blank at which no line is broken."""


def percent(share: float) -> str:
    """A share in percent, to the digits that tell it from 0 and from 100; the sign does not part from its number.

    >>> [percent(share).replace(SPACE, " ") for share in (0.1234, 0.00042, 1, 0.07, 0.99999, 0.9999999)]
    ['12.3 %', '0.042 %', '100 %', '7 %', '99.999 %', 'above 99.999 %']
    """
    number = round(100 * share, 9)
    if number == round(number):
        return f"{number:.0f}{SPACE}%"
    near = min(abs(number), abs(100 - number))
    if near < 0.0005:
        return f"above 99.999{SPACE}%" if number > 50 else f"{number:.1g}{SPACE}%"
    return f"{number:.{1 if near >= 1 else 2 if near >= 0.1 else 3}f}{SPACE}%"


def value(number: str | None) -> float | None:
    """Exact text as a number; None where there is none, or what stands there is no number, as in a manifest that somebody changed."""
    try:
        return None if number is None else float(exact(number))
    except (AnonlibError, OverflowError):
        return None


def readable(number: str) -> str:
    """Exact text for a reader: a decimal as it is; a fraction with its decimal, one of long terms by that alone.

    >>> readable("0.35"), readable("1/13"), readable("12345/98765"), readable("none")
    ('0.35', '1/13 (0.0769)', '0.125', 'none')
    """
    own = value(number)
    if own is None:
        return number
    short = f"{own:,.0f}" if own == round(own) and abs(own) >= 1 else f"{own:.3g}"
    if "/" in number:
        return f"{number} ({short})" if len(number) <= 7 else short
    return number if len(number) <= 9 else short


def share_text(number: str | None) -> str:
    """Exact text of a share as percent; "-" where there is none, and what is no number as it is."""
    own = value(number)
    return number or "-" if own is None else percent(own)


def measure(number: float) -> str:
    """A measure: whole numbers as counts, others to four digits."""
    return f"{number:,.0f}" if number == round(number) and abs(number) < 1e15 else f"{number:,.4g}"
