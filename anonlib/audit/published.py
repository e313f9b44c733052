"""Checks of published tables that every layout shares: contents as recorded, columns as stated, no row numbers.

What a check needs of a table is asked for in the layout's own scan of it, so that no table is read once more for it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from anonlib.audit.verdict import Check, Measured
from anonlib.engine.relational import DataFrame, aggregate, one_row
from anonlib.release.manifest import Manifest, TablePart
from anonlib.sql import quoted

ROW_NUMBER_FROM = 1000
"""A column of fewer rows than this may be dense and distinct by chance (ages of a dozen people)."""
_WHOLE_TYPES = ("tinyint", "smallint", "int", "bigint")

Ranges = Mapping[str, tuple[int, int]]
"""{whole-number column: (min, max)}."""


def fresh_salt() -> int:
    """A salt that nobody knew when the tables were written, so that no table can be made to collide under it."""
    return secrets.randbits(62)


def contents(table: str, part: TablePart, found: Measured, staged: bool) -> Check:
    """Rows and checksum of a table are those that the manifest recorded; a staged table's are still to be recorded."""
    if staged and not part.checksum:
        return Check(f"contents of {table}", True, "still to be recorded", f"{found.rows:,} rows, {found.checksum}")
    return Check(
        name=f"contents of {table}",
        passed=(part.rows, part.checksum) == (found.rows, found.checksum),
        asked=f"{part.rows:,} rows, {part.checksum or 'a checksum, which the manifest lacks'}",
        achieved=f"{found.rows:,} rows, {found.checksum}",
    )


def column_faults(tables: Mapping[str, DataFrame], manifest: Manifest, name: str) -> list[str]:
    """How the columns of the table `name` differ from those that the manifest lists, in sentences."""
    wanted = [(c.name, c.type) for c in manifest.tables[name].columns]
    found = list(tables[name].dtypes)
    faults = [f"{name} has {n!r} ({t}), not in the manifest" for n, t in found if (n, t) not in wanted]
    faults += [f"{name} lacks {n!r} ({t})" for n, t in wanted if (n, t) not in found]
    if len({n.lower() for n, _ in found}) < len(found):
        faults.append(f"{name} has two columns of one name")
    return faults


def range_columns(frame: DataFrame, besides: Sequence[str]) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """(whole-number columns but for `besides`, what to project for them, what to aggregate over that): min and max of each."""
    names = [name for name, kind in frame.dtypes if name not in besides and _whole(kind)]
    projected = {f"r{i}": quoted(name) for i, name in enumerate(names)}
    aggregated: dict[str, str] = {}
    for i in range(len(names)):
        aggregated |= {f"low{i}": f"min(r{i})", f"high{i}": f"max(r{i})"}
    return names, projected, aggregated


def ranges(names: Sequence[str], found: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """What the aggregates of `range_columns` found; columns without a value are left out."""
    return {
        name: (int(found[f"low{i}"]), int(found[f"high{i}"]))
        for i, name in enumerate(names)
        if found[f"low{i}"] is not None
    }


def no_row_numbers(table: str, frame: DataFrame, n: int, ranges: Ranges) -> Check:
    """No published whole-number column counts the `n` rows: it would join back to the source one to one."""
    suspects = []
    for name, (low, high) in ranges.items():
        dense = n >= ROW_NUMBER_FROM and n <= high - low + 1 <= 2 * n
        if dense and all_distinct(frame, name, n):
            suspects.append(f"{name!r}: {n:,} distinct values from {low:,} to {high:,}")
    return Check(
        name="no row numbers",
        passed=not suspects,
        asked=f"no column of {table} numbers the rows",
        achieved=f"{len(suspects)} do",
        evidence=suspects[0] + "; list it under identifiers instead" if suspects else None,
    )


def all_distinct(frame: DataFrame, column: str, count: int) -> bool:
    """Whether a column has `count` distinct values. One job."""
    return bool(one_row(aggregate(frame, [], {"d": f"count(DISTINCT {quoted(column)})"}))["d"] == count)


def _whole(kind: str) -> bool:
    return kind in _WHOLE_TYPES or (kind.startswith("decimal(") and kind.endswith(",0)"))
