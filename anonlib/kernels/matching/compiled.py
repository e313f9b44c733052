"""The loops of matching as Numba compiles them where it is installed (`pip install anonlib[fast]`): in less time, and the same to the bit.

What is here is NumPy's and SciPy's arithmetic written out, in the same order and with the same choice among ties, so that a release does
not depend on which of them a worker has. Plain Python functions, which run (slowly) without Numba too; `loops` gives them compiled.

Compiling takes some 3 s, once for each user of a machine: the result is kept beside this file, or in the user's cache.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from anonlib.arrays import Float32Array, Int64Array, UInt8Array

WORTH = 10_000_000
"""Pairs of records from which on compiled loops are asked for: a second of work, beside which Numba's start does not count."""


@dataclass(frozen=True)
class Loops:
    """The functions below that are no helpers, under their names, compiled."""

    least_assignments: Callable[[Float32Array, Int64Array], None]
    add_intervals: Callable[..., None]
    add_sets: Callable[..., None]


def loops(records: int) -> Loops | None:
    """The compiled loops for a graph of so many records; None where it is too small for them to pay, or without Numba."""
    return _compiled() if records * records >= WORTH else None


@lru_cache(maxsize=1)
def _compiled() -> Loops | None:
    try:
        numba = importlib.import_module("numba")
    except ImportError:
        return None

    def compiled(function: Callable[..., None]) -> Any:
        # of fastmath what changes no result here, where nothing is NaN: else no minimum is taken by vectors
        settings: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"nnan", "nsz"}}
        try:
            return numba.njit(cache=True, **settings)(function)
        except RuntimeError:  # nowhere to keep it
            return numba.njit(**settings)(function)

    return Loops(compiled(least_assignments), compiled(add_intervals), compiled(add_sets))


def least_assignments(cost: Float32Array, column_of: Int64Array) -> None:
    """The least total cost of a perfect matching, pair by pair, and of several the one that SciPy's `linear_sum_assignment` takes.

    cost : (B, c, c) float32, finite; column_of : (B, c) int64, gets the column of each row. O(B c^3).

    Source: Crouse, *On implementing 2D rectangular assignment algorithms*, 2016: row after row along a shortest augmenting path, with dual
    variables u and v. Among columns at one distance a free one is taken; SciPy looks through them in the order that `place` keeps, and
    takes the last that is free, or else the first.
    """
    batch, c, _ = cost.shape
    v, open_v, distance, at_end = np.empty(c), np.empty(c), np.empty(c), np.empty(c)
    u = np.empty(c)
    path, row_of = np.empty(c, np.int64), np.empty(c, np.int64)
    listed, place = np.empty(c, np.int64), np.empty(c, np.int64)
    seen_rows, seen_columns = np.empty(c, np.int64), np.empty(c, np.int64)
    for b in range(batch):
        u[:], v[:], row_of[:] = 0.0, 0.0, -1
        for start in range(c):
            for j in range(c):
                listed[j] = place[j] = c - 1 - j
                distance[j], open_v[j] = np.inf, v[j]
            row, so_far, seen, free = start, 0.0, 0, -1
            while free < 0:
                row_cost, u_of_row, least = cost[b, row], u[row], np.inf
                for j in range(c):
                    through = so_far + row_cost[j] - u_of_row - open_v[j]
                    closer = through < distance[j]
                    distance[j] = through if closer else distance[j]
                    path[j] = row if closer else path[j]
                for j in range(c):
                    least = min(least, distance[j])
                first = -1
                for j in range(c):
                    if distance[j] == least:
                        if row_of[j] < 0:
                            free = j if free < 0 or place[j] > place[free] else free
                        elif first < 0 or place[j] < place[first]:
                            first = j
                column = free if free >= 0 else first
                so_far = at_end[column] = least
                distance[column], open_v[column] = np.inf, -np.inf  # seen: never closer, never the least
                last = listed[c - 1 - seen]
                listed[place[column]], place[last] = last, place[column]
                seen_rows[seen], seen_columns[seen] = row, column
                seen += 1
                row = row_of[column]
            u[start] += so_far
            for k in range(seen):
                if k:
                    u[seen_rows[k]] += so_far - at_end[seen_columns[k - 1]]
                v[seen_columns[k]] -= so_far - at_end[seen_columns[k]]
            column = free
            while True:
                row = path[column]
                row_of[column] = row
                column, column_of[b, row] = column_of[b, row], column
                if row == start:
                    break


def add_intervals(
    cost: Float32Array, first: int, stop: int, values: Float32Array, low: Float32Array, high: Float32Array
) -> None:
    """Add to rows `first` to `stop` of `cost`, (B, c, c), how far the value of column j lies outside the interval of row i: all (B, c)."""
    batch, c = values.shape
    for b in range(batch):
        for i in range(first, stop):
            row, value, above, below = cost[b, i], values[b], high[b, i], low[b, i]
            for j in range(c):
                row[j] += max(max(value[j] - above, below - value[j]), np.float32(0))


def add_sets(cost: Float32Array, first: int, stop: int, codes: Any, members: UInt8Array, weight: np.float32) -> None:
    """Add to rows `first` to `stop` of `cost`, (B, c, c), `weight` where the value of column j is not in the set of row i.

    codes : (B, c) uint32; members : (B, c, W) uint8, 8 values a byte
    """
    batch, c = codes.shape
    price = np.empty(8 * members.shape[2], np.float32)
    for b in range(batch):
        for i in range(first, stop):
            held = members[b, i]
            for value in range(len(price)):
                price[value] = np.float32(0) if held[value >> 3] >> (value & 7) & 1 else weight
            row, code = cost[b, i], codes[b]
            for j in range(c):
                row[j] += price[code[j]]
