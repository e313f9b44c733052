"""Why `perturb: {memoize: true}` is refused: two months with the same noise, against formulas, and what their counts give away."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import pytest

from anonlib.privacy.rho_privacy import amplification, posterior
from benchmarks import memoize

HALF = Fraction(1, 2)


@pytest.mark.parametrize(("share", "rho2"), [((2, 2), "2/3"), ((1, 1, 1), "1/2"), ((3, 1), "4/5")])
def test_one_look_is_at_the_bound_and_two_draws_multiply(share: tuple[int, ...], rho2: str) -> None:
    asked = Fraction(rho2)
    largest = Fraction(max(share), sum(share))
    gamma = amplification(largest, asked)
    one, two = (memoize.looks(share, asked, draws) for draws in (1, 2))
    assert (one.largest, one.above) == (asked, 0)
    assert two.largest == posterior(largest, gamma**2)
    assert two.above > 0


def test_the_draws_that_the_page_tells_of() -> None:
    share, gamma = Fraction(1, 13), Fraction(6)
    assert [posterior(share, gamma**draws) for draws in (1, 2)] == [Fraction(1, 3), Fraction(3, 4)]


@pytest.mark.parametrize(("counts", "rho2"), [((2, 2), Fraction(2, 3)), ((2, 1, 1), Fraction(3, 4)), ((1, 1, 1), HALF)])
def test_counted_again_whoever_left_is_certain_and_with_the_first_counts_nothing_is_added(
    counts: tuple[int, ...], rho2: Fraction
) -> None:
    january = memoize.enumerated(counts, rho2, memoize.january)
    again = memoize.enumerated(counts, rho2, partial(memoize.counted_again, leave=1))
    repeated = memoize.enumerated(counts, rho2, partial(memoize.counts_repeated, leave=1))
    assert repeated == january
    assert (again.largest, again.above, again.certain) == (1, 1, 1)
    assert january.certain < 1


def test_of_two_who_left_together_the_counts_are_a_list() -> None:
    """Two persons out of four different values: each has one of two, and what his row shows says which."""
    counts = (1, 1, 1, 1)
    gamma = amplification(Fraction(1, 4), HALF)
    again = memoize.enumerated(counts, HALF, partial(memoize.counted_again, leave=2))
    assert again.largest == gamma**2 / (gamma**2 + 1)
    assert again.certain == 0


def test_the_enumeration_by_hand() -> None:
    """Two persons, one of each value: both rows show a, or b, and tell nothing; or they differ, and gamma^2 speaks for what they show."""
    rho2 = Fraction(2, 3)
    gamma = amplification(HALF, rho2)
    told = memoize.enumerated((1, 1), rho2, memoize.january)
    assert told.largest == gamma**2 / (gamma**2 + 1) == Fraction(4, 5)
    assert told.above == (gamma**2 + 1) / (gamma + 1) ** 2
