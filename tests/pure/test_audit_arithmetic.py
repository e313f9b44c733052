"""The audit's own formulas against slow obvious ones, and against those of the methods, which were derived another way."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from anonlib.audit import arithmetic
from anonlib.domains import CategoricalDomain, NumericDomain
from anonlib.privacy import rho_privacy
from anonlib.privacy.buckets import BucketSetting
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy
from anonlib.privacy.subtables import SubTable, SubTables, belief_in_groups

some_counts = some.lists(some.integers(1, 60), min_size=1, max_size=7)
shares = some.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=60)
gammas = some.fractions(Fraction(31, 30), Fraction(40), max_denominator=30)


def matrix(m: int, gamma: Fraction) -> list[list[Fraction]]:
    """The operator as it is defined: keep with p, else draw one of m; p such that the entries' ratio is gamma."""
    p = Fraction(gamma - 1, m - 1 + gamma)
    return [[(p if x == y else 0) + (1 - p) / m for y in range(m)] for x in range(m)]


@given(m=some.integers(1, 9), gamma=gammas)
def test_the_operator_is_a_stochastic_matrix_that_amplifies_by_gamma(m, gamma):
    by_definition = matrix(m, gamma)
    for x in range(m):
        row = [arithmetic.transition(m, gamma, x == y) for y in range(m)]
        assert row == by_definition[x]
        assert sum(row) == 1
    p = arithmetic.retained(m, gamma)
    assert p == rho_privacy.retention(m, gamma)
    assert p + (1 - p) / m == arithmetic.transition(m, gamma, same=True) == rho_privacy.unchanged(m, gamma)


@given(counts=some_counts, gamma=gammas)
def test_beliefs_are_the_largest_of_bayes_over_the_whole_matrix(counts, gamma):
    m, n, operator = len(counts), sum(counts), matrix(len(counts), gamma)
    for x, found in enumerate(arithmetic.beliefs(counts, gamma)):
        by_bayes = max(counts[x] * operator[x][y] / sum(counts[z] * operator[z][y] for z in range(m)) for y in range(m))
        assert Fraction(*found) == by_bayes == rho_privacy.posterior(Fraction(counts[x], n), gamma)


@given(counts=some_counts, gamma=gammas, data=some.data())
def test_beliefs_in_groups_are_the_largest_of_bayes(counts, gamma, data):
    m, operator = len(counts), matrix(len(counts), gamma)
    group = [data.draw(some.integers(0, 2)) for _ in counts]
    found = arithmetic.belief_in_groups(counts, group, gamma)
    mass = [[counts[z] * operator[z][y] for z in range(m)] for y in range(m)]
    assert found == max(
        sum(mass[y][z] for z in range(m) if group[z] == g) / sum(mass[y]) for y in range(m) for g in set(group)
    )
    codes = np.arange(m, dtype=np.int64)
    one = SubTables((SubTable(codes, np.array(counts, dtype=np.int64), Fraction(1, 2), gamma),))
    assert found == belief_in_groups(one, np.array(group, dtype=np.int64))


@given(prior=shares, posterior=shares)
def test_the_bayes_factor_leads_from_prior_to_posterior(prior, posterior):
    factor = arithmetic.bayes_factor(prior, posterior)
    assert prior * factor / (prior * factor + 1 - prior) == posterior
    if prior < posterior:
        assert factor == rho_privacy.amplification(prior, posterior)


@given(
    counts=some_counts,
    theta=some.fractions(0, 9, max_denominator=20),
    offset=some.fractions(0, 1, max_denominator=20),
    own=some.none() | shares,
)
def test_thresholds_are_those_of_the_formula(counts, theta, offset, own):
    n, values = sum(counts), [str(i) for i in range(len(counts))]
    asked = FPrivacy(theta=theta, offset=offset, own={} if own is None else {"0": own})
    held = SensitiveCounts(tuple(values), np.array(counts, dtype=np.int64))
    for i, count in enumerate(counts):
        found = arithmetic.threshold(count, n, theta, offset, None, own if i == 0 else None)
        assert found == asked.threshold(values[i], held.frequency(i))
        assert arithmetic.can_be_kept(count, n, found) == (Fraction(count, n) <= found)
    assert arithmetic.threshold(1, 2) is None
    assert arithmetic.threshold(1, 2, default=Fraction(1, 3)) == Fraction(1, 3)


def test_eligibility_is_exact_and_not_rounded_up():
    assert arithmetic.l_eligible([5, 5], 2)
    assert not arithmetic.l_eligible([6, 5], 2)  # a share of 6/11, whatever is made up beside it
    assert not arithmetic.l_eligible([5, 5, 0], 3)
    assert arithmetic.l_kept(1, 3, 3)
    assert not arithmetic.l_kept(34, 100, 3)


@given(share=shares, beta=some.fractions(Fraction(1, 20), 9, max_denominator=20))
def test_the_beta_bound_is_where_the_gain_reaches_beta(share, beta):
    assert arithmetic.gain(arithmetic.beta_bound(share, beta), share) == beta
    enhanced = arithmetic.gain(arithmetic.beta_bound(share, beta, enhanced=True), share)
    assert float(enhanced) == pytest.approx(min(float(beta), -math.log(share)), rel=1e-12)
    assert enhanced <= beta


@given(
    delta=some.sampled_from([Fraction(1, 100), Fraction(1, 20), Fraction(1, 2)]), n=some.integers(1, 10**9), p=shares
)
def test_the_error_bound_is_that_of_the_paper(delta, n, p):
    a = arithmetic.confidence(delta)
    assert 2 * math.exp(-(a**2) / 4) == pytest.approx(float(delta))  # the tail it inverts
    assert a == pytest.approx(rho_privacy.confidence_factor(delta))
    assert arithmetic.share_error(n, float(p), a) == pytest.approx(a * float(rho_privacy.spread(n, float(p))))


def test_the_variance_of_reconstructed_counts_is_what_many_draws_show():
    """20,000 perturbations of 12, 20 and 68 records: the mean of the summed squared errors within five standard errors."""
    rng, counts, gamma = np.random.default_rng(7), np.array([12, 20, 68]), Fraction(5)
    p, m, n = float(arithmetic.retained(3, gamma)), 3, 100
    q, runs = (1 - p) / m, 20_000
    observed = np.zeros((runs, m))
    for x, count in enumerate(counts):
        observed += rng.multinomial(count, [q + (p if x == y else 0) for y in range(m)], runs)
    errors = (((observed - q * n) / p - counts) ** 2).sum(axis=1)
    expected = arithmetic.count_variance(counts.tolist(), p)
    assert errors.mean() == pytest.approx(expected, abs=5 * errors.std() / math.sqrt(runs))
    assert expected == pytest.approx(float(rho_privacy.squared_error(n, m, p)))


@given(sizes=some.dictionaries(some.integers(1, 30), some.integers(1, 9), min_size=1, max_size=5))
def test_measures_of_sizes_are_sums_over_buckets_and_records(sizes):
    each = [size for size, number in sizes.items() for _ in range(number)]
    assert (
        arithmetic.bucket_loss(sizes) == sum((size - 1) ** 2 for size in each) == BucketSetting.of(sizes.items()).loss
    )
    assert arithmetic.mean_squared_bucket_size(sizes) == BucketSetting.of(sizes.items()).msbs
    assert arithmetic.discernibility(sizes) == sum(size for size in each for _ in range(size))


def test_penalties_are_those_of_the_domains():
    low, high = np.array([3, 5, 0]), np.array([3, 9, 10])
    assert arithmetic.interval_penalty(low, high, 0, 10).tolist() == [0, 0.4, 1]
    assert np.array_equal(arithmetic.interval_penalty(low, high, 0, 10), NumericDomain("a", 0, 10).penalty(low, high))
    assert arithmetic.interval_penalty(low, low, 4, 4).tolist() == [0, 0, 0]
    domain, distinct = CategoricalDomain("c", ("a", "b", "c", "d", "e")), np.array([1, 2, 5])
    assert arithmetic.set_penalty(distinct, 5).tolist() == [0, 0.25, 1] == domain.penalty(distinct).tolist()
    assert arithmetic.set_penalty(np.array([1]), 1).tolist() == [0]
    assert arithmetic.set_loss(distinct, np.array([1, 4, 5]), 5).tolist() == [0, 0.8, 1]
