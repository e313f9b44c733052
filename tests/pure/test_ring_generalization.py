"""Rings: every record matches l records with l different values, itself among them, and is matched l times."""

import numpy as np
import pytest

from anonlib.kernels.matching.ring_generalization import _eligible_runs, rings, rings_within


def eligible_table(rng):
    """(curve, values, l): random, and no value in more than one of l records."""
    while True:
        n, m = int(rng.integers(2, 60)), int(rng.integers(2, 9))
        values = rng.choice(m, n, p=rng.dirichlet(np.full(m, 3.0)))
        most = n // int(np.bincount(values).max())
        if most >= 2:
            return rng.integers(0, 30, n), values.astype(np.int64), int(rng.integers(2, most + 1))


def test_every_record_matches_l_different_values_and_is_matched_l_times():
    rng = np.random.default_rng(1)
    for _ in range(2_000):
        curve, values, l = eligible_table(rng)  # noqa: E741
        found = rings(curve, values, l)
        matches = found.matches(l)
        n = len(values)
        assert sorted(found.records.tolist()) == list(range(n))
        assert (matches[:, 0] == np.arange(n)).all()
        assert all(len(set(row)) == l for row in values[matches].tolist())
        assert (np.bincount(matches.ravel(), minlength=n) == l).all()
        assert found.sizes.min() >= l


def test_a_shift_is_a_perfect_matching_along_the_edges_and_l_shifts_use_each_edge_once():
    rng = np.random.default_rng(2)
    for _ in range(200):
        curve, values, l = eligible_table(rng)  # noqa: E741
        found = rings(curve, values, l)
        matches = found.matches(l)
        partners = np.stack([found.shifted(np.full(len(found.sizes), s)) for s in range(l)], axis=1)
        assert (np.sort(partners, axis=0) == np.arange(len(values))[:, None]).all()
        assert (partners == matches).all()


def test_too_frequent_a_value_is_refused():
    with pytest.raises(ValueError, match="more often than in one of 3"):
        rings(np.arange(5), np.array([0, 0, 1, 2, 3]), 3)


def test_runs_are_eligible_cover_everything_and_are_not_longer_than_needed():
    rng = np.random.default_rng(3)
    for _ in range(300):
        _, values, l = eligible_table(rng)  # noqa: E741
        runs = _eligible_runs(values.tolist(), l)
        assert [r[0] for r in runs] == [0, *[r[1] for r in runs[:-1]]]
        assert runs[-1][1] == len(values)
        for start, stop in runs:
            assert np.bincount(values[start:stop]).max() * l <= stop - start
        for start, stop in runs[:-1]:  # no shorter prefix would have done
            assert all(np.bincount(values[start:end]).max() * l > end - start for end in range(start + 1, stop))


def test_neighbours_share_a_ring():
    """Two far groups of four values each: no ring has records of both."""
    curve = np.array([0, 1, 2, 3, 100, 101, 102, 103])
    values = np.array([0, 1, 2, 3, 0, 1, 2, 3])
    found = rings(curve, values, 4)
    assert [sorted(part) for part in np.split(found.records, found.bounds[1:-1])] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_rings_within_classes_stay_within_them():
    rng = np.random.default_rng(4)
    for _ in range(200):
        curve, values, l = eligible_table(rng)  # noqa: E741
        again = np.tile(values, 3)
        classes = np.repeat(np.arange(3), len(values))
        mixed = rng.permutation(len(again))
        found = rings_within(np.tile(curve, 3)[mixed], again[mixed], l, classes[mixed])
        matches = found.matches(l)
        assert (classes[mixed][matches] == classes[mixed][:, None]).all()
        assert all(len(set(row)) == l for row in again[mixed][matches].tolist())
        assert (np.bincount(matches.ravel(), minlength=len(again)) == l).all()
    assert rings_within(np.zeros(0), np.zeros(0, dtype=np.int64), 2, np.zeros(0, dtype=np.int64)).sizes.size == 0
