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
from anonlib.kernels.fake_deal import FakeDeal
from anonlib.keyed import Stream
from anonlib.solvers import fake_values
from anonlib.solvers.fake_values import apportion, list_values, plan

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))


def dealt(counts, sizes, numbers, extra, key=KEY, pool=fake_values.POOL):
    """(lists, real values) of each bucket: {bucket: set of codes} twice, and the plan."""
    counts = np.array(counts, dtype=np.int64)
    found = plan(counts, sizes, numbers, extra, key, pool)
    kernel = FakeDeal(counts, extra, found.listed, found.real_start, found.real, key)
    code = np.repeat(np.arange(len(counts)), counts)
    rank = np.concatenate([np.arange(c) for c in counts])
    real: dict[int, list[int]] = {b: [] for b in range(sum(numbers))}
    for b, c in zip(pickle.loads(pickle.dumps(kernel))(code, rank).tolist(), code.tolist(), strict=True):
        real[b].append(c)
    lists = {b: g.codes for g in found.listed for b in range(g.start, g.stop)}
    return lists, real, found


@settings(max_examples=150, deadline=None)
@given(some.data())
def test_every_bucket_is_full_and_nothing_is_lost_or_invented(data):
    sizes = data.draw(some.lists(some.integers(2, 5), min_size=1, max_size=3, unique=True))
    numbers = [data.draw(some.integers(1, 25)) for _ in sizes]
    extra, m = data.draw(some.integers(1, 3)), data.draw(some.integers(8, 14))
    buckets, n = sum(numbers), sum(s * b for s, b in zip(sizes, numbers, strict=True))
    weights = np.array([data.draw(some.integers(1, 20)) for _ in range(m)])
    counts = np.bincount(
        np.random.default_rng(data.draw(some.integers(0, 99))).choice(m, n, p=weights / weights.sum()), minlength=m
    )
    assume(counts.min() > 0 and counts.max() <= buckets)
    pool = data.draw(some.sampled_from([0, 20, fake_values.POOL]))
    try:
        lists, real, found = dealt(counts, sizes, numbers, extra, pool=pool)
    except Unsatisfiable:
        assume(False)
    size_of = np.repeat(sizes, numbers)
    for b in range(buckets):
        assert len(real[b]) == len(set(real[b])) == size_of[b]
        assert len(lists[b]) == size_of[b] + extra
        assert set(real[b]) < set(lists[b])
    assert Counter(c for b in lists for c in lists[b]) == Counter(dict(enumerate((counts + found.fakes).tolist())))


@settings(max_examples=200, deadline=None)
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


@settings(max_examples=200, deadline=None)
@given(some.lists(some.integers(0, 1 << 20), min_size=3, max_size=9), some.integers(1, 5), some.integers(3, 40))
def test_lists_hold_each_value_as_often_as_asked(words, size, number):
    m, total = len(words), size * number
    assume(size <= m)
    places = np.array([total // m] * m, dtype=np.int64)
    places[: total % m] += 1
    for w in words:  # move places about, as far as they may go
        a, b = w % m, w // m % m
        step = min(w % 7, int(places[a]), number - int(places[b])) if a != b else 0
        places[a] -= step
        places[b] += step
    found = list_values(places, [size], [number])
    assert [a for a, _, _ in found] == [0, *[b for _, b, _ in found[:-1]]]
    assert found[-1][1] == number
    counted = np.zeros(m, dtype=np.int64)
    for a, b, codes in found:
        assert len(set(codes)) == size
        counted[list(codes)] += b - a
    assert (counted == places).all()
    assert len(found) <= m + 1


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
        real = [[r for r, codes in enumerate(lists) if c in codes and c not in start[r]] for c in range(5)]
        fake_values._mix(fake, real, Stream(KEY, "test", k))
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


def test_another_key_chooses_other_fakes():
    counts = [300] * 10
    one, same, other = (dealt(counts, [5], [600], 2, key)[1] for key in (KEY, KEY, OTHER))
    assert one == same
    assert sum(sorted(one[b]) == sorted(other[b]) for b in one) < 100  # 1 in 21 by chance
