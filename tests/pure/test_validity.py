"""Validity and record partition: one size, two sizes, any number of sizes, against brute force and another library's flow."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.privacy.buckets import BucketSetting
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import Thresholds
from anonlib.solvers.buckets.sensitive_table import SensitiveTable
from anonlib.solvers.buckets.transport import transport
from anonlib.solvers.buckets.validity import check, partition, two_size_partition, two_size_valid
from tests.oracles import bucket_settings as oracle
from tests.thorough import trials

SHARES = [Fraction(share) for share in ("1/7", "0.29", "1/4", "1/3", "2/5", "1/2", "3/5", "2/3", "1")]


@st.composite
def problems(draw, most_sizes: int, most_buckets: int):
    """Buckets first, then values that hold as many records as the buckets: feasible settings, valid or not."""
    buckets = draw(
        st.lists(st.integers(1, 6), min_size=1, max_size=most_buckets).filter(lambda b: len(set(b)) <= most_sizes)
    )
    left, counts = sum(buckets), []
    while left:
        counts.append(draw(st.integers(1, min(left, 6))))
        left -= counts[-1]
    thresholds = tuple(max(Fraction(o, sum(counts)), draw(st.sampled_from(SHARES))) for o in counts)
    return counts, Thresholds(thresholds), sorted(buckets)


def seen(counts, thresholds) -> SensitiveTable:
    named = SensitiveCounts(tuple(map(str, range(len(counts)))), np.array(counts))
    return SensitiveTable.of(named, thresholds, sum(counts))


@settings(max_examples=trials(500, 100), deadline=None)
@given(problems(most_sizes=1, most_buckets=4))
def test_one_size_lemma_against_brute_force(problem):
    counts, thresholds, buckets = problem
    size, number = buckets[0], len(buckets)
    lemma = sum(counts) == size * number and bool(
        (np.array(counts) <= thresholds.capacity(size) * number).all()
    )  # Lemma 2 (4)
    assert lemma == oracle.valid(counts, thresholds.fractions, buckets)
    found = partition(seen(counts, thresholds), BucketSetting((size,), (number,)))
    assert (found is not None) == lemma


@settings(max_examples=trials(500, 100), deadline=None)
@given(problems(most_sizes=2, most_buckets=4).filter(lambda p: len(set(p[2])) == 2))
def test_two_size_theorem_and_its_partition_against_brute_force(problem):
    counts, thresholds, buckets = problem
    sizes = tuple(sorted(set(buckets)))
    numbers = tuple(buckets.count(size) for size in sizes)
    o, (small, large) = np.array(counts), (thresholds.capacity(size) for size in sizes)
    valid = two_size_valid(o, small, large, sizes, numbers)
    assert valid == oracle.valid(counts, thresholds.fractions, buckets)
    if valid:
        parts = two_size_partition(o, small, large, sizes, numbers)
        check(seen(counts, thresholds), BucketSetting(sizes, numbers), parts)
    else:
        with pytest.raises(ValueError, match="not a valid setting"):
            two_size_partition(o, small, large, sizes, numbers)


def test_the_fill_constraint_of_the_larger_size_can_be_the_only_one_that_fails():
    """Four values at 1/3 fill a bucket of 3 but not one of 5: two of 3 and one of 5 keep PC, CC and FC of the smaller size."""
    counts, third = np.array([3, 3, 3, 2]), Thresholds((Fraction(1, 3),) * 4)
    small, large = third.capacity(3), third.capacity(5)
    assert (np.minimum(2 * small, counts) + np.minimum(large, counts) >= counts).all()
    assert np.minimum(2 * small, counts).sum() >= 6
    assert not two_size_valid(counts, small, large, (3, 5), (2, 1))
    assert not oracle.valid(counts.tolist(), third.fractions, [3, 3, 5])


@settings(max_examples=trials(600, 100), deadline=None)
@given(problems(most_sizes=6, most_buckets=5))
def test_any_setting_by_flow_against_brute_force(problem):
    counts, thresholds, buckets = problem
    setting = BucketSetting.of((size, 1) for size in buckets)
    table = seen(counts, thresholds)
    parts = partition(table, setting)
    assert (parts is not None) == oracle.valid(counts, thresholds.fractions, buckets)
    if parts is not None:
        check(table, setting, parts)


@settings(max_examples=trials(150, 100), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_transport_against_networkx_and_its_own_proof(seed):
    """A flow places everything within capacity; a refusal comes with crowded sets that prove it by counting."""
    random = np.random.default_rng(seed)
    rows, columns = int(random.integers(1, 15)), int(random.integers(1, 9))
    supply = random.integers(1, 40, rows)
    demand = random.multinomial(int(supply.sum()), random.dirichlet(np.ones(columns)))
    capacity = random.integers(0, 30, (rows, columns)) * (random.random((rows, columns)) < 0.7)
    scale = int(random.choice([1, 10**9]))
    found = transport(supply * scale, capacity * scale, demand * scale)
    graph = nx.DiGraph()
    graph.add_nodes_from(["source", "sink"])
    for i in range(rows):
        graph.add_edge("source", ("row", i), capacity=int(supply[i]))
        for j in range(columns):
            graph.add_edge(("row", i), ("column", j), capacity=int(capacity[i, j]))
    for j in range(columns):
        graph.add_edge(("column", j), "sink", capacity=int(demand[j]))
    placed = nx.maximum_flow_value(graph, "source", "sink")
    assert (found.flow is not None) == (placed == int(supply.sum()))
    if found.flow is not None:
        assert (found.flow >= 0).all()
        assert (found.flow <= capacity * scale).all()
        assert (found.flow.sum(axis=1) == supply * scale).all()
        assert (found.flow.sum(axis=0) == demand * scale).all()
    else:
        assert found.crowded
        for crowd in found.crowded:
            assert int(np.minimum(demand, capacity[crowd].sum(axis=0)).sum()) < int(supply[crowd].sum())


def test_transport_refuses_sums_that_differ():
    with pytest.raises(ValueError, match="3 records cannot fill 2 places"):
        transport(np.array([3]), np.array([[3]]), np.array([2]))


def test_partition_refuses_settings_of_the_wrong_size():
    table = seen([3, 3], Thresholds((Fraction(1, 2), Fraction(1, 2))))
    assert partition(table, BucketSetting((2,), (2,))) is None  # 4 records of 6
    assert partition(table, BucketSetting((1, 2), (2, 2))) is None  # nobody fits a bucket of 1
    assert partition(table, BucketSetting((2,), (3,))).tolist() == [[3], [3]]


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        ([[3, 0], [0, 3]], "wrong shape|exactly full|more records"),
        ([[2], [3]], "loses or invents"),
        ([[4], [2]], "loses or invents"),
        ([[-1], [7]], "negative"),
    ],
)
def test_check_finds_each_fault(parts, complaint):
    table = seen([3, 3], Thresholds((Fraction(1, 2), Fraction(1, 2))))
    with pytest.raises(AssertionError, match=complaint):
        check(table, BucketSetting((2,), (3,)), np.array(parts))


def test_check_finds_a_bucket_that_is_not_full_and_a_threshold_that_is_not_kept():
    table = seen([4, 4], Thresholds((Fraction(1, 2), Fraction(1, 2))))
    setting = BucketSetting((2, 4), (2, 1))
    check(table, setting, np.array([[2, 2], [2, 2]]))
    with pytest.raises(AssertionError, match="exactly full"):
        check(table, setting, np.array([[2, 2], [1, 3]]))
    with pytest.raises(AssertionError, match="threshold"):
        check(table, setting, np.array([[1, 3], [3, 1]]))


def test_merged_values_are_dealt_out_evenly():
    """Five values alike share 11 and 9 records: each gets its 4, and floor or ceil of the share of each size."""
    table = seen([4] * 5, Thresholds((Fraction(1, 2),) * 5))
    values = table.merged()
    assert values.members.tolist() == [5]
    dealt = values.deal(np.array([[11, 9]]), 5)
    assert dealt.sum(axis=1).tolist() == [4] * 5
    assert dealt.sum(axis=0).tolist() == [11, 9]
    assert sorted(dealt[:, 0].tolist()) == [2, 2, 2, 2, 3]
