"""Count queries on the bucketized layout, as SQL text and as exact facts about one bucket.

est = sum over buckets g of c(g, P) * c_st(g, Q) / N_g, with c(g, P) the rows of `qit` in g that meet the visible part P,
c_st(g, Q) the counts of `st` in g whose value meets Q, and N_g the sum of the counts of g in `st` (generalized
bucketization, section 5).

Without fake values N_g = |g|. With s of them N_g = |g| + s: which s of the N_g values are fake cannot be told, so each value
of `st` is real with probability |g| / (|g| + s), and |g| * c_st(g, Q) / (|g| + s) of the |g| records are expected to meet Q.

Null semantics are SQL's: a row counts when its condition is true, neither when false nor when unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonlib.arrays import Float64Array
from anonlib.queries.predicate import Predicate
from anonlib.sql import quoted


@dataclass(frozen=True)
class CountEstimate:
    """How many records meet a predicate, as far as a release tells.

    estimate       : the expected number, if every assignment of a bucket's values to its records is equally likely
    standard_error : of the true number around the estimate, under the same assumption and with buckets independent of each
                     other; it holds no sampling error, since every record is published
    low, high      : no assignment whatever gives fewer or more; they rest on no assumption
    """

    estimate: float
    standard_error: float
    low: int
    high: int

    def __str__(self) -> str:
        return (
            f"{self.estimate:,.1f} (standard error {self.standard_error:,.1f}; certainly {self.low:,} to {self.high:,})"
        )


def hypergeometric(
    matching: Any, meeting: Any, total: Any
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
    """(mean, variance, least, most) of how many of `matching` records get one of `meeting` values out of `total`.

    k records draw without replacement from N values, K of which meet the condition: mean k K / N, variance
    k K (N - K) (N - k) / (N^2 (N - 1)). Arrays broadcast; float64 of their common shape.
    """
    k, K, N = (np.asarray(a, dtype=np.float64) for a in (matching, meeting, total))
    mean = k * K / N
    variance = mean * ((N - K) / N) * ((N - k) / np.maximum(N - 1, 1))
    return mean, variance, np.maximum(0, k + K - N), np.minimum(k, K)


def qit_columns(predicate: Predicate) -> dict[str, str]:
    """Aggregates of `qit` by bucket: `matching`, the rows that meet the visible part."""
    return {"matching": f"count_if({predicate.visible})"}


def st_columns(predicate: Predicate, count: str) -> dict[str, str]:
    """Aggregates of `st` by bucket: `meeting`, the counts that meet the sensitive part, and `total`, all counts."""
    return {"meeting": f"sum(IF({predicate.sensitive}, {quoted(count)}, 0L))", "total": f"sum({quoted(count)})"}


def total_columns() -> dict[str, str]:
    """Aggregates over all buckets of (matching, meeting, total): the sums of `hypergeometric`, in SQL."""
    k, K, N = (f"CAST({name} AS DOUBLE)" for name in ("matching", "meeting", "total"))
    mean = f"({k} * {K} / {N})"
    return {
        "estimate": f"sum({mean})",
        "variance": f"sum({mean} * (({N} - {K}) / {N}) * (({N} - {k}) / greatest({N} - 1, 1)))",
        "low": "sum(greatest(0L, matching + meeting - total))",
        "high": "sum(least(matching, meeting))",
    }


def estimate(totals: Mapping[str, Any]) -> CountEstimate:
    """The estimate from one row of `total_columns`; zeros where no bucket has a matching row."""
    return CountEstimate(
        estimate=float(totals["estimate"] or 0.0),
        standard_error=math.sqrt(max(0.0, float(totals["variance"] or 0.0))),
        low=int(totals["low"] or 0),
        high=int(totals["high"] or 0),
    )
