"""Residues for the values of two columns, so that the records of each diagonal of their table come out even.

Every value of the first column gets a residue modulo l, and every value of the second. The records with residues i and j stand in cell
(i, j) of an l x l table N, and on its diagonal j - i modulo l. Two cells of a diagonal share no row and no column, so no value of either
column is in both: the cells of a diagonal are l buckets of a pool (`anonlib.solvers.matching.pair_pools`). The fuller the emptiest cell of
each, the fewer records are left over.

    start     of each column, the values from the most frequent on get the residue with the fewest records
    descent   the one value of either column that brings the cells of the diagonals nearest to each other, by the sum of squares of what
              lies between a cell and the mean of its diagonal, gets another residue; until none does

On real tables the many rare values even out what the frequent ones leave: a few in a thousand records are left over. By counts alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anonlib.arrays import Float64Array, Int64Array

MOST_MOVES = 50
"""Values that get another residue, for each of l residues, at most."""


@dataclass(frozen=True, eq=False)
class Diagonals:
    """The residue modulo l of each value of the first column, and of the second."""

    l: int  # noqa: E741  (the field's name)
    first: Int64Array
    second: Int64Array

    def number(self, codes: Int64Array) -> Int64Array:
        """(m,) int64: the diagonal that the records of each combination are on. codes : (2, m), the values of each."""
        return np.asarray((self.second[codes[1]] - self.first[codes[0]]) % self.l)

    def row(self, codes: Int64Array) -> Int64Array:
        """(m,) int64: which cell of its diagonal each combination is in."""
        return np.asarray(self.first[codes[0]])

    def cells(self, counts: Int64Array, codes: Int64Array) -> Int64Array:
        """(l, l) int64: the records of the cells of each diagonal, a diagonal a row. counts : (m,), records of each combination."""
        return _sums(self.number(codes) * self.l + self.row(codes), counts, self.l * self.l).reshape(self.l, self.l)


def even_diagonals(counts: Int64Array, codes: Int64Array, l: int, moves: int | None = None) -> Diagonals:  # noqa: E741
    """The residues of the values of two columns for (m,) counts of their combinations; codes : (2, m) int64, the values of each.

    moves : values that get another residue at most, by default `MOST_MOVES` l

    Cost: O(m + (M_1 + M_2) l^2) a move, for M values of a column, and as many moves as it takes, or `moves`.
    """
    held = [_sums(codes[k], counts, int(codes[k].max()) + 1) for k in (0, 1)]
    residues = [_dealt(records, l) for records in held]
    for _ in range(MOST_MOVES * l if moves is None else moves):
        best = [_best_move(counts, codes[k], residues[k], residues[1 - k][codes[1 - k]], l) for k in (0, 1)]
        k = 0 if best[0][0] <= best[1][0] else 1
        gain, value, goal = best[k]
        if gain >= 0:
            break
        residues[k][value] = goal
    return Diagonals(l, residues[0], residues[1])


def _dealt(records: Int64Array, l: int) -> Int64Array:  # noqa: E741
    """(M,) int64 the residue of each value: from the most frequent on, that with the fewest records."""
    residues, load = np.zeros(len(records), dtype=np.int64), [0] * l
    for value in np.argsort(-records, kind="stable").tolist():
        lightest = min(range(l), key=lambda i: load[i])
        residues[value] = lightest
        load[lightest] += int(records[value])
    return residues


def _best_move(
    counts: Int64Array,
    values: Int64Array,
    residues: Int64Array,
    others: Int64Array,
    l: int,  # noqa: E741
) -> tuple[int, int, int]:
    """(by how much l times the sum of squares changes, the value of one column, its new residue); none is better than no change.

    values : (m,) of each combination the value of this column; residues : (M,) of these; others : (m,) the residue of the other's value
    Diagonals are the same sets of cells whichever column the rows stand for.
    """
    number = len(residues)
    table = _sums(values * l + others, counts, number * l).reshape(number, l)  # of each value, by the other's residue
    change = _changes(table.astype(np.float64), residues, l)
    best = int(np.argmin(change))
    return round(float(change.flat[best])), best // l, best % l


def _changes(table: Float64Array, residues: Int64Array, l: int) -> Float64Array:  # noqa: E741
    """(M, l): how l times the sum over all cells of (N_ij - the mean of its diagonal)^2 changes if a value gets a residue.

    That sum is sum N_ij^2 - (1 / l) sum_p D_p^2, with D_p the records of diagonal p. A value with t_j records of the other column's residue
    j takes them from row i to row k. Sums of products of counts: exact in doubles for tables below 10^7 records.
    """
    every, place = np.arange(len(table)), np.arange(l)
    cells = np.zeros((l, l))
    np.add.at(cells, residues, table)
    diagonals = np.array([cells[place, (place + p) % l].sum() for p in range(l)])
    along = table @ cells.T  # sum_j t_j N_kj
    across = table @ diagonals[(place[:, None] - place[None, :]) % l]  # sum_j t_j D_(j - k)
    squares = (table * table).sum(axis=1)
    turned = np.stack([(table * np.roll(table, -s, axis=1)).sum(axis=1) for s in range(l)], axis=1)
    shift = (place[None, :] - residues[:, None]) % l
    of_cells = along - along[every, residues][:, None] + squares[:, None]
    kept = across - across[every, residues][:, None] + squares[:, None]
    change = 2 * (l * of_cells - (kept - turned[every[:, None], shift]))
    change[every, residues] = 0
    return np.asarray(change)


def _sums(places: Int64Array, counts: Int64Array, number: int) -> Int64Array:
    """(number,) int64: the records at each place. Exact."""
    sums = np.zeros(number, dtype=np.int64)
    np.add.at(sums, places, counts)
    return sums
