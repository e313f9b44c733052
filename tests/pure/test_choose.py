"""The door to the bucket solvers: what it answers, and what it says when nothing can be answered."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.errors import SpecError, Unsatisfiable
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy, Thresholds
from anonlib.solvers.buckets import choose, two_size
from anonlib.solvers.buckets.sensitive_table import SensitiveTable
from tests.oracles import bucket_settings as oracle
from tests.pure.test_bucket_solvers import small_tables
from tests.thorough import trials

SOLVERS = ("two_size", "multi_size", "optimal")


def sensitive(counts) -> SensitiveCounts:
    return SensitiveCounts(tuple(f"x{i + 1}" for i in range(len(counts))), np.array(counts, dtype=np.int64))


def uniform(counts: SensitiveCounts, share: str) -> Thresholds:
    return Thresholds((Fraction(share),) * counts.m)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("counts", "share", "setting"),
    [
        ([1], "1", "1 x 1"),
        ([5], "1", "5 x 1"),
        ([1, 1, 1], "1/3", "1 x 3"),
        ([2, 2], "1/2", "2 x 2"),
        ([1, 2], "1", "3 x 1"),
    ],
)
def test_tiny_tables(solver, counts, share, setting):
    counts = sensitive(counts)
    solution = choose.solve(counts, uniform(counts, share), solver, 50, 10)
    assert str(solution.setting) == setting
    assert solution.solver == solver
    assert (solution.bound, solution.status, solution.gap) == (solution.loss, "optimal", 0)
    assert solution.seconds >= 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_refusal_names_the_value_that_needs_a_larger_bucket_and_the_smallest_limit(solver):
    counts = sensitive([1, 9, 10])
    thresholds = Thresholds((Fraction("0.05"), Fraction("0.9"), Fraction("0.9")))
    with pytest.raises(
        Unsatisfiable, match=r"the threshold 0\.05 of 'x1' needs a bucket of at least 20 records"
    ) as refused:
        choose.solve(counts, thresholds, solver, 8, 10)
    assert "nothing smaller than one bucket of all 20 records is valid, and that tells nothing of anybody" in str(
        refused.value
    )
    assert refused.value.exit_code == 3
    choose.solve(counts, thresholds, solver, 20, 10)


@pytest.mark.long
@settings(max_examples=trials(150, 100), deadline=None)
@given(small_tables(), st.sampled_from(SOLVERS))
def test_the_limit_that_a_refusal_gives_is_the_smallest_that_works(table, solver):
    counts, thresholds, largest = table
    refusal = refusal_of(sensitive(counts), thresholds, solver, largest)
    if refusal is None:
        return
    found = re.search(r"(?:smallest max_bucket_size that works is|one bucket of all) (\d+)", refusal)
    assert found, refusal
    limit, which = int(found.group(1)), 1 if solver == "optimal" else 0
    assert limit > largest
    assert oracle.best_losses(counts, thresholds.fractions, limit)[which] is not None
    assert oracle.best_losses(counts, thresholds.fractions, limit - 1)[which] is None
    more_sizes_would_do = oracle.best_losses(counts, thresholds.fractions, largest)[1] is not None
    assert ("solver optimal, which may mix" in refusal) == more_sizes_would_do


def refusal_of(counts, thresholds, solver, largest) -> str | None:
    try:
        choose.solve(counts, thresholds, solver, largest, 10)
    except Unsatisfiable as refused:
        return str(refused)
    return None


@pytest.mark.long
@pytest.mark.parametrize("seed", range(trials(12, 4)))
def test_the_limit_far_above_what_single_values_need_is_still_the_smallest(seed):
    """Thresholds only just above the shares: the search has to bisect, and a plain scan of the candidates confirms it."""
    random = np.random.default_rng(seed)
    counts = sensitive(random.integers(20, 400, 5))
    slack = random.integers(1, 25, 5).tolist()
    thresholds = Thresholds(tuple(Fraction(int(o) + s, counts.n) for o, s in zip(counts.counts, slack, strict=True)))
    limit, exact = choose.smallest_max_bucket_size(counts, thresholds, "two_size", 3)
    assert exact
    assert two_size.solve(SensitiveTable.of(counts, thresholds, limit), "loss") is not None
    assert two_size.solve(SensitiveTable.of(counts, thresholds, limit - 1), "loss") is None
    assert choose.smallest_max_bucket_size(counts, thresholds, "optimal", 3)[0] <= limit


def test_a_table_that_only_more_than_two_sizes_can_hold_is_told_so():
    """Nine records in buckets of 2, 3 and 4: x1 fits only the larger two, x2 and x3 fill the smallest."""
    counts, thresholds, largest = [2, 3, 4], Thresholds((Fraction(1, 3), Fraction(2, 3), Fraction(1, 2))), 4
    two, best = oracle.best_losses(counts, thresholds.fractions, largest)
    assert two is None
    assert best is not None
    for solver in ("two_size", "multi_size"):
        with pytest.raises(
            Unsatisfiable, match="solver optimal, which may mix more than two sizes, has a valid setting as it is"
        ):
            choose.solve(sensitive(counts), thresholds, solver, largest, 10)
    optimal = choose.solve(sensitive(counts), thresholds, "optimal", largest, 10)
    assert optimal.setting.sizes == (2, 3, 4)
    assert optimal.loss == best


@pytest.mark.parametrize("solver", SOLVERS)
def test_lemma_1_is_checked_here_too(solver):
    with pytest.raises(Unsatisfiable, match=r"Lemma 1.*'x1' \(threshold 0\.5, needs 0\.75\)"):
        choose.solve(sensitive([3, 1]), Thresholds((Fraction(1, 2), Fraction(1))), solver, 50, 10)


@pytest.mark.parametrize("solver", SOLVERS)
def test_thresholds_equal_to_the_shares_leave_only_the_proportional_sizes(solver):
    counts = sensitive([10, 20, 30])
    solution = choose.solve(counts, FPrivacy.linear(1).thresholds(counts), solver, 50, 10)
    assert str(solution.setting) == "10 x 6"
    prime = sensitive([1000, 2000, 3001])
    with pytest.raises(Unsatisfiable, match="nothing smaller than one bucket of all 6,001 records"):
        choose.solve(prime, FPrivacy.linear(1).thresholds(prime), solver, 50, 10)


def test_a_search_too_large_says_that_it_was_cut_short():
    counts = sensitive([10**9, 2 * 10**9, 3 * 10**9 + 1, 7])
    with pytest.raises(
        Unsatisfiable, match=r"max_bucket_size 6000000008 works \(the search for a smaller one was cut short"
    ):
        choose.solve(counts, FPrivacy.linear(1).thresholds(counts), "two_size", 50)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"solver": "best"}, "solver: 'best' is not one of optimal, multi_size, two_size"),
        ({"max_bucket_size": 0}, "max_bucket_size: 0 is not a whole number"),
        ({"time_limit": 0}, "time_limit: 0 is not a positive number"),
        ({"time_limit": None}, "time_limit: solver optimal needs one"),
        ({"counts": sensitive([])}, "the table has no records"),
        ({"counts": sensitive([1, 1, 1])}, "2 thresholds were given for 3 sensitive values"),
    ],
)
def test_what_cannot_be_used_is_refused(changed, message):
    counts = sensitive([2, 2])
    usual = {
        "counts": counts,
        "thresholds": uniform(counts, "1/2"),
        "solver": "optimal",
        "max_bucket_size": 5,
        "time_limit": 5,
    }
    with pytest.raises(SpecError, match=message):
        choose.solve(**{**usual, **changed})
