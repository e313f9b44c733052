"""Reconstructed counts against what they must be: exactly unbiased, with the variance stated, over every possible perturbation."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from anonlib.queries.reconstruction import Operators, confidence_interval, reconstruct, terms, variance


def operators(*pairs):
    return Operators(np.array([m for m, _ in pairs]), np.array([float(g) for _, g in pairs]))


def test_the_papers_operators():
    """Example 1: gamma 4 and 10 over domains of 6; diagonals 4/9 and 2/3."""
    found = operators((6, 4), (6, 10))
    assert found.retention + found.replacement == pytest.approx([4 / 9, 2 / 3])
    assert found.replacement == pytest.approx([1 / 9, 1 / 15])


@pytest.mark.parametrize(
    ("m", "gamma", "truth", "wanted"),
    [(3, 4, [0, 0, 1, 2], {0}), (3, 2, [0, 1, 1], {0, 2}), (4, Fraction(5, 2), [3, 3, 0], {1, 2})],
)
def test_over_every_outcome_the_estimate_and_its_variance_are_unbiased(m, gamma, truth, wanted):
    """The slow twin: all m^n publications with their exact chances."""
    gamma = Fraction(gamma)
    keep, other = gamma / (m - 1 + gamma), 1 / (m - 1 + gamma)
    n, f = len(truth), sum(x in wanted for x in truth)
    mean = square = stated = 0.0
    for published in itertools.product(range(m), repeat=n):
        chance = 1.0
        for x, y in zip(truth, published, strict=True):
            chance *= float(keep if x == y else other)
        estimate, spread = terms(operators((m, gamma)), [n], [len(wanted)], [sum(y in wanted for y in published)])
        mean += chance * estimate[0]
        square += chance * estimate[0] ** 2
        stated += chance * spread[0]
    assert mean == pytest.approx(f)
    assert square - mean**2 == pytest.approx(variance(operators((m, gamma)), [n], [len(wanted)], [f])[0])
    assert stated == pytest.approx(square - mean**2)


def test_the_formula_of_equation_7():
    """((m - 1 + gamma) o - |T|) / (gamma - 1), summed over the wanted values."""
    o, n, m, gamma = np.array([7, 2, 5]), 40, 6, 4
    by_value = ((m - 1 + gamma) * o - n) / (gamma - 1)
    assert terms(operators((m, gamma)), [n], [3], [o.sum()])[0][0] == pytest.approx(by_value.sum())


def test_the_estimates_of_all_values_add_up_to_the_records():
    o = np.array([11, 0, 4, 25])
    found = terms(operators((4, 3)), [[40]] * 4, [[1]] * 4, o[:, None])[0]
    assert found.sum() == pytest.approx(40)


def test_what_is_certain():
    """All 30 of 40 records; 12 truly meet it: 2 to 12. Nothing observed cannot make it less."""
    found = reconstruct(operators((6, 4)), [40], [30], [1], [0], [0], [12])
    assert (found.low, found.high) == (2, 12)
    assert found.low <= found.interval[0] <= found.estimate <= found.interval[1] <= found.high
    assert found.raw == pytest.approx(-30 / 3)


@pytest.mark.parametrize("observed", [0, 3, 12, 40])
def test_a_condition_that_all_records_meet_is_counted_exactly(observed):
    found = reconstruct(operators((6, 4), (3, 2)), [40, 9], [40, 9], [2, 1], [observed, 5], [observed, 5], [13, 4])
    assert found.estimate == pytest.approx(17)
    assert found.standard_error == pytest.approx(0, abs=1e-6)
    assert found.interval == pytest.approx((17, 17))


def test_a_sensitive_condition_that_all_values_meet_counts_the_matching_records():
    found = reconstruct(operators((6, 4)), [40], [30], [6], [30], [40], [40])
    assert (found.raw, found.raw_error, found.low, found.high) == (
        pytest.approx(30),
        pytest.approx(0, abs=1e-6),
        30,
        30,
    )


def test_no_matching_record():
    found = reconstruct(operators((6, 4)), [40], [0], [1], [0], [9], [12])
    assert (found.estimate, found.low, found.high, found.raw) == (0, 0, 0, 0)


def test_a_domain_of_one_value_is_certain():
    found = reconstruct(operators((1, 4)), [40], [17], [1], [17], [40], [40])
    assert (found.estimate, found.raw) == (pytest.approx(17), pytest.approx(17))


def test_an_interval_beside_its_bounds_is_drawn_to_them():
    assert confidence_interval(-50, 10, 0, 100) == (0, 0)
    assert confidence_interval(180, 10, 0, 100) == (100, 100)
    assert confidence_interval(50, 10, 0, 100, level=0.5) == pytest.approx((50 - 6.745, 50 + 6.745), abs=1e-3)
