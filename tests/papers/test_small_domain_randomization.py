"""The worked examples and tables of small domain randomization, with the numbers the paper prints."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest

from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.rho_privacy import RhoPrivacy, confidence_factor, retention
from anonlib.privacy.subtables import SubTable
from anonlib.solvers.subtables.balancing import balance
from anonlib.solvers.subtables.perturbation_partitioning import solve, solve_whole
from anonlib.solvers.subtables.rearranging import rearrange
from tests.data import table_path

T = np.array([12, 8, 6, 5, 4, 3, 1, 1, 1, 1])
COUNTS = SensitiveCounts(tuple(f"x{i + 1}" for i in range(10)), T)
ASKED = RhoPrivacy.of(rho1="1/3", rho2="2/3")


def test_example_2_initial_groups():
    groups = balance(T, np.ones(10, dtype=bool))
    held = [dict(zip((groups[j][0] + 1).tolist(), groups[j][1].tolist(), strict=True)) for j in range(len(groups))]
    assert held == [
        {1: 6, 2: 6, 3: 6},
        {1: 4, 4: 4, 5: 4},
        {1: 2, 2: 2, 6: 2},
        {4: 1, 6: 1, 7: 1},
        {8: 1, 9: 1, 10: 1},
    ]


def test_example_3_order():
    assert (rearrange(balance(T, np.ones(10, dtype=bool))) + 1).tolist() == [1, 3, 2, 4, 5]


def test_examples_1_and_4_sub_tables():
    found = solve(COUNTS, ASKED, merging="neighbours")
    first, second = found.subtables
    assert found.balance == 3
    assert first.codes.tolist() == [0, 1, 2, 3, 4, 5]
    assert first.counts.tolist() == [12, 8, 6, 4, 4, 2]
    assert second.codes.tolist() == [3, 5, 6, 7, 8, 9]
    assert second.counts.tolist() == [1] * 6
    assert (first.size, second.size) == (36, 6)
    assert (first.rho1, second.rho1) == (Fraction(1, 3), Fraction(1, 6))
    assert (first.gamma, second.gamma) == (4, 10)
    assert (first.unchanged, second.unchanged) == (Fraction(4, 9), Fraction(2, 3))
    # equation (5) without sub-tables, gamma from the rho1 that was asked for, as example 1 has it
    assert SubTable(np.arange(10), T, Fraction(1, 3), Fraction(4)).unchanged == Fraction(4, 13)


def test_example_4_error_bounds():
    found = solve(COUNTS, ASKED, merging="neighbours")
    a = confidence_factor(Fraction(1, 20))
    assert found.bound / a == pytest.approx(0.52577, abs=5e-6)
    assert found.whole / a == pytest.approx(0.54006, abs=5e-6)
    assert solve_whole(COUNTS, ASKED).subtables[0].rho1 == Fraction(2, 7)


@pytest.mark.parametrize(("m", "percent"), [(77, 5), (70, 5), (50, 7), (14, 22), (9, 31), (7, 36), (6, 40), (2, 67)])
def test_table_1_retention(m, percent):
    assert round(100 * float(retention(m, Fraction(5)))) == percent


@pytest.mark.parametrize(("l", "percent"), [(6, 2.9), (5, 4.0), (4, 5.9), (3, 9.4)])
def test_table_2_uniform_perturbation(l, percent):  # noqa: E741
    # 50 values, the most frequent with 7.49 %, which the paper rounds to 7.5 %
    counts = SensitiveCounts(tuple(range(50)), np.array([749, *[188] * 48, 227]))
    assert counts.n == 10_000
    whole = solve_whole(counts, RhoPrivacy.of(rho1="1/13", rho2=Fraction(1, l)))
    assert round(100 * whole.subtables.mean_retention, 1) == percent


OCC = {6: (2.9, 9.0), 5: (4.0, 12.3), 4: (5.9, 17.3), 3: (9.4, 25.7)}
"""Table 2: L -> retention (%) of uniform perturbation and, on average over sub-tables, of Perturbation Partitioning."""


@pytest.fixture(scope="module")
def occupations():
    column = pq.read_table(table_path("census_occ_100k"), columns=["occupation"])["occupation"].value_counts()
    found = sorted((row["values"].as_py(), row["counts"].as_py()) for row in column)
    return SensitiveCounts(tuple(v for v, _ in found), np.array([c for _, c in found]))


@pytest.mark.parametrize("l", OCC)
def test_tables_2_and_3_on_the_census(occupations, l):  # noqa: E741
    asked = RhoPrivacy.of(rho1="1/13", rho2=Fraction(1, l))
    uniform, partitioned = OCC[l]
    found = solve(occupations, asked, merging="neighbours")
    assert found.groups == 17  # table 3, 100K
    assert round(100 * solve_whole(occupations, asked).subtables.mean_retention, 1) == uniform
    assert 100 * np.mean([float(t.retention) for t in found.subtables]) >= partitioned
    assert 12 <= len(found.subtables) <= 16
    assert np.mean([t.domain_size for t in found.subtables]) == pytest.approx(15, abs=1)
    assert solve(occupations, asked).bound <= found.bound < found.whole


@pytest.mark.parametrize("l", [10, 8, 6, 4])
def test_section_6_3_a_small_skewed_domain_is_not_partitioned(l):  # noqa: E741
    column = pq.read_table(table_path("census_occ_100k"), columns=["education"])["education"].value_counts()
    counts = SensitiveCounts(
        tuple(row["values"].as_py() for row in column), np.array([row["counts"].as_py() for row in column])
    )
    asked = RhoPrivacy.of(rho1="1/30", rho2=Fraction(1, l))
    assert asked.protected(counts).sum() == 9
    for merging in ("neighbours", "search"):
        assert len(solve(counts, asked, merging=merging).subtables) == 1
