"""The linear system over kinds of buckets: against the formulas of the module's text solved otherwise, and what is and is not told."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as some

from anonlib.queries.bucketized import Seen, answer, bounds
from anonlib.queries.flattening import Flattening, Kinds
from tests.thorough import trials


def kinds_of(held, buckets) -> Kinds:
    return Kinds(np.array(buckets, dtype=np.int64), sp.csr_matrix(np.array(held, dtype=np.int64)))


MIXED = kinds_of([[1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 0], [2, 0, 0, 1], [0, 1, 2, 1]], [30, 20, 25, 10, 40])


@some.composite
def systems(draw):
    """Kinds over which every value has a record."""
    m, K = draw(some.integers(2, 6)), draw(some.integers(1, 8))
    held = np.array(draw(some.lists(some.lists(some.integers(0, 3), min_size=m, max_size=m), min_size=K, max_size=K)))
    held[0] += held.sum(axis=0) == 0
    held[held.sum(axis=1) == 0, 0] = 1
    return kinds_of(held, draw(some.lists(some.integers(1, 60), min_size=K, max_size=K)))


@settings(max_examples=trials(300, 60), deadline=None)
@given(systems(), some.integers(0, 2**32 - 1))
def test_unbiased_is_weighted_least_squares_with_the_records_of_kinds_as_weights(kinds, seed):
    """Where the system has full rank; elsewhere the smallest of its solutions gives what is told, and no more."""
    draw = np.random.default_rng(seed)
    R, t, o = kinds.records.toarray(), kinds.by_kind, kinds.by_value
    k = draw.binomial(t.astype(int), 0.4).astype(float)[:, None]
    system = Flattening(kinds)
    flat = kinds.flattened(k)
    shares = np.linalg.lstsq(R / np.sqrt(t)[:, None], k / np.sqrt(t)[:, None], rcond=1e-10)[0]
    for c in np.eye(len(o)):
        told = not system.untold()[c > 0].any()
        assert told == (np.linalg.matrix_rank(np.vstack([R, c]), tol=1e-8) == np.linalg.matrix_rank(R, tol=1e-8))
        if told:
            assert system.unbiased(flat, c[:, None])[0] == pytest.approx(float((c * o) @ shares[:, 0]), abs=1e-5)


@settings(max_examples=trials(300, 60), deadline=None)
@given(systems(), some.integers(0, 2**32 - 1))
def test_the_sum_over_values_with_one_label_is_told_and_the_whole_is_exact(kinds, seed):
    draw = np.random.default_rng(seed)
    system, o = Flattening(kinds), kinds.by_value
    X = draw.binomial(o.astype(int), 0.3).astype(float)
    flat = kinds.flattened(kinds.records.toarray() @ (X / o)[:, None])  # what is seen on average
    labels = system.companions()
    for label in np.unique(labels):
        c = (labels == label).astype(float)[:, None]
        assert system.unbiased(flat, c)[0] == pytest.approx(float(X @ c[:, 0]), abs=1e-5)
    assert (np.bincount(labels)[labels[system.untold()]] > 1).all()
    everything = np.ones((len(o), 1))
    assert system.variance(everything, np.full((len(o), 1), 0.3))[0] == pytest.approx(0, abs=1e-6)


def test_the_variance_is_that_of_samples_without_replacement():
    """Var of weights on kinds, from the covariance of the multivariate hypergeometric, value by value."""
    R, o, t = MIXED.records.toarray(), MIXED.by_value, MIXED.by_kind
    system = Flattening(MIXED)
    shares = np.array([0.2, 0.5, 0.1, 0.7])
    covariance = sum(
        o[v] / (o[v] - 1) * shares[v] * (1 - shares[v]) * (np.diag(R[:, v]) - np.outer(R[:, v], R[:, v]) / o[v])
        for v in range(4)
    )
    accepted = np.array([1.0, 0, 1, 0])[:, None]
    weights = np.array([system.unbiased(MIXED.flattened(e[:, None]), accepted)[0] for e in np.eye(len(t))])
    assert weights @ R == pytest.approx(o * accepted[:, 0])  # unbiased for every table
    assert system.variance(accepted, shares[:, None])[0] == pytest.approx(weights @ covariance @ weights)


def test_no_other_unbiased_weights_have_a_smaller_variance_where_shares_are_equal():
    R, o, t = MIXED.records.toarray(), MIXED.by_value, MIXED.by_kind
    system, draw = Flattening(MIXED), np.random.default_rng(3)
    covariance = np.diag(t) - R @ np.diag(1 / o) @ R.T
    accepted = np.array([1.0, 0, 0, 0])[:, None]
    weights = np.array([system.unbiased(MIXED.flattened(e[:, None]), accepted)[0] for e in np.eye(len(t))])
    least = weights @ covariance @ weights
    free = np.linalg.svd(R.T)[2][4:]  # weights that estimate 0
    for _ in range(100):
        other = weights + draw.normal(size=len(free)) @ free
        assert other @ R == pytest.approx(o * accepted[:, 0])
        assert other @ covariance @ other >= least - 1e-9


def test_shrinking_goes_from_the_flattened_estimate_to_the_unbiased_one():
    system = Flattening(MIXED)
    o = MIXED.by_value
    k = (MIXED.records.toarray() @ np.array([0.9, 0.1, 0.5, 0.3]))[:, None]
    flat = MIXED.flattened(k)
    even = np.full((4, 1), k.sum() / o.sum())
    system._spread = lambda surprise, s: np.ones(1)  # type: ignore[method-assign]
    assert system.shrunk(flat, even)[:, 0] == pytest.approx(flat[:, 0])
    system._spread = lambda surprise, s: np.full(1, 1e12)  # type: ignore[method-assign]
    assert system.shrunk(flat, even)[:, 0] == pytest.approx(o * [0.9, 0.1, 0.5, 0.3], rel=1e-6)


def seen(kinds, k, parts=None) -> Seen:
    """Every bucket of a kind with as many matching records, as nearly as whole numbers allow."""
    entries = []
    for kind, (number, matching) in enumerate(zip(kinds.buckets.tolist(), k, strict=True)):
        each, over = divmod(int(matching), number)
        entries += [(kind, each + 1, over)] if over else []
        entries += [(kind, each, number - over)] if number > over else []
    kind, matching, buckets = np.array(entries).T
    return Seen(kind, matching, buckets, np.zeros((len(kinds.buckets), 0)) if parts is None else parts)


def test_two_values_that_always_share_buckets_are_told_together_alone():
    kinds = kinds_of([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 0]], [300, 250, 200])
    values = ["428", "414", "x", None]
    found = answer(kinds, values, np.array([True, False, False, False]), seen(kinds, [280, 240, 310]))
    assert found.estimator == "shrunk"
    assert found.unbiased is None
    assert found.standard_error is None
    assert found.interval == (found.low, found.high)
    assert found.together is not None
    assert found.together.values == ("414",)
    assert "buckets tell it better together with '414'" in str(found)
    both = answer(kinds, values, np.array([True, True, False, False]), seen(kinds, [280, 240, 310]))
    assert both.unbiased == pytest.approx(found.together.estimate)
    assert both.standard_error == pytest.approx(found.together.standard_error)
    assert both.standard_error > 0


def test_a_part_that_is_told_narrows_the_interval_of_one_that_is_not():
    kinds = kinds_of([[1, 1, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 1, 2]], [30, 2500, 20, 2500])
    found = answer(kinds, list("abcd"), np.array([True, False, True, False]), seen(kinds, [45, 2500, 20, 3500]))
    assert found.unbiased is None
    assert found.high - found.low > 1.5 * (found.interval[1] - found.interval[0])
    assert found.low <= found.interval[0] <= found.interval[1] <= found.high


def test_the_shrunk_estimate_gives_way_where_counts_refute_it():
    """Thousands of buckets of every pair of three values; the condition goes with one of them."""
    kinds = kinds_of([[1, 1, 0], [1, 0, 1], [0, 1, 1]], [20_000, 20_000, 20_000])
    k = np.array([20_000 * 1.0, 20_000 * 0.9, 20_000 * 0.3])
    found = answer(kinds, list("abc"), np.array([True, False, False]), seen(kinds, k))
    assert found.unbiased == pytest.approx(40_000 * 0.8)
    assert abs(found.estimate - found.unbiased) < 4 * found.standard_error
    misled = answer(
        kinds, list("abc"), np.array([True, False, False]), seen(kinds, k, np.array([[0, 0, 20_000]] * 2).T)
    )
    assert abs(misled.estimate - misled.unbiased) < 4 * misled.standard_error


def test_what_is_certain_is_exact():
    kinds = kinds_of([[1, 1], [2, 0]], [10, 5])
    assert answer(kinds, ["a", "b"], np.array([True, True]), seen(kinds, [7, 3])).estimate == 10
    nobody = answer(kinds, ["a", "b"], np.array([True, False]), seen(kinds, [0, 0]))
    assert (nobody.estimator, nobody.estimate, nobody.standard_error) == ("exact", 0, 0)
    every = answer(kinds, ["a", "b"], np.array([True, False]), seen(kinds, [20, 10]))
    assert (every.estimator, every.estimate, every.interval) == ("exact", 20, (20, 20))


def test_bounds_bucket_by_bucket():
    kinds = kinds_of([[1, 1, 2], [0, 3, 1]], [3, 2])
    found = Seen(np.array([0, 0, 1]), np.array([3, 1, 2]), np.array([1, 2, 2]), np.zeros((2, 0)))
    # accepted: 3 of 4 in the first kind, 1 of 4 in the second
    assert bounds(kinds, np.array([True, False, True]), found) == (2 + 0 + 0, 3 + 2 + 2)
