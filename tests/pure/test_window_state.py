"""A stream's state as bytes: what goes in comes out, whatever the types; and it does not grow with what has been shown."""

from __future__ import annotations

from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from anonlib.errors import SpecError
from anonlib.kernels.classes.sabre_window import Records, State, Windows
from anonlib.methods import window_state
from anonlib.methods.sabre_window import WindowClasses
from anonlib.methods.window_state import Kept, packed, unpacked
from anonlib.privacy.t_closeness import GroundDistance
from tests.pure.test_sabre_window import DOMAINS, KEY, drifting


def same(one: State, other: State) -> bool:
    for field in fields(State):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, Records):
            pairs = [*zip(a.columns, b.columns, strict=True), (a.sensitive, b.sensitive)]
        else:
            pairs = [(np.asarray(a), np.asarray(b))]
        if not all(x.dtype == y.dtype and np.array_equal(x, y) for x, y in pairs):
            return False
    return True


def windows(size: int = 24, advance: int = 6) -> Windows:
    distance = GroundDistance.flat(4)
    return Windows(size, advance, 2, distance, Fraction(1, 5), WindowClasses(DOMAINS, distance, 2, KEY))


@pytest.mark.parametrize("newest", [None, 5, -3, 2.5])
@pytest.mark.parametrize("n", [0, 5, 24, 100])
def test_a_state_comes_back_as_it_was(n: int, newest: int | float | None):
    records = drifting(np.random.default_rng(n), n, 4)
    records = Records((records.columns[0].astype(np.float64), records.columns[1]), records.sensitive)
    _, state = windows().advanced(windows().begin(records.columns), records)
    back = unpacked(packed(Kept(state, newest)))
    assert same(back.state, state)
    assert back.newest == newest
    assert type(back.newest) is type(newest)
    lost = replace(state, arrived=state.arrived + 1)
    assert not same(unpacked(packed(Kept(lost, newest))).state, state)


def test_a_stream_goes_on_from_bytes_as_from_the_state():
    draw = np.random.default_rng(2)
    first, then = drifting(draw, 50, 4), drifting(draw, 50, 4)
    _, state = windows().advanced(windows().begin(first.columns), first)
    done, after = windows().advanced(state, then)
    again, too = windows().advanced(unpacked(packed(Kept(state, None))).state, then)
    assert same(after, too)
    assert [(a.case, a.window, a.distance) for a in done] == [(a.case, a.window, a.distance) for a in again]


@pytest.mark.long
def test_bytes_do_not_grow_with_the_stream():
    sizes, state = [], windows().begin(drifting(np.random.default_rng(0), 0, 4).columns)
    for seed in range(60):
        _, state = windows().advanced(state, drifting(np.random.default_rng(seed), 60, 4))
        sizes.append(len(packed(Kept(state, seed))))
        assert len(state.values) == 24
    assert max(sizes[30:]) <= max(sizes[:30]) * 1.1


def test_a_later_format_is_refused(monkeypatch):
    state = windows().begin(drifting(np.random.default_rng(0), 0, 4).columns)
    monkeypatch.setattr(window_state, "VERSION", 2)
    later = packed(Kept(state, None))
    monkeypatch.undo()
    with pytest.raises(SpecError, match="has format 2, this version reads 1"):
        unpacked(later)
    with pytest.raises(pa.ArrowInvalid):
        unpacked(later[:20])
