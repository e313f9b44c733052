"""Gamma(S_1, S_2) against plain enumeration."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonlib.solvers.buckets.bucket_candidates import Candidates

pairs = st.tuples(st.integers(1, 25), st.integers(1, 25)).map(lambda p: (p[0], p[0] + p[1]))


def enumerated(n: int, small: int, large: int) -> list[tuple[int, int]]:
    return [((n - large * b2) // small, b2) for b2 in range(n // large + 1) if (n - large * b2) % small == 0]


@given(st.integers(1, 3000), pairs)
def test_every_pair_once_and_in_order(n, sizes):
    candidates = Candidates.of(n, *sizes)
    assert list(candidates) == enumerated(n, *sizes)
    losses = [b1 * (sizes[0] - 1) ** 2 + b2 * (sizes[1] - 1) ** 2 for b1, b2 in candidates]
    assert losses == [candidates.loss(i) for i in range(candidates.length)]
    assert losses == sorted(set(losses))  # Lemma 3: strictly ascending


@given(st.integers(1, 2000), pairs, st.integers(0, 60_000))
def test_cutoff_keeps_exactly_the_candidates_that_lose_less(n, sizes, best):
    candidates = Candidates.of(n, *sizes)
    assert candidates.cutoff(best) == sum(candidates.loss(i) < best for i in range(candidates.length))
    assert candidates.cutoff(None) == candidates.length


@given(st.integers(1, 2000), pairs)
def test_no_pair_unless_the_common_divisor_divides(n, sizes):
    if any((n - sizes[1] * b2) % sizes[0] == 0 for b2 in range(n // sizes[1] + 1)):
        assert Candidates.of(n, *sizes).length > 0
    else:
        assert Candidates.of(n, *sizes).length == 0


def test_ten_thousand_million_records_are_addressed_without_a_scan():
    n = 10**10 + 7
    candidates = Candidates.of(n, 49, 50)
    assert candidates.length > 4_000_000
    for i in (0, 1, candidates.length // 2, candidates.length - 1):
        b1, b2 = candidates.at(i)
        assert 49 * b1 + 50 * b2 == n
        assert b1 >= 0
        assert b2 >= 0
    assert candidates.at(0)[1] < 49  # the least b_2
    assert candidates.at(candidates.length - 1)[0] < 50  # the least b_1


def test_an_index_outside_the_list_is_refused():
    candidates = Candidates.of(28, 2, 4)
    for i in (-1, candidates.length):
        with pytest.raises(IndexError):
            candidates.at(i)
