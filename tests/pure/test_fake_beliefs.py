"""What may be believed beside fakes, by enumeration of all worlds, for somebody who knows the code, all counts and all lists."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from anonlib.audit import arithmetic
from anonlib.kernels.ranked.fake_values import FakeValues
from anonlib.kernels.ranked.round_robin import Deal, composition
from anonlib.keyed import derive
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import real_shares
from anonlib.solvers.buckets.fake_lists import fakes_beside
from anonlib.solvers.buckets.fake_values import apportion, plan
from tests.oracles.fake_worlds import last_named, worlds_by_fakes
from tests.pure.test_fake_deal import KEY, dealt, held

TABLES = 150


def some_table(seed):
    """(counts, sizes, numbers, s) of 4 to 9 buckets."""
    rng = np.random.default_rng(seed)
    while True:
        size, s, buckets = (int(rng.integers(a, b)) for a, b in ((2, 5), (1, 3), (4, 10)))
        numbers = [buckets - 1, 1] if rng.integers(2) else [buckets, 0]
        n, m = numbers[0] * size + numbers[1] * (size + 1), int(rng.integers(size + 1 + s, size + s + 4))
        weights = rng.dirichlet(np.full(m, rng.choice([0.7, 2, 10, 50])))
        counts = np.bincount(rng.choice(m, n, p=weights), minlength=m).astype(np.int64)
        if counts.min() > 0 and counts.max() <= buckets:
            return counts, [size, size + 1], numbers, s


def enumerated(counts, sizes, numbers, s):
    """(lists, fakes, worlds by bucket)"""
    fakes = apportion(counts, s * sum(numbers), sum(numbers))
    lists = [b.codes for b in fakes_beside(held(counts, sizes, numbers), fakes, s) for _ in range(b.start, b.stop)]
    return lists, fakes, worlds_by_fakes(lists, fakes.tolist(), s)


def told(counts, fakes, s):
    return real_shares(SensitiveCounts(tuple(map(str, range(len(counts)))), counts), fakes, s)


@pytest.mark.long
def test_who_names_the_likeliest_last_value_is_right_no_more_often_than_the_words_say():
    """On average over the buckets; "about" is at most 1/b^2 in tables of b buckets. A single belief may well be higher."""
    higher, loose = 0, 0
    for seed in range(TABLES):
        counts, sizes, numbers, s = some_table(seed)
        lists, fakes, worlds = enumerated(counts, sizes, numbers, s)
        found = [last_named(codes, of, s) for codes, of in zip(lists, worlds, strict=True)]
        average, bound = sum(right for right, _ in found) / len(found), told(counts, fakes, s)[2]
        assert average <= bound + Fraction(1, sum(numbers) ** 2), (seed, counts)
        higher += max(belief for _, belief in found) > bound
        loose += bound == 1
    assert 0 < higher < TABLES / 3  # why the words are about the average
    assert loose < TABLES / 2


def test_of_the_buckets_that_list_a_value_as_many_hold_it_as_the_words_say():
    counts, sizes, numbers, s = some_table(1)
    lists, fakes, worlds = enumerated(counts, sizes, numbers, s)
    for v in range(len(counts)):
        real = sum(
            Fraction(sum(n for out, n in of.items() if v not in out), sum(of.values()))
            for codes, of in zip(lists, worlds, strict=True)
            if v in codes
        )
        assert real == counts[v]
        assert Fraction(int(counts[v]), int(counts[v] + fakes[v])) >= told(counts, fakes, s)[0]


def test_what_is_listed_follows_from_counts_alone_and_what_is_fake_does_not():
    counts = [300] * 10
    (one, real, _), (same, other, _) = (dealt(counts, [5], [600], 2, derive(KEY, "test", k)) for k in (1, 2))
    assert one == same
    assert sum(sorted(real[b]) == sorted(other[b]) for b in real) < 100  # 1 in 21 by chance


@pytest.mark.long
def test_the_draw_has_the_law_of_all_worlds():
    """1,500 keys; chi-square over the fakes of one bucket. Would fail for one in 10^6."""
    counts, sizes, numbers, s = np.array([5, 4, 3, 3, 2, 1]), [3], [6], 1
    _, _, worlds = enumerated(counts, sizes, numbers, s)
    deal, seen = held(counts, sizes, numbers), Counter()
    for k in range(1500):
        found = plan(counts, deal, s, derive(KEY, "test", k))
        real = {v for v in range(6) if 2 in found.real[found.real_start[v] : found.real_start[v + 1]]}
        listed = next(g.codes for g in found.listed if g.start <= 2 < g.stop)
        seen[tuple(sorted(set(listed) - real))] += 1
    expected = {out: n for out, n in worlds[2].items() if n}
    assert seen.keys() <= expected.keys()
    total = sum(expected.values())
    assert stats.chisquare([seen[o] for o in expected], [1500 * n / total for n in expected.values()]).pvalue > 1e-6


def test_a_value_in_every_bucket_is_never_fake_and_the_words_say_so():
    counts = np.array([6, 4, 3, 2, 2, 1])
    lists, fakes, worlds = enumerated(counts, [3], [6], 1)
    assert fakes[0] == 0
    assert all(
        0 in codes and not any(n for out, n in of.items() if 0 in out) for codes, of in zip(lists, worlds, strict=True)
    )
    assert told(counts, fakes, 1)[2] == 1


@pytest.mark.parametrize("seed", range(40))
def test_numbers_of_fakes_are_the_most_even_by_the_audits_own_arithmetic(seed):
    rng = np.random.default_rng(seed)
    counts = np.sort(1 + rng.integers(0, 10 ** int(rng.integers(1, 10)), int(rng.integers(4, 40)))).astype(np.int64)
    buckets = int(max(counts.max(), -(-counts.sum() // (len(counts) - 3))) + rng.integers(0, 3))
    fakes = apportion(counts, min(buckets, int((buckets - counts).sum())), buckets)
    values = list(zip(counts.tolist(), (counts + fakes).tolist(), strict=True))
    assert not arithmetic.could_be_fake_more_evenly(values, buckets)
    if fakes[0] and counts[-1] + fakes[-1] < buckets:  # from the most frequent, which lacks it, to the rarest
        moved = [(counts[0], counts[0] + fakes[0] + 2), *values[1:-1], (counts[-1], counts[-1] + fakes[-1] - 2)]
        assert arithmetic.could_be_fake_more_evenly([(int(a), int(b)) for a, b in moved], buckets)


def test_fakes_drawn_evenly_beside_a_deal_in_turn_were_no_secret():
    """Why: whoever knows the code deals the manifest's counts, sees what each bucket holds, and has the fakes."""
    counts = np.array([120, 90, 60, 40, 30, 20])
    deal = Deal(counts[:, None], np.array([120]))
    ids, codes = FakeValues(deal, 6, 2, KEY)(np.arange(120))
    by_code = {b: set(s.codes) for s in composition(deal) for b in range(s.start, s.stop)}
    assert all(by_code[b] <= set(codes[ids == b].tolist()) for b in range(120))
    assert all(len(by_code[b]) == 3 for b in range(120))


def test_who_knows_how_buckets_are_dealt_cannot_tell_the_fake_from_the_real():
    """Which is why the deal in turn is forgotten but for what is listed: what it held is no more often true than by chance, 1 in 5."""
    counts = np.full(12, 400 * 4 // 12)
    counts[:4] += 1
    in_turn = [set(s.codes) for s in held(counts, [4], [400]) for _ in range(s.start, s.stop)]
    lists, real, _ = dealt(counts, [4], [400], 1)
    kinds = {frozenset(codes) for codes in in_turn}
    guesses = {b: [k for k in kinds if k < set(codes)] for b, codes in lists.items()}
    told = [b for b, found in guesses.items() if len(found) == 1]
    assert (
        sum(set(real[b]) == set(guesses[b][0]) for b in told) < 160
    )  # even guesses: 80 of 400, a standard deviation of 8
    assert sum(set(real[b]) == in_turn[b] for b in lists) < 160
