"""Sub-buckets: the sensitive values of a table packed into groups of equal size, so that a class takes one record of each.

All values stand on a line of mu * c places, value after value in runs; sub-bucket b is the places b c .. (b + 1) c - 1. What does not come
out even is a *rest*: one class more, of mu + (n mod mu) records, whose values are fixed beforehand too. Written as runs, so that nothing
here grows with mu, c or n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anonlib.arrays import Int64Array


@dataclass(frozen=True, eq=False)
class SubBuckets:
    """mu sub-buckets of c records each, and the rest.

    number     : mu, how many sub-buckets there are, so how many records a class has; records : c, in each of them, so how many classes
    run_value  : (r,) int64, the value of each run of the line; run_length : (r,) int64, its places; they add up to mu * c
    rest       : (m,) int64, how many records of each value go to the one class of the rest
    """

    number: int
    records: int
    run_value: Int64Array
    run_length: Int64Array
    rest: Int64Array

    REST = -1
    """The sub-bucket that records of the rest are said to be in."""

    @cached_property
    def counts(self) -> Int64Array:
        """(m,) int64, the table's records of each value."""
        counts = self.rest.copy()
        np.add.at(counts, self.run_value, self.run_length)
        return counts

    def of(self, value: Int64Array, slot: Int64Array) -> Int64Array:
        """(N,) int64, the sub-bucket of the slot-th record of each value, slot in [0, counts[value]); `REST` for the rest.

        Which record of a value has which slot must be drawn uniformly and without a look at anything else.
        """
        order = np.argsort(self.run_value, kind="stable")
        length = self.run_length[order]
        start = np.cumsum(length) - length  # places in the order (value, run)
        line = (np.cumsum(self.run_length) - self.run_length)[order]
        of_value = self.counts - self.rest
        place = (np.cumsum(of_value) - of_value)[value] + slot - self.rest[value]
        run = np.maximum(0, np.searchsorted(start, place, side="right") - 1)
        if not len(line):
            return np.full(len(place), self.REST, dtype=np.int64)
        sub_bucket = (line[run] + place - start[run]) // self.records
        return np.where(slot < self.rest[value], self.REST, sub_bucket).astype(np.int64)


@dataclass(frozen=True, eq=False)
class JointValues:
    """The combinations of values that records have in several sensitive columns, each as one value; of one column, its values.

    codes  : per column (M,) int64, the column's code in each combination; ascending, the first column first; none twice
    counts : (M,) int64, how many records have it; sizes : how many values each column has
    """

    codes: tuple[Int64Array, ...]
    counts: Int64Array
    sizes: tuple[int, ...]

    @staticmethod
    def single(counts: Int64Array) -> JointValues:
        """The values of one sensitive column as combinations. counts : (m,) int64, records of each."""
        m = len(counts)
        return JointValues((np.arange(m, dtype=np.int64),), np.asarray(counts, dtype=np.int64), (m,))

    @staticmethod
    def of(sensitive: Sequence[Int64Array], sizes: tuple[int, ...]) -> JointValues:
        """The combinations that n records have; O(n log n).

        sensitive : per column (n,) int64 codes; sizes : how many values each column has
        """
        if len(sizes) == 1:
            return JointValues.single(np.bincount(sensitive[0], minlength=sizes[0]))
        combinations, counts = np.unique(np.stack(sensitive), axis=1, return_counts=True)
        return JointValues(tuple(combinations.astype(np.int64)), counts.astype(np.int64), sizes)

    @cached_property
    def _steps(self) -> list[Int64Array]:
        """Ascending keys, column after column: a combination of the first columns, times the next one's size, plus its code."""
        steps, prefix = [], self.codes[0]
        for size, codes in zip(self.sizes[1:], self.codes[1:], strict=True):
            keys, prefix = np.unique(prefix * size + codes, return_inverse=True)
            steps.append(keys)
        return steps

    def number(self, sensitive: Sequence[Int64Array]) -> Int64Array:
        """(N,) int64, the number of each record's combination; -1 for one that no record of the table has.

        sensitive : per column (N,) int64 codes. O(N log M) a column.
        """
        combination = np.asarray(sensitive[0], dtype=np.int64)
        known = np.ones(len(combination), dtype=bool)
        for size, codes, keys in zip(self.sizes[1:], sensitive[1:], self._steps, strict=True):
            key = combination * size + codes
            combination = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            known &= keys[combination] == key
        return np.where(known, combination, -1)
