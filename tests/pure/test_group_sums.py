"""Sums over values, many groups at once, are answered as one question at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from anonlib.queries import group_sums
from anonlib.queries.bucketized import Seen, answer, bounds
from anonlib.queries.flattening import Flattening, Kinds
from anonlib.queries.group_counts import ADDED, ESTIMATORS, GroupCounts, Part
from anonlib.queries.group_sums import SUM, VALUE, GroupSums
from tests.pure.test_many_counts import BUCKETS, met

VALUES = ("v", "w", "x", None, "z")
LABELS = {"first": [0, 1], "odd": [1, 3], "all but one": [0, 1, 2, 3], None: [2]}
HELD = {
    "every value told": np.array([[1, 1, 0, 1, 0], [1, 0, 1, 1, 0], [0, 1, 1, 0, 2], [2, 0, 0, 1, 1], [0, 1, 2, 0, 1]]),
    "two always together": np.array(
        [[1, 1, 0, 1, 0], [1, 1, 1, 1, 0], [0, 0, 1, 0, 2], [2, 2, 0, 1, 1], [1, 1, 2, 0, 1]]
    ),
}
"""What kinds of buckets hold, (kinds, values)."""


def dealt(held: np.ndarray) -> tuple:
    """(kinds, kind and bucket of each record, its value of b): b goes with the sensitive value."""
    kind = np.repeat(np.arange(5), BUCKETS)
    bucket = np.repeat(np.arange(len(kind)), held.sum(axis=1)[kind])
    value = np.concatenate([np.repeat(np.arange(5), held[k]) for k in kind])
    b = (value + np.random.default_rng(5).integers(0, 2, len(bucket))) % 4
    return Kinds(BUCKETS, sp.csr_matrix(held)), kind, bucket, {"a": b, "b": b}


@pytest.mark.parametrize(("case", "at_a_time", "told"), [("every value told", 1, 4), ("two always together", 256, 3)])
def test_as_one_at_a_time(case, at_a_time, told, monkeypatch):
    monkeypatch.setattr(group_sums, "GROUPS", at_a_time)
    kinds, kind, bucket, columns = dealt(HELD[case])
    system = Flattening(kinds)
    masks = {label: np.isin(np.arange(5), own) for label, own in LABELS.items()}

    def by_kind(condition):
        return np.bincount(kind[bucket], weights=met(columns, condition), minlength=5)

    ratios = {str(code): system.ratio(kinds.flattened(by_kind({"b": (code,)})[:, None]))[:, 0] for code in range(4)}
    lists: dict = {name: [] for name in ("t", "v", "f", "low", "high")}
    wanted = []
    for code in range(4):
        k = np.bincount(bucket, weights=met(columns, {"b": (code,)})).astype(np.int64)
        seen = Seen(kind, k, np.ones(len(kind), np.int64), by_kind({"b": (code,)})[:, None])
        flat = kinds.flattened(by_kind({"b": (code,)})[:, None])[:, 0]
        certain = [bounds(kinds, mask, seen) for mask in masks.values()]
        lists["t"].append([VALUE] * 5 + [SUM] * len(LABELS))
        lists["v"].append([*VALUES, *LABELS])
        lists["f"].append([*flat, *(flat[mask].sum() for mask in masks.values())])
        lists["low"].append([0] * 5 + [low for low, _ in certain])
        lists["high"].append([0] * 5 + [high for _, high in certain])
        wanted += [*[None] * 5, *(answer(kinds, list(VALUES), mask, seen) for mask in masks.values())]
    sums = np.array(list(masks.values()), dtype=float).T
    kernel = GroupSums(GroupCounts(system, VALUES, (Part(ratios),), np.ones(5), 0), tuple(LABELS), sums)
    found = kernel(*(pa.array(lists[name]) for name in lists), [pa.array([str(code) for code in range(4)])])
    assert set(found) == set(ADDED)
    known_sums = 0
    for i, one in enumerate(wanted):
        if one is None:
            assert np.isnan(found["estimate"][i])
            continue
        assert found["estimate"][i] == pytest.approx(one.estimate)
        assert ESTIMATORS[int(found["estimator"][i])] == one.estimator
        for name in ("standard_error", "unbiased"):
            known = getattr(one, name)
            assert found[name][i] == pytest.approx(np.nan if known is None else known, nan_ok=True)
        interval = one.interval if one.unbiased is not None else (one.low, one.high)
        assert (found["interval_low"][i], found["interval_high"][i]) == pytest.approx(interval)
        known_sums += one.unbiased is not None
    assert known_sums == 4 * told


def test_without_a_system_sums_are_flattened():
    kernel = GroupSums(GroupCounts(None, (), (), np.zeros(0), 0), (), np.zeros((0, 0)))
    given = ([[VALUE, SUM]], pa.int32()), ([["a", "b"]], pa.string())
    numbers = [
        pa.array(n, pa.list_(t))
        for n, t in (([[1.5, 2.5]], pa.float64()), ([[0, 1]], pa.int64()), ([[3, 4]], pa.int64()))
    ]
    found = kernel(*(pa.array(lists, pa.list_(kind)) for lists, kind in given), *numbers, [])
    assert (found["estimate"][1], ESTIMATORS[int(found["estimator"][1])]) == (2.5, "flattened")
    assert (found["interval_low"][1], found["interval_high"][1]) == (1, 4)
