"""Worked examples of SABRE, by their numbers there."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from anonlib.hierarchy import parse_hierarchy
from anonlib.privacy.t_closeness import GroundDistance, TCloseness
from anonlib.solvers.classes.ec_size_tree import ec_sizes
from anonlib.solvers.classes.sabre_buckets import bucketize, greedy_path

DISEASES = parse_hierarchy(
    "SARS,respiratory,any\npneumonia,respiratory,any\nbronchitis,respiratory,any\n"
    "gastric flu,digestive,any\ngastric ulcer,digestive,any\nintestinal cancer,digestive,any\n"
)  # Figure 1
NAMES = ("SARS", "pneumonia", "bronchitis", "gastric flu", "gastric ulcer", "intestinal cancer")
DISTANCE = GroundDistance.hierarchical(DISEASES, NAMES)
RUNNING = np.array([5, 3, 2, 4, 2, 2])  # Example 4
SALARIES = GroundDistance.ordered(["1000", "2000", "3000", "4000"])
SALARY_COUNTS = np.array([2, 3, 3, 2])  # Example 5


def closeness(distance: GroundDistance, table: np.ndarray, t: str) -> TCloseness:
    return TCloseness(distance, table, Fraction(t))


def test_example_1_both_classes_of_tables_1_and_2_are_half_away_from_the_table():
    of = closeness(DISTANCE, np.ones(6, dtype=np.int64), "0.5")
    assert of.emd([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]) == [Fraction(1, 2), Fraction(1, 2)]
    assert of.close([[1, 1, 1, 0, 0, 0]]).all()
    assert not closeness(DISTANCE, np.ones(6, dtype=np.int64), "0.4999").close([[1, 1, 1, 0, 0, 0]]).any()


def test_example_3_and_figure_4_upper_bounds_of_the_diseases():
    buckets = bucketize(closeness(DISTANCE, RUNNING, "0.45"))
    assert buckets.sizes.tolist() == [10, 8]
    assert buckets.bucket_of.tolist() == [0, 0, 0, 1, 1, 1]
    assert buckets.bound == Fraction(7, 18)
    root, two, *_ = greedy_path(closeness(DISTANCE, RUNNING, "0.45"))
    assert root.bound == Fraction(16, 18)
    assert two.bound == Fraction(2, 9) + Fraction(1, 6)


def test_example_4_a_smaller_t_splits_respiratory_diseases_only():
    buckets = bucketize(closeness(DISTANCE, RUNNING, "0.2"))
    assert buckets.bound == Fraction(1, 6)
    assert buckets.sizes.tolist() == [5, 3, 2, 8]
    assert buckets.bucket_of.tolist() == [0, 1, 2, 3, 3, 3]


def test_example_5_the_salaries_are_cut_in_the_middle():
    of = closeness(SALARIES, SALARY_COUNTS, "0.25")
    root, two, *_ = greedy_path(of)
    assert root.bound == Fraction(1, 2)
    assert (two.first.tolist(), two.bound) == ([0, 2], Fraction(1, 5))
    assert bucketize(of).sizes.tolist() == [5, 5]


def test_example_6_the_distance_of_a_class_from_the_table_over_two_buckets():
    of = closeness(DISTANCE, RUNNING, "0.45")
    buckets = bucketize(of)
    assert buckets.between(0, 1) == 1
    work = buckets.mover.work(buckets.sizes, np.array([[3, 2], [2, 2], [2, 1]]))
    distances = [
        Fraction(int(w), buckets.mover.unit * 18 * size) for w, size in zip(work.tolist(), (5, 4, 3), strict=True)
    ]
    assert distances == [Fraction(2, 45), Fraction(1, 18), Fraction(1, 9)]


def test_example_7_and_figure_6_the_tree_of_class_sizes():
    of = closeness(DISTANCE, RUNNING, "0.45")
    tree = ec_sizes(of, bucketize(of))
    assert tree.counts[0].tolist() == [10, 8]
    assert tree.left[0] == tree.right[0]  # both halves are [5, 4]
    assert tree.counts[tree.left[0]].tolist() == [5, 4]
    assert [tree.counts[leaf].tolist() for leaf in tree.leaves()] == [[3, 2], [1, 1], [1, 1]] * 2
    assert tree.classes[0] == 6
    assert tree.size_histogram() == {2: 4, 5: 2}
