"""What every layout's audit asks of a published table: columns and types, ranges of whole numbers, which of them count its rows.

What a check needs of a table is asked for in the layout's own scan of it, so that no table is read once more for it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from anonlib.audit.form import ROW_NUMBER_FROM, Described, is_dense
from anonlib.engine.relational import DataFrame, aggregate, one_row
from anonlib.spec.release import Columns
from anonlib.sql import quoted

_WHOLE_TYPES = ("tinyint", "smallint", "int", "bigint")

Ranges = Mapping[str, tuple[int, int]]
"""{whole-number column: (min, max)}."""


def require_columns(columns: Columns | None, staged: bool) -> None:
    """Raises TypeError unless whoever audits staged tables says which columns may be published: the manifest alone would be believed."""
    if staged and columns is None:
        raise TypeError(
            "columns: staged tables are audited against the roles that the spec gives their columns; pass columns="
        )


def described(tables: Mapping[str, DataFrame]) -> Described:
    """Names and types of the tables' columns. No job."""
    return {name: tuple(frame.dtypes) for name, frame in tables.items()}


def fresh_salt() -> int:
    """A salt that nobody knew when the tables were written, so that no table can be made to collide under it."""
    return secrets.randbits(62)


def range_columns(frame: DataFrame, besides: Sequence[str]) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """(whole-number columns but for `besides`, what to project for them, what to aggregate over that): min and max of each."""
    names = [name for name, kind in frame.dtypes if name not in besides and _whole(kind)]
    projected = {f"r{i}": quoted(name) for i, name in enumerate(names)}
    aggregated: dict[str, str] = {}
    for i in range(len(names)):
        aggregated |= {f"low{i}": f"min(r{i})", f"high{i}": f"max(r{i})"}
    return names, projected, aggregated


def ranges(names: Sequence[str], extremes: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """{column: (its least value, its largest)} from the one row of `range_columns`' aggregates; columns without a value are left out."""
    return {
        name: (int(extremes[f"low{i}"]), int(extremes[f"high{i}"]))
        for i, name in enumerate(names)
        if extremes[f"low{i}"] is not None
    }


def numbering(frame: DataFrame, n: int, ranges: Ranges) -> tuple[str, ...]:
    """The whole-number columns that count the `n` rows, in words. One job for each that is dense enough."""
    row_numbers = []
    for name, (low, high) in ranges.items():
        if n >= ROW_NUMBER_FROM and is_dense(low, high, n) and all_distinct(frame, name, n):
            row_numbers.append(f"{name!r}: {n:,} distinct values from {low:,} to {high:,}")
    return tuple(row_numbers)


def all_distinct(frame: DataFrame, column: str, count: int) -> bool:
    """Whether a column has `count` distinct values. One job."""
    return bool(one_row(aggregate(frame, [], {"d": f"count(DISTINCT {quoted(column)})"}))["d"] == count)


def _whole(kind: str) -> bool:
    return kind in _WHOLE_TYPES or (kind.startswith("decimal(") and kind.endswith(",0)"))
