"""Counts that a person would ask for, by one column and the sensitive value, estimated from the release and counted in the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anonlib.engine.relational import DataFrame, Row, aggregate, one_row, rows, select
from anonlib.errors import SpecError
from anonlib.release.layout import LAYOUTS
from anonlib.release.opened import MAX_GROUP_ROWS, Release
from anonlib.reports.facts import Answer
from anonlib.sql import quoted

ERRORS = 1.96
"""Standard errors to either side that a normal estimate is within with a chance of 95 %."""
GROUPS = 30
"""Values that a column may have to be counted by."""


def answers(release: Release, original: DataFrame) -> tuple[str, tuple[Answer, ...]]:
    """(what is counted by, every count): by the column that has the most values, up to `GROUPS`, and the sensitive value.

    original : after the policy on missing values. Three jobs and what `Release.group_by` takes. Without such a column by the sensitive
    value alone, of several columns by the first where their combinations are too many; no answer where even those are.
    """
    by, estimated = _estimated(release, _column(release, original))
    if not by:
        return "", ()
    keys = {f"g{i}": quoted(name) for i, name in enumerate(by)}  # numbered: a column may be called like one of ours
    counted = aggregate(select(original, keys), list(keys), {"n": "count(1)"})
    truth = {_key(row, list(keys)): int(row["n"]) for row in rows(counted, 2 * MAX_GROUP_ROWS)}
    found = []
    for row in estimated:
        key = _key(row, by)
        found.append(Answer(_asked(key, by), truth.pop(key, 0), row["estimate"], *_interval(row)))
    found += [Answer(_asked(key, by), n, 0.0, 0.0, 0.0) for key, n in truth.items()]  # the release says there is none
    return " and ".join(by), tuple(found)


def _estimated(release: Release, column: Sequence[str]) -> tuple[list[str], list[Row]]:
    """(what is counted by, the estimates); nothing where there are more than fit the driver, or a person's eye."""
    sensitive = release.sensitive
    apart = len(sensitive) > 1 and LAYOUTS[release.manifest.layout].of_some is not None
    for secret in (sensitive, sensitive[:1]) if apart else (sensitive,):
        by = [*column, *secret]
        try:
            return by, release.group_rows(*by)
        except SpecError:
            continue
    return [], []


def _column(release: Release, original: DataFrame) -> list[str]:
    """The column to count by; none where every one has too many values, or one alone."""
    manifest = release.manifest
    names = [c.name for part in manifest.tables.values() for c in part.columns if c.role == "quasi_identifier"]
    names += [part.name for part in manifest.quasi_identifiers if part.kind == "categorical"]
    if not names:
        return []
    numbers = one_row(
        aggregate(original, [], {f"n{i}": f"approx_count_distinct({quoted(name)})" for i, name in enumerate(names)})
    )
    few = [(int(numbers[f"n{i}"]), name) for i, name in enumerate(names) if 1 < int(numbers[f"n{i}"]) <= GROUPS]
    return [max(few)[1]] if few else []


def _interval(row: Mapping[str, Any]) -> tuple[float, float]:
    """What the release says of an estimate; of perturbed records two standard errors around the unbiased one, within the certain bounds."""
    if "interval_low" in row:
        return row["interval_low"], row["interval_high"]
    low, high, half = float(row["low"]), float(row["high"]), ERRORS * row["standard_error"]
    return min(max(row["raw"] - half, low), high), min(max(row["raw"] + half, low), high)


def _key(row: Mapping[str, Any], by: Sequence[str]) -> tuple[str | None, ...]:
    return tuple(None if row[name] is None else str(row[name]) for name in by)


def _asked(key: Sequence[str | None], by: Sequence[str]) -> str:
    return ", ".join(f"{name} = {'(missing)' if value is None else value}" for name, value in zip(by, key, strict=True))
