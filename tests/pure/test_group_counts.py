"""Groups at once are answered as one question at a time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from anonlib.queries import group_counts
from anonlib.queries.bucketized import Seen, answer
from anonlib.queries.flattening import Flattening
from anonlib.queries.group_counts import ADDED, ESTIMATORS, GroupCounts, Part
from tests.pure.test_many_counts import met, table  # noqa: F401  (a fixture)

VALUES = ("v", "w", "x", None, "z")


@pytest.mark.parametrize("at_a_time", [1, 256])
def test_as_one_at_a_time(table, at_a_time, monkeypatch):  # noqa: F811
    monkeypatch.setattr(group_counts, "GROUPS", at_a_time)
    kinds, kind, bucket, columns = table
    system = Flattening(kinds)
    held = kinds.held.toarray()

    def by_kind(condition):
        return np.bincount(kind[bucket], weights=met(columns, condition), minlength=5)

    def ratios(name, width):
        counts = np.array([by_kind({name: (code,)}) for code in range(width)]).T
        return {str(code): r for code, r in enumerate(system.ratio(kinds.flattened(counts)).T)}

    groups = [{"a": (a,), "b": (b,)} for a in range(3) for b in range(4)]
    lists = {name: [] for name in ("v", "f", "low", "high")}
    wanted = []
    for group in groups:
        k = np.bincount(bucket, weights=met(columns, group)).astype(np.int64)
        flat = kinds.flattened(by_kind(group)[:, None])[:, 0]
        size = held.sum(axis=1)[kind]
        lists["v"].append(list(VALUES))
        lists["f"].append(flat.tolist())
        lists["low"].append([int(np.maximum(0, k + held[kind, v] - size).sum()) for v in range(5)])
        lists["high"].append([int(np.minimum(k, held[kind, v]).sum()) for v in range(5)])
        parts = np.array([by_kind({"a": group["a"]}), by_kind({"b": group["b"]})]).T
        seen = Seen(kind, k, np.ones(len(kind), np.int64), parts)
        wanted += [answer(kinds, list(VALUES), np.arange(5) == v, seen) for v in range(5)]
    kernel = GroupCounts(system, VALUES, (Part(ratios("a", 3)), Part(ratios("b", 4))), np.ones(5), 0)
    texts = [pa.array([str(g[name][0]) for g in groups]) for name in ("a", "b")]
    found = kernel(*(pa.array(lists[name]) for name in ("v", "f", "low", "high")), texts)
    assert set(found) == set(ADDED)
    for i, one in enumerate(wanted):
        assert found["estimate"][i] == pytest.approx(one.estimate)
        assert ESTIMATORS[int(found["estimator"][i])] == one.estimator
        assert (found["interval_low"][i], found["interval_high"][i]) == pytest.approx(one.interval)
        for name in ("standard_error", "unbiased"):
            known = getattr(one, name)
            assert found[name][i] == pytest.approx(np.nan if known is None else known, nan_ok=True)


def test_without_a_system_the_flattened_estimate_comes_without_an_error():
    kernel = GroupCounts(None, (), (), np.zeros(0), 0)
    given = [["a", "b"], []], [[1.5, 2.0], []], [[0, 2], []], [[3, 2], []]
    found = kernel(
        *(pa.array(g, t) for g, t in zip(given, (pa.list_(pa.string()), *[pa.list_(pa.float64())] * 3), strict=True)),
        [],
    )
    assert [ESTIMATORS[int(e)] for e in found["estimator"]] == ["flattened", "exact"]
    assert np.isnan(found["standard_error"][0])
    assert found["standard_error"][1] == 0
    assert (found["interval_low"].tolist(), found["interval_high"].tolist()) == ([0, 2], [3, 2])
