"""Worked examples of generalized bucketization and inferential privacy, by their numbers there."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest

from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy
from anonlib.solvers.buckets import choose
from anonlib.solvers.buckets.bucket_candidates import Candidates
from anonlib.solvers.buckets.transport import transport
from tests.data import table_path
from tests.oracles import bucket_settings as oracle
from tests.thorough import cases


def sensitive(counts) -> SensitiveCounts:
    return SensitiveCounts(tuple(f"x{i + 1}" for i in range(len(counts))), np.array(counts, dtype=np.int64))


EXAMPLE_3 = sensitive([1] * 8 + [6] * 4 + [9] * 2)


def test_example_4_the_candidates_of_28_records_in_sizes_2_and_4():
    assert list(Candidates.of(28, 2, 4)) == [(14, 0), (12, 1), (10, 2), (8, 3), (6, 4), (4, 5), (2, 6), (0, 7)]


def test_candidates_need_the_gcd_to_divide_n():
    assert list(Candidates.of(29, 2, 4)) == []


def test_example_3_thresholds():
    thresholds = FPrivacy.linear(2, "0.05").thresholds(EXAMPLE_3).fractions
    assert set(thresholds[:8]) == {Fraction("0.09")}
    assert set(thresholds[8:12]) == {Fraction("0.29")}
    assert set(thresholds[12:]) == {Fraction("0.41")}


def test_example_3_nine_buckets_of_4_and_one_of_14_is_the_best_two_size_setting_up_to_20():
    solution = choose.solve(EXAMPLE_3, FPrivacy.linear(2, "0.05").thresholds(EXAMPLE_3), "two_size", 20)
    assert (solution.setting.sizes, solution.setting.numbers) == ((4, 14), (9, 1))
    assert solution.loss == 250
    assert solution.partition[:, 0].tolist() == [0] * 8 + [5] * 4 + [8] * 2


def test_example_5_three_sizes_can_keep_pc_fc_and_cc_and_have_no_assignment():
    """Eleven values, capacities 20, 20 and 30: x1 to x10 fit only into the last size, which is too small for them together."""
    counts = np.array([5] * 10 + [20], dtype=np.int64)
    room = np.array([[0, 0, 5]] * 10 + [[20, 20, 20]], dtype=np.int64)  # a_ij
    capacity = np.array([20, 20, 30], dtype=np.int64)
    assert (room.sum(axis=1) >= counts).all()  # PC, extended to three sizes
    assert (room.sum(axis=0) >= capacity).all()  # FC
    assert counts.sum() == capacity.sum()  # CC
    found = transport(counts, room, capacity)
    assert found.flow is None
    crowded = [rows for rows in found.crowded if rows[:10].all() and not rows[10]]
    assert crowded, "x1 to x10 should be named as the values that crowd each other out"
    assert transport(counts, room, np.array([0, 20, 50], dtype=np.int64)).flow is not None


CENSUS = [
    ("occupation", ((7, 31), (11_943, 529)), 906_048, 547_772),
    ("education", ((2, 19), (40_899, 958)), 351_291, 214_852),
]


@pytest.mark.parametrize(("column", "setting", "two_size_loss", "least_loss"), CENSUS)
def test_census_two_size_and_proven_optimum(column, setting, two_size_loss, least_loss):
    values, counts = np.unique(
        pq.read_table(table_path("census_occ_100k"), columns=[column])[column].to_numpy(), return_counts=True
    )
    counts = SensitiveCounts(tuple(str(v) for v in values), counts.astype(np.int64))
    thresholds = FPrivacy.linear(8, "0.02").thresholds(counts)
    two = choose.solve(counts, thresholds, "two_size", 50)
    assert (two.setting.sizes, two.setting.numbers) == setting
    assert two.loss == two_size_loss
    optimal = choose.solve(counts, thresholds, "optimal", 50, time_limit=60)
    assert (optimal.loss, optimal.bound, optimal.status) == (least_loss, least_loss, "optimal")


@pytest.mark.long
@pytest.mark.parametrize(
    ("offset", "largest", "gap"),
    cases(("0.04", 25, 0), nightly=[("0.02", 50, 1e-4)]),  # the second takes a minute or two
)
def test_diabetes_diagnoses_are_eligible_singletons_included(offset, largest, gap):
    column = pq.read_table(table_path("diabetes_130us"), columns=["diag_1"])["diag_1"].to_pandas()
    counted = column.value_counts().sort_index()
    counts = SensitiveCounts(tuple(counted.index), counted.to_numpy(np.int64))
    assert counts.m == 717
    assert int(counts.counts.min()) == 1
    thresholds = FPrivacy.linear(8, offset).thresholds(counts)
    optimal = choose.solve(counts, thresholds, "optimal", largest, time_limit=300)
    assert optimal.gap <= gap
    assert (
        oracle.loss([s for s, b in zip(optimal.setting.sizes, optimal.setting.numbers, strict=True) for _ in range(b)])
        == optimal.loss
    )
