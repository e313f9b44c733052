"""Pools for l-diversity of two sensitive columns: no value of either is in more than one bucket of a pool, and all buckets are full.

A record has a combination, a value of the first column with one of the second. What is bounded are the values of each column; so a pool
needs l buckets that share no value of either. Where every value has a residue modulo l (`anonlib.solvers.matching.diagonals`) the records
whose residues differ by p are such a pool, residue by residue:

    diagonals    l pools of l buckets; the records that the emptiest bucket of a pool leaves room for, and the others are left over
    left over    where they are too many of one value to be matched among each other, one record of every bucket of a pool is left over too,
                 of values of which there are few; and again. In the end everything is, which is eligible
    again        the records left over, with residues of their own, as long as half of them or more find room
    kinds        what no diagonal holds is spread over floor(n / l) sets of l records or more, each with l different values of either
                 column (`anonlib.solvers.buckets.pair_kinds`: a bipartite multigraph can be coloured evenly); sets of the same combinations
                 make one pool, a bucket for each

So pools exist exactly where no value of either column has more than one record in l. Which values go where follows from counts of
combinations alone; which records of a combination, from the key.
"""

from __future__ import annotations

import numpy as np

from anonlib.arrays import BoolArray, Int64Array
from anonlib.privacy.match_buckets import MatchBuckets, match_buckets
from anonlib.solvers.buckets.pair_kinds import even_kinds
from anonlib.solvers.matching.beta_pool_shapes import loss_of
from anonlib.solvers.matching.diagonals import Diagonals, even_diagonals

ALGORITHM = "pair_pools"
FEW = 20
"""Records left over, for each of l, of which sets of l are tried beside diagonals; of more of them diagonals lose less."""


def pair_eligible(counts: Int64Array, codes: Int64Array, l: int) -> bool:  # noqa: E741  (the field's name)
    """Whether no value of either column has more than n / l of the n records. counts : (m,) of combinations; codes : (2, m)."""
    most = int(counts.sum()) // l
    return most > 0 and all(int(held.max()) <= most for held in _held(counts, codes))


def pair_pools(counts: Int64Array, codes: Int64Array, l: int) -> list[MatchBuckets] | None:  # noqa: E741
    """The pools, largest first, that hold every record once; None when a value of either column has more than n / l records.

    counts : (m,) int64 records of each combination, may be 0; codes : (2, m) int64, the number of its value in either column. The buckets
    are of combinations: `value` of a pool is the number of one.

    Cost: `even_diagonals`, a few times; a flow for every l records that no diagonal holds, or fewer (`even_kinds`).
    """
    if not pair_eligible(counts, codes, l):
        return None
    pools = _pools(counts, codes, l)
    check(pools, counts, codes, l)
    return sorted(pools, key=lambda pool: -pool.mu * pool.size)  # stable


def check(pools: list[MatchBuckets], counts: Int64Array, codes: Int64Array, l: int) -> None:  # noqa: E741
    """Raise AssertionError unless these pools hold exactly the records counted, in l full buckets or more that share no value."""
    placed = np.zeros(len(counts), dtype=np.int64)
    for pool in pools:
        np.add.at(placed, pool.value, pool.records)
        full = np.zeros(pool.mu, dtype=np.int64)
        np.add.at(full, pool.bucket, pool.records)
        if pool.mu < l or (full != pool.size).any() or pool.made_up or pool.left_out:
            raise AssertionError(f"a pool of {pool.mu} buckets that are not full, where {l} full ones were asked for")
        for values in codes:
            seen = np.unique(np.stack([values[pool.value], pool.bucket]), axis=1)[0]
            if len(np.unique(seen)) < len(seen):
                raise AssertionError("a value is in two buckets of a pool")
    if (placed != counts).any():
        raise AssertionError("the pools lose or invent records of a combination")


def _pools(counts: Int64Array, codes: Int64Array, l: int) -> list[MatchBuckets]:  # noqa: E741
    """As `pair_pools`, for counts that are eligible."""
    present = np.flatnonzero(counts)
    records, values = counts[present], _renumbered(codes[:, present])
    diagonals = even_diagonals(records, values, l)
    kept = _evened(records, values, diagonals)
    _leave_over_until_eligible(kept, records, values, diagonals)
    left = np.zeros_like(counts)
    left[present] = records - kept
    pools = _of_diagonals(kept, present, values, diagonals, len(counts))
    if not left.any():
        return pools
    rest = int(left.sum())
    again = _pools(left, codes, l) if 2 * rest <= int(counts.sum()) else None
    if again is not None and rest > FEW * l:
        return pools + again
    alone = _of_kinds(left, codes, l)
    return pools + (alone if again is None or loss_of(alone) <= loss_of(again) else again)


def _evened(records: Int64Array, codes: Int64Array, diagonals: Diagonals) -> Int64Array:
    """(k,) int64: how many records of each of k combinations stay on their diagonal, so that its l cells hold equally many."""
    cells, kept = diagonals.cells(records, codes), records.copy()
    cell = diagonals.number(codes) * diagonals.l + diagonals.row(codes)
    over = (cells - cells.min(axis=1, keepdims=True)).ravel()
    often = np.maximum(*(held[values] for held, values in zip(_held(records, codes), codes, strict=True)))
    for full in np.flatnonzero(over).tolist():
        inside = np.flatnonzero(cell == full)
        inside = inside[np.argsort(-often[inside], kind="stable")]
        kept[inside] -= _spread(records[inside], int(over[full]))
    return kept


def _spread(records: Int64Array, number: int) -> Int64Array:
    """(k,) int64: `number` of the records, of each combination as many as of the others as far as there are, and at even distances."""
    level = _level(records, number)
    taken = np.minimum(records, level)
    more = number - int(taken.sum())
    room = np.flatnonzero(records > level)
    taken[room[(2 * np.arange(more) + 1) * len(room) // (2 * more)] if more else room[:0]] += 1
    return np.asarray(taken)


def _level(records: Int64Array, number: int) -> int:
    """The largest level such that min(records, level) sum to `number` at most."""
    low, high = 0, number
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(records, middle).sum()) <= number:
            low = middle
        else:
            high = middle - 1
    return low


def _leave_over_until_eligible(kept: Int64Array, records: Int64Array, codes: Int64Array, diagonals: Diagonals) -> None:
    """Take equally many records from every cell of a diagonal, in `kept`, until those left over can be matched among each other.

    Of a value that has too many there is always a layer without it: if it filled a cell of every diagonal, it would have had more than one
    in l of all records.
    """
    l, cell = diagonals.l, diagonals.number(codes) * diagonals.l + diagonals.row(codes)  # noqa: E741
    while True:
        left = records - kept
        held = _held(left, codes)
        excess = max(int(of_values.max()) for of_values in held) - int(left.sum()) // l
        if excess <= 0 or not left.any():
            return
        pressure = np.maximum(held[0][codes[0]], held[1][codes[1]])
        pool = _least_pressed(pressure, kept > 0, cell, l)
        inside = [np.flatnonzero((cell == pool * l + row) & (kept > 0)) for row in range(l)]
        layers = min(max(1, excess // 2), int(kept[inside[0]].sum()))
        for some in inside:
            kept[some] -= _first(kept[some], pressure[some], layers)


def _least_pressed(pressure: Int64Array, there: BoolArray, cell: Int64Array, l: int) -> int:  # noqa: E741
    """The diagonal of which a layer can be taken with the fewest records left over of any of its values."""
    least = np.full(l * l, np.iinfo(np.int64).max)
    np.minimum.at(least, cell[there], pressure[there])
    return int(np.argmin(least.reshape(l, l).max(axis=1)))


def _first(records: Int64Array, pressure: Int64Array, number: int) -> Int64Array:
    """(k,) int64: `number` of the records, those under the least pressure first."""
    order = np.argsort(pressure, kind="stable")
    before = np.cumsum(records[order]) - records[order]
    taken = np.zeros_like(records)
    taken[order] = np.clip(number - before, 0, records[order])
    return taken


def _of_diagonals(
    kept: Int64Array, present: Int64Array, codes: Int64Array, diagonals: Diagonals, m: int
) -> list[MatchBuckets]:
    """A pool for each diagonal that holds records, a bucket for each of its cells."""
    diagonal, row, pools = diagonals.number(codes), diagonals.row(codes), []
    for p in np.unique(diagonal[kept > 0]).tolist():
        inside = np.flatnonzero((diagonal == p) & (kept > 0))
        contents = {(int(row[k]), int(present[k])): [int(kept[k]), 0] for k in inside.tolist()}
        pools.append(_pool(int(kept[inside].sum()) // diagonals.l, contents, m))
    return pools


def _of_kinds(records: Int64Array, codes: Int64Array, l: int) -> list[MatchBuckets]:  # noqa: E741
    """A pool for each kind of set of records with different values, a bucket for each of its records."""
    kinds = even_kinds(records, codes, int(records.sum()) // l)
    return [
        _pool(kind.number, {(b, code): [kind.number, 0] for b, code in enumerate(kind.codes.tolist())}, len(records))
        for kind in kinds
    ]


def _pool(size: int, contents: dict[tuple[int, int], list[int]], m: int) -> MatchBuckets:
    return match_buckets(size, contents, np.zeros(m, dtype=np.int64), distinct=True, algorithm=ALGORITHM)


def _held(counts: Int64Array, codes: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Records of each value of the first column, and of the second."""
    sums = [np.zeros(int(values.max()) + 1, dtype=np.int64) for values in codes]
    for held, values in zip(sums, codes, strict=True):
        np.add.at(held, values, counts)
    return sums[0], sums[1]


def _renumbered(codes: Int64Array) -> Int64Array:
    """(2, k): the same values, each column's numbered 0, 1, ... without a hole."""
    renumbered: Int64Array = np.stack([np.unique(values, return_inverse=True)[1] for values in codes])
    return renumbered.astype(np.int64)
