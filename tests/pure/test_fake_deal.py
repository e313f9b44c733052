"""Fakes that nobody can tell: how often each value is one, lists of distinct values, and what is known of a bucket's fakes.

Fixed keys; each statistical test would fail for at most one key in 10^6.
"""

from __future__ import annotations

import pickle
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as some
from scipy import stats

from anonlib.errors import Unsatisfiable
from anonlib.kernels.ranked.fake_deal import FakeDeal
from anonlib.kernels.ranked.round_robin import Deal, composition
from anonlib.keyed import Stream
from anonlib.solvers.buckets import fake_values
from anonlib.solvers.buckets.fake_chain import mix, real_places
from anonlib.solvers.buckets.fake_lists import fakes_beside
from anonlib.solvers.buckets.fake_values import apportion, plan
from anonlib.solvers.buckets.validity import two_size_partition
from tests.thorough import trials

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))


def tables(data, most):
    """(counts, sizes, numbers, extra) of a small table whose values go once into a bucket; as a solver has them, sizes S and S + 1."""
    size, extra = data.draw(some.integers(2, 5)), data.draw(some.integers(1, 3))
    numbers = [data.draw(some.integers(2, 25)), data.draw(some.integers(0, 2))]
    n, buckets = numbers[0] * size + numbers[1] * (size + 1), sum(numbers)
    m = data.draw(some.integers(size + 1 + extra, most))
    assume(m <= n)
    rng = np.random.default_rng(data.draw(some.integers(0, 999)))
    weights = rng.exponential(size=m) ** data.draw(some.sampled_from([0.1, 1, 2]))
    counts = np.minimum(1 + np.floor(weights / weights.sum() * (n - m)).astype(np.int64), buckets)
    for i in range(int(n - counts.sum())):  # the rest in turn, where there is room
        counts[next(v for v in np.roll(np.arange(m), -i) if counts[v] < buckets)] += 1
    return counts, [size, size + 1], numbers, extra


def held(counts, sizes, numbers):
    """What a deal in turn holds."""
    ones = np.ones(len(counts), dtype=np.int64)
    if len(sizes) == 1:
        partition = np.array(counts)[:, None]
    else:
        partition = two_size_partition(np.array(counts), ones, ones, tuple(sizes), tuple(numbers))
    return list(composition(Deal(partition, np.array(numbers))))


def dealt(counts, sizes, numbers, extra, key=KEY, pool=fake_values.POOL):
    """(lists, real values) of each bucket: {bucket: set of codes} twice, and the plan."""
    counts = np.array(counts, dtype=np.int64)
    found = plan(counts, held(counts, sizes, numbers), extra, key, pool)
    kernel = FakeDeal(counts, extra, found.listed, found.real_start, found.real, key)
    code = np.repeat(np.arange(len(counts)), counts)
    rank = np.concatenate([np.arange(c) for c in counts])
    real: dict[int, list[int]] = {b: [] for b in range(sum(numbers))}
    for b, c in zip(pickle.loads(pickle.dumps(kernel))(code, rank).tolist(), code.tolist(), strict=True):
        real[b].append(c)
    lists = {b: g.codes for g in found.listed for b in range(g.start, g.stop)}
    return lists, real, found


@settings(max_examples=60, deadline=None)
@given(some.data(), some.sampled_from([0, 20, fake_values.POOL]))
def test_every_bucket_is_full_and_nothing_is_lost_or_invented(data, pool):
    counts, sizes, numbers, extra = tables(data, most=14)
    lists, real, found = dealt(counts, sizes, numbers, extra, pool=pool)
    size_of = np.repeat(sizes, numbers)
    for b in range(sum(numbers)):
        assert len(real[b]) == len(set(real[b])) == size_of[b]
        assert len(lists[b]) == size_of[b] + extra
        assert set(real[b]) < set(lists[b])
    assert Counter(c for b in lists for c in lists[b]) == Counter(dict(enumerate((counts + found.fakes).tolist())))


@settings(max_examples=trials(200, 100), deadline=None)
@given(some.lists(some.integers(1, 12), min_size=2, max_size=4), some.integers(12, 16), some.integers(1, 20))
def test_no_other_numbers_of_fakes_make_the_likeliest_value_less_likely(counts, buckets, total):
    """Against every way to choose the numbers."""
    room = [buckets - c for c in counts]
    assume(total <= sum(room))

    def worst(fakes):
        return max(Fraction(c, c + f) for c, f in zip(counts, fakes, strict=True))

    def ways(left, rooms):
        if not rooms:
            yield from ([()] if left == 0 else [])
            return
        for f in range(min(left, rooms[0]) + 1):
            yield from ((f, *rest) for rest in ways(left - f, rooms[1:]))

    found = apportion(np.array(counts, dtype=np.int64), total, buckets).tolist()
    assert sum(found) == total
    assert all(0 <= f <= r for f, r in zip(found, room, strict=True))
    assert worst(found) == min(worst(fakes) for fakes in ways(total, room))


def test_numbers_of_fakes_at_ten_billion_records():
    counts = np.array([10**9 - 7, 3, 1, 4 * 10**9, 5 * 10**9 + 3], dtype=np.int64)
    found = apportion(counts, 2 * 10**9, 10**10)
    assert found.sum() == 2 * 10**9
    assert (found >= 1).all()
    assert abs(counts / found - 5)[[0, 3, 4]].max() < 1e-6


def test_no_room():
    with pytest.raises(Unsatisfiable, match="do not fit beside 9 records in 3 buckets"):
        apportion(np.array([3, 3, 2, 1], dtype=np.int64), 4, 3)


@settings(max_examples=trials(150, 100), deadline=None)
@given(some.data())
def test_every_bucket_gets_fakes_that_it_does_not_hold(data):
    """However few values there are, and however rare: nothing is refused that has room."""
    counts, sizes, numbers, extra = tables(data, most=40)
    buckets = sum(numbers)
    fakes = apportion(counts, extra * buckets, buckets)
    found = fakes_beside(held(counts, sizes, numbers), fakes, extra)
    assert [b.start for b in found] == [0, *[b.stop for b in found[:-1]]]
    assert found[-1].stop == buckets
    size_of = np.repeat(sizes, numbers)
    listed = np.zeros((2, len(counts)), dtype=np.int64)
    for b in found:
        assert not b.real & b.fake
        assert len(b.fake) == extra
        assert {len(b.real)} == set(size_of[b.start : b.stop].tolist())
        listed[0, sorted(b.real)] += b.stop - b.start
        listed[1, sorted(b.fake)] += b.stop - b.start
    assert (listed == [counts, fakes]).all()


def test_a_fake_finds_its_place_by_two_changes():
    """The last bucket that needs a fake lists the value already, and whoever lacks it has nothing to give for it but a real value."""
    counts = np.array([3, 2, 3, 2, 2, 1, 2, 2], dtype=np.int64)
    fakes = apportion(counts, 12, 4)
    found = fakes_beside(held(counts, [4, 5], [3, 1]), fakes, 3)
    assert all(not b.real & b.fake and len(b.fake) == 3 for b in found)
    assert Counter(v for b in found for v in [*b.fake] * (b.stop - b.start)) == Counter(dict(enumerate(fakes.tolist())))
    assert Counter(v for b in found for v in [*b.real] * (b.stop - b.start)) == Counter(
        dict(enumerate(counts.tolist()))
    )


@pytest.mark.long
def test_the_chain_finds_every_choice_equally_often():
    """All choices of fakes with given sums on small lists, by enumeration; 2,000 keys, chi-square."""
    lists = [(0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 3, 4), (1, 2, 3, 4), (0, 2, 3, 4)]
    start = [[0, 1], [2, 3], [0, 1], [3, 4], [2, 4]]
    sums = Counter(c for row in start for c in row)
    every = []

    def extend(rows):
        if len(rows) == len(lists):
            if Counter(c for row in rows for c in row) == sums:
                every.append(tuple(rows))
            return
        for pair in combinations(lists[len(rows)], 2):
            extend([*rows, pair])

    extend([])
    assert len(every) > 50
    seen = Counter()
    for k in range(2000):
        fake = [list(row) for row in start]
        mix(fake, real_places(lists, fake, 5), Stream(KEY, "test", k))
        seen[tuple(tuple(sorted(row)) for row in fake)] += 1
    assert set(seen) <= set(every)
    assert stats.chisquare([seen[way] for way in every]).pvalue > 1e-6


def last_of_a_bucket(lists, real, counts, fakes, rounds, seed=0) -> float:
    """How often somebody who knows all of a bucket's records but one names the last one's value: the likeliest that remains, by counts."""
    rng, right = np.random.default_rng(seed), 0
    odds = counts / np.maximum(fakes, 1e-9)
    for b in rng.choice(len(lists), rounds):
        last = rng.choice(real[b])
        left = [c for c in lists[b] if c == last or c not in real[b]]
        best = max(odds[c] for c in left)
        right += rng.choice([c for c in left if odds[c] == best]) == last
    return right / rounds


@pytest.mark.long
@pytest.mark.parametrize("pool", [fake_values.POOL, 100])
def test_who_knows_all_but_one_names_the_last_no_better_than_promised(pool):
    """50 values from 7.5 % to 0.4 %, buckets of 10, two fakes: 1/3. 20,000 tries, a bound of 4.9 standard errors."""
    weights = 1 / np.arange(6, 56)
    counts = np.floor(weights / weights.sum() * 30_000).astype(np.int64)
    counts[1] += 30_000 - counts.sum()
    lists, real, found = dealt(counts, [10], [3000], 2, pool=pool)
    right = last_of_a_bucket(lists, real, counts, found.fakes, 20_000)
    share = counts / (counts + found.fakes)
    odds = share.max() / (1 - share.max()), share.min() / (1 - share.min())
    assert right < odds[0] / (odds[0] + 2 * odds[1]) + 4.9 * (2 / 9 / 20_000) ** 0.5
    assert share.max() < 0.8345


def test_fakes_of_a_block_are_any_of_its_values():
    """Over 3,000 blocks: each pair of the six values of a bucket is its pair of fakes equally often, in each place of the block."""
    lists, real, _ = dealt([12_000] * 6, [4], [18_000], 2, pool=0)
    pairs = Counter((b % 6, tuple(sorted(set(lists[b]) - set(real[b])))) for b in lists)
    assert len(pairs) == 6 * 15
    assert stats.chisquare(list(pairs.values())).pvalue > 1e-6


def with_a_frequent_value(share):
    """5,000 buckets of five, the most frequent value in that share of them."""
    weights = 1 / np.arange(6, 36)
    counts = np.floor(weights / weights.sum() * 5000 * (5 - share)).astype(np.int64)
    return np.array([int(5000 * share), *counts.tolist()[1:], 25_000 - int(5000 * share) - int(counts[1:].sum())])


def test_a_value_too_frequent_for_blocks_is_drawn_in_a_larger_pool():
    lists, real, found = dealt(with_a_frequent_value(0.95), [5], [5000], 1, pool=1000)
    assert sum(g.pooled for g in found.listed) > 2000
    assert {len(real[b]) for b in lists} == {5}
    assert found.fakes[0] == 250


def test_a_value_too_frequent_in_a_table_too_large(monkeypatch):
    monkeypatch.setattr(fake_values, "POOL", 500)
    monkeypatch.setattr(fake_values, "LARGEST_POOL", 600)
    with pytest.raises(Unsatisfiable, match="a value of 4,750 records cannot be a fake as often"):
        dealt(with_a_frequent_value(0.95), [5], [5000], 1, pool=500)


def test_another_key_chooses_other_fakes():
    counts = [300] * 10
    one, same, other = (dealt(counts, [5], [600], 2, key)[1] for key in (KEY, KEY, OTHER))
    assert one == same
    assert sum(sorted(one[b]) == sorted(other[b]) for b in one) < 100  # 1 in 21 by chance
