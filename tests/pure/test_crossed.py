"""The kernels of the workload `point` against an obvious twin: record by record, condition by condition."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from anonlib.queries.batch import ROWS, Masks
from anonlib.queries.crossed import CrossedBuckets, CrossedCounts, CrossedPerturbed
from anonlib.queries.reconstruction import Operators, terms

VALUES = ("flu", "gout", "cold")
DOMAINS = {"a": ("x", "y"), "b": ("1", "2", "3")}
ACCEPTED = [{"a": (0,)}, {"b": (2,)}, {"a": (1,), "b": (0,)}, {}]
OPERATORS = Operators(np.array([2, 3]), np.array([3.0, 5.0]))
HOLDS = np.array([[True, True, False], [True, True, True]])
N = ROWS + 100


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    subtable = rng.integers(0, 2, N).astype(np.int32)
    sick = np.where(subtable == 0, rng.integers(0, 2, N), rng.integers(0, 3, N))
    return pa.table(
        {
            "a": rng.choice(["x", "y", None, "z"], N).tolist(),
            "b": rng.choice(["1", "2", "3"], N).tolist(),
            "illness": [VALUES[i] for i in sick],
            "subtable": subtable,
        }
    )


def met(row, condition):
    return all(row[a] in [DOMAINS[a][c] for c in codes] for a, codes in condition.items())


def test_true_counts(table):
    kernel = CrossedCounts(Masks.of(DOMAINS, ACCEPTED), "illness", VALUES)
    found = kernel(table.to_batches(max_chunksize=700)).reshape(len(ACCEPTED), len(VALUES))
    rows = table.to_pylist()
    for c, condition in enumerate(ACCEPTED):
        for x, value in enumerate(VALUES):
            assert found[c, x] == sum(met(r, condition) and r["illness"] == value for r in rows)


def test_estimates_from_perturbed_values(table):
    kernel = CrossedPerturbed(Masks.of(DOMAINS, ACCEPTED), "illness", VALUES, "subtable", OPERATORS)
    batches = table.to_batches(max_chunksize=900)
    sums = sum(kernel([batch]) for batch in batches)
    assert len(sums) == kernel.length
    assert sums == pytest.approx(kernel(batches))
    found = kernel.reconstructed(sums, HOLDS)
    rows = table.to_pylist()
    for c, condition in enumerate(ACCEPTED):
        matching = [r for r in rows if met(r, condition)]
        n = [sum(r["subtable"] == i for r in matching) for i in range(2)]
        for x, value in enumerate(VALUES):
            o = [sum(r["subtable"] == i and r["illness"] == value for r in matching) for i in range(2)]
            by_subtable = terms(OPERATORS, n, HOLDS[:, x].astype(int), o)[0]
            assert found[c, x] == pytest.approx(by_subtable.sum())


def test_estimates_from_buckets():
    rng = np.random.default_rng(2)
    buckets = []
    for _ in range(ROWS // 4):
        size = int(rng.integers(2, 6))
        given = rng.permutation(3)[: int(rng.integers(1, 4))]
        counts = rng.integers(1, 4, len(given))
        row = {name: rng.choice(list(domain), size).tolist() for name, domain in DOMAINS.items()}
        buckets.append(row | {"illness": [VALUES[i] for i in given], "count": counts.tolist()})
    table = pa.Table.from_pylist(buckets)
    kernel = CrossedBuckets(Masks.of(DOMAINS, ACCEPTED), "illness", VALUES, "count")
    found = kernel(table.to_batches(max_chunksize=300)).reshape(len(ACCEPTED), len(VALUES))
    for c, condition in enumerate(ACCEPTED):
        wanted = np.zeros(len(VALUES))
        for g in buckets:
            k = sum(met({"a": a, "b": b}, condition) for a, b in zip(g["a"], g["b"], strict=True))
            for value, count in zip(g["illness"], g["count"], strict=True):
                wanted[VALUES.index(value)] += k * count / sum(g["count"])
        assert found[c] == pytest.approx(wanted)


def test_no_record():
    for kernel in (
        CrossedCounts(Masks.of(DOMAINS, ACCEPTED), "illness", VALUES),
        CrossedPerturbed(Masks.of(DOMAINS, ACCEPTED), "illness", VALUES, "subtable", OPERATORS),
        CrossedBuckets(Masks.of(DOMAINS, ACCEPTED), "illness", VALUES, "count"),
    ):
        assert not kernel([]).any()
