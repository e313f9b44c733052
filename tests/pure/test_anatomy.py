"""Anatomy in closed form against the paper's greedy algorithm, one record at a time."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.errors import SpecError, Unsatisfiable
from anonlib.privacy.counts import SensitiveCounts
from anonlib.solvers.buckets import anatomy
from tests.oracles.anatomy_greedy import anatomize
from tests.thorough import trials


def sensitive(counts) -> SensitiveCounts:
    return SensitiveCounts(tuple(f"x{i + 1}" for i in range(len(counts))), np.array(counts, dtype=np.int64))


@st.composite
def eligible(draw):
    counts = draw(st.lists(st.integers(1, 12), min_size=1, max_size=12))
    return counts, draw(st.integers(1, sum(counts) // max(counts)))


def dealt(solution, counts) -> list[Counter[int]]:
    """The buckets that round robin within each size makes of the record partition."""
    buckets: list[Counter[int]] = []
    for j, (_, number) in enumerate(zip(solution.setting.sizes, solution.setting.numbers, strict=True)):
        records = np.repeat(np.arange(len(counts)), solution.partition[:, j])
        buckets += [Counter(records[g::number].tolist()) for g in range(number)]
    return buckets


@settings(max_examples=trials(500, 100), deadline=None)
@given(eligible())
def test_same_buckets_as_the_greedy_algorithm_and_distinct_values(case):
    counts, l = case  # noqa: E741
    solution = anatomy.solve(sensitive(counts), l)
    assert solution.partition.sum(axis=1).tolist() == counts
    assert (solution.partition <= np.array(solution.setting.numbers)).all()
    ours, greedy = dealt(solution, counts), anatomize(counts, l)
    for buckets in (ours, greedy):
        assert all(max(bucket.values()) == 1 and bucket.total() >= l for bucket in buckets)
        assert sum(buckets, Counter()) == Counter(dict(enumerate(counts)))
    assert sorted(bucket.total() for bucket in ours) == [
        size
        for size, number in zip(solution.setting.sizes, solution.setting.numbers, strict=True)
        for _ in range(number)
    ]
    assert len(ours) == len(greedy) == sum(counts) // l
    sizes = sorted(bucket.total() for bucket in greedy)
    assert sum((size - 1) ** 2 for size in sizes) >= solution.loss
    if sizes[-1] <= l + 1:
        assert sorted(bucket.total() for bucket in ours) == sizes


def test_more_residues_than_buckets_are_spread_evenly():
    solution = anatomy.solve(sensitive([1] * 7), 4)  # one bucket, three residues
    assert str(solution.setting) == "1 x 7"


def test_sizes_l_and_l_plus_one_at_scale():
    counts = sensitive([2 * 10**9, 10**9 + 3, 3 * 10**9, 4 * 10**9 - 1])
    solution = anatomy.solve(counts, 2)
    n, b = counts.n, counts.n // 2
    assert dict(zip(solution.setting.sizes, solution.setting.numbers, strict=True)) == {
        2: b - n % 2,
        **({3: 1} if n % 2 else {}),
    }
    assert solution.setting.records == n
    assert (solution.partition <= np.array(solution.setting.numbers)).all()


def test_refusal_names_every_value_and_the_largest_l():
    with pytest.raises(Unsatisfiable) as refused:
        anatomy.solve(sensitive([5, 5, 1, 1]), 3)
    assert "'x1' (5 of 12, share 5/12 (0.4167))" in str(refused.value)
    assert "'x2' (5 of 12, share 5/12 (0.4167))" in str(refused.value)
    assert "'x3'" not in str(refused.value)
    assert "the largest l that works is 2" in str(refused.value)
    anatomy.solve(sensitive([5, 5, 1, 1]), 2)


@pytest.mark.parametrize("l", [0, -1, 2.0, True, "3"])
def test_l_must_be_a_whole_number(l):  # noqa: E741
    with pytest.raises(SpecError, match="whole number"):
        anatomy.solve(sensitive([1, 1]), l)
