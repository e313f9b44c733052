"""Fake values: which are listed, how they are drawn, and what someone who knows some records still cannot tell."""

from __future__ import annotations

import pickle
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy import stats

from anonlib.kernels.ranked.fake_values import BLOCK, FakeValues, TooFewFakes
from anonlib.kernels.ranked.round_robin import Deal, composition
from anonlib.privacy.buckets import BucketSetting
from tests.thorough import trials

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))


def even(m: int, each: int, size: int) -> Deal:
    """m values of `each` records in buckets of `size` distinct values."""
    buckets = m * each // size
    return Deal.of(BucketSetting((size,), (buckets,)), np.full((m, 1), each, dtype=np.int64))


def listed(kernel: FakeValues, buckets, excluded=None) -> dict[int, list[int]]:
    ids, codes = kernel(np.array(buckets, dtype=np.int64), excluded)
    found: dict[int, list[int]] = {}
    for b, c in zip(ids.tolist(), codes.tolist(), strict=True):
        found.setdefault(b, []).append(c)
    return found


def held(deal: Deal) -> dict[int, set[int]]:
    return {b: set(s.codes) for s in composition(deal) for b in range(s.start, s.stop)}


@settings(max_examples=trials(200, 100), deadline=None)
@given(some.integers(2, 6), some.integers(1, 9), some.integers(1, 4), some.data())
def test_each_bucket_lists_its_values_and_as_many_more_as_asked(size, rounds, extra, data):
    m = size + extra + data.draw(some.integers(0, 5))
    deal = even(m, size * rounds, size)
    kernel = FakeValues(deal, m, extra, KEY)
    real = held(deal)
    found = listed(kernel, range(deal.buckets))
    for b in range(deal.buckets):
        assert found[b] == sorted(set(found[b]))  # distinct, and in an order that says nothing
        assert len(found[b]) == size + extra
        assert real[b] < set(found[b])


def test_nothing_tells_a_fake_from_a_real_value_in_the_order():
    """The rank of the one fake among the listed values is as if any of the values that the bucket lacks could be it."""
    deal_of_ten = even(10, 300, 3)
    kernel = FakeValues(deal_of_ten, 10, 1, KEY)
    real = held(deal_of_ten)
    ranks = Counter()
    for b, codes in listed(kernel, range(deal_of_ten.buckets)).items():
        fake = (set(codes) - real[b]).pop()
        ranks[sum(c < fake for c in codes)] += 1
    # the law of the rank when the fake is uniform over what the bucket lacks, exactly
    law = np.zeros(4)
    for values in real.values():
        lacking = [c for c in range(10) if c not in values]
        for fake in lacking:
            law[sum(c < fake for c in values)] += 1 / len(lacking)
    counts = [ranks[k] for k in range(4)]
    assert stats.chisquare(counts, law).pvalue > 1e-6


def fakes_drawn(kernel: FakeValues, deal: Deal) -> Counter:
    real = held(deal)
    drawn = Counter()
    for b, codes in listed(kernel, range(deal.buckets)).items():
        drawn.update((tuple(sorted(real[b])), c) for c in set(codes) - real[b])
    return drawn


def chi_square(drawn: Counter, m: int) -> float:
    """p-value of "each value that a bucket lacks is its fake equally often", over all kinds of buckets."""
    counts, law = [], []
    for kind in {k for k, _ in drawn}:
        here = [drawn[kind, c] for c in range(m) if c not in kind]
        counts += here
        law += [sum(here) / len(here)] * len(here)
    kinds = len({k for k, _ in drawn})
    return float(stats.chisquare(counts, law, ddof=kinds - 1).pvalue)


@pytest.mark.long
@pytest.mark.parametrize("extra", [1, 3])
def test_fakes_are_uniform_over_what_a_bucket_lacks(extra):
    """Fixed key: no false alarm when this has passed once; over keys, one in 10^6 would fail. 12,000 buckets."""
    deal = even(12, 4000, 4)
    assert chi_square(fakes_drawn(FakeValues(deal, 12, extra, KEY), deal), 12) > 1e-6


def test_the_same_test_catches_fakes_that_are_not_uniform():
    """A planted fault: the first value that a bucket lacks is drawn half as often again."""
    deal = even(12, 4000, 4)
    drawn = fakes_drawn(FakeValues(deal, 12, 1, KEY), deal)
    for kind in {k for k, _ in drawn}:
        first, *rest = [c for c in range(12) if c not in kind]
        moved = sum(drawn[kind, c] // 16 for c in rest)
        for c in rest:
            drawn[kind, c] -= drawn[kind, c] // 16
        drawn[kind, first] += moved
    assert chi_square(drawn, 12) < 1e-6


@pytest.mark.parametrize(("size", "extra", "known"), [(3, 2, 2), (4, 1, 1), (4, 4, 3), (5, 2, 0)])
def test_the_corruption_bound(size, extra, known):
    """Who knows q of |g| records and crosses their values out finds a remaining value real with probability (|g|-q)/(|g|-q+s)."""
    m = size + extra + 2
    deal = even(m, 60 * size, size)
    real = held(deal)
    draw = np.random.default_rng(1)
    right = total = 0
    for b, codes in listed(FakeValues(deal, m, extra, KEY), range(deal.buckets)).items():
        crossed = set(draw.permutation(sorted(real[b]))[:known].tolist())
        remaining = [c for c in codes if c not in crossed]
        right += sum(c in real[b] for c in remaining)
        total += len(remaining)
        assert len(remaining) == size + extra - known
    assert Fraction(right, total) == Fraction(size - known, size - known + extra)


def test_excluded_values_are_never_fakes():
    deal = even(8, 30, 3)
    real = held(deal)
    excluded = [[7, 2] for _ in range(deal.buckets)]
    for b, codes in listed(FakeValues(deal, 8, 2, KEY), range(deal.buckets), excluded).items():
        assert not (set(codes) - real[b]) & {7, 2}
        assert real[b] < set(codes)


def test_nothing_left_to_choose_from():
    deal = even(5, 3, 3)
    with pytest.raises(TooFewFakes) as raised:
        FakeValues(deal, 5, 2, KEY)(np.arange(5), [[], [], [0, 1, 2, 3, 4], [], []])
    assert raised.value.args == (2, 0, 2)


def test_a_bucket_lists_the_same_whatever_task_it_falls_to():
    deal = even(9, 3 * BLOCK, 3)
    kernel = FakeValues(deal, 9, 2, KEY)
    whole = listed(kernel, range(deal.buckets))
    some_of_them = [deal.buckets - 1, 5, BLOCK, BLOCK - 1, 0]
    again = listed(pickle.loads(pickle.dumps(kernel)), some_of_them)
    assert again == {b: whole[b] for b in some_of_them}
    other = listed(FakeValues(deal, 9, 2, OTHER), range(deal.buckets))
    assert sum(whole[b] == other[b] for b in whole) < len(whole) / 5  # 1 in 15 by chance
    assert listed(kernel, []) == {}
