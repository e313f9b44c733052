"""Predicates over classes, each against its definition in exact fractions."""

import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest

from anonlib.privacy.class_requirements import (
    DistinctDiversity,
    KAnonymity,
    ShareCaps,
    all_of,
    beta_likeness,
    enhanced_beta_likeness,
    frequency_diversity,
    minus_log,
)
from anonlib.privacy.counts import SensitiveCounts


def tables(seed, rounds=300):
    """Random classes of one table, with the table's counts."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        g, m = int(rng.integers(1, 6)), int(rng.integers(1, 6))
        counts = rng.integers(0, 5, (g, m))
        counts[0] += 1  # every value occurs
        yield counts.astype(np.int64), SensitiveCounts(tuple(map(str, range(m))), counts.sum(axis=0))


def shares(row):
    size = int(row.sum())
    return [Fraction(int(c), size) for c in row] if size else [Fraction(0)] * len(row)


def test_each_predicate_is_its_definition():
    for counts, whole in tables(1):
        different, beta = 1 + len(counts[0]) // 2, Fraction(len(counts) % 4, 3)
        bounds = [(1 + beta) * whole.frequency(i) for i in range(whole.m)]
        for row, k, distinct, frequency, likely in zip(
            counts,
            KAnonymity(4).holds(counts),
            DistinctDiversity(different).holds(counts),
            frequency_diversity(different, whole.m).holds(counts),
            beta_likeness(beta, whole).holds(counts),
            strict=True,
        ):
            q = shares(row)
            assert k == (row.sum() >= 4)
            assert distinct == (sum(x > 0 for x in q) >= different)
            assert frequency == (max(q) <= Fraction(1, different))
            assert likely == all(x <= b for x, b in zip(q, bounds, strict=True))


def test_together_means_every_one():
    for counts, whole in tables(2):
        parts = (KAnonymity(3), DistinctDiversity(2), beta_likeness(Fraction(1, 2), whole))
        both = all_of(parts)
        assert both.smallest == max(part.smallest for part in parts)
        np.testing.assert_array_equal(both.holds(counts), np.logical_and.reduce([p.holds(counts) for p in parts]))


def test_no_class_below_the_smallest_size_keeps_the_promise():
    for counts, whole in tables(3):
        for part in (frequency_diversity(3, whole.m), beta_likeness(Fraction(1), whole), DistinctDiversity(2)):
            size = counts.sum(axis=1)
            assert not part.holds(counts)[(size < part.smallest) & (size > 0)].any()


def test_large_numbers_do_not_overflow():
    n = 10**10
    whole = SensitiveCounts(("a", "b"), np.array([n - 3, 3]))
    beta = Fraction(10**9 + 7, 10**6)
    exactly = int((1 + beta) * Fraction(3, n) * 10**6)  # 0.6 records in a million may be b: none
    counts = np.array([[10**6 - exactly, exactly], [10**6 - exactly - 1, exactly + 1]], dtype=np.int64)
    assert beta_likeness(beta, whole).holds(counts).tolist() == [True, False]


def test_at_the_very_bound():
    """29 of 100 is 0.29, which binary floating point would refuse."""
    caps = ShareCaps((Fraction("0.29"), Fraction(1)))
    assert caps.holds(np.array([[29, 71], [30, 70]], dtype=np.int64)).tolist() == [True, False]


def test_the_enhanced_bound_is_rounded_down_only():
    getcontext().prec = 40
    for share in (Fraction(1, 2), Fraction(1, 600), Fraction(1), Fraction(7, 100), Fraction(10**9, 10**9 + 1)):
        truth = -(Decimal(share.numerator) / Decimal(share.denominator)).ln()
        down = minus_log(share)
        assert down >= 0
        assert Decimal(down.numerator) / Decimal(down.denominator) <= truth
        assert float(down) == pytest.approx(-math.log(share), abs=2e-12)


def test_the_enhanced_bound_is_the_basic_one_for_rare_values_and_stays_below_one_for_frequent_ones():
    whole = SensitiveCounts(("common", "rare"), np.array([60, 1]))
    basic, enhanced = beta_likeness(Fraction(2), whole), enhanced_beta_likeness(Fraction(2), whole)
    assert enhanced.caps[1] == basic.caps[1] == Fraction(3, 61)
    assert enhanced.caps[0] < 1 < basic.caps[0]
