"""Partitions that merge until they keep the promise, boxes of matches, and records kept far apart."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from anonlib.domains import CategoricalDomain, NumericDomain
from anonlib.kernels.boxes import Interval, Sets
from anonlib.kernels.classes.mondrian import mondrian
from anonlib.kernels.matching.far_apart import far_apart
from anonlib.kernels.matching.match_boxes import match_boxes
from anonlib.kernels.matching.matching_deal import deal
from anonlib.keyed import Stream
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.solvers.matching.l_buckets import l_buckets
from anonlib.solvers.matching.match_partitions import ROOM, WIDEST, Bucketing, GoodPool, merged_runs
from tests.thorough import cases, trials

KEY = bytes(range(32))
MANY = trials(300, 30)
"""Random tables of a kind."""
DOMAINS = [NumericDomain("age", 0.0, 50.0), CategoricalDomain("c", tuple("abcdefghijkl"))]


def test_runs_are_as_short_as_they_can_be_and_the_last_ones_join() -> None:
    sizes = np.array([[3], [1], [2], [5], [1], [1]])
    assert merged_runs(sizes, lambda row: bool(row.sum() >= 3)).tolist() == [0, 1, 1, 2, 2, 2]
    assert merged_runs(sizes, lambda row: bool(row.sum() >= 13)).tolist() == [0] * 6
    assert merged_runs(sizes, lambda row: True).tolist() == list(range(6))
    assert sizes.tolist() == [[3], [1], [2], [5], [1], [1]]  # what was given is left alone


@pytest.mark.parametrize("dummies", [True, False])
def test_every_run_of_many_tables_keeps_l(dummies: bool) -> None:
    random, merged, tried = np.random.default_rng(3), 0, 0
    while tried < MANY:
        counts = random.integers(0, 5, (int(random.integers(1, 12)), int(random.integers(2, 7)))).astype(np.int64)
        promised = Bucketing(int(random.integers(2, 5)), None, dummies)
        if not counts.sum() or promised.buckets(counts.sum(axis=0)) is None:
            continue
        tried += 1
        runs = merged_runs(counts, lambda row, promised=promised: promised.good_enough(row, 0))  # type: ignore[misc]
        assert (np.diff(runs, prepend=-1) >= 0).all()
        assert runs[0] == 0
        for run in range(int(runs[-1]) + 1):
            held = counts[runs == run].sum(axis=0)
            found = promised.buckets(held)
            assert found is not None
            assert found.mu == promised.l
        merged += int(runs[-1] + 1 < len(counts))
    assert merged > MANY / 3


@pytest.mark.long
@pytest.mark.parametrize("dummies", [None, True])
def test_runs_keep_beta_with_few_matches(dummies: bool | None) -> None:
    random = np.random.default_rng(4)
    merged = 0
    for _ in range(20):
        table = random.multinomial(1500, random.dirichlet(np.ones(6) * 3)).astype(np.int64)
        counts = np.stack([random.multinomial(40, table / table.sum()) for _ in range(8)]).astype(np.int64)
        whole_counts = counts.sum(axis=0)
        if not whole_counts.all():
            continue
        likeness = BetaLikeness(Fraction(1), whole_counts)
        promised = Bucketing(None, likeness, dummies)
        whole = promised.of_whole(whole_counts)
        assert whole is not None
        fewest = promised.matches(whole)
        runs = merged_runs(counts, lambda row, p=promised, mu=fewest: p.good_enough(row, mu))  # type: ignore[misc]
        merged += int(runs[-1]) + 1 < len(counts)
        for run in range(int(runs[-1]) + 1):
            pools = promised.pools(counts[runs == run].sum(axis=0))
            assert pools is not None
            assert promised.matches(pools) <= max(fewest, fewest * WIDEST)
            assert all((pool.held_by <= likeness.copies(pool.mu)).all() for pool in pools)
            assert dummies or not any(pool.made_up or pool.left_out for pool in pools)
    assert merged


def test_boxes_are_the_smallest_that_hold_all_matches() -> None:
    random = np.random.default_rng(5)
    columns = [random.integers(0, 51, 200), random.integers(0, 12, 200)]
    matches = np.stack([random.permutation(200)[:7] for _ in range(200)])
    ages, letters = match_boxes(columns, DOMAINS, matches)
    assert isinstance(ages, Interval)
    assert isinstance(letters, Sets)
    assert (ages.low == columns[0][matches].min(axis=1)).all()
    assert (ages.high == columns[0][matches].max(axis=1)).all()
    for i, row in enumerate(matches):
        assert letters.values[letters.bounds[i] : letters.bounds[i + 1]].tolist() == sorted(set(columns[1][row]))


def test_far_apart_exchanges_records_of_shared_values_only_and_parts_the_like() -> None:
    random, sooner, later = np.random.default_rng(6), 0.0, 0.0
    for trial in range(20):
        counts = random.integers(4, 12, 6)
        buckets = l_buckets(counts, 3)
        assert buckets is not None
        sensitive = np.repeat(np.arange(6), counts)
        columns = [random.integers(0, 51, len(sensitive)), random.integers(0, 12, len(sensitive))]
        dealt = deal(sensitive, buckets, Stream(KEY, "test", trial))
        moved = far_apart(columns, DOMAINS, dealt)
        assert (moved.sensitive == dealt.sensitive).all()
        assert (moved.dummy == dealt.dummy).all()
        real = ~dealt.dummy
        assert (sensitive[moved.source[real]] == moved.sensitive[real]).all()
        assert sorted(moved.source[real]) == sorted(dealt.source[real])
        assert (moved.source[dealt.dummy] == dealt.source[dealt.dummy]).all()
        alone = np.isin(dealt.sensitive, np.flatnonzero(buckets.held_by < 2))
        assert (moved.source[alone] == dealt.source[alone]).all()
        sooner += spread(columns, dealt.source.reshape(3, -1))
        later += spread(columns, moved.source.reshape(3, -1))
    assert later > sooner


def spread(columns: list[np.ndarray], buckets: np.ndarray) -> float:
    """Mean distance of the records of one bucket from its mean."""
    return float(
        sum(np.abs(c[b] - c[b].mean()).mean() / w for c, w in zip(columns, (50, 11), strict=True) for b in buckets)
    )


def pools_of(
    promised: Bucketing, table: np.ndarray, columns: list[np.ndarray], sensitive: np.ndarray
) -> list[np.ndarray]:
    whole = promised.of_whole(table)
    assert whole is not None
    pool = mondrian(columns, DOMAINS, sensitive, len(table), GoodPool(promised, promised.matches(whole)))
    return [
        np.bincount(sensitive[pool == k], minlength=len(table)).astype(np.int64) for k in range(int(pool.max()) + 1)
    ]


@pytest.mark.long
@pytest.mark.parametrize("dummies", cases(True, nightly=[None, False]))
def test_pools_keep_the_promise_by_themselves(dummies: bool | None) -> None:
    random, several = np.random.default_rng(6), 0
    for trial in range(12 if dummies is not None else 16):
        n = 1500
        columns = [random.integers(0, 51, n), random.integers(0, 12, n)]
        sensitive = (columns[0] // 8 * (random.random(n) < 0.3) + random.integers(0, 6, n)).astype(np.int64)
        sensitive = np.unique(sensitive, return_inverse=True)[1]
        table = np.bincount(sensitive).astype(np.int64)
        by_l = Bucketing(3, None, dummies)
        by_beta = Bucketing(None, BetaLikeness(Fraction(2 + trial % 3), table), dummies)
        for promised in (by_l, by_beta):
            whole = promised.of_whole(table)
            assert whole is not None
            pools = pools_of(promised, table, columns, sensitive)
            several += len(pools) > 1
            assert (sum(pools) == table).all()
            for held in pools:
                found = promised.pools(held) if promised.dummies is None else [promised.buckets(held)]
                assert found is not None
                assert None not in found
                assert promised.matches(found) <= float(WIDEST) * promised.matches(whole) + 1e-9
                if promised.l and len(pools) > 1:
                    assert held.sum() >= ROOM * promised.l
    assert several > 18


def test_a_pool_that_was_not_cut_betrays_its_records() -> None:
    """Why `refine` is refused by default. Of 80 records 20 have x = 0, 15 have value 0, the others one of 1 to 4, and l = 2.

    The right half can always keep l = 2, so where the cut is not made, the left one has more than 10 of the 15.
    """
    random, promised = np.random.default_rng(3), Bucketing(2, None, True)
    x = np.repeat([0, 51], [20, 60])
    held_left, cut = [], []
    for _ in range(400):
        share = random.choice([0.1, 0.9])
        left = int(random.binomial(15, share))
        values = 1 + np.arange(80) % 4
        values[random.choice(20, left, replace=False)] = 0
        values[20 + random.choice(60, 15 - left, replace=False)] = 0
        table = np.bincount(values, minlength=5).astype(np.int64)
        pools = pools_of(promised, table, [x, np.zeros(80, dtype=np.int64)], values)
        held_left.append(left)
        cut.append(len(pools) > 1)
    whole = ~np.array(cut)
    assert 100 < whole.sum() < 300
    assert min(np.array(held_left)[whole]) > 10  # of 20: believed with more than 1/l, which the promise forbids
