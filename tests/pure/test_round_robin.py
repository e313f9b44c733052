"""The deal: every bucket exactly full, floor or ceil of each value, and `composition` telling what the kernel does."""

import pickle
from collections import Counter, defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.kernels.ranked.round_robin import MAX_ENTRIES, Deal, RoundRobin, composition
from tests.thorough import trials

KEY = bytes(range(32))


@st.composite
def deals(draw):
    """A random deal: rings of S_j x b_j records, filled by values in random amounts."""
    m = draw(st.integers(1, 8))
    rings = draw(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 7)), min_size=1, max_size=3))
    columns = []
    for size, number in rings:
        cuts = sorted(draw(st.lists(st.integers(0, size * number), min_size=m - 1, max_size=m - 1)))
        columns.append(np.diff([0, *cuts, size * number]))
    return Deal(np.array(columns, dtype=np.int64).T.copy(), np.array([b for _, b in rings], dtype=np.int64)), rings


def dealt(deal, key=KEY):
    """{bucket: Counter of codes} by the kernel, over all records."""
    totals = deal.partition.sum(axis=1)
    code = np.repeat(np.arange(len(totals)), totals)
    rank = np.concatenate([np.arange(t) for t in totals]) if len(code) else np.zeros(0, np.int64)
    buckets = RoundRobin(deal, key)(code, rank)
    held = defaultdict(Counter)
    for b, c in zip(buckets.tolist(), code.tolist(), strict=True):
        held[b][c] += 1
    return held


@settings(max_examples=trials(400, 100), deadline=None)
@given(deals())
def test_buckets_are_exactly_full_and_spread_each_value_evenly(case):
    deal, rings = case
    held = dealt(deal)
    assert sorted(held) == list(range(deal.buckets))
    for j, (size, number) in enumerate(rings):
        for b in range(int(deal.first[j]), int(deal.first[j]) + number):
            assert sum(held[b].values()) == size
            for i, o in enumerate(deal.partition[:, j].tolist()):
                assert held[b][i] in (o // number, -(-o // number))


@settings(max_examples=trials(400, 100), deadline=None)
@given(deals())
def test_composition_is_what_the_kernel_deals(case):
    deal, _ = case
    held = dealt(deal)
    told = {}
    at = 0
    for stretch in composition(deal):
        assert stretch.start == at
        assert stretch.stop > stretch.start
        at = stretch.stop
        for b in range(stretch.start, stretch.stop):
            told[b] = Counter(dict(zip(stretch.codes, stretch.counts, strict=True)))
    assert at == deal.buckets
    assert told == dict(held)


@settings(max_examples=trials(400, 100), deadline=None)
@given(deals(), st.integers(1, 12))
def test_a_mixed_deal_keeps_sizes_and_records_and_tells_what_it_deals(case, bands):
    deal, sizes = case
    mixed = deal.mixed(bands)
    assert (mixed.partition.sum(axis=1) == deal.partition.sum(axis=1)).all()
    held = dealt(mixed)
    told = {
        b: Counter(dict(zip(stretch.codes, stretch.counts, strict=True)))
        for stretch in composition(mixed)
        for b in range(stretch.start, stretch.stop)
    }
    assert told == dict(held)
    assert sorted(held) == list(range(deal.buckets))
    first = 0
    for j, (size, number) in enumerate(sizes):
        of_size = [held[b] for b in range(first, first + number)]
        first += number
        assert all(sum(bucket.values()) == size for bucket in of_size)
        for i, o in enumerate(deal.partition[:, j].tolist()):
            assert sum(bucket[i] for bucket in of_size) == o
            assert {bucket[i] for bucket in of_size} <= {o // number, -(-o // number)}


def test_values_of_a_mixed_deal_meet_many_others():
    """Twelve values in buckets of three: one round meets two neighbours at a time, thirty-two bands nearly everybody."""
    deal = Deal(np.full((12, 1), 400, dtype=np.int64), np.array([1600]))

    def companions(d):
        met = np.zeros((12, 12), dtype=bool)
        for stretch in composition(d):
            met[np.ix_(stretch.codes, stretch.codes)] = True
        return met.sum(axis=1) - 1

    assert companions(deal).max() <= 4
    assert companions(deal.mixed()).min() == 11


def test_a_mixed_deal_stays_small_whatever_the_number_of_values():
    deal = Deal(np.full((3000, 40), 2, dtype=np.int64), np.full(40, 200))
    assert deal.mixed().partition.size <= MAX_ENTRIES
    assert deal.mixed().partition.shape[1] == 8 * 40


def test_table_4_of_inferential_privacy_32_records_in_4_buckets_of_8():
    """Without the permutation the literal formula: bucket (o_1 + ... + o_(i-1) + t) mod b."""
    counts = [9, 6, 5, 4, 4, 2, 1, 1]
    deal = Deal(np.array(counts, dtype=np.int64)[:, None], np.array([4]))
    literal = defaultdict(Counter)
    before = 0
    for i, o in enumerate(counts):
        for t in range(o):
            literal[(before + t) % 4][i] += 1
        before += o
    assert dealt(deal) == literal


def test_another_key_deals_otherwise_and_pickling_changes_nothing():
    deal = Deal(np.array([[40], [60]], dtype=np.int64), np.array([10]))
    code, rank = np.repeat([0, 1], [40, 60]), np.concatenate([np.arange(40), np.arange(60)])
    one = RoundRobin(deal, KEY)
    assert (pickle.loads(pickle.dumps(one))(code, rank) == one(code, rank)).all()
    assert (RoundRobin(deal, bytes(32))(code, rank) != one(code, rank)).mean() > 0.5
