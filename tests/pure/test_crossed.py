"""The kernels of the workload `point` against an obvious twin: record by record, condition by condition."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from anonlib.queries.batch import ROWS, Masks
from anonlib.queries.crossed import CrossedBuckets, CrossedCounts, CrossedPerturbed, Domains
from anonlib.queries.reconstruction import Operators, reconstruct

VALUES = ("flu", "gout", "cold")
DOMAINS = {"a": ("x", "y"), "b": ("1", "2", "3")}
ACCEPTED = [{"a": (0,)}, {"b": (2,)}, {"a": (1,), "b": (0,)}, {}]
OPERATORS = Operators(np.array([2, 4]), np.array([3.0, 5.0]))
HELD = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (1, 3)]
"""(sub-table, value) of each entry of the domains; value 3 is a null, which nobody asks for."""
N = ROWS + 100


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    subtable = rng.integers(0, 2, N).astype(np.int32)
    sick = np.where(subtable == 0, rng.integers(0, 2, N), rng.integers(0, 4, N))
    return pa.table(
        {
            "a": rng.choice(["x", "y", None, "z"], N).tolist(),
            "b": rng.choice(["1", "2", "3"], N).tolist(),
            "illness": [(*VALUES, None)[i] for i in sick],
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


def domains(table):
    """True counts are made up: what matters here is that both sides use the same."""
    sizes = np.bincount(table["subtable"].to_numpy(), minlength=2)
    true = [sizes[0] // 3, sizes[0] - sizes[0] // 3, sizes[1] // 2, 7, 30, sizes[1] - sizes[1] // 2 - 37]
    subtable, value = np.array(HELD).T
    return Domains(OPERATORS, sizes, subtable, value, np.array(true))


def test_estimates_from_perturbed_values(table):
    found = domains(table)
    kernel = CrossedPerturbed(Masks.of(DOMAINS, ACCEPTED), "illness", VALUES, "subtable", found)
    batches = table.to_batches(max_chunksize=900)
    counts = sum(kernel([batch]) for batch in batches)
    assert len(counts) == kernel.length
    assert counts == pytest.approx(kernel(batches))
    best, raw = kernel.reconstructed(counts)
    rows = table.to_pylist()
    for c, condition in enumerate(ACCEPTED):
        matching = [r for r in rows if met(r, condition)]
        n = [sum(r["subtable"] == i for r in matching) for i in range(2)]
        for x, value in enumerate(VALUES):

            def seen(records, value=value):
                return [sum(r["subtable"] == i and r["illness"] == value for r in records) for i in range(2)]

            accepted = [int((i, x) in HELD) for i in range(2)]
            true = [int(found.true[HELD.index((i, x))]) if (i, x) in HELD else 0 for i in range(2)]
            alone = reconstruct(OPERATORS, found.sizes, n, accepted, seen(matching), seen(rows), true)
            assert raw[c, x] == pytest.approx(alone.raw)
            assert best[c, x] == pytest.approx(alone.estimate)


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


def test_no_record(table):
    for kernel in (
        CrossedCounts(Masks.of(DOMAINS, ACCEPTED), "illness", VALUES),
        CrossedPerturbed(Masks.of(DOMAINS, ACCEPTED), "illness", VALUES, "subtable", domains(table)),
        CrossedBuckets(Masks.of(DOMAINS, ACCEPTED), "illness", VALUES, "count"),
    ):
        assert not kernel([]).any()
