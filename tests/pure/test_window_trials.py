"""What a setting of a stream's windows would lose and delay: the figures a steward is told are those of the windows themselves."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from anonlib.kernels.classes.sabre_window import Windows
from anonlib.methods import window_trials
from anonlib.methods.sabre_window import WindowClasses
from anonlib.methods.window_state import Kept, packed
from anonlib.privacy.t_closeness import GroundDistance
from tests.pure.test_sabre_window import DOMAINS, drifting, shown_once

GROUND, T, K = GroundDistance.flat(4), Fraction(1, 5), 2


def test_a_trial_tells_what_the_windows_did():
    records = drifting(np.random.default_rng(3), 200, 4)
    trial = window_trials.tried(records, DOMAINS, GROUND, (24, 6), K, T)
    assert trial is not None
    windows = Windows(24, 6, K, GROUND, T, WindowClasses(DOMAINS, GROUND, K, bytes(32)))
    done, _ = windows.advanced(windows.begin(records.columns), records)
    of = shown_once(done)
    delays = [advance.arrived - 1 - number for number, (_, _, advance) in of.items()]
    assert (trial.size, trial.advance, trial.records) == (24, 6, 200)
    assert trial.cases == {case: sum(a.case == case for a in done) for case in ("direct", "indirect", "nothing")}
    assert min(trial.cases.values()) > 0
    assert trial.shown == len(of)
    assert trial.classes == len({(window, own) for window, own, _ in of.values()})
    assert (trial.mean_delay, trial.longest_delay) == (pytest.approx(np.mean(delays)), max(delays))
    assert trial.longest_delay < 24
    classes: dict[tuple[int, int], list[int]] = {}
    for number, (window, own, _) in of.items():
        classes.setdefault((window, own), []).append(number)
    loss = 0.0
    for members in classes.values():
        ages, places = records.columns[0][members], set(records.columns[1][members].tolist())
        loss += len(members) * (np.ptp(ages) / 60 + (len(places) / 3 if len(places) > 1 else 0)) / 2
    assert trial.loss == pytest.approx(loss / len(of))


def test_the_state_is_the_largest_between_two_advances():
    records = drifting(np.random.default_rng(3), 200, 4)
    trial = window_trials.tried(records, DOMAINS, GROUND, (24, 6), K, T)
    assert trial is not None
    windows = Windows(24, 6, K, GROUND, T, WindowClasses(DOMAINS, GROUND, K, bytes(32)))
    state, sizes = windows.begin(records.columns), []
    for start in range(0, 200, 6):
        state = windows.advanced(state, records.taken(np.arange(start, min(start + 6, 200))))[1]
        sizes.append(len(packed(Kept(state, 0))))
    assert trial.state == max(sizes)


@pytest.mark.long
def test_the_newest_records_are_tried_and_too_few_are_not():
    draw = np.random.default_rng(5)
    many = drifting(draw, window_trials.wanted(200, 50) + 77, 4)
    trial = window_trials.tried(many, DOMAINS, GROUND, (200, 50), K, T)
    newest = window_trials.tried(many.taken(np.arange(77, len(many))), DOMAINS, GROUND, (200, 50), K, T)
    assert trial == newest
    assert trial is not None
    assert trial.records == window_trials.wanted(200, 50)
    assert sum(trial.cases.values()) == window_trials.MOST_ADVANCES
    few = many.taken(np.arange(249))
    assert window_trials.tried(few, DOMAINS, GROUND, (200, 50), K, T) is None


def test_settings_beside_the_one_asked_are_such_as_a_spec_may_ask_for():
    assert window_trials.near(1500, 500, 100) == [(1500, 250), (1500, 500), (1500, 1500), (3000, 500)]
    assert (2000, 1000) in window_trials.near(2000, 500, 100)
    assert window_trials.near(400, 200, 200) == [(200, 200), (400, 200), (400, 400), (800, 200)]
    assert window_trials.near(300, 50, 100) == [(300, 50), (300, 100), (300, 300)]
    for size, advance in ((20_000, 5_000), (7, 7), (90, 30)):
        beside = window_trials.near(size, advance, 10)
        assert (size, advance) in beside
        assert all(omega % i == 0 for omega, i in beside)


@pytest.mark.parametrize(("size", "advances"), [(20_000, 10), (1_500, 40), (1_000_000, 2)])
def test_a_trial_is_bounded(size: int, advances: int):
    assert window_trials.wanted(size, size // 10) == size + (advances - 1) * (size // 10)
