"""The loops of matching, compiled by Numba where it is installed (`pip install anonlib[fast]`): in less time, and the same to the bit.

What is here is NumPy's and SciPy's arithmetic written out, in the same order and with the same choice among ties, so that a release does
not depend on which of them a worker has. Without Numba these are plain Python functions, too slow for more than a test.

Compiling takes some 3 s, once for each user of a machine: the result is kept beside this file, or in the user's cache.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from anonlib.arrays import Float32Array, Float64Array, Int64Array, UInt8Array


def _compiled(function: Any) -> Any:
    """By Numba, where it is there."""
    try:
        numba = importlib.import_module("numba")
    except ImportError:
        return function
    # of fastmath what changes no result here, where nothing is NaN: else no minimum is taken by vectors
    settings: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"nnan", "nsz"}}
    try:
        return numba.njit(cache=True, **settings)(function)
    except RuntimeError:  # nowhere to keep it
        return numba.njit(**settings)(function)


@_compiled
def _reach(
    cost: Float32Array, so_far: float, u: float, v: Float64Array, row: int, distance: Float64Array, path: Int64Array
) -> None:
    """Look from `row`, `so_far` along the path, at every column: which of them are closer by way of it? cost : (c,) of the row"""
    for j in range(len(distance)):
        through = so_far + cost[j] - u - v[j]
        closer = through < distance[j]
        distance[j] = through if closer else distance[j]
        path[j] = row if closer else path[j]


@_compiled
def _least(distance: Float64Array) -> float:
    """The smallest of (c,) distances; eight at a time, so that no minimum waits for the one before."""
    c = len(distance)
    whole = c // 8 * 8
    l0 = l1 = l2 = l3 = l4 = l5 = l6 = l7 = np.inf
    for j in range(0, whole, 8):
        l0, l1 = min(l0, distance[j]), min(l1, distance[j + 1])
        l2, l3 = min(l2, distance[j + 2]), min(l3, distance[j + 3])
        l4, l5 = min(l4, distance[j + 4]), min(l5, distance[j + 5])
        l6, l7 = min(l6, distance[j + 6]), min(l7, distance[j + 7])
    for j in range(whole, c):
        l0 = min(l0, distance[j])
    return min(min(min(l0, l1), min(l2, l3)), min(min(l4, l5), min(l6, l7)))


@_compiled
def _first_choice(distance: Float64Array, least: float, choice: Int64Array) -> int:
    """The largest `choice` of the columns at the distance `least`."""
    best = 0
    for j in range(len(distance)):
        best = max(best, choice[j] if distance[j] == least else 0)
    return best


@_compiled
def least_assignments(cost: Float32Array, column_of: Int64Array) -> None:
    """The least total cost of a perfect matching, pair by pair, and of several the one that SciPy's `linear_sum_assignment` takes.

    cost : (B, c, c) float32, finite; column_of : (B, c) int64, gets the column of each row. O(B c^3).

    Source: Crouse, *On implementing 2D rectangular assignment algorithms*, 2016: row after row along a shortest augmenting path, with dual
    variables u and v. SciPy keeps the columns that no path has seen yet in a list, where the last one moves to the place of the one that is
    taken. Of those at the least distance it takes the last that is free, or else the first: the one with the largest `choice`, which is
    c + 1 + its place where it is free, and c - its place where it is not.
    """
    batch, c, _ = cost.shape
    u, v, open_v, distance, at_end = np.empty(c), np.empty(c), np.empty(c), np.empty(c), np.empty(c)
    path, row_of, choice = np.empty(c, np.int64), np.empty(c, np.int64), np.empty(c, np.int64)
    listed, place = np.empty(c, np.int64), np.empty(c, np.int64)
    seen_rows, seen_columns = np.empty(c, np.int64), np.empty(c, np.int64)
    for b in range(batch):
        u[:], v[:], row_of[:] = 0.0, 0.0, -1
        for start in range(c):
            for j in range(c):
                listed[j] = place[j] = c - 1 - j
                choice[j] = 2 * c - j if row_of[j] < 0 else j + 1
                distance[j], open_v[j] = np.inf, v[j]
            row, so_far, seen, free = start, 0.0, 0, -1
            while free < 0:
                _reach(cost[b, row], so_far, u[row], open_v, row, distance, path)
                so_far = _least(distance)
                best = _first_choice(distance, so_far, choice)
                column = listed[best - c - 1 if best > c else c - best]
                free = column if best > c else -1
                at_end[column] = so_far
                distance[column], open_v[column] = np.inf, -np.inf  # seen: never closer, never the least
                last = listed[c - 1 - seen]
                listed[place[column]], place[last] = last, place[column]
                choice[last] = c + 1 + place[last] if row_of[last] < 0 else c - place[last]
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


@_compiled
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


@_compiled
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
