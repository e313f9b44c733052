"""All known but one: the accuracy of who compares frequencies, against every set of fakes and against fakes that are known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from anonlib.evaluation.attacks import Listed
from anonlib.evaluation.attacks_last_record import _fakes, last_record


def test_sets_of_fakes_come_in_proportion_to_their_weights():
    """40,000 draws of one of six sets: the standard error is 0.0025 at most, five of them 0.0125."""
    weight = np.array([0.2, 1.0, 3.0, 0.5])
    drawn = _fakes(np.tile(weight, (40_000, 1)), 2, np.random.default_rng(3))
    pairs = list(itertools.combinations(range(4), 2))
    total = sum(weight[list(pair)].prod() for pair in pairs)
    for pair in pairs:
        found = drawn[:, list(pair)].all(axis=1).mean()
        assert found == pytest.approx(weight[list(pair)].prod() / total, abs=0.0125)
    assert (drawn.sum(axis=1) == 2).all()


def dealt(shares, buckets: int, size: int, s: int, by_frequency: bool, seed: int = 0):
    """(what is listed, records by value, how often somebody who compares odds names the last record's value, given the true fakes)."""
    rng = np.random.default_rng(seed)
    m = len(shares)
    rows, real = [], np.zeros(m, dtype=np.int64)
    sets = []
    for b in range(buckets):
        own = rng.choice(m, size, replace=False, p=shares)
        others = np.setdiff1d(np.arange(m), own)
        weights = shares[others] / shares[others].sum() if by_frequency else None
        fakes = rng.choice(others, s, replace=False, p=weights)
        real[own] += 1
        sets.append((own, fakes))
        rows += [(b, v, 1) for v in [*own, *fakes]]
    listed = Listed(*(np.array(part, dtype=np.int64) for part in zip(*rows, strict=True)))
    odds = real / np.maximum(np.bincount(listed.code, minlength=m) - real, 1e-9)
    named = []
    for own, fakes in sets:
        left = np.array([rng.choice(own), *fakes])
        named.append(odds[left].argmax() == 0)
    return listed, real, float(np.mean(named))


@pytest.mark.long
@pytest.mark.parametrize("by_frequency", [False, True])
def test_drawn_sets_of_fakes_are_as_telling_as_the_true_ones(by_frequency):
    """4,000 buckets twice: five standard errors of the difference are 0.055."""
    shares = 1 / np.arange(1, 31) ** 0.9
    listed, real, named = dealt(shares / shares.sum(), 4_000, 6, 2, by_frequency)
    found = last_record(listed, real, 2, 0.1)
    assert found.persons == 4_000
    assert found.accuracy == pytest.approx(named, abs=0.055)
    assert found.guarantee is None
    if not by_frequency:
        assert found.accuracy > 0.5 > 1 / 3


def test_values_that_are_equally_frequent_do_not_tell():
    """4,000 buckets: chance of naming the last within five standard errors of 1/3, but for what chance makes of the odds."""
    listed, real, _ = dealt(np.full(12, 1 / 12), 4_000, 6, 2, False)
    assert last_record(listed, real, 2, 0.1).accuracy == pytest.approx(1 / 3, abs=0.06)


def test_without_fakes_the_last_is_certain():
    listed, real, _ = dealt(np.full(12, 1 / 12), 50, 6, 0, False)
    found = last_record(listed, real, 0, 0.1)
    assert found.accuracy == 1.0
    assert found.words == "none promised without fake values"
