"""One to one between the records of two buckets: the Hungarian algorithm and two cheaper ones, many pairs of buckets at a time.

    hungarian    least total cost, O(c^3) (SciPy's)
    sort_greedy  the cheapest edge left, again and again, O(c^2) and some
    greedy       record after record takes the cheapest partner left, O(c^2)

Source: heterogeneous generalization, section 3.2 (HG, SG, GR). Where l-diversity forbids edges, a perfect matching of the allowed ones
always exists (Theorem 2), but a greedy choice can shut it off: such records get their partner along an augmenting path.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType

import numpy as np
from scipy.optimize import linear_sum_assignment

from anonlib.arrays import BoolArray, Float32Array, Int64Array

Assign = Callable[[Float32Array, BoolArray | None], Int64Array]
"""(costs (B, c, c), forbidden (B, c, c) or None) -> (B, c) int64, the column that each row gets; a permutation of each pair."""

_NUDGE = np.float32(1e-5)
"""Equal costs are told apart by less than this, so that not all rows ask for the same column first."""


def hungarian(cost: Float32Array, forbidden: BoolArray | None, compiled: ModuleType | None = None) -> Int64Array:
    """The least total cost of a perfect matching, pair by pair (HG of heterogeneous generalization, section 3.2): SciPy's algorithm.

    cost : (B, c, c) float32, not changed; forbidden : (B, c, c) bool or None; compiled : loops to do it by, with the same result
    Returns (B, c) int64, the column of each row. O(B c^3).
    """
    batch, c, _ = cost.shape
    column_of = np.empty((batch, c), dtype=np.int64)
    if compiled is not None and forbidden is None:
        compiled.least_assignments(cost, column_of)
        return column_of
    for b in range(batch):
        priced = cost[b].astype(np.float64)
        if forbidden is not None:
            priced[forbidden[b]] = 2 * (float(priced.max()) + 1) * c  # dearer than any matching without
        column_of[b] = linear_sum_assignment(priced)[1]
    return column_of


def greedy(cost: Float32Array, forbidden: BoolArray | None) -> Int64Array:
    """Row after row takes the cheapest column left, in the order of the rows (GR of heterogeneous generalization, section 3.2).

    Arguments and result as in `hungarian`, but `cost` may be changed. O(B c^2), and augmenting paths where forbidden edges shut a row off.
    """
    batch, c, _ = cost.shape
    if forbidden is not None:
        cost[forbidden] = np.inf
    column_of = np.full((batch, c), -1, dtype=np.int64)
    gone = np.zeros((batch, c), dtype=np.float32)
    every = np.arange(batch)
    for row in range(c):
        offered = cost[:, row] + gone
        choice = offered.argmin(axis=1)
        free = np.isfinite(offered[every, choice])
        column_of[free, row] = choice[free]
        gone[every[free], choice[free]] = np.inf
    return _repaired(column_of, forbidden)


def sort_greedy(cost: Float32Array, forbidden: BoolArray | None) -> Int64Array:
    """The cheapest edge left, again and again (SG of heterogeneous generalization, section 3.2), without the sort.

    An edge that is the cheapest of both its ends is taken whatever else is; so all of those are taken, and it is looked again. Arguments
    and result as in `hungarian`, but `cost` may be changed. O(B c^2) and some.
    """
    batch, c, _ = cost.shape
    cost += _nudges(c)
    if forbidden is not None:
        cost[forbidden] = np.inf
    rows, columns = cost.reshape(-1, c), np.ascontiguousarray(cost.transpose(0, 2, 1)).reshape(-1, c)
    column_of = np.full(batch * c, -1, dtype=np.int64)
    row_gone, column_gone = (np.zeros((batch, c), dtype=np.float32) for _ in range(2))
    best_column, best_row = rows.argmin(axis=1), columns.argmin(axis=1)
    open_rows = np.arange(batch * c)
    while open_rows.size:
        pair = open_rows // c
        wanted = best_column[open_rows]
        mutual = best_row[pair * c + wanted] == open_rows % c
        mutual &= np.isfinite(rows[open_rows, wanted])
        if not mutual.any():
            break  # what is left is forbidden
        matched = open_rows[mutual]
        column_of[matched] = wanted[mutual]
        row_gone.reshape(-1)[matched] = np.inf
        column_gone[pair[mutual], wanted[mutual]] = np.inf
        open_rows, pair, wanted = open_rows[~mutual], pair[~mutual], wanted[~mutual]
        lost = open_rows[np.isinf(column_gone[pair, wanted])]
        best_column[lost] = (rows[lost] + column_gone[lost // c]).argmin(axis=1)
        open_columns = np.flatnonzero(np.isfinite(column_gone.reshape(-1)))
        lost = open_columns[np.isinf(row_gone[open_columns // c, best_row[open_columns]])]
        best_row[lost] = (columns[lost] + row_gone[lost // c]).argmin(axis=1)
    return _repaired(column_of.reshape(batch, c), forbidden)


def _nudges(c: int) -> Float32Array:
    """(c, c) float32 below `_NUDGE`, different for neighbours in a row or column."""
    rows, columns = (np.arange(c) * step % 1 for step in (0.6180339887498949, 0.4142135623730951))
    return ((rows[:, None] + columns[None, :]) % 1).astype(np.float32) * _NUDGE


def _repaired(column_of: Int64Array, forbidden: BoolArray | None) -> Int64Array:
    """`column_of` with a column for the rows that have none (-1), along augmenting paths."""
    for b in np.flatnonzero((column_of < 0).any(axis=1)).tolist():
        assert forbidden is not None
        _augment(column_of[b], ~forbidden[b])
    return column_of


def _augment(partner: Int64Array, allowed: BoolArray) -> None:
    """Give every row without a column one, along shortest augmenting paths; each is found by waves over all rows at once."""
    c = len(partner)
    owner = np.full(c, -1, dtype=np.int64)
    owner[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    for start in np.flatnonzero(partner < 0).tolist():
        came_from = np.full(c, -1, dtype=np.int64)
        wave = np.array([start])
        while True:
            reached = allowed[wave] & (came_from < 0)
            new = np.flatnonzero(reached.any(axis=0))
            if not new.size:
                raise AssertionError("Theorem 2 promises a matching, and there is none")
            came_from[new] = wave[reached[:, new].argmax(axis=0)]
            free = new[owner[new] < 0]
            if free.size:
                break
            wave = owner[new]
        column = int(free[0])
        while column >= 0:
            row = int(came_from[column])
            owner[column], partner[row], column = row, column, int(partner[row])


def assignment(matching: str, compiled: ModuleType | None = None) -> Assign:
    """The algorithm of that name, by compiled loops where it has any."""
    return partial(hungarian, compiled=compiled) if matching == "hungarian" else ASSIGNMENTS[matching]


ASSIGNMENTS: dict[str, Assign] = {"hungarian": hungarian, "sort_greedy": sort_greedy, "greedy": greedy}
