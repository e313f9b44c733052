"""Checks of a manifest against itself: no table is read, nothing runs on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.audit.verdict import Check
from anonlib.errors import AnonlibError
from anonlib.exact import exact, text
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy
from anonlib.release.manifest import GuaranteePart, Manifest


def rows_add_up(manifest: Manifest) -> Check:
    """input = published + suppressed + dropped, none negative."""
    rows = manifest.rows
    parts = rows.published + rows.suppressed + rows.dropped
    fine = rows.input == parts and min(rows.published, rows.suppressed, rows.dropped, rows.dummy, rows.fake) >= 0
    return Check(
        name="rows add up",
        passed=fine,
        asked=f"input {rows.input:,} = published + suppressed + dropped",
        achieved=f"{rows.published:,} + {rows.suppressed:,} + {rows.dropped:,} = {parts:,}",
    )


def values_add_up(manifest: Manifest) -> Check:
    """The sensitive values are listed once each, each occurs, and their counts sum to the published rows."""
    values = manifest.guarantee.values
    total = sum(v.count for v in values)
    twice = len(values) - len({v.value for v in values})
    absent = [v.value for v in values if v.count < 1]
    return Check(
        name="sensitive values add up",
        passed=total == manifest.rows.published and twice == 0 and not absent,
        asked=f"counts of distinct values that sum to {manifest.rows.published:,}",
        achieved=f"{len(values):,} values, sum {total:,}, {twice} listed twice, {len(absent)} with no record",
        evidence=f"{absent[0]!r} has no record" if absent else None,
    )


def stated_thresholds(guarantee: GuaranteePart) -> list[Fraction] | None:
    """The thresholds f'_i of the manifest, exact; None when one of them is no share in (0, 1]."""
    try:
        found = [exact(v.threshold) for v in guarantee.values]
    except AnonlibError:
        return None
    return found if all(0 < f <= 1 for f in found) else None


def thresholds_follow(manifest: Manifest, stated: list[Fraction] | None) -> Check:
    """The threshold of each value is the one that the method's parameters and the value's frequency give."""
    name, asked = "thresholds follow from the stated requirement", "f'_i recomputed from the parameters"
    if stated is None:
        return Check(name, False, asked, "a threshold in the manifest is not a share above 0 and at most 1")
    try:
        wanted = _requirement(manifest.method.parameters)
        values = manifest.guarantee.values
        counts = SensitiveCounts(tuple(v.value for v in values), np.array([v.count for v in values], dtype=np.int64))
        expected = wanted.thresholds(counts).fractions
    except (AnonlibError, ValueError, TypeError, AttributeError) as problem:
        return Check(name, False, asked, f"cannot be recomputed: {problem}")
    wrong = [i for i, (e, s) in enumerate(zip(expected, stated, strict=True)) if e != s]
    if not wrong:
        return Check(name, True, asked, f"all {len(stated):,} equal")
    i = max(wrong, key=lambda k: abs(stated[k] - expected[k]))
    return Check(
        name,
        False,
        asked,
        f"{len(wrong):,} of {len(stated):,} differ",
        f"{values[i].value!r}: stated {text(stated[i])}, the parameters give {text(expected[i])}",
    )


def fake_values(manifest: Manifest) -> int:
    """s, the number of fake sensitive values added to each bucket; 0 when the method adds none."""
    return int(manifest.method.parameters.get("fake_values") or 0)


def _requirement(parameters: Mapping[str, Any]) -> FPrivacy:
    """F'-privacy as the parameters state it: {"privacy": {theta, offset, default, thresholds, l}} or {"l": ...}."""
    asked: Mapping[str, Any] = parameters.get("privacy") or {k: parameters[k] for k in ("l",) if k in parameters}
    if not asked:
        raise AnonlibError("the method's parameters state no privacy requirement")
    known = {"theta", "offset", "default", "thresholds", "l"}
    if set(asked) - known:
        raise AnonlibError(f"unknown requirement {sorted(set(asked) - known)[0]!r}")
    own = {str(v): exact(t) for v, t in (asked.get("thresholds") or {}).items()}
    if asked.get("l") is not None:
        return FPrivacy(default=Fraction(1, int(asked["l"])), own=own)
    return FPrivacy(
        theta=_optional(asked.get("theta")),
        offset=_optional(asked.get("offset")) or Fraction(0),
        default=_optional(asked.get("default")),
        own=own,
    )


def _optional(number: Any) -> Fraction | None:
    return None if number is None else exact(number)
