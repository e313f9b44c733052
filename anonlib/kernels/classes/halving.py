"""Split equivalence classes on, in two, while both halves keep the promise and information loss falls.

SABRE halves a class bucket by bucket and knows of the halves only the bound D + U. Here a class is halved by its records: their sensitive
values are dealt evenly to both halves, as finely as the promise asks and no finer, and within each group of values the records that lie
lower along one attribute go to one half. So a proposal is an attribute and a number of groups:

    1 group   all values together, cut next to the median between two values of the attribute, which under a hierarchy stand below different
              children of the lowest node above the class (Mondrian's cut); or at the median record
    G groups  neighbouring sensitive values grouped into G = 2, 4, 8, ... groups of about equal numbers; the lower half of each goes left
    all       a group for each sensitive value: the halves differ in each value by one record at most

The records in the middle of groups of odd size are paired with their neighbours in the order of values, and of each pair the lower one goes
left. The coarsest groups that the promise allows are taken, and among the attributes the one that lowers information loss most, weighted by
the attribute's own loss in the class: wide attributes first, as Mondrian has it. A half's box lies in its parent's, so loss never rises.
Whether a half keeps the promise is asked of its true counts.

All classes of a level are split together: each proposal is one sort of the records still in play, so nothing loops over classes or records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from anonlib.arrays import BoolArray, Codes, Float64Array, Int64Array
from anonlib.domains import CategoricalDomain, Domain, NumericDomain
from anonlib.privacy.class_requirements import Requirement

CELLS = 1 << 22
"""Counts (halves x sensitive values) held at once: 32 MB."""
LEAST = 1e-9
"""A split must lower the loss of its class (times its records) by this, which rounding does not reach."""


class HasColumns(Protocol):
    """What loss is measured of: code columns and their domains."""

    @property
    def columns(self) -> Sequence[Codes]: ...
    @property
    def domains(self) -> Sequence[Domain]: ...


@dataclass(frozen=True, eq=False)
class Records:
    """The n records of a partition.

    columns   : code columns, as `anonlib.domains` describes them; domains : theirs
    sensitive : per sensitive attribute (n,) int64 codes; sizes : how many values each has in the whole table
    position  : (n,) int64, where each record's first sensitive value stands in the order of the ground distance
    ties      : (n,) int64, a permutation that decides between records of equal value: neighbours in it are alike (Hilbert order)
    """

    columns: Sequence[Codes]
    domains: Sequence[Domain]
    sensitive: Sequence[Int64Array]
    sizes: Sequence[int]
    position: Int64Array
    ties: Int64Array

    def counts(self, groups: Int64Array, number: int, of: Int64Array) -> Int64Array:
        """(number, sum of sizes) int64: how many records of each group have each sensitive value, attribute after attribute.

        groups : (r,) int64 in [0, number), of the records `of`, (r,) int64
        """
        parts = [
            np.bincount(groups * size + codes[of], minlength=number * size).reshape(number, size)
            for codes, size in zip(self.sensitive, self.sizes, strict=True)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def halved(records: Records, classes: Int64Array, requirement: Requirement, k: int = 1) -> Int64Array:
    """The class of each record, (n,) int64 without a hole, after splitting `classes` as far as `requirement` and k allow.

    requirement : over counts of all sensitive attributes side by side, as `Records.counts` gives them
    Cost: about (levels) x (attributes) x (1 + groups tried, at most 2 + log2 m) sorts of the records still in play.
    """
    search = _Search(records, requirement, k)
    label = np.array(classes, dtype=np.int64)
    number = int(label.max(initial=-1)) + 1
    active = np.arange(len(label), dtype=np.int64)
    while active.size:
        _, own = np.unique(label[active], return_inverse=True)
        upper, split = search.level(active, own.astype(np.int64))
        fresh = number + np.cumsum(split) - 1
        moving = split[own] & upper
        label[active[moving]] = fresh[own[moving]]
        number += int(split.sum())
        active = active[split[own]]
    return np.unique(label, return_inverse=True)[1].astype(np.int64)


def information_loss(records: HasColumns, of: Int64Array, groups: Int64Array, number: int) -> Float64Array:
    """(number,) float64: SABRE's information loss (section 3.2) of each group's box, summed over attributes. Arguments as in `losses`."""
    return cast(Float64Array, losses(records, of, groups, number).sum(axis=0))


def losses(records: HasColumns, of: Int64Array, groups: Int64Array, number: int) -> Float64Array:
    """(d, number) float64: SABRE's information loss (section 3.2) of each group's box in each attribute; in [0, 1]. No group is empty.

    of : (r,) records, groups : (r,) int64 their groups. O(r), and a sort per categorical attribute without a hierarchy of many values.
    """
    few = number <= 1 << 16  # then NumPy sorts by radix
    by_group = of[np.argsort(groups.astype(np.uint16) if few else groups, kind="stable")]
    sizes = np.bincount(groups, minlength=number)
    starts = np.cumsum(sizes) - sizes
    loss = np.zeros((len(records.columns), number), dtype=np.float64)
    for own, column, domain in zip(loss, records.columns, records.domains, strict=True):
        if isinstance(domain, CategoricalDomain) and domain.hierarchy is None:
            distinct = _distinct(groups * domain.size + column[of], number, domain.size)
            own[:] = np.where(distinct > 1, distinct / domain.size, 0)
            continue
        values = column[by_group]
        low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        if isinstance(domain, NumericDomain):
            own[:] = domain.penalty(low, high)
        else:
            tree = domain.hierarchy
            assert tree is not None
            node = tree.cover(low, high)
            own[:] = np.where(low == high, 0, (tree.last[node] - tree.first[node] + 1) / tree.leaves)
    return loss


def _distinct(pairs: Int64Array, number: int, size: int) -> Int64Array:
    """(number,) how many of the `size` codes each group has; pairs : (r,) int64, group * size + code.

    O(r + number size), or a sort where that is more."""
    if number * size > max(4 * len(pairs), 1 << 16):
        return np.bincount(np.unique(pairs) // size, minlength=number)
    occurs = np.zeros(number * size, dtype=bool)
    occurs[pairs] = True
    return np.asarray(occurs.reshape(number, size).sum(axis=1))


def children(domain: Domain, values: Codes, groups: Int64Array, starts: Int64Array, sizes: Int64Array) -> Codes:
    """What a gap may not divide: equal values or, under a hierarchy, those below one child of the lowest node above the group.

    values : (r,) group after group, ascending; groups : (r,) theirs; starts, sizes : of each group.
    """
    if isinstance(domain, NumericDomain) or domain.hierarchy is None:
        return values
    tree = domain.hierarchy
    node = tree.cover(values[starts], values[starts + sizes - 1])
    return np.asarray(tree.ancestors[values, np.maximum(0, tree.heights[node] - 1)[groups]])


class _Search:
    def __init__(self, records: Records, requirement: Requirement, k: int) -> None:
        self.records, self.requirement = records, requirement
        self.least = max(k, requirement.smallest, 1)
        self.n = len(records.position)
        self.along = [self._ranks(column) for column in records.columns]
        self.by_value = self._ranks(records.position)
        self.most_groups = int(records.position.max(initial=0)) + 1

    def _ranks(self, column: Codes) -> Int64Array:
        """(n,) the place of each record when all are sorted by the column, then by ties: one number a record."""
        ranks = np.empty(self.n, dtype=np.int64)
        ranks[np.lexsort((self.records.ties, column))] = np.arange(self.n)
        return ranks

    def level(self, active: Int64Array, own: Int64Array) -> tuple[BoolArray, BoolArray]:
        """(upper (r,) whether each active record goes to the new class, split (c,) which classes are split).

        active : (r,) records; own : (r,) int64, their class among c.
        """
        sizes = np.bincount(own)
        upper, split = np.zeros(len(active), dtype=bool), np.zeros(len(sizes), dtype=bool)
        loss = losses(self.records, active, own, len(sizes)) * sizes
        open_ = (sizes >= 2 * self.least) & (loss.sum(axis=0) > LEAST)
        groups = 1
        while open_.any() and groups < 2 * self.most_groups:
            searched = np.flatnonzero(open_[own])
            chosen = np.flatnonzero(open_)
            renumber = np.cumsum(open_) - 1
            moved, splittable = self._best(active[searched], renumber[own[searched]], loss[:, chosen], groups)
            upper[searched] = moved
            split[chosen[splittable]] = True
            open_[chosen[splittable]] = False
            groups = 2 * groups
            open_ &= sizes >= groups
        return upper, split

    def _best(self, of: Int64Array, own: Int64Array, loss: Float64Array, groups: int) -> tuple[BoolArray, BoolArray]:
        """The attribute that lowers loss most, for each class, among those whose halves keep the promise."""
        number = loss.shape[1]
        upper, splittable, best = np.zeros(len(of), dtype=bool), np.zeros(number, dtype=bool), np.zeros(number)
        grouped = self._grouped(of, own, number, groups) if groups > 1 else own
        for attribute, proposed in self._proposals(of, own, grouped, gaps=groups == 1):
            good = self._kept(of, own, proposed, number)
            if not good.any():
                continue
            in_good = good[own]
            renumber = np.cumsum(good) - 1
            halves = 2 * renumber[own[in_good]] + proposed[in_good]
            after = information_loss(self.records, of[in_good], halves, 2 * int(good.sum()))
            gain = np.zeros(number)
            gain[good] = loss[:, good].sum(axis=0) - (after * np.bincount(halves)).reshape(-1, 2).sum(axis=1)
            score = np.where(gain > LEAST, gain * loss[attribute], 0)
            better = score > best
            best[better] = score[better]
            upper = np.where(better[own], proposed, upper)
            splittable |= better
        return upper, splittable

    def _proposals(
        self, of: Int64Array, own: Int64Array, grouped: Int64Array, gaps: bool
    ) -> Iterator[tuple[int, BoolArray]]:
        """(attribute, (r,) bool: which records would go to the new class)."""
        for i, along in enumerate(self.along):
            order = np.argsort(grouped * self.n + along[of])
            if gaps:
                yield i, self._gap(of, own, order, i)
            yield i, self._medians(of, own, grouped, order, along)

    def _kept(self, of: Int64Array, own: Int64Array, upper: BoolArray, number: int) -> BoolArray:
        """(number,) which classes may be split so: both halves are large enough and keep the promise."""
        halves = 2 * own + upper
        good = (np.bincount(halves, minlength=2 * number).reshape(-1, 2) >= self.least).all(axis=1)
        step = max(1, CELLS // (2 * sum(self.records.sizes)))
        asked = np.flatnonzero(good)
        renumber = np.cumsum(good) - 1
        for start in range(0, len(asked), step):
            part = asked[start : start + step]
            member = np.zeros(number, dtype=bool)
            member[part] = True
            in_part = np.flatnonzero(member[own])
            local = 2 * (renumber[own[in_part]] - start) + upper[in_part]
            counts = self.records.counts(local, 2 * len(part), of[in_part])
            good[part] = self.requirement.holds(counts).reshape(-1, 2).all(axis=1)
        return cast(BoolArray, good)

    def _gap(self, of: Int64Array, own: Int64Array, order: Int64Array, attribute: int) -> BoolArray:
        """Cut each class between two values, at the gap nearest to its median that leaves both sides large enough. `order` sorts the
        records by class and attribute."""
        classes = own[order]
        sizes = np.bincount(own)
        starts = np.cumsum(sizes) - sizes
        values = self.records.columns[attribute][of[order]]
        values = children(self.records.domains[attribute], values, classes, starts, sizes)
        place = np.arange(len(order)) - starts[classes]
        cut = np.r_[False, (values[1:] != values[:-1]) & (classes[1:] == classes[:-1])]
        cut &= (place >= self.least) & (sizes[classes] - place >= self.least)
        at = np.flatnonzero(cut)
        away = np.abs(2 * place[at] - sizes[classes[at]])
        nearest = at[np.lexsort((place[at], away, classes[at]))]
        first = nearest[np.r_[True, classes[nearest[1:]] != classes[nearest[:-1]]]] if len(nearest) else nearest
        begins = np.full(len(sizes), np.iinfo(np.int64).max)
        begins[classes[first]] = place[first]
        upper = np.empty(len(of), dtype=bool)
        upper[order] = place >= begins[classes]
        return upper

    def _grouped(self, of: Int64Array, own: Int64Array, number: int, groups: int) -> Int64Array:
        """(r,) the group of each record within its class: whole values, grouped by where the middle of their records stands."""
        order = np.argsort(own * self.n + self.by_value[of])
        sizes = np.bincount(own, minlength=number)
        classes, value = own[order], self.records.position[of[order]]
        new = np.flatnonzero(np.r_[True, (value[1:] != value[:-1]) | (classes[1:] != classes[:-1])])
        run = np.diff(np.r_[new, len(order)])
        middle = 2 * (new - (np.cumsum(sizes) - sizes)[classes[new]]) + run  # twice the middle's place in its class
        own_group = np.arange(len(new))
        share = classes[new] * groups + middle * groups // (2 * sizes[classes[new]])
        group = own_group if groups >= self.most_groups else share
        group_of = np.empty(len(of), dtype=np.int64)
        group_of[order] = np.repeat(group, run)
        return group_of

    def _medians(
        self, of: Int64Array, own: Int64Array, group: Int64Array, order: Int64Array, along: Int64Array
    ) -> BoolArray:
        """Cut every group at its median; records in the middle of odd groups are paired with the next such record of the class. `order`
        sorts the records by group and attribute."""
        groups = group[order]
        starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
        sizes = np.diff(np.r_[starts, len(order)])
        place = np.arange(len(order)) - np.repeat(starts, sizes)
        upper = np.empty(len(of), dtype=bool)
        upper[order] = place >= np.repeat(sizes // 2, sizes)
        odd = order[(starts + sizes // 2)[sizes % 2 == 1]]  # in the order of groups, so of classes
        classes = own[odd]
        turn = np.arange(len(odd)) - np.searchsorted(classes, classes)
        left = np.flatnonzero((turn % 2 == 0) & np.r_[classes[1:] == classes[:-1], False][: len(odd)])
        one, other = odd[left], odd[left + 1]
        lower = along[of[one]] < along[of[other]]
        upper[one], upper[other] = ~lower, lower
        return upper
