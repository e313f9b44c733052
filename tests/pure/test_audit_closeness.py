"""The audit's own earth mover's distance against a linear program, SciPy's, and the numbers of the SABRE paper."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance

from anonlib.audit.arithmetic import beta_bound
from anonlib.audit.generalized.closeness import distance_of
from anonlib.errors import AnonlibError
from anonlib.hierarchy import hierarchy_of
from anonlib.privacy.class_requirements import minus_log

ROWS = [
    ["a", "p", "x", "all"],
    ["b", "p", "x", "all"],
    ["c", "q", "x", "all"],
    ["d", "d", "y", "all"],
    ["e", "r", "y", "all"],
]


def by_program(p, q, cost) -> float:
    m = len(p)
    rows = [np.kron(np.eye(m)[i], np.ones(m)) for i in range(m)] + [np.kron(np.ones(m), np.eye(m)[j]) for j in range(m)]
    return linprog(cost.ravel(), A_eq=np.array(rows), b_eq=np.concatenate([p, q])).fun


def ground(kind: str, m: int):
    if kind == "ordered":
        return np.abs(np.subtract.outer(np.arange(m), np.arange(m))) / (m - 1)
    if kind == "flat":
        return 1.0 - np.eye(m)
    tree = hierarchy_of(ROWS)
    leaves = np.arange(m)
    above = tree.lowest_common_ancestor(np.repeat(leaves, m), np.tile(leaves, m))
    return tree.heights[above].reshape(m, m) / 3


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ordered", "flat", "hierarchical"])
def test_it_is_the_cheapest_transport(kind):
    rng = np.random.default_rng(1)
    m = 5
    values = [str(10 * i) for i in range(m)] if kind == "ordered" else [row[0] for row in ROWS]
    for _ in range(60):
        table = rng.integers(1, 9, m)
        classes = rng.integers(0, 4, (3, m)) + np.eye(m, dtype=np.int64)[:3]
        found, at = distance_of(kind, values, table.tolist(), "string", ROWS).largest(classes)
        p = table / table.sum()
        costs = [by_program(c / c.sum(), p, ground(kind, m)) for c in classes]
        assert float(found) == pytest.approx(max(costs), abs=1e-9)
        assert costs[at] == pytest.approx(max(costs), abs=1e-9)


def test_numbers_are_ordered_as_numbers_and_sums_do_not_overflow():
    values = [str(v) for v in (100, 9, -3, 2.5)]
    order = np.argsort([100, 9, -3, 2.5])
    table, one = np.array([10**12, 3 * 10**11, 10**12 + 1, 7]), np.array([[10**12 - 1, 0, 5, 10**11]])
    found, _ = distance_of("ordered", values, table.tolist(), "double", []).largest(one)
    rank = np.empty(4)
    rank[order] = np.arange(4)
    assert float(found) == pytest.approx(wasserstein_distance(rank, rank, one[0], table) / 3)
    assert found.denominator > 2**62


def test_table_1_of_sabre():
    """Salaries 3k..11k in nine steps against {3k, 4k, 5k}: EMD 0.375 (ICDE 2007, the example that SABRE builds on)."""
    table, one = [1] * 9, np.array([[1, 1, 1, 0, 0, 0, 0, 0, 0]])
    values = [str(1000 * k) for k in range(3, 12)]
    assert distance_of("ordered", values, table, "int", []).largest(one)[0] == Fraction(3, 8)


def test_what_has_no_distance():
    for kind, values, rows in (
        ("round", ["a"], []),
        ("ordered", ["1", None], []),
        ("ordered", ["1", "x"], []),
        ("ordered", ["1", "NaN"], []),
        ("hierarchical", ["a", "z"], ROWS),
        ("hierarchical", ["a"], []),
    ):
        with pytest.raises(AnonlibError):
            distance_of(kind, values, [1] * len(values), "string", rows)
    dates = ["2020-01-02", "1999-05-05"]
    assert distance_of("ordered", dates, [1, 1], "date", []).largest(np.array([[1, 0]]))[0] == Fraction(1, 2)


def test_years_of_five_digits_and_before_the_first_stand_in_their_place():
    dates = ["2020-01-01", "+12000-01-01", "0999-12-31", "-0044-03-15", "-0045-05-01"]
    assert distance_of("ordered", dates, [1] * 5, "date", []).prefix.tolist() == [4, 3, 2, 0, 1]
    assert distance_of("ordered", dates, [1] * 5, "date", []).largest(np.array([[0, 1, 0, 0, 0]]))[0] == Fraction(1, 2)


def test_a_tree_of_one_leaf_is_no_distance_wide_unless_a_value_is_missing():
    one = distance_of("hierarchical", ["a"], [3], "string", [["a", "all"]])
    assert one.largest(np.array([[1]]))[0] == 0
    two = distance_of("hierarchical", ["a", None], [3, 1], "string", [["a", "all"]])
    assert two.largest(np.array([[0, 1]]))[0] == Fraction(3, 4)


def test_the_enhanced_bound_lies_just_above_that_of_the_methods():
    for count in (1, 2, 7, 499, 999):
        share = Fraction(count, 1000)
        for beta in (Fraction(1, 10), Fraction(3), Fraction(100)):
            mine, theirs = beta_bound(share, beta, enhanced=True), (1 + min(beta, minus_log(share))) * share
            assert theirs <= mine <= theirs + Fraction(1, 10**11)
