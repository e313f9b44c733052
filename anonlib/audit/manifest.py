"""Checks of a manifest against itself: no table is read, nothing runs on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from anonlib.audit import arithmetic
from anonlib.audit.promised import taken_apart
from anonlib.audit.verdict import Check
from anonlib.errors import AnonlibError
from anonlib.exact import exact, text
from anonlib.release.manifest import GuaranteePart, Manifest

NO_SUCH = {
    "bucketized": ("suppressed", "dummy"),
    "perturbed": ("suppressed", "dummy", "fake"),
    "generalized": ("fake",),
}
"""Layout -> the counts of rows that none of its methods has."""


def rows_add_up(manifest: Manifest) -> Check:
    """input = published + suppressed + dropped, none negative, and none of a kind that the layout has not."""
    rows = manifest.rows
    parts = rows.published + rows.suppressed + rows.dropped
    fine = rows.input == parts and min(rows.published, rows.suppressed, rows.dropped, rows.dummy, rows.fake) >= 0
    strange = [name for name in NO_SUCH[manifest.layout] if getattr(rows, name)]
    return Check(
        name="rows add up",
        passed=fine and not strange,
        asked=f"input {rows.input:,} = published + suppressed + dropped",
        achieved=f"{rows.published:,} + {rows.suppressed:,} + {rows.dropped:,} = {parts:,}",
        evidence=f"{strange[0]}: {getattr(rows, strange[0]):,}, which no {manifest.layout} release has"
        if strange
        else None,
    )


def stream_adds_up(manifest: Manifest) -> list[Check]:
    """Of a stream: the records that arrived are those shown, left out and waiting; windows are of sizes that a stream may have."""
    stream, rows = manifest.stream, manifest.rows
    if stream is None:
        return []
    left_out = stream.missing + stream.outside
    faults = []
    if rows.published != stream.shown or rows.dropped != left_out:
        faults.append(
            f"{stream.shown:,} shown and {left_out:,} left out, but the rows say {rows.published:,} and {rows.dropped:,}"
        )
    if stream.batch is None and stream.arrived != left_out + stream.shown + stream.waiting:
        faults.append(
            f"{stream.arrived:,} arrived, {left_out:,} left out, {stream.shown:,} shown, {stream.waiting:,} wait"
        )
    if min(stream.arrived, stream.missing, stream.outside, stream.late, stream.shown, stream.waiting) < 0:
        faults.append("a count is negative")
    if stream.advance < 1 or stream.window % stream.advance:
        faults.append(f"a window of {stream.window:,} cannot advance by {stream.advance:,}")
    return [
        Check.unless(
            faults,
            name="stream adds up",
            asked="arrived = left out + shown + waiting",
            achieved=f"{stream.arrived:,} arrived, {left_out:,} left out, {stream.shown:,} shown, {stream.waiting:,} wait",
        )
    ]


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
        thresholds = [exact(v.threshold or "none") for v in guarantee.values]
    except AnonlibError:
        return None
    return thresholds if all(0 < f <= 1 for f in thresholds) else None


def thresholds_follow(manifest: Manifest, stated: list[Fraction] | None) -> Check:
    """The threshold of each value is the one that the method's parameters and the value's frequency give."""
    name, asked = "thresholds follow from the stated requirement", "f'_i recomputed from the parameters"
    if stated is None:
        return Check(name, False, asked, "a threshold in the manifest is not a share above 0 and at most 1")
    try:
        expected = thresholds_of(manifest)
    except (AnonlibError, ValueError, TypeError, AttributeError, ArithmeticError) as problem:
        return Check(name, False, asked, f"cannot be recomputed: {problem}")
    values = manifest.guarantee.values
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


def can_be_kept(manifest: Manifest, stated: list[Fraction] | None) -> Check:
    """No value is more frequent in the whole table than its threshold allows in a bucket (Lemma 1)."""
    values = manifest.guarantee.values
    n = sum(v.count for v in values)
    pairs = list(zip(values, stated or [], strict=False))
    broken = [(v, f) for v, f in pairs if not arithmetic.can_be_kept(v.count, n, f)]
    return Check(
        name="thresholds can be kept",
        passed=not broken and stated is not None,
        asked="no threshold below its value's share of the table",
        achieved=f"{len(broken):,} are" if stated is not None else "a threshold is no share",
        evidence=f"{broken[0][0].value!r}: {broken[0][0].count:,} of {n:,}, threshold {text(broken[0][1])}"
        if broken
        else None,
    )


def fakes_by_frequency(manifest: Manifest) -> bool:
    """Whether fakes follow the values' frequency: there are any, and they were not chosen against learnt associations."""
    return fake_values(manifest) > 0 and not manifest.method.parameters.get("avoid_negative_associations")


def fake_values(manifest: Manifest) -> int:
    """s, the number of fake sensitive values added to each bucket; 0 when the method adds none, or states no number of them."""
    number = manifest.method.parameters.get("fake_values")
    return number if isinstance(number, int) and number > 0 else 0


def thresholds_of(manifest: Manifest) -> list[Fraction]:
    """f'_i of each value, as the parameters state them: {"privacy": {theta, offset, default, thresholds, missing, l}} or {"l": ...}.

    Of two sensitive columns those of their combinations: the smaller of the two values' thresholds.

    Raises AnonlibError (or ValueError, TypeError, AttributeError for parameters of another shape) when they state no requirement."""
    parameters, guarantee = manifest.method.parameters, manifest.guarantee
    if guarantee.also:
        return _of_combinations(manifest)
    asked: Mapping[str, Any] = parameters.get("privacy") or {k: parameters[k] for k in ("l",) if k in parameters}
    counts, n = _shares_of(manifest, asked.get("shares"))
    return _thresholds(asked, guarantee, counts, n)


def thresholds_of_column(manifest: Manifest, part: GuaranteePart) -> list[Fraction]:
    """f'_i of each value of one of two sensitive columns, by what is asked of it or of both. Raises as `thresholds_of` does.

    The parameters spell columns as the spec does, the release as the table does; Spark does not tell upper from lower case in names."""
    privacy = manifest.method.parameters.get("privacy") or {}
    by_column = privacy.get("columns") or {}
    own = {name.lower(): asked for name, asked in by_column.items()}
    if len(own) < len(by_column) or own.keys() - {each.sensitive.lower() for each in manifest.guarantee.also}:
        raise AnonlibError(
            f"the parameters ask something of {', '.join(by_column)}, which are not the sensitive columns"
        )
    common = {key: asked for key, asked in privacy.items() if key != "columns"}
    counts = [value.count for value in part.values]
    return _thresholds(own.get(part.sensitive.lower(), common), part, counts, sum(counts))


def _of_combinations(manifest: Manifest) -> list[Fraction]:
    of_columns = [
        dict(zip((v.value for v in part.values), thresholds_of_column(manifest, part), strict=True))
        for part in manifest.guarantee.also
    ]
    parts = [taken_apart(v.value, len(of_columns)) for v in manifest.guarantee.values]
    if strange := [v for part in parts for v, known in zip(part, of_columns, strict=True) if v not in known]:
        raise AnonlibError(f"{strange[0]!r} stands in a combination, and is no value of its column")
    return [min(known[v] for v, known in zip(part, of_columns, strict=True)) for part in parts]


def _thresholds(asked: Mapping[str, Any], part: GuaranteePart, counts: Sequence[int], n: int) -> list[Fraction]:
    """counts, n : (records of each value, of all) that shares are taken of."""
    if not asked:
        raise AnonlibError("the method's parameters state no privacy requirement")
    known = {"theta", "offset", "default", "thresholds", "l", "shares", "missing"}
    if set(asked) - known:
        raise AnonlibError(f"unknown requirement {sorted(set(asked) - known)[0]!r}")
    values = part.values
    own = {str(v): exact(t) for v, t in (asked.get("thresholds") or {}).items()}
    of_null = _optional(asked.get("missing"))
    if of_null is not None and all(v.value is not None for v in values):
        raise AnonlibError("the parameters have a threshold for a missing value, and none is missing")
    in_hierarchy = {label for row in part.hierarchy for label in row[:-1]}  # all are under the last
    if lost := sorted(own.keys() - {v.value for v in values} - in_hierarchy):
        raise AnonlibError(f"the parameters name {lost[0]!r}, which does not occur")
    if asked.get("l") is not None:
        theta, default = None, _optional(f"1/{int(asked['l'])}")
    else:
        theta, default = _optional(asked.get("theta")), _optional(asked.get("default"))
    offset = _optional(asked.get("offset")) or Fraction(0)
    thresholds = []
    for v, count in zip(values, counts, strict=True):
        mine = own.get(v.value) if v.value is not None else of_null
        threshold = arithmetic.threshold(count, n, theta, offset, default, mine)
        if threshold is None:
            raise AnonlibError(f"no threshold covers {v.value!r}")
        thresholds.append(threshold)
    return thresholds


def _shares_of(manifest: Manifest, shares: Any) -> tuple[list[int], int]:
    """(records of each value, of all) that the shares are taken of: the release's, with `ledger` those of all before it too."""
    counts = [v.count for v in manifest.guarantee.values]
    if shares is None:
        return counts, sum(counts)
    ledger = manifest.ledger
    if shares != "ledger" or ledger is None:
        raise AnonlibError(f"shares of {shares!r}, and no ledger")
    before = ledger.before or [0] * len(counts)
    if len(before) != len(counts) or min(before) < 0 or sum(before) > ledger.records_before:
        raise AnonlibError("the ledger's counts of earlier records are none of these values")
    return [count + earlier for count, earlier in zip(counts, before, strict=True)], sum(counts) + ledger.records_before


def _optional(number: Any) -> Fraction | None:
    return None if number is None else exact(number)
