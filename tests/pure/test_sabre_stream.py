"""The task of a stream without Spark: what arrives in micro-batches goes out as boxes and notes, the same however often it is played."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from anonlib.methods.sabre_stream import ADVANCE, BATCH, RECORD, SPREAD, Played
from anonlib.methods.window_state import unpacked
from anonlib.privacy.t_closeness import GroundDistance
from anonlib.release.streamed import CLASS_BITS, WINDOW_BITS
from tests.pure.test_sabre_window import DOMAINS, KEY, drifting

TASK = Played(DOMAINS, GroundDistance.flat(4), 24, 6, 2, Fraction(1, 5), (0, 1, 2, 3), KEY)


def batch(n: int, seed: int = 0, due: Any = None, fate: Any = 0) -> pd.DataFrame:
    """n records; due one after another, or as given."""
    records = drifting(np.random.default_rng(seed), n, 4)
    return pd.DataFrame(
        {
            "shard": np.zeros(n, dtype=np.int32),
            "fate": np.full(n, fate, dtype=np.int8),
            "due": np.arange(n) if due is None else due,
            "s0": records.sensitive.astype(np.int32),
            "q0": records.columns[0],
            "q1": records.columns[1],
        }
    )


def notes(columns: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [json.loads(note) for of, note in zip(columns["kind"], columns["note"], strict=True) if of == kind]


def shown(columns: dict[str, Any]) -> list[tuple[Any, ...]]:
    kept = columns["kind"] == RECORD
    names = [name for name in columns if name not in ("kind", "spread", "note")]
    return sorted(tuple(str(columns[name][i]) for name in names) for i in np.flatnonzero(kept))


def test_records_come_out_as_boxes_that_hold_them():
    arriving = batch(60)
    _, columns = TASK(3, None, arriving)
    kept = columns["kind"] == RECORD
    assert kept.sum() == sum(advance["shown"] for advance in notes(columns, ADVANCE)) > 0
    assert all(len(column) == len(kept) for column in columns.values())
    assert (columns["q0_lo"][kept] <= columns["q0_hi"][kept]).all()
    assert set(columns["ec_id"][kept] >> (CLASS_BITS + WINDOW_BITS)) == {3}
    assert (columns["ec_id"][kept] >> CLASS_BITS == columns["of"][kept]).all()
    spreads = {
        of: spread
        for kind, of, spread in zip(columns["kind"], columns["of"], columns["spread"], strict=True)
        if kind == SPREAD
    }
    for of, spread in spreads.items():
        window = of & ((1 << WINDOW_BITS) - 1)
        held = arriving["s0"].to_numpy()[window * 6 : window * 6 + 24]
        assert spread.tolist() == np.bincount(held, minlength=4).tolist()
    assert set(spreads) == set(columns["of"][kept])
    counted = np.sum(
        [s for k, s in zip(columns["kind"], columns["spread"], strict=True) if k == ADVANCE and len(s)], axis=0
    )
    assert counted.tolist() == np.bincount(columns["s0"][kept], minlength=4).tolist()


def test_a_batch_played_again_is_the_same_and_rows_in_any_order_are_one_batch():
    first, then = batch(40), batch(40, seed=1, due=np.arange(40, 80))
    state, _ = TASK(0, None, first)
    after, columns = TASK(0, state, then)
    again, repeated = TASK(0, state, then.sample(frac=1, random_state=5))
    assert after == again
    assert shown(columns) == shown(repeated)
    other, elsewhere = TASK(1, None, first), TASK(0, None, first)
    assert shown(other[1]) != shown(elsewhere[1])


def test_records_arrive_as_they_are_due_and_late_ones_are_appended():
    state, _ = TASK(0, None, batch(10, due=np.arange(10)[::-1] + 100))
    assert unpacked(state).state.values.tolist() == batch(10)["s0"].tolist()[::-1]
    assert unpacked(state).newest == 109
    after, columns = TASK(0, state, batch(3, seed=1, due=[50, 109, 200]))
    (counts,) = notes(columns, BATCH)
    assert (counts["arrived"], counts["late"], counts["waiting"]) == (3, 1, 13)
    assert unpacked(after).newest == 200
    assert unpacked(after).state.values.tolist()[10:] == batch(3, seed=1)["s0"].tolist()


def test_ties_are_in_an_order_that_only_the_key_knows():
    together = batch(24, due=np.zeros(24, dtype=np.int64))
    orders = []
    for key in (KEY, bytes(32)):
        task = Played(DOMAINS, GroundDistance.flat(4), 48, 6, 2, Fraction(1, 5), (0, 1, 2, 3), key)
        orders.append(unpacked(task(0, None, together)[0]).state.values.tolist())
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(together["s0"].tolist())
    assert orders[0] != orders[1]
    assert together["s0"].tolist() not in orders


def test_what_is_left_out_is_counted_and_the_end_shows_what_waits():
    arriving = pd.concat([batch(30), batch(2, fate=1), batch(3, fate=2)])
    state, columns = TASK(0, None, arriving)
    (counts,) = notes(columns, BATCH)
    assert (counts["arrived"], counts["missing"], counts["outside"]) == (35, 2, 3)
    out = len(shown(columns))
    assert counts["waiting"] == 30 - out
    after, ended = TASK(0, state, batch(1, fate=3))
    (last,) = notes(ended, BATCH)
    assert last["arrived"] == 0
    assert len(shown(ended)) + last["waiting"] == 30 - out
    assert last["waiting"] == sum(advance["held_back"] for advance in notes(ended, ADVANCE))
    assert len(unpacked(after).state.waiting) == last["waiting"]


def test_a_shard_of_which_nothing_arrived_ends_in_silence():
    state, columns = TASK(2, None, batch(1, fate=3))
    assert not shown(columns)
    assert notes(columns, BATCH)[0]["waiting"] == 0
    assert unpacked(state).newest is None
