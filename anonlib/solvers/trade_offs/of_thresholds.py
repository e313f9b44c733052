"""What thresholds cost in buckets: theta, one threshold for all, or l, from strict to loose; and a setting that a refusal can offer.

Source: generalized bucketization, sections 3 and 7 (loss over theta). Buckets are MultiSize's, whose loss is never above TwoSize's and, as
measured, some percent above the least; a curve of optimal ones would take a minute a point.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from anonlib.errors import Unsatisfiable
from anonlib.exact import text
from anonlib.privacy.buckets import BucketSetting
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy, Thresholds
from anonlib.solvers.buckets import multi_size, two_size
from anonlib.solvers.buckets.sensitive_table import SensitiveTable
from anonlib.solvers.trade_offs.trade_off import NOTED, Point, TradeOff

THETAS = tuple(map(Fraction, ("1", "1.25", "1.5", "2", "3", "4", "6", "8", "12", "16")))
SHARES = tuple(Fraction(1, k) for k in (30, 20, 15, 10, 8, 6, 5, 4, 3, 2))
LS = (30, 20, 15, 10, 8, 6, 5, 4, 3, 2)
SECONDS = 1.0
"""What splitting buckets takes at most, for each point; the first two sizes are found whatever it takes."""
STEPS = 1_000
"""Offsets are offered in steps of one in so many."""
MEASURES = {"msbs": "mean squared bucket size", "unbounded": "records whose value has no bound"}
_REFUSED = "cannot be kept"


def of_theta(
    counts: SensitiveCounts, asked: FPrivacy, max_bucket_size: int, before: Mapping[str | None, int] | None = None
) -> TradeOff:
    """Loss over theta, the offset and the values' own thresholds as asked. Cost: `SECONDS` and one TwoSize for each point."""
    assert asked.theta is not None
    bounds = sorted({*THETAS, asked.theta})
    points = tuple(_point(counts, replace(asked, theta=theta), theta, max_bucket_size, before) for theta in bounds)
    return TradeOff("theta", asked.theta, MEASURES, "msbs", points)


def of_default(counts: SensitiveCounts, asked: FPrivacy, max_bucket_size: int) -> TradeOff:
    """Loss over the one threshold of all values that have none of their own. Cost as `of_theta`."""
    assert asked.default is not None
    bounds = sorted({*SHARES, asked.default})
    points = tuple(_point(counts, replace(asked, default=share), share, max_bucket_size) for share in bounds)
    return TradeOff("default", asked.default, MEASURES, "msbs", points)


def of_l(counts: SensitiveCounts, l: int, max_bucket_size: int) -> TradeOff:  # noqa: E741  (the field's name)
    """Loss over l. Cost as `of_theta`."""
    bounds = sorted({*LS, l}, reverse=True)
    points = tuple(_point(counts, FPrivacy.l_diversity(each), Fraction(each), max_bucket_size) for each in bounds)
    return TradeOff("l", Fraction(l), MEASURES, "msbs", points)


def _point(
    counts: SensitiveCounts,
    asked: FPrivacy,
    bound: Fraction,
    max_bucket_size: int,
    before: Mapping[str | None, int] | None = None,
) -> Point:
    try:
        thresholds = asked.thresholds(counts, before)
    except Unsatisfiable:
        return Point(bound, {}, _REFUSED)
    setting = _setting(counts, thresholds, max_bucket_size)
    if setting is None:
        return Point(bound, {}, f"{_REFUSED} in buckets of up to {max_bucket_size:,}")
    unbounded = sum(int(n) for n, f in zip(counts.counts, thresholds.fractions, strict=True) if f >= 1)
    measures = {"msbs": setting.msbs, "unbounded": unbounded / counts.n}
    return Point(bound, measures, note_of(setting, unbounded / counts.n))


def note_of(setting: BucketSetting, unbounded: float) -> str:
    """What must be known of buckets: that they tell nothing, or that nothing is bounded. unbounded : a share of the records."""
    if setting.buckets == 1:
        return "leaves nothing: one bucket of the whole table"
    return (
        f"protects nothing of {unbounded:.2%} of the records: their value may fill a bucket"
        if unbounded >= NOTED
        else ""
    )


def _setting(counts: SensitiveCounts, thresholds: Thresholds, max_bucket_size: int) -> BucketSetting | None:
    table = SensitiveTable.of(counts, thresholds, max_bucket_size)
    answer = multi_size.solve(table, time.perf_counter() + SECONDS) if len(table.sizes) else None
    return None if answer is None else answer[0]


def offer(
    counts: SensitiveCounts,
    asked: FPrivacy,
    max_bucket_size: int,
    before: Mapping[str | None, int] | None = None,
    as_l: bool = False,
) -> str:
    """A clause for a refusal: the least loosening that gives a release in buckets of at most `max_bucket_size`; "" where none is known.

    With theta that is the smallest offset, to a thousandth, short of one that `note_of` says protects nothing of some records: where
    there is none, that of the largest smaller theta that has one. With one threshold for all, or l (`as_l`), the strictest 1/k. The values'
    own thresholds stay. Two sizes suffice for every solver. Cost: about ten searches for two sizes, and one more for each smaller theta
    that is tried, of at most `SECONDS` each.
    """

    def does(loosened: FPrivacy) -> bool:
        return _has_buckets(counts, loosened, max_bucket_size, before)

    def protects(loosened: FPrivacy) -> bool:
        return _unbounded(counts, loosened, before) < NOTED

    if asked.theta is not None:
        thetas = [asked.theta, *(theta for theta in reversed(THETAS) if theta < asked.theta)]
        settings = (_least_offset(replace(asked, theta=theta), does, protects) for theta in thetas)
        least = next((setting for setting in settings if setting is not None), None)
        changed = None
        if least is not None and least.theta is not None:
            changed = f"theta: {text(least.theta)} with offset: {text(least.offset)}"
    elif asked.default is not None:
        strictest = counts.n // int(counts.counts.max())
        less = _first(lambda k: does(replace(asked, default=Fraction(1, strictest - k))), 0, strictest - 1)
        k = 0 if less is None else strictest - less
        changed = None if k < 2 else f"l: {k}" if as_l else f"default: 1/{k}"
    else:
        return ""
    return "" if changed is None else f"{changed} gives a release in buckets of at most {max_bucket_size:,} records"


def _least_offset(
    asked: FPrivacy, does: Callable[[FPrivacy], bool], protects: Callable[[FPrivacy], bool]
) -> FPrivacy | None:
    """`asked` with the smallest offset that `does`, of those that still protect; None where none of them does."""
    first = -(-asked.offset.numerator * STEPS // asked.offset.denominator)

    def at(k: int) -> FPrivacy:
        return replace(asked, offset=Fraction(k, STEPS))

    beyond = _first(lambda k: not protects(at(k)), first, STEPS)
    step = _first(lambda k: does(at(k)), first, STEPS if beyond is None else beyond - 1)
    return None if step is None else at(step)


def _unbounded(counts: SensitiveCounts, asked: FPrivacy, before: Mapping[str | None, int] | None) -> Fraction:
    """The share of the records whose value has a threshold of 1; 0 where the thresholds cannot be kept, which other offsets can be."""
    try:
        fractions = asked.thresholds(counts, before).fractions
    except Unsatisfiable:
        return Fraction(0)
    return Fraction(sum(int(n) for n, f in zip(counts.counts, fractions, strict=True) if f >= 1), counts.n)


def _has_buckets(
    counts: SensitiveCounts, asked: FPrivacy, max_bucket_size: int, before: Mapping[str | None, int] | None
) -> bool:
    try:
        table = SensitiveTable.of(counts, asked.thresholds(counts, before), max_bucket_size)
    except Unsatisfiable:
        return False
    return bool(len(table.sizes)) and bool(two_size.exists(table, time.perf_counter() + SECONDS))


def _first(does: Callable[[int], bool], low: int, high: int) -> int | None:
    """The first of low..high that does, of those that do from some one on; None when not even the last does."""
    if low > high or not does(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if does(middle) else (middle + 1, high)
    return high
