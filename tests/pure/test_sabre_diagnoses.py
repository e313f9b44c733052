"""t-closeness of diagnoses under ICD-9 categories and chapters, on real hospital stays."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest

from anonlib.domains import CategoricalDomain, NumericDomain
from anonlib.kernels.classes.equivalence_classes import Halving
from anonlib.privacy.t_closeness import GroundDistance, TCloseness
from anonlib.solvers.classes.sabre_buckets import bucketize
from benchmarks.icd9 import chapter, icd9
from tests.data import table_path

CODES = ("250.83", "250.7", "276", "V57", "E888", "?", "008", "799", "41")


def test_codes_stand_under_their_category_and_chapter():
    distance = GroundDistance.hierarchical(icd9(CODES), CODES)

    def between(one: str, other: str) -> Fraction:
        return distance.between(*(int(distance.positions[CODES.index(code)]) for code in (one, other)))

    assert between("250.83", "250.7") == Fraction(1, 3)
    assert between("250.83", "276") == Fraction(2, 3)
    assert between("008", "41") == Fraction(2, 3)
    assert between("250.7", "V57") == between("V57", "E888") == between("?", "799") == 1
    assert [chapter(code) for code in ("139", "140", "999", "1000", "?")] == [
        "infectious", "neoplasms", "injury", "unknown", "unknown",
    ]  # fmt: skip


def test_classes_of_hospital_stays_are_close_by_the_paper_s_formula():
    table = pq.read_table(table_path("diabetes_130us"), columns=["age", "gender", "time_in_hospital", "diag_1"]).slice(
        0, 6000
    )
    diagnoses = [str(code) for code in table["diag_1"].to_pylist()]
    values = tuple(sorted(set(diagnoses)))
    sensitive = np.array([values.index(code) for code in diagnoses], dtype=np.int64)
    tree = icd9(values)
    of = TCloseness(GroundDistance.hierarchical(tree, values), np.bincount(sensitive), Fraction("0.3"))
    ages, age = np.unique(table["age"].to_numpy(), return_inverse=True)
    genders, gender = np.unique(table["gender"].to_numpy(), return_inverse=True)
    columns = [age.astype(np.int64), gender.astype(np.int64), table["time_in_hospital"].to_numpy().astype(np.int64)]
    domains = (
        CategoricalDomain("age", tuple(ages)),
        CategoricalDomain("gender", tuple(genders)),
        NumericDomain("time_in_hospital", 1.0, 14.0),
    )
    kernel = Halving(domains, (len(values),), of.distance.positions, (of,), 6)
    classes = kernel(columns, [sensitive], np.zeros(6000, dtype=np.int64), 0)
    sizes = np.bincount(classes)
    assert len(sizes) > 20
    assert sizes.min() >= 6
    held = [np.bincount(sensitive[classes == c], minlength=len(values)) for c in range(len(sizes))]
    rows = {row[0]: row for row in tree.rows}
    share = np.bincount(sensitive) / 6000
    worst = max(paper(rows, values, share, counts / counts.sum()) for counts in held)
    assert worst == pytest.approx(float(of.farthest(held)))
    assert worst <= 0.3 + 1e-12
    assert bucketize(of).b > 1


def paper(rows: dict[str, list[str]], values: tuple[str, ...], p: np.ndarray, q: np.ndarray) -> float:
    """Section 3.1: the sum over inner nodes of h(n) / h(tree) min(pos_e, neg_e)."""
    leaf_of = {value: value for value in values}  # node -> some leaf below it
    extra = {value: float(q[i] - p[i]) for i, value in enumerate(values)}
    total = 0.0
    for height in (1, 2, 3):
        pos: dict[str, float] = {}
        neg: dict[str, float] = {}
        above: dict[str, float] = {}
        leaves: dict[str, str] = {}
        for child, amount in extra.items():
            parent = rows[leaf_of[child]][height]
            leaves[parent] = leaf_of[child]
            side = pos if amount > 0 else neg
            side[parent] = side.get(parent, 0.0) + abs(amount)
            above[parent] = above.get(parent, 0.0) + amount
        total += sum(height / 3 * min(amount, neg.get(node, 0.0)) for node, amount in pos.items())
        extra, leaf_of = above, leaves
    return total
