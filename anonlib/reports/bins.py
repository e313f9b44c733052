"""What is put together before it is drawn: sizes in ranges, errors by the share of the records that a query counts. Pure."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from anonlib.arrays import Float64Array
from anonlib.reports.facts import Sizes

BARS = 40
"""Bars of sizes at most; more sizes are drawn in ranges."""


def size_ranges(sizes: Sizes) -> list[tuple[int, int, int]]:
    """(least, largest, records) of each bar: sizes one by one or, of too many, ranges that grow with size."""
    held = sorted((size, number) for size, number in sizes.of.items() if number)
    if len(held) <= BARS:
        return [(size, size, size * number) for size, number in held]
    edges = np.unique(np.geomspace(held[0][0], held[-1][0] + 1, BARS // 2).astype(np.int64))
    at = np.searchsorted(edges, [size for size, _ in held], side="right") - 1
    records = np.bincount(at, [size * number for size, number in held], len(edges))
    ends = [*(edges[1:] - 1).tolist(), held[-1][0]]
    return [
        (int(low), max(int(low), int(high)), int(n)) for low, high, n in zip(edges, ends, records, strict=True) if n
    ]


def selectivity_bins(
    actual: Float64Array, estimated: Float64Array, records: int, least: int = 10
) -> list[tuple[str, int, float, float]]:
    """(share of the records, queries, median relative error, its 90 % quantile) in ranges of shares; ranges of fewer queries are left out.

    actual, estimated : (Q,); queries with a true count of 0 have no relative error and stand in none.
    """
    edges = [0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0]
    kept = actual > 0
    share, error = actual[kept] / max(1, records), np.abs(estimated[kept] - actual[kept]) / actual[kept]
    bins = []
    for low, high in pairwise(edges):
        inside = error[(share > low) & (share <= high)]
        if len(inside) >= least:
            name = f"up to {100 * high:g} %" if low == 0 else f"{100 * low:g}–{100 * high:g} %"
            bins.append((name, len(inside), float(np.median(inside)), float(np.quantile(inside, 0.9))))
    return bins
