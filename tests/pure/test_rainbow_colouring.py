"""Nobody is believed to have a value beyond the bound, whoever knows the graph; the draw that the paper proposes is believed further."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from anonlib.kernels.matching.disjoint_matchings import random_matching
from anonlib.kernels.matching.matching_deal import deal, into_pools
from anonlib.kernels.matching.matching_graph import matching_graph
from anonlib.kernels.matching.rainbow_colouring import rainbow_matching, records_around
from anonlib.keyed import Stream
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.l_diversity import LDiversity
from anonlib.solvers.matching.beta_buckets import beta_buckets
from anonlib.solvers.matching.l_pools import l_pools, packed
from tests.oracles.consistent_assignments import beliefs
from tests.pure.test_matching import DOMAINS, KEY, drawn, fails, graphs, records
from tests.thorough import cases, trials


def random_graph(number: int, distinct: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """(matches, the bucket each record is of) of one pool of a random table; few enough records to try every assignment."""
    random = np.random.default_rng(number)
    counts = random.integers(0, 5, int(random.integers(2, 6)))
    if not counts.sum():
        return None
    if distinct:
        pools = l_pools(counts, int(random.integers(2, 4))) or []
    else:
        likeness = BetaLikeness(Fraction(int(random.integers(0, 20)), 10), np.maximum(counts, 1))
        found = beta_buckets(counts, likeness, bool(random.integers(2)))
        pools = [] if found is None else [found]
    pools = [pool for pool in pools if 4 <= pool.mu * pool.size <= 12 and pool.mu <= 4]
    if not pools:
        return None
    pool = pools[0]
    sensitive = np.repeat(pool.value, pool.records)
    dealt = deal(sensitive, pool_alone(pool), Stream(KEY, "test", number))
    columns = [column[dealt.source] for column in records(random, len(sensitive))]
    matches = matching_graph(columns, DOMAINS, dealt, pool.distinct, ("hungarian", "greedy")[number % 2])
    return matches, np.repeat(np.arange(pool.mu), pool.size)


def pool_alone(pool):
    """The pool's buckets for the records that they hold alone."""
    return type(pool)(
        pool.mu,
        pool.size,
        pool.bucket,
        pool.value,
        pool.records,
        pool.dummies,
        0 * pool.suppressed,
        pool.distinct,
        pool.algorithm,
    )


@pytest.mark.parametrize("distinct", [True, False])
def test_nobody_is_believed_beyond_the_bound(distinct: bool) -> None:
    """Every edge of every consistent assignment, exactly: 1/mu for each bucket; not so with a matching out of disjoint ones."""
    tried = number = broken = 0
    while tried < trials(1100, 50):
        number += 1
        made = random_graph(number, distinct)
        if made is None:
            continue
        tried += 1
        matches, bucket = made
        mu = matches.shape[1]
        for each in beliefs(matches, bucket[rainbow_matching(matches, KEY, number)]):
            assert set(each.values()) == {Fraction(1, mu)}
        before = beliefs(matches, bucket[random_matching(matches, KEY, number)])
        broken += any(belief > Fraction(1, mu) for each in before for belief in each.values())
    assert broken > tried / 20


@pytest.mark.long
@pytest.mark.parametrize(("promise", "swaps"), cases(("beta", 0), ("l", None), nightly=[("l", 0)]))
def test_every_edge_carries_the_value_with_chance_1_over_mu(promise: str, swaps: int | None) -> None:
    """Over 2,000 keys; the alarm is that of the test of the paper's draw."""
    matches = graphs()[promise]
    hits = drawn(matches, lambda graph, key, place: rainbow_matching(graph, key, place, swaps=swaps))
    assert not fails(hits)


def test_every_person_sees_each_bucket_once_and_every_record_is_taken_once() -> None:
    for number in range(1, trials(400, 80)):
        made = random_graph(number, number % 2 == 0)
        if made is None:
            continue
        matches, bucket = made
        taken = rainbow_matching(matches, KEY, number)
        assert (np.sort(taken) == np.arange(len(taken))).all()
        assert (matches == taken[:, None]).any(axis=1).all()
        shown = np.sort(bucket[taken][records_around(matches)], axis=1)
        assert (shown == np.arange(matches.shape[1])).all()


def test_draws_are_a_function_of_key_and_place() -> None:
    matches = graphs()["beta"]
    first = rainbow_matching(matches, KEY, 4)
    assert (rainbow_matching(matches, KEY, 4) == first).all()
    for other in (rainbow_matching(matches, KEY, 5), rainbow_matching(matches, bytes(32), 4)):
        assert (other != first).any()


def test_a_graph_without_labels_is_refused() -> None:
    with pytest.raises(ValueError, match="not labelled"):
        rainbow_matching(np.array([[0, 1], [1, 2], [2, 0]]), KEY)
    with pytest.raises(ValueError, match="not labelled"):
        rainbow_matching(np.array([[0, 1], [1, 2], [2, 3], [3, 0]]), KEY)
    with pytest.raises(ValueError, match="not regular"):
        rainbow_matching(np.array([[0, 2], [1, 2], [2, 0], [3, 1]]), KEY)


@settings(max_examples=trials(2000, 80), deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=9), st.integers(2, 6))
def test_pools_hold_every_record_once_and_no_value_twice(counts: list[int], l: int) -> None:  # noqa: E741
    given_counts = np.array(counts, dtype=np.int64)
    found = l_pools(given_counts, l)
    if not sum(counts) or max(counts) * l > sum(counts):
        assert found is None
        return
    held = np.zeros(len(counts), dtype=np.int64)
    for pool in found:
        assert pool.mu >= l
        assert (pool.made_up, pool.left_out) == (0, 0)
        assert (pool.held_by <= 1).all()
        assert (np.bincount(pool.bucket, pool.records) == pool.size).all()
        np.add.at(held, pool.value, pool.records)
    assert (held == given_counts).all()
    members = into_pools(np.repeat(np.arange(len(counts)), given_counts), found, Stream(KEY, "test"))
    assert sorted(np.concatenate(members).tolist()) == list(range(sum(counts)))


def test_many_rare_values_make_a_perfect_fit() -> None:
    random = np.random.default_rng(5)
    shares = 1 / (np.arange(50) + 8.0)
    for l in (2, 4, 6, 10):  # noqa: E741
        for _ in range(20):
            counts = random.multinomial(1000 // l * l, shares / shares.sum())
            assert packed(counts, l) is not None


def test_eligibility_is_exact() -> None:
    """6 and 5 records at l = 2: with a made-up record both would be half, and whoever knows the counts believes 6/11."""
    assert LDiversity(2).eligible(np.array([[6, 5], [5, 5], [0, 0]])).tolist() == [False, True, False]
    assert l_pools(np.array([6, 5]), 2) is None


def test_the_order_of_buckets_is_drawn() -> None:
    """Whoever runs the code tells which bucket follows which; all mu! ways to name them are then alike likely. Chi-square over 1,200 keys,
    false alarm 1e-6."""
    pool = l_pools(np.array([2, 2, 2]), 3)[0]
    sensitive = np.repeat(np.arange(3), 2)
    orders = [tuple(deal(sensitive, pool, Stream(KEY, "test", k)).sensitive[::2].tolist()) for k in range(1200)]
    found, often = np.unique(orders, axis=0, return_counts=True)
    assert len(found) == 6
    assert ((often - 200) ** 2 / 200).sum() < chi2.isf(1e-6, 5)
