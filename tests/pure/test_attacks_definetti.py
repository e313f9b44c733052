"""The deFinetti attack: its sampler against every assignment of a bucket, and planted associations against who takes buckets one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from anonlib.domains import CategoricalDomain, NumericDomain
from anonlib.evaluation.attacks import Listed
from anonlib.evaluation.attacks_around import Persons
from anonlib.evaluation.attacks_definetti import DeFinetti, Tables, definetti
from anonlib.evaluation.attacks_definetti_boxes import Refined, beliefs, conditional_shares, definetti_boxes
from anonlib.queries.boxes import BoxReader
from anonlib.queries.cells import Cells, Cube


def exact_beliefs(tables: Tables, known, values, m: int, fakes: int):
    """(n, m) by enumeration: every assignment of the listed values to the records and to phantoms, weighted by naive Bayes."""
    n = len(known)
    found = np.zeros((n, m))
    for order in itertools.permutations(values):
        weight = 1.0
        for r in range(n):
            v = order[r]
            weight *= np.exp(tables.value[v] + sum(g[known[r, a], v] for a, g in enumerate(tables.given)))
        for r in range(n):
            found[r, order[r]] += weight
    return found / found.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("fakes", [0, 2])
def test_the_sampler_believes_what_every_assignment_together_says(fakes):
    """Three buckets of 2 to 4 records under tables that are known. 6,000 sweeps of a chain: 0.03 is some five standard errors."""
    rng = np.random.default_rng(2)
    m, sizes = 5, (3, 2)
    overall = rng.dirichlet(np.ones(m))
    tables = Tables(np.log(overall), tuple(np.log(rng.dirichlet(np.ones(size), m).T) for size in sizes))
    bucket = np.array([7, 7, 7, 7, 9, 9, 3, 3, 3])
    known = np.stack([rng.integers(0, size, len(bucket)) for size in sizes], axis=1)
    lists = {7: [0, 1, 2, 2], 9: [3, 4], 3: [0, 1, 3]}
    if fakes:
        lists = {7: [0, 1, 2, 2, 3, 4], 9: [3, 4, 0, 1], 3: [0, 1, 3, 2, 4]}
    rows = [(b, v, values.count(v)) for b, values in lists.items() for v in sorted(set(values))]
    listed = Listed(*(np.array(part) for part in zip(*rows, strict=True)))
    held = DeFinetti(6_200, 200, seed=1)(bucket, known, listed, overall, fixed=tables)
    assert (held.sum(axis=1) == 6_000).all()
    for b, values in lists.items():
        here = bucket == b
        assert held[here] / 6_000 == pytest.approx(exact_beliefs(tables, known[here], values, m, fakes), abs=0.03)


def planted(n_buckets: int, size: int, m: int, strength: float, seed: int = 0):
    """Buckets of `size` distinct values of m; attribute 0 equals the value with probability `strength`, attribute 1 is noise."""
    rng = np.random.default_rng(seed)
    truth = np.argsort(rng.random((n_buckets, m)), axis=1)[:, :size].ravel()
    bucket = np.repeat(np.arange(n_buckets), size)
    told = np.where(rng.random(len(truth)) < strength, truth, rng.integers(0, m, len(truth)))
    known = np.stack([told, rng.integers(0, 4, len(truth))], axis=1)
    return truth, bucket, known, Listed(bucket, truth, np.ones(len(truth), dtype=np.int64))


def test_a_planted_association_is_learnt_from_buckets_that_hide_it():
    truth, bucket, known, listed = planted(600, 5, 10, 0.8)
    held = DeFinetti(200, 80)(bucket, known, listed, np.full(10, 0.1))
    found = definetti(held, truth, 1 / 5, 0.1, 1 / 5)
    assert found.accuracy > 0.75
    assert found.guarantee is None
    assert found.persons == 3_000
    assert found.detail["right when sure"] > 0.85
    assert (held[np.arange(len(truth))[:, None], np.arange(10)[None, :]].sum(axis=1) == 120).all()


def test_without_an_association_it_is_no_better_than_taking_buckets_one_by_one():
    """3,000 guesses at 1/5: five standard errors are 0.037 (once in 1.7e6 runs; the seed is fixed besides)."""
    truth, bucket, known, listed = planted(600, 5, 10, 0.0)
    found = definetti(DeFinetti(200, 80)(bucket, known, listed, np.full(10, 0.1)), truth, 1 / 5, 0.1, None)
    assert found.accuracy == pytest.approx(1 / 5, abs=0.037)


def test_too_few_values_for_its_records_is_an_error():
    listed = Listed(np.array([0, 1]), np.array([0, 1]), np.array([1, 1]))
    with pytest.raises(ValueError, match="fewer values"):
        DeFinetti(2, 1)(np.array([0, 0, 1]), np.zeros((3, 1), dtype=np.int64), listed, np.array([0.5, 0.5]))


DOMAINS = (NumericDomain("age", 0.0, 5.0), CategoricalDomain("city", ("a", "b", "c")))
CELLS = (Cells.of(DOMAINS[0], (0, 5)), Cells.of(DOMAINS[1], None))


def boxes(rows):
    """Arrow batch of (low, high, cities, {code: count})."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([r[0] for r in rows], pa.int64()),
            pa.array([r[1] for r in rows], pa.int64()),
            pa.array([list(r[2]) for r in rows], pa.list_(pa.string())),
            pa.array([list(r[3]) for r in rows], pa.list_(pa.int32())),
            pa.array([list(r[3].values()) for r in rows], pa.list_(pa.int64())),
        ],
        names=["q0_lo", "q0_hi", "q1_set", "codes", "counts"],
    )


def random_rows(rng, n: int, m: int):
    rows = []
    for _ in range(n):
        low, high = sorted(rng.integers(0, 6, 2).tolist())
        cities = rng.choice(["a", "b", "c"], rng.integers(1, 4), replace=False)
        codes = rng.choice(m, rng.integers(1, m + 1), replace=False)
        rows.append((low, high, sorted(cities), {int(c): int(rng.integers(1, 4)) for c in codes}))
    return rows


def test_spreading_over_boxes_is_what_a_loop_over_records_does():
    rng = np.random.default_rng(4)
    m, rows = 3, random_rows(rng, 40, 3)
    cube = Cube(CELLS, 1, m)
    known = tuple(rng.random((cells.number, m)) for cells in CELLS)
    known[0][2, 1] = 0.0
    slow = [np.zeros((6, m)), np.zeros((3, m))]
    for low, high, cities, counts in rows:
        held = (list(range(low, high + 1)), ["abc".index(c) for c in cities])
        for code, count in counts.items():
            for part, g, inside in zip(slow, known, held, strict=True):
                weight = g[inside, code]
                weight = weight / weight.sum() if weight.sum() > 0 else np.full(len(inside), 1 / len(inside))
                part[inside, code] += count * weight
    kernel = Refined(BoxReader(DOMAINS, ("x", "y", "z")), cube, known)
    fast = cube.parts(kernel([boxes(rows[:13]), boxes(rows[13:])]))
    for a, b in zip(fast, slow, strict=True):
        assert a == pytest.approx(b)


def test_boxes_that_hide_an_association_give_it_away_when_read_together():
    """Value 0 lives at age 0, value 1 at age 5; every box hides that by reaching over both, but not all reach to the end."""
    rng = np.random.default_rng(7)
    rows = []
    for _ in range(400):
        code = int(rng.integers(0, 2))
        own = 0 if code == 0 else 5
        other = int(rng.integers(0, 6))
        rows.append((min(own, other), max(own, other), ["a"], {code: 1}))
    cube = Cube(CELLS, 1, 2)
    tables = [np.ones((6, 2)), np.ones((3, 2))]
    for _ in range(5):
        tables = cube.parts(Refined(BoxReader(DOMAINS, ("x", "y")), cube, conditional_shares(tables))([boxes(rows)]))
    persons = Persons((np.array([0, 5]), np.array([0, 0])), np.array([0, 1]), np.ones(2))
    around = np.array([[200.0, 60.0], [60.0, 200.0]])
    believed = beliefs(around, CELLS, tables, persons)
    assert believed.sum(axis=1) == pytest.approx([1, 1])
    assert (believed[[0, 1], [0, 1]] > 0.95).all()
    assert definetti_boxes(believed, around, persons, 0.5, None).accuracy == 1.0


def test_a_value_of_no_box_around_a_person_is_not_believed():
    tables = [np.ones((6, 2)), np.ones((3, 2))]
    persons = Persons((np.array([0, 5]), np.array([0, 0])), np.array([0, 1]), np.array([1.0, 3.0]))
    believed = beliefs(np.array([[0.0, 4.0], [0.0, 0.0]]), CELLS, tables, persons)
    assert believed.tolist() == [[0.0, 1.0], [0.0, 0.0]]
    found = definetti_boxes(believed, np.array([[0.0, 4.0], [0.0, 0.0]]), persons, 0.5, None)
    assert (found.accuracy, found.persons) == (0.0, 1)  # the person in no box is left out
