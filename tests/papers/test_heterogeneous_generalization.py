"""Worked examples of heterogeneous generalization, by their numbers there."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.solvers.matching.beta_buckets import greedy, largest_buckets, packed, published_bound
from anonlib.solvers.matching.l_buckets import l_buckets

FIFTEEN = np.array([3, 3, 3, 2, 2, 2])  # section 3.3: a a a b b b c c c d d e e f f
TWENTY_FIVE = np.array([6, 7, 12])  # section 4.4: a, b, d


def contents(buckets) -> list[str]:
    found = [""] * buckets.mu
    for b, v, records, dummies in zip(buckets.bucket, buckets.value, buckets.records, buckets.dummies, strict=True):
        found[b] += "abcdef"[v] * records + "abcdef"[v].upper() * dummies
    return found


def test_table_4_five_buckets() -> None:
    assert contents(l_buckets(FIFTEEN, 5)) == ["aaa", "bbb", "ccc", "ddf", "eef"]


def test_example_4_4_at_bucket_size_4() -> None:
    likeness = BetaLikeness(Fraction(1), TWENTY_FIVE)
    table_7 = np.array([2, 3, 3])
    assert 4 / min(Fraction(6, 2), Fraction(7, 3), Fraction(12, 3)) - 1 == Fraction(
        5, 7
    )  # the paper's bound of Table 7
    assert float(likeness.attained(table_7, 7)) == pytest.approx(0.531, abs=5e-4)
    published = greedy(TWENTY_FIVE, 4)
    assert published_bound(TWENTY_FIVE, published) == 1
    assert float(likeness.attained(published.held_by, published.mu)) == pytest.approx(0.786, abs=5e-4)
    ours = packed(TWENTY_FIVE, likeness, 4)  # better than Table 7: neither remainder is split
    assert ours.held_by.tolist() == [2, 2, 3]
    assert likeness.attained(ours.held_by, ours.mu) == Fraction(4, 21)


def test_example_4_4_at_bucket_sizes_5_and_6() -> None:
    likeness = BetaLikeness(Fraction(1), TWENTY_FIVE)
    five, six = packed(TWENTY_FIVE, likeness, 5), packed(TWENTY_FIVE, likeness, 6)
    assert (five.mu, five.made_up, likeness.attained(five.held_by, 5)) == (5, 0, Fraction(2, 3))
    assert (six.mu, six.made_up, published_bound(TWENTY_FIVE, six)) == (5, 5, Fraction(5, 7))
    assert float(likeness.attained(six.held_by, 5)) == pytest.approx(0.429, abs=5e-4)


def test_example_4_4_needs_25_buckets_for_beta_0() -> None:
    found = largest_buckets(TWENTY_FIVE, BetaLikeness(Fraction(0), TWENTY_FIVE))
    assert (found.size, found.mu) == (1, 25)


def test_theorem_4_gives_l() -> None:
    assert BetaLikeness(Fraction(1), TWENTY_FIVE).equivalent_l == 3  # 1 / (2 * 6/25) = 2.08
