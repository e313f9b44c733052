"""Many queries at once are answered as one at a time."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from anonlib.queries import many_counts
from anonlib.queries.bucketized import Seen, answer
from anonlib.queries.flattening import Flattening, Kinds
from anonlib.queries.many_counts import Asked, answers

HELD = np.array([[1, 1, 0, 1, 0], [1, 0, 1, 1, 0], [0, 1, 1, 0, 2], [2, 0, 0, 1, 1], [0, 1, 2, 1, 0]])
BUCKETS = np.array([300, 200, 250, 100, 400])
SIZES = {"a": 3, "b": 4}
QUERIES = [{"a": (0, 1), "b": (2,)}, {"b": (0, 3)}, {"a": (2,), "b": (0, 1, 2)}, {}, {"a": (1,), "b": (3,)}]
ACCEPTED = np.array([[1, 0, 0, 0, 1], [0, 1, 1, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 1, 1, 1]], float).T


@pytest.fixture(scope="module")
def table():
    """(kinds, kind and bucket of each record, its values of a and b): b goes with the sensitive value."""
    draw = np.random.default_rng(5)
    kind = np.repeat(np.arange(5), BUCKETS)
    size = HELD.sum(axis=1)[kind]
    bucket = np.repeat(np.arange(len(kind)), size)
    value = np.concatenate([np.repeat(np.arange(5), HELD[k]) for k in kind])
    a = draw.integers(0, 3, len(bucket))
    b = (value + draw.integers(0, 2, len(bucket))) % 4
    return Kinds(BUCKETS, sp.csr_matrix(HELD)), kind, bucket, {"a": a, "b": b}


def met(columns, condition):
    return np.logical_and.reduce(
        [np.ones(len(columns["a"]), bool), *(np.isin(columns[x], c) for x, c in condition.items())]
    )


@pytest.mark.parametrize("most", [3, 1_000])
def test_as_one_at_a_time(table, most, monkeypatch):
    """Of attributes with more values than `MAX_SINGLES` the prior knows nothing."""
    monkeypatch.setattr(many_counts, "MAX_SINGLES", most)
    monkeypatch.setattr(many_counts, "_QUERIES", 2)
    kinds, kind, bucket, columns = table
    asked = Asked.of(QUERIES, SIZES)

    def by_kind(condition):
        return np.bincount(kind[bucket], weights=met(columns, condition), minlength=5)

    flat = kinds.flattened(np.array([by_kind(condition) for condition in asked.conditions]).T)
    found = answers(Flattening(kinds), flat, asked, ACCEPTED)
    for q, query in enumerate(QUERIES):
        matching = np.bincount(bucket, weights=met(columns, query)).astype(np.int64)
        parts = [by_kind({x: c}) for x, c in query.items() if SIZES[x] <= most]
        if len(query) > 1 == len(parts):
            parts.append(kinds.by_kind)  # a condition that everybody meets tells nothing
        seen = Seen(kind, matching, np.ones(len(kind), np.int64), np.array(parts).reshape(len(parts), 5).T)
        alone = answer(kinds, list("vwxyz"), ACCEPTED[:, q] == 1, seen)
        assert found[q] == pytest.approx(alone.estimate)


def test_no_query():
    kinds = Kinds(BUCKETS, sp.csr_matrix(HELD))
    assert answers(Flattening(kinds), np.zeros((5, 7)), Asked.of([], SIZES), np.zeros((5, 0))).shape == (0,)
