"""Scans of planted tables, each made once: a test of an audit tampers with one table and leaves the others as they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from anonlib.engine.checksum import combine, pieces, row_hash, sum_columns
from anonlib.engine.relational import aggregate, one_row, select


def once(scan: Callable[..., Any]) -> Callable[..., Any]:
    """`scan`, made once for the same tables and the same other arguments; a table is the same when it is the same DataFrame."""
    kept: dict[tuple[Any, ...], Any] = {}
    tables: list[Any] = []  # a DataFrame that is gone would leave its id to another

    def scanned(*arguments: Any, **named: Any) -> Any:
        frames = [a for a in arguments if hasattr(a, "localCheckpoint")]
        key = tuple(id(a) if hasattr(a, "localCheckpoint") else repr(a) for a in (*arguments, *sorted(named.items())))
        if key not in kept:
            kept[key] = scan(*arguments, **named)
            tables.extend(frames)
        return kept[key]

    return scanned


@once
def rows_and_checksum(frame: Any) -> tuple[int, str]:
    """As a manifest records them. One job."""
    hashed = select(frame, {"row": row_hash(frame)})
    sums = one_row(aggregate(hashed, [], {"n": "count(1)", **sum_columns("row", "c")}))
    return int(sums["n"]), combine(pieces(sums, "c"))


def scanning_once(audit: Any, *scans: str) -> pytest.MonkeyPatch:
    """The module `audit` makes its `scans`, functions of its own by name, once for each table; undo what this returns.

    The salt of fingerprints, which is drawn at each audit, is one for all of them then: nobody who tampers here knows it either.
    """
    patch = pytest.MonkeyPatch()
    for name in scans:
        patch.setattr(audit, name, once(getattr(audit, name)))
    return patch
