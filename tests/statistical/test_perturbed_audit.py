"""The audit's tests of published counts: they let pass what was perturbed as stated, and find what was not."""

from __future__ import annotations

import numpy as np
import pytest

from anonlib.audit.perturbed.statistics import Cells, kept_as_often, plausible

SHAPES = [
    (np.array([120, 80, 60, 40, 40, 20]), 4.0),
    (np.full(6, 20), 10.0),
    (np.arange(1, 31) * 40, 2.5),
    (np.full(40, 300), 3.0),
]


def chances(m, gamma):
    return (gamma - 1) / (m - 1 + gamma), 1 / (m - 1 + gamma)


def perturbed(rng, true, gamma, shown=None):
    """Cells of one sub-table: perturbed with `gamma`, audited as if with `shown`."""
    m = len(true)
    p, _ = chances(m, gamma)
    value = np.repeat(np.arange(m), true)
    kept = rng.random(len(value)) < p
    now = np.where(kept, value, rng.integers(0, m, len(value)))
    return Cells(*chances(m, shown or gamma), true, np.bincount(now, minlength=m)), int((now == value).sum())


@pytest.mark.long
def test_what_was_perturbed_passes():
    """1,000 releases of four sub-tables: a false alarm in any has a chance of about one in a million. S is chi-square: its mean over
    1,000 within 4.5 standard errors."""
    rng = np.random.default_rng(5)
    sums = []
    for _ in range(1_000):
        cells, kept = zip(*(perturbed(rng, *shape) for shape in SHAPES), strict=True)
        assert plausible(cells).passed
        sizes = [int(t.sum()) for t, _ in SHAPES]
        assert kept_as_often(kept, sizes, [sum(chances(len(t), g)) for t, g in SHAPES]).passed
        found = [s for s in (c.chi_square() for c in cells) if s is not None]
        sums.append(sum(s for s, _ in found))
        freedom = sum(f for _, f in found)
    assert freedom > 30
    assert np.mean(sums) == pytest.approx(freedom, abs=4.5 * np.sqrt(2 * freedom / 1_000))
    assert np.var(sums) == pytest.approx(2 * freedom, rel=0.25)


@pytest.mark.parametrize("shape", SHAPES[2:])
def test_what_was_not_perturbed_is_found(shape):
    """The last one has equal true counts: nothing lies far off, and the sum is too small."""
    true, gamma = shape
    assert not plausible([Cells(*chances(len(true), gamma), true, true)]).passed


def test_a_value_moved_to_another_is_found():
    cells, _ = perturbed(np.random.default_rng(1), *SHAPES[2])
    observed = cells.observed.copy()
    observed[0], observed[29] = observed[0] + 300, observed[29] - 300
    found = plausible([Cells(cells.p, cells.q, cells.true, observed)])
    assert not found.passed
    assert found.worst in {(0, 0), (0, 29)}


def test_another_gamma_is_found():
    """By the counts where gamma is far off; by records whose true value is known where it is near."""
    true = np.arange(1, 31) * 400
    far, _ = perturbed(np.random.default_rng(2), true, 6.0, shown=2.5)
    assert not plausible([far]).passed
    near, kept = perturbed(np.random.default_rng(2), true, 3.0, shown=2.5)
    assert plausible([near]).passed
    assert not kept_as_often([kept], [int(true.sum())], [sum(chances(30, 2.5))]).passed


def test_no_record_and_one_value_are_nothing_to_test():
    none = np.zeros(3, dtype=np.int64)
    assert plausible([Cells(*chances(3, 2.0), none, none)]).passed
    assert plausible([Cells(*chances(1, 2.0), np.array([7]), np.array([7]))]).passed
    assert plausible([]).passed
    assert kept_as_often([], [], []).passed
    assert kept_as_often([0], [0], [0.5]).passed
