"""Worked examples of SABRE, by their numbers there."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from anonlib.hierarchy import parse_hierarchy
from anonlib.privacy.t_closeness import GroundDistance, TCloseness

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
