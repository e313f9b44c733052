"""Ring generalization: records in small rings, each matching the l records that follow it, all with different sensitive values.

Source: Wong, Mamoulis and Cheung, *Non-homogeneous generalization in privacy preserving data publishing*, SIGMOD 2010, as the baseline NH
of heterogeneous generalization (section 5): partitions along a space-filling order are merged until they are eligible for l-diversity,
then each is dealt to rings. Within a partition the deal is Anatomy's (rows of the l most frequent values that are left), which always
ends with l different values in every l consecutive records of a ring; records of one value are taken in the order of the curve, so that
a ring's records lie about as far along it.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Int64Array


@dataclass(frozen=True)
class Rings:
    """Every record's place in a ring.

    records : (n,) int64, record numbers, ring after ring, in ring order
    bounds  : (rings + 1,) int64, ring r is records[bounds[r]:bounds[r + 1]]
    """

    records: Int64Array
    bounds: Int64Array

    @property
    def sizes(self) -> Int64Array:
        """(rings,) int64, how many records each ring has; each at least l."""
        return np.diff(self.bounds)

    def matches(self, l: int) -> Int64Array:  # noqa: E741  (the field's name)
        """(n, l) int64: for each record, by record number, itself and the l - 1 records after it in its ring. O(n l)."""
        n = len(self.records)
        start, size = np.repeat(self.bounds[:-1], self.sizes), np.repeat(self.sizes, self.sizes)
        ahead = (np.arange(n) - start)[:, None] + np.arange(l)
        matches = np.empty((n, l), dtype=np.int64)
        matches[self.records] = self.records[start[:, None] + ahead % size[:, None]]
        return matches

    def shifted(self, by: Int64Array) -> Int64Array:
        """(n,) int64: for each record, the one `by[ring]` places after it: one of the l disjoint perfect matchings of each ring.

        by : (rings,) int64, in [0, l)
        """
        n = len(self.records)
        start, size = np.repeat(self.bounds[:-1], self.sizes), np.repeat(self.sizes, self.sizes)
        shifted = np.empty(n, dtype=np.int64)
        shifted[self.records] = self.records[start + (np.arange(n) - start + np.repeat(by, self.sizes)) % size]
        return shifted


def rings(curve: npt.ArrayLike, sensitive: Int64Array, l: int) -> Rings:  # noqa: E741
    """Deal the records to rings of l to 2 l - 1 records in which all sensitive values differ.

    curve     : (n,) sortable numbers, where each record lies along the space-filling curve; ties are broken by the given order
    sensitive : (n,) int64 codes, none more often than n / l; ValueError otherwise, since no such rings exist then

    Cost: O(n log n), a Python loop over records (about 2 us each).
    """
    order = np.argsort(np.asarray(curve), kind="stable")
    records: list[int] = []
    sizes: list[int] = []
    for start, stop in _eligible_runs(sensitive[order].tolist(), l):
        for row in _rows(order[start:stop].tolist(), sensitive, l):
            records += row
            sizes.append(len(row))
    bounds = np.concatenate([[0], np.cumsum(np.array(sizes, dtype=np.int64))]).astype(np.int64)
    return Rings(np.array(records, dtype=np.int64), bounds)


def rings_within(curve: npt.ArrayLike, sensitive: Int64Array, l: int, classes: Int64Array) -> Rings:  # noqa: E741
    """The rings of each class by itself. classes : (n,) int64, numbered without a hole, each eligible; the rest as in `rings`."""
    along = np.asarray(curve)
    order = np.argsort(classes, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(classes))[:-1]) if len(order) else []
    parts = [rings(along[of_class], sensitive[of_class], l) for of_class in members]
    if not parts:
        return Rings(np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64))
    records = np.concatenate([of_class[part.records] for of_class, part in zip(members, parts, strict=True)])
    sizes = np.concatenate([part.sizes for part in parts])
    return Rings(records, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


def _eligible_runs(values: list[int], l: int) -> list[tuple[int, int]]:  # noqa: E741
    """Consecutive runs, each as short as it can be and eligible: no value more often than size / l. Leftovers join those before."""
    held: dict[int, int] = defaultdict(int)
    bounds, most = [0], 0
    for at, value in enumerate(values):
        held[value] += 1
        most = max(most, held[value])
        if most * l <= at + 1 - bounds[-1]:
            bounds.append(at + 1)
            held, most = defaultdict(int), 0
    begin = bounds.pop() if bounds[-1] < len(values) else len(values)
    if begin == len(values):
        return list(itertools.pairwise(bounds))
    while most * l > len(values) - begin:
        if begin == 0:
            raise ValueError(
                f"a value occurs more often than in one of {l} records: no rings of {l} different values exist"
            )
        before = bounds.pop()
        for value in values[before:begin]:
            held[value] += 1
            most = max(most, held[value])
        begin = before
    bounds.append(begin)
    return list(itertools.pairwise([*bounds, len(values)]))


def _rows(records: Iterable[int], sensitive: Int64Array, l: int) -> list[list[int]]:  # noqa: E741
    """Rows of at least l records with different values, each row in the order of the curve. `records` come in that order.

    While l values are left, a row takes the next record of each of the l most frequent ones (Anatomy, Properties 1 and 2): then at most
    one record of a value remains, and some row lacks it. It joins the nearest such row.
    """
    place = {record: at for at, record in enumerate(records)}
    left: dict[int, list[int]] = defaultdict(list)
    for record in reversed(place):
        left[int(sensitive[record])].append(record)
    heap = [(-len(rest), value) for value, rest in left.items()]
    heapq.heapify(heap)
    rows: list[list[int]] = []
    while len(heap) >= l:
        chosen = [heapq.heappop(heap) for _ in range(l)]
        rows.append([left[value].pop() for _, value in chosen])
        for minus_left, value in chosen:
            if minus_left < -1:
                heapq.heappush(heap, (minus_left + 1, value))
    middle = [sum(place[record] for record in row) / len(row) for row in rows]
    holds = [{int(sensitive[record]) for record in row} for row in rows]
    for minus_left, value in sorted(heap):
        if minus_left != -1:
            raise AssertionError("an eligible partition left two records of a value")
        (record,) = left[value]
        lacking = [r for r in range(len(rows)) if value not in holds[r]]
        nearest = min(lacking, key=lambda r: (abs(middle[r] - place[record]), r))
        rows[nearest].append(record)
        holds[nearest].add(value)
    return [sorted(row, key=place.__getitem__) for row in rows]
