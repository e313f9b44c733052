"""SABRE_W as a stream's task: what has arrived of a shard, in order, through its windows; classes out as boxes, and notes beside them.

    record    a shown record under the box of its class: qI_lo, qI_hi, qI_set, s0, ec_id
    spread    a window of which classes are shown: how many of its records have each sensitive value; for the audit, never published
    advance   what an advance did, as JSON, for the steward's log, and how many shown records have each value
    batch     how many records arrived, were left out, came late, wait: counts that may be published, as JSON

An `ec_id` says where a class comes from: shard, window and number in it, `SHARD_BITS` . `WINDOW_BITS` . `CLASS_BITS` of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from anonlib.arrays import Int64Array, Lists
from anonlib.domains import Domain, NumericDomain
from anonlib.errors import AnonlibError
from anonlib.exact import text
from anonlib.kernels.boxes import boxes_of_classes
from anonlib.kernels.classes.sabre_window import Advance, Records, Shown, State, Windows
from anonlib.keyed import Stream, derive
from anonlib.methods.boxed import box_columns
from anonlib.methods.sabre_window import WindowClasses
from anonlib.methods.window_state import Kept, packed, unpacked
from anonlib.privacy.t_closeness import GroundDistance
from anonlib.release.streamed import CLASS_BITS, WINDOW_BITS

ARRIVAL = "stream: order of records that arrive at one time"
RECORD, SPREAD, ADVANCE, BATCH = "record", "spread", "advance", "batch"
NOTES = "kind string, of bigint, spread array<bigint>, note string"
"""DDL of what stands beside the columns of a box: `of` is shard and window (an ec_id without its last bits)."""


@dataclass(frozen=True, eq=False)
class Played:
    """`anonlib.engine.streaming.Play`: the task of one shard and micro-batch.

    to_publish, missing, outside, flush : the fates of `anonlib.engine.streaming`, by number
    """

    domains: tuple[Domain, ...]
    distance: GroundDistance
    size: int
    advance: int
    k: int
    t: Fraction
    fates: tuple[int, int, int, int]
    key: bytes = field(repr=False)

    def __call__(self, shard: int, before: bytes | None, arrived: pd.DataFrame) -> tuple[bytes, dict[str, Any]]:
        """(the state afterwards, the columns of the output). Raises AnonlibError where a promise would not be kept."""
        to_publish, missing, outside, flush = self.fates
        form = WindowClasses(self.domains, self.distance, self.k, self.key, shard)
        windows = Windows(self.size, self.advance, self.k, self.distance, self.t, form)
        fate = arrived["fate"].to_numpy()
        records = arrived[fate == to_publish]
        names = [f"q{i}" for i in range(len(self.domains))]
        kept = Kept(windows.begin([records[n].to_numpy() for n in names]), None) if before is None else unpacked(before)
        due = records["due"].to_numpy()
        late = 0 if kept.newest is None else int((due < kept.newest).sum())
        order = self._in_order(shard, kept.state, records, names)
        new = Records(
            tuple(records[n].to_numpy()[order] for n in names), records["s0"].to_numpy().astype(np.int64)[order]
        )
        advances, state = windows.advanced(kept.state, new)
        if (fate == flush).any():
            last, state = windows.flushed(state)
            advances.append(last)
        if state.window >= 1 << WINDOW_BITS:
            raise AnonlibError("a stream has more windows than its classes' numbers can tell; begin another stream")
        newest = max([kept.newest] if kept.newest is not None else [], default=None)
        if len(due):
            newest = due.max().item() if newest is None else max(newest, due.max().item())
        counts = {
            "arrived": int((fate != flush).sum()),
            "missing": int((fate == missing).sum()),
            "outside": int((fate == outside).sum()),
            "late": late,
            "waiting": len(state.waiting),
            "shard": shard,
            "bytes": 0,
        }
        after = packed(Kept(state, newest))
        counts["bytes"] = len(after)
        return after, self._output(shard, advances, counts)

    def _in_order(self, shard: int, state: State, records: pd.DataFrame, names: list[str]) -> Int64Array:
        """The order in which the records of a micro-batch arrive: as they are due, ties in an order that only the key knows."""
        columns = [records[name].to_numpy() for name in names]
        order = np.lexsort((records["s0"].to_numpy(), *reversed(columns)))
        key = derive(self.key, ARRIVAL, shard, state.window, state.arrived)
        order = order[Stream(key, ARRIVAL).permutation(len(order))] if len(order) else order
        order = order[np.argsort(records["due"].to_numpy()[order], kind="stable")]
        return np.asarray(order, dtype=np.int64)

    def _output(self, shard: int, advances: list[Advance], counts: Mapping[str, int]) -> dict[str, Any]:
        parts = [self._classes(shard, advance.shown) for advance in advances if advance.shown is not None]
        spreads: dict[int, Int64Array] = {}
        for advance in advances:
            if advance.shown is not None:
                spreads[_window(shard, advance.shown.window)] = advance.shown.spread
        notes = [(SPREAD, of, spread, "") for of, spread in spreads.items()]
        notes += [
            (ADVANCE, _window(shard, advance.window), self._counted(advance), json.dumps(_told(shard, advance)))
            for advance in advances
        ]
        notes.append((BATCH, _window(shard, 0), _NONE, json.dumps(dict(counts))))
        parts.append(self._beside(notes))
        return {
            name: np.concatenate([part[name] for part in parts]) for name in parts[-1]
        }  # lists stand in columns of objects

    def _counted(self, advance: Advance) -> Int64Array:
        """(m,) int64: how many of the records that an advance shows have each sensitive value; none where it shows none."""
        if advance.shown is None:
            return _NONE
        return np.bincount(advance.shown.records.sensitive, minlength=self.distance.m).astype(np.int64)

    def _classes(self, shard: int, shown: Shown) -> dict[str, Any]:
        _, own = np.unique(shown.classes, return_inverse=True)
        boxes = boxes_of_classes(shown.records.columns, self.domains, own.astype(np.int64))
        n, of = len(own), _window(shard, shown.window)
        return {
            **{name: _listed(column) for name, column in box_columns(boxes, own).items()},
            "s0": shown.records.sensitive.astype(np.int32),
            "ec_id": (of << CLASS_BITS) + shown.classes,
            "kind": np.full(n, RECORD, dtype=object),
            "of": np.full(n, of, dtype=np.int64),
            "spread": _repeated(_NONE, n),
            "note": np.full(n, "", dtype=object),
        }

    def _beside(self, notes: list[tuple[str, int, Int64Array, str]]) -> dict[str, Any]:
        n = len(notes)
        columns: dict[str, Any] = {}
        for i, domain in enumerate(self.domains):
            if isinstance(domain, NumericDomain):
                columns |= dict.fromkeys((f"q{i}_lo", f"q{i}_hi"), np.zeros(n, dtype=np.int64))
            else:
                columns[f"q{i}_set"] = _repeated(np.zeros(0, dtype=np.int32), n)
        spreads = np.empty(n, dtype=object)
        spreads[:] = [spread for _, _, spread, _ in notes]
        return columns | {
            "s0": np.zeros(n, dtype=np.int32),
            "ec_id": np.zeros(n, dtype=np.int64),
            "kind": np.array([kind for kind, *_ in notes], dtype=object),
            "of": np.array([of for _, of, _, _ in notes], dtype=np.int64),
            "spread": spreads,
            "note": np.array([note for *_, note in notes], dtype=object),
        }


_NONE = np.zeros(0, dtype=np.int64)


def _listed(column: Any) -> Any:
    return column.listed() if isinstance(column, Lists) else column


def _repeated(value: Any, n: int) -> Any:
    column = np.empty(n, dtype=object)
    for i in range(n):
        column[i] = value
    return column


def _window(shard: int, window: int) -> int:
    return (shard << WINDOW_BITS) + window


def _told(shard: int, advance: Advance) -> dict[str, Any]:
    """An advance as JSON has it."""
    shown = advance.shown
    return {
        "shard": shard,
        "window": advance.window,
        "case": advance.case,
        "unshown": advance.unshown,
        "expiring": advance.expiring,
        "distance": None if advance.distance is None else text(advance.distance),
        "shown": 0 if shown is None else len(shown.records),
        "classes": 0 if shown is None else len(np.unique(shown.classes)),
        "of_window": None if shown is None else shown.window,
        "held_back": advance.held_back,
    }
