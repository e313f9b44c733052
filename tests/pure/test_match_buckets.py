"""Bucketizations for matching: what they hold, what they promise, and that the better packing is never worse."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.match_buckets import MatchBuckets
from anonlib.solvers.matching.beta_buckets import beta_buckets, fewest_dummies, greedy, largest_buckets, packed
from anonlib.solvers.matching.l_buckets import l_buckets


def tables(number: int, most_values: int = 9, most: int = 30, least: int = 0):
    random = np.random.default_rng(20)
    for _ in range(number):
        m = int(random.integers(1, most_values + 1))
        top = int(random.integers(1, most + 1))
        counts = random.integers(least, top + 1, m)
        if counts.sum():
            yield counts.astype(np.int64), random


def check(found: MatchBuckets, counts: np.ndarray, dummies: bool) -> None:
    held = np.bincount(found.value, found.records, len(counts)).astype(np.int64)
    assert (held + found.suppressed == counts).all()
    assert (found.records > 0).all()
    full = np.bincount(found.bucket, found.records + found.dummies, found.mu)
    assert (full == found.size).all()
    if dummies:
        assert found.left_out == 0
        assert found.made_up == found.mu * found.size - counts.sum()
    else:
        assert found.made_up == 0
        assert found.left_out == counts.sum() - found.mu * found.size


@pytest.mark.parametrize("dummies", [True, False])
def test_l_buckets_keep_what_theorem_2_rests_on(dummies: bool) -> None:
    tried = 0
    for counts, random in tables(3000):
        l = int(random.integers(2, 7))  # noqa: E741
        found = l_buckets(counts, l, dummies)
        assert (found is not None) == bool(LDiversity(l).eligible(counts[None])[0])
        if found is None:
            continue
        tried += 1
        check(found, counts, dummies)
        assert found.mu == l
        assert found.made_up + found.left_out < l
        support = np.bincount(found.value, found.records + found.dummies, len(counts))
        dominating = np.argsort(-support, kind="stable")[:l]
        assert (found.held_by[dominating] == 1).all()
    assert tried > 800


@pytest.mark.long
@pytest.mark.parametrize("dummies", [True, False])
def test_beta_buckets_keep_the_exact_bound(dummies: bool) -> None:
    tried = 0
    for table, random in tables(2500, least=1):
        part = random.binomial(table, 0.5) if random.random() < 0.5 else table
        if not part.sum():
            continue
        likeness = BetaLikeness(Fraction(int(random.integers(0, 40)), 10), table)
        found = beta_buckets(part.astype(np.int64), likeness, dummies)
        if found is None:
            continue
        tried += 1
        check(found, part, dummies)
        matches = 1 if found.distinct else found.held_by  # in l-diversity a value is at most once among the matches
        for held, records in zip(np.broadcast_to(matches, table.shape).tolist(), table.tolist(), strict=True):
            assert Fraction(held, found.mu) <= (1 + likeness.beta) * Fraction(records, int(table.sum())) or not held
    assert tried > 1200


def test_the_whole_table_always_has_beta_buckets_and_better_ones_than_the_published() -> None:
    better = 0
    for table, random in tables(600, most_values=7, most=40, least=1):
        likeness = BetaLikeness(Fraction(int(random.integers(1, 30)), 10), table)
        ours = largest_buckets(table, likeness)
        published = largest_buckets(table, likeness, packings="greedy")
        assert ours is not None
        assert published is not None
        assert ours.size >= published.size
        better += ours.size > published.size
    assert better > 50


def test_fewer_dummies_are_taken_where_the_number_of_matches_stays() -> None:
    fewer = 0
    for table, random in tables(400, most_values=8, most=60, least=1):
        likeness = BetaLikeness(Fraction(int(random.integers(1, 30)), 10), table)
        largest = largest_buckets(table, likeness)
        assert largest is not None
        found = fewest_dummies(largest, table, likeness)
        check(found, table, True)
        assert found.mu == largest.mu
        assert (found.held_by <= likeness.copies(found.mu)).all()
        assert found.made_up <= largest.made_up
        fewer += found.made_up < largest.made_up
    assert fewer > 100


def test_beta_0_takes_the_greatest_common_divisor() -> None:
    for table, _ in tables(300, most=60, least=1):
        found = largest_buckets(table, BetaLikeness(Fraction(0), table))
        assert found is not None
        assert found.size == math.gcd(*table.tolist())
        assert found.made_up == 0


def best_size(counts: list[int], likeness: BetaLikeness) -> int:
    """The largest c for which any packing at all keeps the bound: every way to spread every value over the buckets."""
    n = sum(counts)
    for c in range(max(counts), 0, -1):
        mu = -(-n // c)
        may = likeness.copies(mu)

        def fits(value: int, room: tuple[int, ...], c: int = c, may: np.ndarray = may) -> bool:
            if value == len(counts):
                return True
            seen = set()
            for k in range(1, int(may[value]) + 1):
                for chosen in itertools.combinations(range(len(room)), k):
                    for cut in itertools.combinations(range(1, counts[value]), k - 1):
                        sizes = np.diff([0, *cut, counts[value]]).tolist()
                        after = list(room)
                        for b, s in zip(chosen, sizes, strict=True):
                            after[b] -= s
                        if min(after) >= 0 and (key := tuple(sorted(after))) not in seen:
                            seen.add(key)
                            if fits(value + 1, key):
                                return True
            return False

        if fits(0, (c,) * mu):
            return c
    raise AssertionError("c = 1 always does")


def test_the_better_packing_is_close_to_the_best_of_all() -> None:
    random = np.random.default_rng(3)
    same = 0
    for _ in range(60):
        counts = random.integers(1, 7, int(random.integers(2, 4)))
        likeness = BetaLikeness(Fraction(int(random.integers(1, 20)), 10), counts)
        found = largest_buckets(counts, likeness)
        best = best_size(counts.tolist(), likeness)
        assert found is not None
        assert found.size <= best
        same += found.size == best
    assert same >= 57


def test_copies_stay_exact_where_products_leave_64_bits() -> None:
    table = np.array([10**10, 3 * 10**10 + 1], dtype=np.int64)
    beta = Fraction("0.333333333333333333")
    n = int(table.sum())
    exact = [min(10**9, int((1 + beta) * int(t) * 10**9 / n)) for t in table]
    assert BetaLikeness(beta, table).copies(10**9).tolist() == exact


def test_a_size_is_refused_where_a_value_has_to_be_in_too_many_buckets() -> None:
    counts = np.array([6, 7, 12])
    assert packed(counts, BetaLikeness(Fraction(1, 10), counts), 4) is None
    assert greedy(counts, 4).held_by.tolist() == [3, 2, 3]
