"""Naive Bayes against scikit-learn and against a plain count; the minimality check on classes with and without the leak."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from anonlib.domains import CategoricalDomain
from anonlib.evaluation.attacks_minimality import minimality
from anonlib.evaluation.attacks_naive_bayes import Guesses, NaiveBayes, attacks_of
from anonlib.queries.cells import Cells, Cube, PointCells


def learnt(codes, truth, sizes, m):
    cells = [Cells.of(CategoricalDomain(str(i), tuple(map(str, range(size)))), None) for i, size in enumerate(sizes)]
    columns = [pa.array(c, pa.int64()) for c in codes] + [pa.array(truth, pa.int32())]
    table = pa.RecordBatch.from_arrays(columns, names=[*(f"q{i}" for i in range(len(sizes))), "s0"])
    cube = Cube(tuple(cells), 1, m)
    tables = cube.parts(PointCells(cube)([table]))
    return table, [NaiveBayes.learn(cells, tables, laplace) for laplace in (False, True)]


def test_it_guesses_as_scikit_learn_does():
    sklearn = pytest.importorskip("sklearn.naive_bayes")
    rng = np.random.default_rng(0)
    n, sizes, m = 3000, (6, 3, 11), 5
    truth = rng.integers(0, m, n)
    codes = [np.minimum(size - 1, rng.integers(0, size, n) // 2 + truth * size // 8) for size in sizes]
    for c, size in zip(codes, sizes, strict=True):
        c[:size] = np.arange(size)
    table, (_, laplace) = learnt(codes, truth, sizes, m)
    x = np.stack(codes, axis=1)
    theirs = sklearn.CategoricalNB(alpha=1.0, min_categories=list(sizes)).fit(x, truth).predict(x)
    mine = laplace.guesses(codes)
    assert (mine == theirs).mean() > 0.999  # ties may fall either way
    total = Guesses((laplace,))([table.slice(0, 1000), table.slice(1000)])
    assert total.tolist() == [(mine == truth).sum(), n]
    assert total[0] / n > 0.4


def test_without_correction_an_unseen_value_rules_out():
    truth = np.array([0, 0, 0, 1, 1])
    _, (plain, laplace) = learnt([np.array([0, 0, 0, 1, 1]), np.array([0, 1, 0, 1, 1])], truth, (3, 2), 2)
    asked = [np.array([1, 0, 2]), np.array([0, 1, 0])]
    # x = (1, 0): value 0 never has 1, value 1 never has 0: nothing is possible, so the most frequent; (2, 0) likewise
    assert plain.guesses(asked).tolist() == [0, 0, 0]
    # Laplace: value 0: 3/5 * 1/6 * 3/5 = 0.06; value 1: 2/5 * 3/5 * 1/4 = 0.06 up to rounding; (0, 1): 3/5 4/6 2/5 beats 2/5 1/5 3/4
    assert laplace.guesses([asked[0][1:2], asked[1][1:2]]).tolist() == [0]
    attack = attacks_of(np.array([3.0, 4.0, 8.0]), 0.25, 0.5)[1]
    assert (attack.accuracy, attack.prior, attack.guarantee) == (0.5, 0.25, None)  # nothing bounds a learner
    assert attack.detail == {"allowed of one person": 0.5}
    assert attack.words


def classes(n: int, leak: bool, rng):
    """n classes of six: values 0,0,0,1,1,2 with 2 the rarest of the table; with `leak` it stands far out."""
    points = rng.normal(0, 0.05, (n, 6, 2))
    if leak:
        points[:, 5] += rng.choice([-0.5, 0.5], (n, 2))
    value = np.tile([0, 0, 0, 1, 1, 2], (n, 1))
    order = rng.permutation(6 * n)
    return np.repeat(np.arange(n) * 7, 6)[order], points.reshape(-1, 2)[order], value.ravel()[order]


def test_minimality_sees_the_outlier_and_only_that():
    rng = np.random.default_rng(5)
    frequency = np.array([300, 200, 100])
    found = minimality(*classes(400, True, rng), frequency)
    assert found.accuracy == 1.0
    assert found.prior == pytest.approx(1 / 6)
    assert found.detail["dealt by chance"] == pytest.approx(14 / 36)
    honest = minimality(*classes(400, False, rng), frequency)
    # 400 classes, chance 1/6: five standard deviations are 0.093 (false alarm below 1e-6)
    assert abs(honest.accuracy - 1 / 6) < 0.093
    assert abs(honest.detail["dealt"] - 14 / 36) < 0.05


def test_minimality_with_equal_distances_is_chance():
    """All members at one point, listed rarest first: the order of the records must not be taken for a distance."""
    n = 600
    value = np.tile([2, 1, 1, 0, 0, 0], n)
    found = minimality(np.repeat(np.arange(n), 6), np.zeros((6 * n, 1)), value, np.array([3, 2, 1]))
    assert abs(found.accuracy - 1 / 6) < 0.077
    assert minimality(np.arange(4), np.zeros((4, 1)), np.zeros(4, dtype=int), np.array([4])).detail["classes"] == 0
