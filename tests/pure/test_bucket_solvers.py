"""TwoSize, MultiSize and Optimal against exhaustive search, and against each other on tables too large for that."""

from __future__ import annotations

import time
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anonlib.privacy.buckets import BucketSolution
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy, Thresholds
from anonlib.solvers.buckets import bucket_milp, choose, multi_size, two_size
from anonlib.solvers.buckets.bucket_candidates import Candidates
from anonlib.solvers.buckets.sensitive_table import SensitiveTable
from anonlib.solvers.buckets.validity import check, two_size_valid
from tests.oracles import bucket_settings as oracle
from tests.thorough import cases, trials

SOLVERS = ("two_size", "multi_size", "optimal")


def sensitive(counts) -> SensitiveCounts:
    return SensitiveCounts(tuple(f"x{i + 1}" for i in range(len(counts))), np.array(counts, dtype=np.int64))


@st.composite
def small_tables(draw):
    """At most 13 records of 1 to 7 values, thresholds of their own: loose for some, only just above the share for others."""
    m = draw(st.sampled_from([1, 2, 3, 4, 4, 5, 5, 5, 6, 7]))
    counts = [draw(st.integers(1, 5 if m < 4 else 3)) for _ in range(m)]
    while sum(counts) > 13:
        counts[counts.index(max(counts))] -= 1
    n = sum(counts)
    thresholds = tuple(max(Fraction(o, n), draw(st.sampled_from(_SHARES))) for o in counts)
    return counts, Thresholds(thresholds), max(1, n - draw(st.sampled_from([0, 0, 1, 2, n // 2])))


_SHARES = [
    Fraction(share)
    for share in ("1/7", "1/6", "1/5", "0.29", "1/4", "1/3", "0.34", "2/5", "1/2", "1/2", "3/5", "2/3", "1", "1")
]


@st.composite
def tables(draw, most_values: int, most_records: int):
    """Larger tables: counts, thresholds that keep Lemma 1 (some only just), and a largest bucket size."""
    counts = draw(st.lists(st.integers(1, most_records // most_values), min_size=1, max_size=most_values))
    n = sum(counts)
    shares = st.sampled_from(_SHARES) | st.fractions(min_value=Fraction(1, 12), max_value=1, max_denominator=40)
    thresholds = tuple(max(Fraction(o, n), draw(shares | st.just(Fraction(o, n)))) for o in counts)
    return counts, Thresholds(thresholds), draw(st.integers(1, min(n + 2, 24)))


def answers(counts, thresholds, largest) -> tuple[BucketSolution | None, ...]:
    """TwoSize, MultiSize and Optimal on one table, None where there is no valid setting."""
    seen = SensitiveTable.of(sensitive(counts), thresholds, largest)
    if len(seen.sizes) == 0:
        return None, None, None
    two, multi = two_size.solve(seen), multi_size.solve(seen)
    return (
        None
        if two is None
        else BucketSolution(two, two_size.partition(seen, two), "two_size", two.loss, "optimal", 0.0),
        None if multi is None else BucketSolution(*multi, "multi_size", 0, "heuristic", 0.0),
        bucket_milp.solve(seen, 20),
    )


def assert_sound(solution: BucketSolution, counts, thresholds, largest) -> None:
    """Every record placed once, every bucket exactly full, every threshold kept: from the numbers alone."""
    setting, parts = solution.setting, solution.partition.tolist()
    assert max(setting.sizes) <= largest
    assert [sum(row) for row in parts] == counts
    for j, (size, number) in enumerate(zip(setting.sizes, setting.numbers, strict=True)):
        assert sum(row[j] for row in parts) == size * number
        assert all(0 <= row[j] <= floor(f * size) * number for row, f in zip(parts, thresholds.fractions, strict=True))
    assert solution.bound <= solution.loss


@pytest.mark.long
@settings(max_examples=trials(2200, 80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(small_tables())
def test_solvers_agree_with_exhaustive_search(table):
    counts, thresholds, largest = table
    two, multi, optimal = answers(counts, thresholds, largest)
    best_two, best = oracle.best_losses(counts, thresholds.fractions, largest)
    assert (two.loss if two else None) == best_two
    assert (optimal is None) == (best is None)
    assert (multi is None) == (two is None)
    for found in (two, multi, optimal):
        if found is not None:
            assert_sound(found, counts, thresholds, largest)
    if optimal is not None:
        assert optimal.loss == best == optimal.bound
        assert optimal.status == "optimal"
    if multi is not None:
        assert best <= multi.loss <= best_two


@settings(max_examples=trials(300, 100), deadline=None)
@given(tables(most_values=8, most_records=3000))
def test_pruning_changes_the_time_never_the_answer(table):
    counts, thresholds, largest = table
    seen = SensitiveTable.of(sensitive(counts), thresholds, largest)
    full, loss, none = (two_size.solve(seen, pruning) for pruning in ("full", "loss", "none"))
    assert full == loss == none
    assert two_size.exists(seen) == (full is not None)


@settings(max_examples=trials(300, 100), deadline=None)
@given(tables(most_values=5, most_records=400), st.integers(1, 12), st.integers(1, 12))
def test_valid_candidates_of_a_size_pair_are_consecutive(table, small, more):
    """All three cases of PC_xi are u_i1 + u_i2 >= o_i, so no value accepts two separate stretches of the list."""
    counts, thresholds, _ = table
    o = np.array(counts)
    large = small + more
    c1, c2 = thresholds.capacity(small), thresholds.capacity(large)
    candidates = list(Candidates.of(sum(counts), small, large))
    accepted = np.array(
        [
            [min(u1 * b1, x) + min(u2 * b2, x) >= x for x, u1, u2 in zip(counts, c1, c2, strict=True)]
            for b1, b2 in candidates
        ]
    ).reshape(len(candidates), len(counts))
    valid = np.array([two_size_valid(o, c1, c2, (small, large), pair) for pair in candidates], dtype=bool)
    for holds in (*accepted.T, valid):
        assert (np.diff(np.flatnonzero(holds)) == 1).all()


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(tables(most_values=12, most_records=2000))
def test_order_of_losses_and_soundness_on_larger_tables(table):
    counts, thresholds, _ = table
    two, multi, optimal = answers(counts, thresholds, 20)
    for found in (two, multi, optimal):
        if found is not None:
            assert_sound(found, counts, thresholds, 20)
    if two is not None:
        assert optimal.loss <= multi.loss <= two.loss
        assert optimal.bound <= optimal.loss
        assert bucket_milp.lower_bound(SensitiveTable.of(sensitive(counts), thresholds, 20), 5) <= optimal.loss


def skewed(m: int, n: int) -> SensitiveCounts:
    weights = 1 / np.arange(1, m + 1)
    counts = np.maximum(1, np.floor(weights / weights.sum() * n)).astype(np.int64)
    counts[0] += n - counts.sum()
    return sensitive(counts)


@pytest.mark.long
@pytest.mark.parametrize("n", cases(10**10, nightly=[10**5, 10**7]))
def test_ten_thousand_million_records_overflow_nothing(n):
    counts = skewed(50, n)
    thresholds = FPrivacy.linear(4, "0.02").thresholds(counts)
    two, multi, optimal = (choose.solve(counts, thresholds, solver, 50, 30) for solver in SOLVERS)
    for found in (two, multi, optimal):
        assert_sound(found, counts.counts.tolist(), thresholds, 50)
    assert optimal.loss <= multi.loss <= two.loss
    assert optimal.gap == 0
    assert n * 3 < optimal.loss < n * 50


@pytest.mark.long
def test_a_table_times_k_loses_k_times_as_much_at_most():
    counts = skewed(30, 20_000)
    thresholds = FPrivacy.linear(4, "0.02").thresholds(counts)
    many = sensitive(counts.counts * 1000)
    for solver in ("two_size", "optimal"):
        once, often = (choose.solve(c, thresholds, solver, 40, 30).loss for c in (counts, many))
        assert often <= 1000 * once


def test_multi_size_stops_splitting_at_its_deadline_and_stays_valid():
    counts = skewed(30, 20_000)
    table = SensitiveTable.of(counts, FPrivacy.linear(4, "0.02").thresholds(counts), 40)
    setting, parts = multi_size.solve(table, deadline=0.0)
    check(table, setting, parts)
    assert setting == two_size.solve(table)
    assert multi_size.solve(table)[0].loss < setting.loss


@pytest.mark.long
def test_optimal_out_of_time_returns_a_valid_setting_with_an_honest_gap():
    counts = skewed(80, 200_000)
    thresholds = FPrivacy.linear(8, "0.02").thresholds(counts)
    table = SensitiveTable.of(counts, thresholds, 50)
    hasty, patient = bucket_milp.solve(table, 1e-3), bucket_milp.solve(table, 30)
    assert_sound(hasty, counts.counts.tolist(), thresholds, 50)
    assert hasty.status == "time_limit"
    assert hasty.bound <= patient.bound <= patient.loss <= hasty.loss
    assert hasty.gap > 0
    assert patient.gap <= 1e-4


@pytest.mark.long
def test_same_input_same_answer():
    counts = skewed(40, 50_000)
    thresholds = FPrivacy.linear(8, "0.02").thresholds(counts)
    for solver in SOLVERS:
        one, other = (choose.solve(counts, thresholds, solver, 50, 30) for _ in range(2))
        assert one.setting == other.setting
        assert (one.partition == other.partition).all()


@pytest.mark.long
def test_long_ranges_cost_the_bound_what_tolerances_may_have_added_until_they_are_narrowed():
    """At 10^10 records a solver that trusts reduced costs of -10^-7 may claim a bound above the truth by hundreds of records."""
    counts = skewed(50, 10**10)
    table = SensitiveTable.of(counts, FPrivacy.linear(4, "0.02").thresholds(counts), 50)
    best = bucket_milp.solve(table, 30)
    search = bucket_milp._Search(table)
    search.relax(time.perf_counter() + 30)
    base = np.floor(search.fractional).astype(np.int64)
    program = bucket_milp._IntegerProgram(search.conditions, base)
    assert program.slip > 100
    wide = program.solve(None, 10)
    assert best.loss - 10 * program.slip < wide.bound <= best.loss - program.slip + 1
    program.narrow(best.loss + 1)
    assert program.slip == 0
    assert program.solve(best.loss + 1, 10).bound == best.loss  # the optimum itself lies in the narrowed ranges
    assert program.solve(best.loss, 10).infeasible
