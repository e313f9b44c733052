"""A stream's state between two micro-batches, as Arrow bytes: the windows' own state, and what is counted beside it.

One row whose columns are lists, so that nothing is pickled and a later version can read what an earlier one left. Its size is O(omega):
the records not shown yet, the sensitive codes of the newest omega, m counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anonlib.errors import SpecError
from anonlib.kernels.classes.sabre_window import Records, State

VERSION = 1
_NUMBERS = ("window", "start", "arrived", "formed")


@dataclass(frozen=True, eq=False)
class Kept:
    """state : of the windows; newest : the latest time of arrival so far (a code of `order`), None before the first record."""

    state: State
    newest: int | float | None


def packed(kept: Kept) -> bytes:
    """The state as bytes."""
    state = kept.state
    columns = {name: pa.array([getattr(state, name)], pa.int64()) for name in _NUMBERS}
    columns["version"] = pa.array([VERSION], pa.int64())
    newest = pa.float64() if isinstance(kept.newest, float) else pa.int64()
    columns["newest"] = pa.array([kept.newest], newest)
    columns["values"] = _listed(state.values.astype(np.int32))
    columns["sensitive"] = _listed(state.waiting.sensitive.astype(np.int32))
    columns |= {name: _listed(getattr(state, name)) for name in ("number", "classes", "spread")}
    columns |= {f"q{i}": _listed(column) for i, column in enumerate(state.waiting.columns)}
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def unpacked(data: bytes) -> Kept:
    """The inverse of `packed`. Raises SpecError for bytes of a later version."""
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        batch = reader.read_next_batch()
    held = {name: batch.column(i) for i, name in enumerate(batch.schema.names)}
    version = held["version"][0].as_py()
    if version != VERSION:
        raise SpecError(f"stream.checkpoint: its state has format {version}, this version reads {VERSION}; upgrade")
    array = {
        name: column.values.to_numpy(zero_copy_only=False)
        for name, column in held.items()
        if pa.types.is_list(column.type)
    }
    columns = tuple(array[f"q{i}"] for i in range(sum(name.startswith("q") for name in array)))
    state = State(
        window=held["window"][0].as_py(),
        start=held["start"][0].as_py(),
        arrived=held["arrived"][0].as_py(),
        values=array["values"].astype(np.int64),
        waiting=Records(columns, array["sensitive"].astype(np.int64)),
        number=array["number"],
        classes=array["classes"],
        formed=held["formed"][0].as_py(),
        spread=array["spread"],
    )
    return Kept(state, held["newest"][0].as_py())


def _listed(values: np.ndarray) -> pa.Array:  # type: ignore[type-arg]
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), pa.array(values))
