"""Classes of one record from each block of a set partition, small in the space of quasi-identifiers, that treat all blocks alike.

The blocks are SABRE's sub-buckets, but nothing here knows which is which: what a class is depends on the quasi-identifiers, on which
records share a block, and on noise. Renaming the blocks changes nothing (`tests/pure/test_symmetric_classes.py` holds it to that), and that
is what keeps a class from telling which of its records has which of its values (docs/sabre.md).

    halving      a group of g records of each block becomes two: of every block the same number, the lower ones along one attribute, go
                 left.
                 How many: half, or as many as lie left of the gap nearest to the group's median. Attribute and number lower loss most.
    exchange     within groups of at most `TOGETHER` records a block: row after row of records, a row one of a block from each class, in an
                 order that only the noise knows, is taken out and dealt to the classes again at least loss (an assignment problem).

Cost for n records, d attributes: log2(n / mu) levels of d sorts; a sweep of exchange d n `TOGETHER` cell operations and an assignment of
`TOGETHER` x `TOGETHER` for each so many records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from anonlib.arrays import BoolArray, Codes, Float64Array, Int64Array
from anonlib.domains import CategoricalDomain, Domain, NumericDomain
from anonlib.kernels.classes.halving import children, losses
from anonlib.kernels.hilbert import hilbert_positions

TOGETHER = 128
"""Records of a block that are exchanged among each other."""
SWEEPS = 2
"""How often every block is dealt again; measured: a third sweep lowers loss by less than one in a hundred."""
TABLE = 1 << 22
"""Pairs of leaves of a hierarchy whose loss is kept as a table."""


def symmetric_classes(
    columns: Sequence[Codes],
    domains: Sequence[Domain],
    block: Int64Array,
    noise: Int64Array,
    least: int = 1,
    together: int = TOGETHER,
    sweeps: int = SWEEPS,
) -> Int64Array:
    """(n,) int64, the class of each record, numbered without a hole; each class holds as many records of one block as of another.

    columns : code columns, as `anonlib.domains` describes them; domains : theirs
    block   : (n,) int64, which records share a block; all blocks are of the same size, else ValueError
    noise   : (n,) int64, a permutation drawn independently of all else; decides between records of equal value, and the blocks' turns
    least   : at least so many records of each block in a class, and less than twice as many; at most the size of a block
    """
    _, number = np.unique(block, return_inverse=True)
    sizes = np.bincount(number)
    if len(sizes) and sizes.min() != sizes.max():
        raise ValueError("blocks of different sizes cannot be treated alike")
    number = number.astype(np.int64)
    classes, groups = _Halving(columns, domains, number, noise, least).halved(together)
    if sweeps and len(block) > 1:
        rows = _rows(number, classes, noise)
        _Exchange(columns, domains, rows).improve(classes, groups, sweeps)
    return classes


def _rows(block: Int64Array, classes: Int64Array, noise: Int64Array) -> Int64Array:
    """(n,) int64: records with the same number are exchanged among each other. A row holds at most one record of a class, all of one
    block; rows are numbered by the smallest noise in them."""
    order = np.lexsort((noise, classes, block))
    run = block[order] * (int(classes.max()) + 1) + classes[order]
    layer = np.empty(len(block), dtype=np.int64)
    layer[order] = np.arange(len(block)) - np.searchsorted(run, run)
    row = block * (int(layer.max()) + 1) + layer
    _, row = np.unique(row, return_inverse=True)
    first = np.full(int(row.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, row, noise)
    turn = np.empty(len(first), dtype=np.int64)
    turn[np.argsort(first)] = np.arange(len(first))
    return turn[row]


class _Halving:
    def __init__(
        self, columns: Sequence[Codes], domains: Sequence[Domain], block: Int64Array, noise: Int64Array, least: int
    ) -> None:
        self.columns, self.domains, self.block, self.least = columns, domains, block, least
        self.n, self.blocks = len(block), int(block.max(initial=-1)) + 1
        alike = np.lexsort((noise, hilbert_positions(columns, domains)))  # how records of equal value stand
        # per attribute all records in its order, and block after block; sorted once, since a group keeps the order of its records
        self.sorted = [alike[_stable_order(column[alike])] for column in columns]
        self.by_block = [order[_stable_order(block[order])] for order in self.sorted]

    def halved(self, together: int) -> tuple[Int64Array, Int64Array]:
        """(class of each record, group of each record when groups first held at most `together` records a block). Both (n,) int64."""
        label = np.zeros(self.n, dtype=np.int64)
        groups = np.full(self.n, -1, dtype=np.int64)
        count = 1
        while True:
            share = np.bincount(label) // max(1, self.blocks)
            fresh = (share <= together)[label] & (groups < 0)
            groups[fresh] = label[fresh]
            active = np.flatnonzero(share[label] >= 2 * self.least)
            if not active.size:
                return label, np.where(groups < 0, label, groups)
            splitting, own = np.unique(label[active], return_inverse=True)
            upper = self._upper(active, own.astype(np.int64), share[splitting])
            label[active[upper]] = count + own[upper]
            count += len(splitting)

    def _upper(self, of: Int64Array, own: Int64Array, share: Int64Array) -> BoolArray:
        """(r,) which of the records `of` go right. own : (r,) their group; share : (c,) records of a block in each group."""
        upper = np.zeros(len(of), dtype=bool)
        total, sizes = losses(self, of, own, len(share)).sum(axis=0), np.bincount(own)
        best = np.full(len(share), -np.inf)
        place = np.full(self.n, -1, dtype=np.int64)
        place[of] = np.arange(len(of))
        for attribute in range(len(self.columns)):
            within = self._within(_grouped(place[self.by_block[attribute]], own), of, own)
            order = _grouped(place[self.sorted[attribute]], own)
            cuts = [share // 2, self._gap(order, of, own, share, attribute)]
            for cut in cuts:
                proposed = within >= cut[own]
                halves = 2 * own + proposed
                after = losses(self, of, halves, 2 * len(share)).sum(axis=0) * np.bincount(halves)
                gain = total - after.reshape(-1, 2).sum(axis=1) / sizes
                better = gain > best
                best[better] = gain[better]
                upper = np.where(better[own], proposed, upper)
        return upper

    def _within(self, order: Int64Array, of: Int64Array, own: Int64Array) -> Int64Array:
        """(r,) the place of each record among those of its group and block. order : (r,) by group, block and an attribute."""
        run = (own * self.blocks + self.block[of])[order]
        number = np.arange(len(order))
        begins = np.maximum.accumulate(np.where(np.r_[True, run[1:] != run[:-1]], number, 0))
        place = np.empty(len(of), dtype=np.int64)
        place[order] = number - begins
        return place

    def _gap(self, order: Int64Array, of: Int64Array, own: Int64Array, share: Int64Array, attribute: int) -> Int64Array:
        """(c,) how many records of each block lie left of the gap between two values that is nearest to the median of the group, in the
        mean over blocks; half of them if there is no gap. Under a hierarchy a gap is one between children of the lowest node above.
        order : (r,) by group and attribute."""
        groups, sizes = own[order], np.bincount(own)
        starts = np.cumsum(sizes) - sizes
        values = children(self.domains[attribute], self.columns[attribute][of[order]], groups, starts, sizes)
        place = np.arange(len(order)) - starts[groups]
        at = np.flatnonzero(np.r_[False, (values[1:] != values[:-1]) & (groups[1:] == groups[:-1])])
        nearest = at[np.lexsort((place[at], np.abs(2 * place[at] - sizes[groups[at]]), groups[at]))]
        first = nearest[np.r_[True, groups[nearest[1:]] != groups[nearest[:-1]]]] if len(nearest) else nearest
        left_of_gap = share // 2
        left_of_gap[groups[first]] = (2 * place[first] + self.blocks) // (2 * self.blocks)
        return np.clip(left_of_gap, self.least, share - self.least)


def _grouped(places: Int64Array, own: Int64Array) -> Int64Array:
    """(r,) the places, without those that are -1, group after group, as they stand in each. own : (r,) the group at each place."""
    places = places[places >= 0]
    return np.asarray(places[_stable_order(own[places])])


def _stable_order(keys: Codes) -> Int64Array:
    """What `np.argsort(keys, kind="stable")` gives, by radix where keys are small whole numbers."""
    if keys.dtype.kind == "i" and len(keys) and keys.min() >= 0 and keys.max() < 1 << 16:
        keys = keys.astype(np.uint16)
    return np.argsort(keys, kind="stable")


class _Exchange:
    """Deals rows of records again to the classes of their group, at least loss."""

    def __init__(self, columns: Sequence[Codes], domains: Sequence[Domain], rows: Int64Array) -> None:
        self.rows, self.number = rows, int(rows.max(initial=-1)) + 1
        self.axes = [_axis(column, domain) for column, domain in zip(columns, domains, strict=True)]

    def improve(self, classes: Int64Array, groups: Int64Array, sweeps: int) -> None:
        """`classes` with less loss, in place; a class stays in its group."""
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
        for members in np.split(order, starts[1:]):
            names, place = np.unique(classes[members], return_inverse=True)
            turns, row = np.unique(self.rows[members], return_inverse=True)
            if len(names) == 1 or len(turns) == 1:
                continue
            deal = np.full((len(turns), len(names)), -1, dtype=np.int64)
            deal[row, place] = members
            for _ in range(sweeps):
                deal = self._dealt(deal)
            row, place = np.nonzero(deal >= 0)
            classes[deal[row, place]] = names[place]

    def _dealt(self, deal: Int64Array) -> Int64Array:
        """deal : (rows, g) the record of each row in each class, or -1. The same after every row was dealt once."""
        dealt = np.full_like(deal, -1)
        boxes = [axis.boxes(deal) for axis in self.axes]
        weight = (deal >= 0).sum(axis=0)
        for turn, row in enumerate(deal):
            present = np.flatnonzero(row >= 0)
            records = row[present]
            loss = np.zeros((len(present), len(present)))
            for box, axis in zip(boxes, self.axes, strict=True):
                loss += box.without(turn, present, axis.column[records])
            record, place = linear_sum_assignment(loss * weight[present])
            dealt[turn, present[place]] = records[record]
            for box, axis in zip(boxes, self.axes, strict=True):
                box.add(present, axis.column[records], axis.column[dealt[turn, present]])
        return dealt


@dataclass(frozen=True, eq=False)
class _Interval:
    """An attribute whose loss follows from the smallest and largest code of a class."""

    column: Codes
    domain: Domain
    table: Float64Array | None

    def boxes(self, deal: Int64Array) -> _Bounds:
        return _Bounds(self, deal)

    def loss(self, low: Codes, high: Codes) -> Float64Array:
        if isinstance(self.domain, NumericDomain):
            return self.domain.penalty(low, high)
        if self.table is None:
            return _share(self.domain, low, high)
        return np.asarray(
            self.table.take(low * len(self.table) + high), dtype=np.float64
        )  # half the time of table[low, high]


def _share(domain: CategoricalDomain, low: Codes, high: Codes) -> Float64Array:
    """Leaves below the lowest node above both codes, as a share of all; 0 for one leaf."""
    tree = domain.hierarchy
    assert tree is not None
    node = tree.cover(low.ravel(), high.ravel())
    share = np.where(low.ravel() == high.ravel(), 0, (tree.last[node] - tree.first[node] + 1) / tree.leaves)
    return np.asarray(share.reshape(low.shape), dtype=np.float64)


class _Bounds:
    """The smallest and largest code of each class without one row: of the rows dealt already, and of those still to come."""

    def __init__(self, axis: _Interval, deal: Int64Array) -> None:
        self.axis = axis
        values, gone = axis.column[deal], deal < 0
        least, most = axis.column.min(), axis.column.max()
        low = np.minimum.accumulate(np.where(gone, most, values)[::-1])[::-1]
        high = np.maximum.accumulate(np.where(gone, least, values)[::-1])[::-1]
        # one row more, of a class without records: it takes no part in a minimum
        self.low_after = np.concatenate([low, np.full((1, deal.shape[1]), most, dtype=low.dtype)])
        self.high_after = np.concatenate([high, np.full((1, deal.shape[1]), least, dtype=high.dtype)])
        self.low, self.high = self.low_after[-1].copy(), self.high_after[-1].copy()

    def without(self, turn: int, present: Int64Array, codes: Codes) -> Float64Array:
        """(g, g) the loss of each class of `present` (columns) with each of `codes` (rows) in the place of its own record of row `turn`."""
        low = np.minimum(self.low, self.low_after[turn + 1])[present]
        high = np.maximum(self.high, self.high_after[turn + 1])[present]
        return self.axis.loss(np.minimum(low, codes[:, None]), np.maximum(high, codes[:, None]))

    def add(self, present: Int64Array, before: Codes, after: Codes) -> None:
        """`after` : (g,) the codes that the classes of `present` now have of the row whose turn it was."""
        self.low[present] = np.minimum(self.low[present], after)
        self.high[present] = np.maximum(self.high[present], after)


@dataclass(frozen=True, eq=False)
class _Distinct:
    """An attribute without a hierarchy: its loss is the number of distinct codes of a class."""

    column: Codes
    size: int

    def boxes(self, deal: Int64Array) -> _Sets:
        return _Sets(self, deal)


class _Sets:
    """How many records of each class have each code."""

    def __init__(self, axis: _Distinct, deal: Int64Array) -> None:
        self.size = axis.size
        self.held = np.zeros((deal.shape[1], axis.size), dtype=np.int64)
        row, place = np.nonzero(deal >= 0)
        np.add.at(self.held, (place, axis.column[deal[row, place]]), 1)

    def without(self, turn: int, present: Int64Array, codes: Codes) -> Float64Array:
        """(g, g) losses as `_Bounds.without`: each class's own record of the row is taken out, and each of `codes` put in its place."""
        held = self.held[present]
        held[np.arange(len(present)), codes] -= 1
        distinct = (held > 0).sum(axis=1)
        new = (held == 0).T[codes]
        return np.where(new, self._loss(distinct + 1)[None, :], self._loss(distinct)[None, :])

    def _loss(self, distinct: Int64Array) -> Float64Array:
        return np.where(distinct > 1, distinct / max(1, self.size), 0.0)

    def add(self, present: Int64Array, before: Codes, after: Codes) -> None:
        """`before`, `after` : (g,) the codes that the classes of `present` had and now have of the row whose turn it was."""
        self.held[present, before] -= 1
        self.held[present, after] += 1


def _axis(column: Codes, domain: Domain) -> _Interval | _Distinct:
    if isinstance(domain, NumericDomain):
        return _Interval(column, domain, None)
    if domain.hierarchy is None:
        return _Distinct(column, domain.size)
    table = None
    if domain.size**2 <= TABLE:
        codes = np.arange(domain.size)
        low, high = np.minimum(codes[:, None], codes), np.maximum(codes[:, None], codes)
        table = _share(domain, low, high)
    return _Interval(column, domain, table)
