"""Count queries on the bucketized layout: what is asked of the tables in SQL, and the answer from what was seen by kind of bucket.

Certain bounds: with k of the N records of a bucket meeting the visible part of a predicate, and K of its values the sensitive part, no
way to hand the values out gives fewer than max(0, k + K - N) or more than min(k, K) matches.

Flattened: sum over buckets g of k(g) K(g) / N(g), the expected number if every way to hand out a bucket's values were equally likely
(generalized bucketization, section 5). Without fake values N(g) = |g|. With s of them N(g) = |g| + s: which s of the N(g) values are fake
cannot be told, so each value of `st` is real with probability |g| / (|g| + s), and |g| K(g) / (|g| + s) of the |g| records are expected to
meet the sensitive part. Associations are pulled towards independence, by how much nobody knows who sees this number alone: no error is
stated.

Otherwise the system over kinds of buckets answers (`anonlib.queries.flattening`), see `answer`.

Null semantics are SQL's: a row counts when its condition is true, neither when false nor when unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from anonlib.arrays import BoolArray, Float64Array, Int64Array
from anonlib.queries.estimates import CountEstimate, Together
from anonlib.queries.flattening import MAX_VALUES, WEAK, Flattening, Kinds
from anonlib.queries.predicate import Predicate
from anonlib.queries.reconstruction import confidence_interval
from anonlib.sql import quoted

REFUTED = 6.0
"""So many standard errors from the unbiased estimate the shrunk one is refuted: by chance alone in one of 500 million queries."""


@dataclass(frozen=True)
class Seen:
    """What the tables show of one predicate: H entries, each of so many buckets of one kind with so many matching records.

    kind, matching, buckets : (H,) int64
    parts : (K, d) float64, by kind the records that meet each of the d conditions that AND joins
    """

    kind: Int64Array
    matching: Int64Array
    buckets: Int64Array
    parts: Float64Array

    def by_kind(self, kinds: int) -> Float64Array:
        """k, (K, 1): matching records in the buckets of each kind."""
        weights = (self.matching * self.buckets).astype(np.float64)
        return np.asarray(np.bincount(self.kind, weights=weights, minlength=kinds)[:, None], dtype=np.float64)


def answer(
    kinds: Kinds, values: Sequence[str | None], accepted: BoolArray, seen: Seen, system: Flattening | None = None
) -> CountEstimate:
    """How many records meet the visible part and have one of the `accepted` values, (m,) bool.

    values : (m,) texts, to name companions by. The interval is the unbiased estimate's, for the accepted values that buckets tell, widened
    by the certain bounds of those that they do not. The shrunk estimate answers unless the unbiased one refutes it.
    system : of `kinds`, where it is at hand; else O(m^3).
    """
    low, high = bounds(kinds, accepted, seen)
    k = seen.by_kind(len(kinds.buckets))
    flat = kinds.flattened(k)
    flattened = float(flat[accepted, 0].sum())
    if accepted.all() or low == high:
        return CountEstimate.exact(high)
    if len(values) > MAX_VALUES:
        return CountEstimate.flattening(flattened, low, high)
    system = system or Flattening(kinds)
    parts = [kinds.flattened(seen.parts[:, [i]]) for i in range(seen.parts.shape[1])]
    counts = system.shrunk(flat, system.prior(parts, flat.sum(axis=0)))
    shares = system.shares(counts)
    labels = system.companions()
    told = accepted & _whole(labels, accepted)
    unbiased, error = _unbiased(system, flat, told, shares)
    least, most = confidence_interval(unbiased, error, -math.inf, math.inf)
    if (told == accepted).all():
        interval = _within(least, low, high), _within(most, low, high)
        together = _together(system, flat, shares, accepted, _with(system.companions(WEAK), accepted), values)
        together = together if together and together.standard_error < error / 2 else None
        own: tuple[float | None, float | None] = unbiased, error
    else:
        under, over = bounds(kinds, accepted & ~told, seen)
        interval = _within(least + under, low, high), _within(most + over, low, high)
        together = _together(system, flat, shares, accepted, _with(labels, accepted), values)
        own = None, None
    shrunk = _within(float(counts[accepted, 0].sum()), low, high)
    refuted = own[0] is not None and abs(shrunk - unbiased) > REFUTED * error
    return CountEstimate(
        estimate=_within(unbiased, low, high) if refuted else shrunk,
        estimator="unbiased" if refuted else "shrunk",
        interval=interval,
        low=low,
        high=high,
        unbiased=own[0],
        standard_error=own[1],
        flattened=flattened,
        together=together,
    )


def bounds(kinds: Kinds, accepted: BoolArray, seen: Seen) -> tuple[int, int]:
    """(least, most) matching records with an accepted value, whatever goes with what inside buckets. O(entries + H)."""
    meeting = np.asarray(kinds.held @ accepted.astype(np.int64)).ravel()[seen.kind]
    size = np.asarray(kinds.held.sum(axis=1)).ravel()[seen.kind]
    least = seen.buckets * np.maximum(0, seen.matching + meeting - size)
    most = seen.buckets * np.minimum(seen.matching, meeting)
    return int(least.sum()), int(most.sum())


def _whole(labels: Int64Array, accepted: BoolArray) -> BoolArray:
    """(m,) bool: the values of labels that are accepted as a whole."""
    return np.asarray(~np.isin(labels, labels[~accepted]))


def _with(labels: Int64Array, accepted: BoolArray) -> BoolArray:
    """(m,) bool: the accepted values and all that share a label with them."""
    return np.isin(labels, labels[accepted])


def _unbiased(system: Flattening, flat: Float64Array, accepted: BoolArray, shares: Float64Array) -> tuple[float, float]:
    """(unbiased estimate, its standard error) of how many matching records have an accepted value."""
    asked = accepted.astype(np.float64)[:, None]
    variance = float(system.variance(asked, shares)[0]) if not accepted.all() else 0.0
    return float(system.unbiased(flat, asked)[0]), math.sqrt(variance)


def _together(
    system: Flattening,
    flat: Float64Array,
    shares: Float64Array,
    accepted: BoolArray,
    joined: BoolArray,
    values: Sequence[str | None],
) -> Together | None:
    """The count of the accepted values and their companions, where that is neither the question itself nor the whole table."""
    if joined.all() or (joined == accepted).all():
        return None
    estimate, error = _unbiased(system, flat, joined, shares)
    least, most = confidence_interval(estimate, error, 0.0, float(flat.sum()))
    return Together(tuple(values[i] for i in np.flatnonzero(joined & ~accepted)), estimate, error, (least, most))


def z_of(level: float) -> float:
    """How many standard errors to both sides a normal interval of that level takes."""
    return NormalDist().inv_cdf((1 + level) / 2)


def _within(number: float, low: float, high: float) -> float:
    return min(max(number, float(low)), float(high))


def qit_columns(predicate: Predicate) -> dict[str, str]:
    """Aggregates of `qit` by bucket: `matching`, the rows that meet the visible part, and `part0`, ... of its conditions alone."""
    parts = {f"part{i}": f"count_if({part})" for i, part in enumerate(predicate.parts)}
    return {"matching": f"count_if({predicate.visible})"} | parts


def st_columns(predicate: Predicate, count: str) -> dict[str, str]:
    """Aggregates of `st` by bucket: `meeting`, the counts that meet the sensitive part, and `total`, all counts."""
    return {"meeting": f"sum(IF({predicate.sensitive}, {quoted(count)}, 0L))", "total": f"sum({quoted(count)})"}


def total_columns() -> dict[str, str]:
    """Aggregates over all buckets of (matching, meeting, total): the flattened estimate and the certain bounds, in SQL."""
    k, K, N = (f"CAST({name} AS DOUBLE)" for name in ("matching", "meeting", "total"))
    return {
        "estimate": f"sum({k} * {K} / {N})",
        "matching": "sum(matching)",
        "low": "sum(greatest(0L, matching + meeting - total))",
        "high": "sum(least(matching, meeting))",
    }


def flattened(totals: Mapping[str, Any]) -> CountEstimate:
    """The flattened estimate from one row of `total_columns`; zeros where no bucket has a matching row."""
    low, high = int(totals["low"] or 0), int(totals["high"] or 0)
    return CountEstimate.flattening(float(totals["estimate"] or 0.0), low, high)
