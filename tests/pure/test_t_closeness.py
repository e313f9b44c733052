"""The earth mover's distance against linear programs, and the comparison with t to the last digit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance

from anonlib.errors import SpecError
from anonlib.hierarchy import Hierarchy, parse_hierarchy
from anonlib.privacy.t_closeness import GroundDistance, TCloseness, guarantee_words

UNEVEN = parse_hierarchy("a,1,x,any\nb,1,x,any\nc,2,x,any\nd,d,y,any\ne,3,y,any\nf,3,y,any\ng,g,g,any\n")
LEAVES = "abcdefg"


def program(cost: np.ndarray, table: np.ndarray, group: np.ndarray) -> float:
    """The cheapest way to move one distribution onto the other, by SciPy's linear program."""
    m = len(table)
    leaving = np.kron(np.eye(m), np.ones(m))
    arriving = np.kron(np.ones(m), np.eye(m))
    right = np.concatenate([table / table.sum(), group / group.sum()])
    found = linprog(cost.ravel(), A_eq=np.vstack([leaving, arriving])[:-1], b_eq=right[:-1], method="highs")
    assert found.status == 0
    return float(found.fun)


def heights(hierarchy: Hierarchy, leaves: list[str]) -> np.ndarray:
    """h(lowest common ancestor) / h(tree) by walking up, one pair at a time."""
    cost = np.zeros((len(leaves), len(leaves)))
    place = hierarchy.positions(leaves)
    for i, one in enumerate(place):
        for j, other in enumerate(place):
            shared = [
                level
                for level in range(hierarchy.levels)
                if hierarchy.ancestors[one, level] == hierarchy.ancestors[other, level]
            ]
            node = hierarchy.ancestors[one, shared[0]]
            cost[i, j] = hierarchy.heights[node] / hierarchy.heights[hierarchy.root]
    return cost


def random_pairs(m: int, seed: int, number: int):
    draw = np.random.default_rng(seed)
    for _ in range(number):
        yield draw.integers(1, 30, m), draw.multinomial(draw.integers(1, 12), draw.dirichlet(np.ones(m)))


def test_hierarchical_distance_is_the_linear_program_s():
    for leaves in (list(LEAVES), ["g", "c", "a", "f"], ["b", "a"], ["e"]):
        distance = GroundDistance.hierarchical(UNEVEN, leaves)
        cost = heights(UNEVEN, leaves)
        for i in range(len(leaves)):
            for j in range(len(leaves)):
                assert distance.between(distance.positions[i], distance.positions[j]) == Fraction(
                    cost[i, j]
                ).limit_denominator(9)
        for table, group in random_pairs(len(leaves), len(leaves), 40):
            emd = TCloseness(distance, table, Fraction(1)).emd([group])[0]
            assert float(emd) == pytest.approx(program(cost, table, group), abs=1e-9)


def test_flat_distance_is_total_variation():
    for table, group in random_pairs(6, 3, 40):
        emd = TCloseness(GroundDistance.flat(6), table, Fraction(1)).emd([group])[0]
        assert float(emd) == pytest.approx(abs(table / table.sum() - group / group.sum()).sum() / 2, abs=1e-12)
        assert float(emd) == pytest.approx(program(1 - np.eye(6), table, group), abs=1e-9)


def test_ordered_distance_is_scipy_s_wasserstein_distance_of_ranks():
    values = ["10", "9", "-3", "2.5", "1E3"]
    ranks = np.array([3, 2, 0, 1, 4])
    distance = GroundDistance.ordered(values)
    assert distance.order.tolist() == [2, 3, 1, 0, 4]
    for table, group in random_pairs(5, 4, 60):
        emd = TCloseness(distance, table, Fraction(1)).emd([group])[0]
        assert float(emd) == pytest.approx(wasserstein_distance(ranks, ranks, group, table) / 4, abs=1e-12)


def test_the_threshold_is_exact_on_both_sides():
    table = np.array([29, 71])
    of_flat = [TCloseness(GroundDistance.flat(2), table, Fraction(t)) for t in ("0.29", "0.2899999999999999999999")]
    assert [bool(c.close([[0, 5]])[0]) for c in of_flat] == [True, False]


def test_tables_beyond_64_bits_are_measured_all_the_same():
    m = 15_000
    table = np.full(m, 10**6, dtype=np.int64)
    table[0] = 3 * 10**10
    group = np.zeros(m, dtype=np.int64)
    group[-1] = 100_000
    closeness = TCloseness(GroundDistance.ordered([str(i) for i in range(m)]), table, Fraction(1, 2))
    work = closeness.work([group])
    assert int(work[0]) > 2**63
    by_hand = sum(Fraction(int(table[: i + 1].sum()), int(table.sum())) for i in range(0, m - 1, 1000))
    assert closeness.emd([group])[0] == sum(
        (Fraction(int(c), int(table.sum())) for c in np.cumsum(table)[:-1].tolist()), Fraction(0)
    ) / (m - 1)
    assert by_hand > 0
    assert not closeness.close([group])[0]


def test_an_empty_group_is_not_close_and_no_groups_are_0_away():
    closeness = TCloseness(GroundDistance.flat(2), np.array([1, 1]), Fraction(1))
    assert not closeness.close([[0, 0]])[0]
    assert closeness.farthest(np.zeros((0, 2), dtype=np.int64)) == 0
    assert closeness.farthest([[1, 1], [3, 1], [1, 3], [5, 4]]) == Fraction(1, 4)


def test_a_null_stands_apart_in_a_tree_and_has_no_place_in_an_order():
    distance = GroundDistance.hierarchical(UNEVEN, ["a", None, "b"])
    assert distance.between(*distance.positions[[1, 0]]) == 1
    assert distance.between(*distance.positions[[2, 0]]) == Fraction(1, 3)
    with pytest.raises(SpecError, match=r"missing: \{sensitive: drop\}"):
        GroundDistance.ordered(["1", None])


def test_dates_have_an_order_and_words_have_none():
    assert GroundDistance.ordered(["2001-01-02", "0999-12-31", "+12000-01-01", "2001-01-01"]).order.tolist() == [
        1,
        3,
        0,
        2,
    ]
    with pytest.raises(SpecError, match="'low' is neither a number nor a date"):
        GroundDistance.ordered(["1", "low"])


def test_an_infinite_value_is_refused():
    with pytest.raises(SpecError, match="-Infinity is no finite number"):
        GroundDistance.ordered(["1", "-Infinity"])


def test_a_value_outside_the_hierarchy_is_named():
    with pytest.raises(SpecError, match="'z' is not a leaf"):
        GroundDistance.hierarchical(UNEVEN, ["a", "z"])


def test_the_words_carry_the_numbers_used():
    closeness = TCloseness(GroundDistance.ordered(["1", "2"]), np.array([1, 1]), Fraction("0.35"))
    said = guarantee_words("salary", closeness, 6)
    assert "0.35" in said
    assert "salary" in said
    assert "At least 6 records" in said
    assert "records share them" not in guarantee_words("salary", closeness, 1)
