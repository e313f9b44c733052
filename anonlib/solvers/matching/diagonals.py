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
MOST_WORK = 10_000_000_000
"""Multiplications that the moves of a table may cost at most: some seconds. Of M values in both columns together they allow all moves where
M l^3 is 2 x 10^8 at most (200,000 values at l = 10), and one for each value where M l is 10^5 at most (1,000 values at l = 100)."""


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

    moves : values that get another residue at most, by default `MOST_MOVES` l, or fewer where these would cost more than `MOST_WORK`

    Cost: (M_1 + M_2) l^2 multiplications a move, for M values of a column, and as many moves as it takes, or `moves`; O((M_1 + M_2) l)
    memory.
    """
    held = [_sums(codes[k], counts, int(codes[k].max()) + 1) for k in (0, 1)]
    residues = [_dealt(records, l) for records in held]
    columns = [_Column(counts, codes[k], residues[k], residues[1 - k][codes[1 - k]], l) for k in (0, 1)]
    cells = np.zeros((l, l))
    np.add.at(cells, residues[0], columns[0].table)
    affordable = MOST_WORK // (sum(map(len, held)) * l * l)
    for _ in range(min(MOST_MOVES * l, affordable) if moves is None else moves):
        best = [columns[0].best_move(cells), columns[1].best_move(cells.T)]
        k = 0 if best[0][0] <= best[1][0] else 1
        gain, value, goal = best[k]
        if gain >= 0:
            break
        left, records, own = int(residues[k][value]), columns[k].table[value], cells if k == 0 else cells.T
        own[left] -= records
        own[goal] += records
        columns[k].move(value, goal)
        columns[1 - k].follow(np.flatnonzero(codes[k] == value), left, goal)
    return Diagonals(l, residues[0], residues[1])


def _dealt(records: Int64Array, l: int) -> Int64Array:  # noqa: E741
    """(M,) int64 the residue of each value: from the most frequent on, that with the fewest records."""
    residues, load = np.zeros(len(records), dtype=np.int64), [0] * l
    for value in np.argsort(-records, kind="stable").tolist():
        lightest = min(range(l), key=lambda i: load[i])
        residues[value] = lightest
        load[lightest] += int(records[value])
    return residues


class _Column:
    """What a move of one column's values brings, from what stands beside each value; kept up to date as values move.

    residues : (M,) of this column's values, changed in place
    table    : (M, l) records of each value, by the residue of the other column's value
    squares  : (M,) sum_j t_j^2 for the records t of a value; turned : (M, l) sum_j t_j t_(j + k - i) for the value's residue i and each k

    counts : (m,) of combinations; values : (m,) of each the value of this column; others : (m,) the residue of the other's value
    Diagonals are the same sets of cells whichever column the rows stand for.
    """

    def __init__(
        self,
        counts: Int64Array,
        values: Int64Array,
        residues: Int64Array,
        others: Int64Array,
        l: int,  # noqa: E741
    ) -> None:
        self.counts, self.values, self.residues, self.l = counts, values, residues, l
        number = len(residues)
        self.table = _sums(values * l + others, counts, number * l).reshape(number, l).astype(np.float64)
        self.squares, self.turned = np.zeros(number), np.zeros((number, l))
        self._refresh(np.arange(number))

    def _refresh(self, rows: Int64Array) -> None:
        """`squares` and `turned` of some values. O(values l^2)."""
        table = self.table[rows]
        self.squares[rows] = np.einsum("ij,ij->i", table, table)
        for s in range(self.l):
            turned = np.einsum("ij,ij->i", table, np.roll(table, -s, axis=1))
            self.turned[rows, (self.residues[rows] + s) % self.l] = turned

    def best_move(self, cells: Float64Array) -> tuple[int, int, int]:
        """(by how much l times the sum of squares changes, a value, its new residue); none is better than no change.

        cells : (l, l) records N by the residue of this column's value and that of the other's
        """
        change = self.changes(cells)
        best = int(np.argmin(change))
        return round(float(change.flat[best])), best // self.l, best % self.l

    def changes(self, cells: Float64Array) -> Float64Array:
        """(M, l): how l times the sum over all cells of (N_ij - the mean of its diagonal)^2 changes if a value gets a residue.

        That sum is sum N_ij^2 - (1 / l) sum_p D_p^2, with D_p the records of diagonal p. A value with t_j records of the other column's
        residue j takes them from row i to row k, by which l sum N^2 grows by 2 l (sum_j t_j (N_kj - N_ij) + sum_j t_j^2), and sum D^2 by
        2 (sum_j t_j (D_(j - k) - D_(j - i)) + sum_j t_j^2 - sum_j t_j t_(j + k - i)). Sums of products of counts: exact in doubles for
        tables below 10^7 records.
        """
        every, place, l = np.arange(len(self.table)), np.arange(self.l), self.l  # noqa: E741
        diagonals = np.array([cells[place, (place + p) % l].sum() for p in range(l)])
        change = self.table @ (l * cells.T - diagonals[(place[:, None] - place[None, :]) % l])
        change += ((l - 1) * self.squares - change[every, self.residues])[:, None]
        change += self.turned
        change *= 2
        change[every, self.residues] = 0
        return np.asarray(change)

    def move(self, value: int, goal: int) -> None:
        """A value of this column gets another residue."""
        self.turned[value] = np.roll(self.turned[value], goal - self.residues[value])
        self.residues[value] = goal

    def follow(self, moved: Int64Array, left: int, goal: int) -> None:
        """A value of the other column got another residue. moved : the numbers of its combinations"""
        rows, at = np.unique(self.values[moved], return_inverse=True)
        records = _sums(at, self.counts[moved], len(rows))
        self.table[rows, left] -= records
        self.table[rows, goal] += records
        self._refresh(rows)


def _sums(places: Int64Array, counts: Int64Array, number: int) -> Int64Array:
    """(number,) int64: the records at each place. Exact."""
    sums = np.zeros(number, dtype=np.int64)
    np.add.at(sums, places, counts)
    return sums
