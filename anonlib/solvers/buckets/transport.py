"""Can these records fill these buckets? A maximum flow from values to bucket sizes, in exact 64-bit integers.

The network has a row per group of values, a column per bucket size, and an arc of capacity u_ij = floor(f'_i S_j) b_j
between them. Theorem 1 of the paper decides two sizes by three sums; with three sizes those sums no longer suffice
(Example 5 of the earlier paper), and the flow decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from anonlib.arrays import BoolArray, Int64Array


@dataclass(frozen=True)
class Transport:
    """flow: (G, q) int64, a way to place all records, or None. crowded: sets of rows, (G,) bool, that prove there is none.

    The records of a crowded set I do not fit: sum_j min(S_j b_j, sum_{i in I} u_ij) < sum_{i in I} o_i.
    """

    flow: Int64Array | None
    crowded: list[BoolArray]


def transport(supply: Int64Array, capacity: Int64Array, demand: Int64Array) -> Transport:
    """Place supply[i] records of each row into columns that take exactly demand[j], at most capacity[i, j] each.

    supply (G,), capacity (G, q), demand (q,) int64, sum of supply = sum of demand < 2^62. Cost: O(G q p) per
    augmentation along a path of p columns, at most q^3 of them; nothing depends on the number of records.

    All rows are placed first, whatever the columns hold; then columns with too much give to columns with too little
    along shortest paths of columns. One push along j -> k moves records of every row that has some in j and room in k.
    """
    if int(supply.sum()) != int(demand.sum()):
        raise ValueError(f"{int(supply.sum())} records cannot fill {int(demand.sum())} places exactly")
    capacity = np.minimum(capacity, np.minimum(supply[:, None], demand[None, :]))
    homeless = capacity.sum(axis=1) < supply
    if homeless.any():
        return Transport(None, [np.arange(len(supply)) == i for i in np.flatnonzero(homeless)])
    moves = _Moves(_spread(supply, capacity), capacity)
    surplus = moves.flow.sum(axis=0) - demand
    while (surplus > 0).any():
        path = _shortest_path(moves.possible, surplus)
        if path is None:
            return Transport(None, _crowded(moves, surplus))
        moves.push(path, surplus)
    return Transport(moves.flow, [])


class _Moves:
    """A flow, and between which columns it can be shifted: `possible[j, k]` if some row has records in j and room in k.

    Kept as 0/1 in float32 so that a column's moves are one matrix product (a count of rows: only its sign is used).
    """

    def __init__(self, flow: Int64Array, capacity: Int64Array) -> None:
        self.flow, self.capacity = flow, capacity
        self.occupied = (flow > 0).astype(np.float32)
        self.open = (flow < capacity).astype(np.float32)
        self.possible: BoolArray = (self.occupied.T @ self.open) > 0

    def push(self, path: list[int], surplus: Int64Array) -> None:
        """Move as much as every step of the path allows, last step first, so that no column is overdrawn on the way."""
        flow, steps = self.flow, list(pairwise(path))
        movable = [np.minimum(flow[:, j], self.capacity[:, k] - flow[:, k]) for j, k in steps]
        amount = min(int(surplus[path[0]]), int(-surplus[path[-1]]), *(int(rows.sum()) for rows in movable))
        for (j, k), rows in reversed(list(zip(steps, movable, strict=True))):
            moved = _take(rows[None, :], np.array([amount]))[0]
            flow[:, j] -= moved
            flow[:, k] += moved
        surplus[path[0]] -= amount
        surplus[path[-1]] += amount
        self.occupied[:, path] = flow[:, path] > 0
        self.open[:, path] = flow[:, path] < self.capacity[:, path]
        self.possible[path] = (self.occupied[:, path].T @ self.open) > 0
        self.possible[:, path] = (self.occupied.T @ self.open[:, path]) > 0


def _spread(supply: Int64Array, capacity: Int64Array) -> Int64Array:
    """Each row's records over its columns in proportion to capacity, rounded down; the rest where there is room."""
    share = supply / np.maximum(1, capacity.sum(axis=1))
    flow = np.minimum(np.floor(capacity * np.minimum(share, 1.0)[:, None]).astype(np.int64), capacity)
    over = np.maximum(flow.sum(axis=1) - supply, 0)  # only if the float share was rounded up
    flow -= _take(flow, over)
    return flow + _take(capacity - flow, supply - flow.sum(axis=1))


def _take(available: Int64Array, wanted: Int64Array) -> Int64Array:
    """(rows, columns) int64: from each row of `available`, left to right, as much as it takes to reach `wanted`, (rows,)."""
    before = np.cumsum(available, axis=1) - available
    return np.clip(wanted[:, None] - before, 0, available)


def _shortest_path(possible: BoolArray, surplus: Int64Array) -> list[int] | None:
    """Columns j_0 (too full) -> .. -> j_p (not full), as few as possible; None if there is no way."""
    layers = [surplus > 0]
    visited = layers[0].copy()
    while not (layers[-1] & (surplus < 0)).any():
        reached = possible[layers[-1]].any(axis=0) & ~visited
        if not reached.any():
            return None
        visited |= reached
        layers.append(reached)
    path = [int(np.argmin(np.where(layers[-1], surplus, 0)))]
    for layer in reversed(layers[:-1]):
        into = possible[:, path[-1]] & layer
        path.append(int(np.argmax(np.where(into, surplus, np.iinfo(np.int64).min))))
    return path[::-1]


def _crowded(moves: _Moves, surplus: Int64Array) -> list[BoolArray]:
    """The two extreme minimum cuts, as sets of rows: next to the columns with too much, and next to those with too little."""
    full = _closure(moves.possible, surplus > 0)
    lacking = _closure(moves.possible.T, surplus < 0)
    occupied = moves.occupied > 0
    near, far = occupied[:, full].any(axis=1), occupied[:, ~lacking].any(axis=1)
    return [near] if (near == far).all() else [near, far]


def _closure(possible: BoolArray, start: BoolArray) -> BoolArray:
    """(q,) bool: the columns that can be reached from those of `start` along `possible`, these included."""
    reached = start
    while True:
        more = reached | possible[reached].any(axis=0)
        if (more == reached).all():
            return np.asarray(reached)
        reached = more
