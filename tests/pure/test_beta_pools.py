"""Pools for beta-likeness: every record in one, nobody made up, each within the bound by itself, and of the least loss there is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.kernels.matching.matching_deal import into_pools
from anonlib.keyed import Stream
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.match_buckets import MatchBuckets
from anonlib.solvers.matching.beta_pool_shapes import could_hold, loss, losses, matches_alike, matches_needed, shapes_of
from anonlib.solvers.matching.beta_pools import _WAYS, alike, beta_pools, loss_of, set_aside, taken_apart
from anonlib.solvers.matching.match_partitions import Bucketing
from tests.oracles.beta_shapes import least
from tests.pure.test_matching import KEY
from tests.thorough import trials

BETAS = st.fractions(0, 6, max_denominator=10)
TABLES = st.lists(st.integers(1, 40), min_size=1, max_size=8)


def check(pools: list[MatchBuckets], counts: np.ndarray, likeness: BetaLikeness) -> None:
    held = np.zeros(len(counts), dtype=np.int64)
    for pool in pools:
        assert (pool.made_up, pool.left_out, pool.distinct) == (0, 0, False)
        assert (np.bincount(pool.bucket, pool.records, pool.mu) == pool.size).all()
        np.add.at(held, pool.value, pool.records)
        for value, buckets in enumerate(pool.held_by.tolist()):
            share = Fraction(int(likeness.table[value]), likeness.n)
            assert Fraction(buckets, pool.mu) <= (1 + likeness.beta) * share
    assert (held == counts).all()


@pytest.mark.long
@settings(max_examples=trials(3000, 100), deadline=None)
@given(TABLES, BETAS, st.data())
def test_every_record_is_in_one_pool_and_every_pool_keeps_the_bound(
    table: list[int], beta: Fraction, data: st.DataObject
) -> None:
    whole = np.array(table, dtype=np.int64)
    likeness = BetaLikeness(beta, whole)
    everybody = beta_pools(whole, likeness)
    assert everybody is not None
    check(everybody, whole, likeness)
    part = np.array([data.draw(st.integers(0, n)) for n in table], dtype=np.int64)
    found = beta_pools(part, likeness)
    if found is None:
        return
    check(found, part, likeness)
    members = into_pools(np.repeat(np.arange(len(part)), part), found, Stream(KEY, "test"))
    assert sorted(np.concatenate(members).tolist()) == list(range(int(part.sum())))
    assert [len(rows) for rows in members] == [pool.mu * pool.size for pool in found]


@settings(max_examples=trials(1000, 30), deadline=None)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=6), BETAS)
def test_no_shape_that_can_be_packed_loses_a_hundredth_less(table: list[int], beta: Fraction) -> None:
    whole = np.array(table, dtype=np.int64)
    likeness, n = BetaLikeness(beta, whole), sum(table)
    shapes = shapes_of(whole, likeness)
    packed = [
        s for s in shapes[could_hold(whole, likeness, shapes)].tolist() if taken_apart(whole, likeness, *s) is not None
    ]
    found = beta_pools(whole, likeness)
    assert found is not None
    assert loss_of(found) <= min(losses(np.array(packed), n)) * 1.01


def test_tiny_tables_lose_what_they_must() -> None:
    """Beside every shape, split and packing there is: never less than can be, and no more than must be of a main pool and a rest."""
    tried = same = 0
    for seed in range(trials(1500, 75)):
        random = np.random.default_rng(seed)
        table = random.integers(1, 7, int(random.integers(2, 6))).astype(np.int64)
        part = table if seed % 2 else random.binomial(table, 0.6).astype(np.int64)
        if not 2 <= part.sum() <= 12:
            continue
        likeness = BetaLikeness(Fraction(int(random.integers(0, 40)), 10), table)
        found = beta_pools(part, likeness)
        two = least(part, likeness, lambda mu, c: float(loss(mu, c)), rare=False)
        assert (found is None) == (two is None)
        if found is None or two is None:
            continue
        tried += 1
        same += loss_of(found) <= two[0] + 1e-9
        if part.sum() <= 8:
            every = least(part, likeness, lambda mu, c: float(loss(mu, c)), rare=True)
            assert every is not None
            assert loss_of(found) >= every[0] - 1e-9
    assert tried > 40
    assert same == tried


def test_rare_values_need_not_widen_everybodys_boxes() -> None:
    """Three records of the rarest of 50 values need 334 matches at beta = 1: the others need not have as many."""
    counts = np.array(
        [3, 6, 6, 8, 9, 10, 12, 17, 22, 23, 26, 28, 31, 36, 43, 50, 71, 88, 103, 106, 147, 150, 200, 300, 505]
    )
    likeness = BetaLikeness(Fraction(1), counts)
    assert likeness.equivalent_l == matches_needed(likeness, 3) == 334
    found = beta_pools(counts, likeness)
    assert found is not None
    assert max(pool.mu for pool in found) >= 334
    assert sum(pool.mu**2 * pool.size for pool in found) < 0.8 * 334 * counts.sum()


def test_buckets_stay_within_the_largest_that_can_be_matched() -> None:
    counts = np.array([400, 500, 600, 700])
    likeness = BetaLikeness(Fraction(1), counts)
    free, bound = beta_pools(counts, likeness), beta_pools(counts, likeness, 30)
    assert free is not None
    assert bound is not None
    check(bound, counts, likeness)
    assert max(pool.size for pool in bound) <= 30 < max(pool.size for pool in free)


def test_records_are_set_aside_within_what_both_sides_hold() -> None:
    random = np.random.default_rng(2)
    tried = 0
    for _ in range(trials(2000, 200)):
        counts, holds, stays = (random.integers(0, 20, 5) for _ in range(3))
        number, c, size = (int(random.integers(1, 25)) for _ in range(3))
        for way in _WAYS:
            gone = set_aside(counts, number, holds, stays, c, size, way)
            possible = (counts <= holds + stays).all() and np.maximum(counts - stays, 0).sum() <= number <= np.minimum(
                counts, holds
            ).sum()
            assert (gone is not None) == bool(possible)
            if gone is not None:
                tried += 1
                assert gone.sum() == number
                assert ((gone <= np.minimum(counts, holds)) & (counts - gone <= stays)).all()
    assert tried > 50


def test_many_matches_of_a_few_count_as_fewer_of_all() -> None:
    assert abs(matches_alike(float(loss(50, 20)), 1000) - 50) < 1e-6
    counts = np.array([5, 60, 70, 80, 85])
    found = beta_pools(counts, BetaLikeness(Fraction(1), counts))
    assert found is not None
    assert min(pool.mu for pool in found) - 1e-9 <= alike(found) <= max(pool.mu for pool in found) + 1e-9


@settings(max_examples=trials(1000, 100), deadline=None)
@given(TABLES, st.integers(0, 60), st.floats(1, 60), st.data())
def test_nothing_beyond_the_most_matches_is_found(
    table: list[int], tenths: int, most: float, data: st.DataObject
) -> None:
    """As a partition is asked: a few records of a table, also such as are not enough of any value for l-diversity."""
    likeness = BetaLikeness(Fraction(tenths, 10), np.array(table, dtype=np.int64))
    part = np.array([data.draw(st.integers(0, n)) for n in table], dtype=np.int64)
    free, bound = beta_pools(part, likeness), beta_pools(part, likeness, 20, most)
    if bound is not None:
        check(bound, part, likeness)
        assert alike(bound) <= most * (1 + 1e-9)
        assert max(pool.size for pool in bound) <= 20
    elif free is not None and max(pool.size for pool in free) <= 20:
        assert alike(free) > most * (1 - 1e-9)


def test_partitions_ask_what_the_matching_will_ask() -> None:
    """Whatever run is good enough has pools, and none is made up in them; asked for by name the paper's buckets make records up."""
    random = np.random.default_rng(3)
    table = random.multinomial(900, random.dirichlet(np.ones(6) * 3)).astype(np.int64) + 1
    promised = Bucketing(None, BetaLikeness(Fraction(2), table))
    whole = promised.of_whole(table)
    assert whole is not None
    fewest, kept = promised.matches(whole), 0
    for _ in range(60):
        part = random.binomial(table, 0.2).astype(np.int64)
        if promised.good_enough(part, fewest):
            kept += 1
            pools = promised.pools(part)
            assert pools is not None
            assert not any(pool.made_up or pool.left_out for pool in pools)
    assert kept > 5


def test_the_shares_are_those_of_the_whole_table_at_beta_0() -> None:
    counts = np.array([6, 10, 14])
    found = beta_pools(counts, BetaLikeness(Fraction(0), counts))
    assert found is not None
    assert [(pool.mu, pool.size) for pool in found] == [(15, 2)]
