"""Boxes that grow match by match, and what penalty each would have with one more.

Source: heterogeneous generalization, Algorithm 2, lines 8 and 11, with the penalty of section 2. The costs of a round follow from the boxes
as they are, so nothing is summed twice: O(c^2) per pair of buckets and attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from anonlib.arrays import Codes, Float32Array, Int64Array, UInt8Array
from anonlib.domains import Domain, NumericDomain

BLOCK = 1 << 18
"""Entries of a cost matrix that are worked on at once: they stay in a core's cache."""
_FEW = 48


@dataclass
class _Interval:
    """A numeric attribute of mu c boxes. values, low, high : (mu, c) float32, shares of the domain."""

    values: Float32Array
    low: Float32Array
    high: Float32Array

    def add(
        self,
        cost: Float32Array,
        b: int,
        stop: int,
        row: int,
        last: int,
        partners: Int64Array,
        compiled: ModuleType | None,
    ) -> None:
        if compiled is not None:
            compiled.add_intervals(cost, row, last, self.values[partners], self.low[b:stop], self.high[b:stop])
            return
        values = self.values[partners][:, None, :]
        more = values - self.high[b:stop, row:last, None]
        np.maximum(more, self.low[b:stop, row:last, None] - values, out=more)
        np.maximum(more, 0, out=more)
        cost[:, row:last] += more

    @property
    def penalty(self) -> Float32Array:
        return self.high - self.low

    def widen(self, partner: Int64Array) -> None:
        values = self.values.reshape(-1)[partner]
        np.minimum(self.low, values, out=self.low)
        np.maximum(self.high, values, out=self.high)


@dataclass
class _Set:
    """A categorical attribute of mu c boxes.

    codes   : (mu, c) int64, the records' own, numbered over the values that occur here
    members : (mu, c, W) uint8, the values in each box, 8 a byte; weight : penalty of one value more; penalty : (mu, c) float32
    """

    codes: Int64Array
    members: UInt8Array
    weight: np.float32
    penalty: Float32Array

    def add(
        self,
        cost: Float32Array,
        b: int,
        stop: int,
        row: int,
        last: int,
        partners: Int64Array,
        compiled: ModuleType | None,
    ) -> None:
        codes = self.codes[partners]
        if compiled is not None:
            compiled.add_sets(cost, row, last, codes.astype(np.uint32), self.members[b:stop], self.weight)
            return
        word, bit = codes >> 3, (1 << (codes & 7)).astype(np.uint8)
        members = self.members[b:stop, row:last]
        if codes.shape[1] >= _FEW:
            for at in range(stop - b):
                held = members[at].take(word[at], axis=1)
                held &= bit[at]
                cost[at, row:last] += (held == 0) * self.weight
        else:
            places = np.arange(members.shape[0] * members.shape[1]).reshape(members.shape[:2])
            held = members.reshape(-1).take(places[:, :, None] * members.shape[2] + word[:, None, :])
            held &= bit[:, None, :]
            cost[:, row:last] += (held == 0) * self.weight

    def widen(self, partner: Int64Array) -> None:
        codes = self.codes.reshape(-1)[partner].ravel()
        flat, at = self.members.reshape(len(codes), -1), np.arange(len(codes))
        bit = (1 << (codes & 7)).astype(np.uint8)
        self.penalty += ((flat[at, codes >> 3] & bit) == 0).reshape(self.penalty.shape) * self.weight
        flat[at, codes >> 3] |= bit


class GrowingBoxes:
    """One box per record, at first the record itself. Memory: 12 bytes a record and numeric attribute, 8 and |A| / 8 a categorical one."""

    def __init__(
        self,
        columns: Sequence[Codes],
        domains: Sequence[Domain],
        mu: int,
        size: int,
        compiled: ModuleType | None = None,
    ) -> None:
        """columns : d code columns of mu * size records, bucket after bucket; compiled : loops to add costs by, with the same result."""
        self._compiled = compiled
        self._attributes: list[_Interval | _Set] = []
        for column, domain in zip(columns, domains, strict=True):
            if isinstance(domain, NumericDomain):
                share = domain.share(column).astype(np.float32).reshape(mu, size)
                self._attributes.append(_Interval(share, share.copy(), share.copy()))
            else:
                present, codes = np.unique(column, return_inverse=True)
                members = np.zeros((mu, size, (len(present) + 7) // 8), dtype=np.uint8)
                weight = np.float32(1 / max(1, domain.size - 1))
                sets = _Set(codes.reshape(mu, size).astype(np.int64), members, weight, np.zeros((mu, size), np.float32))
                sets.widen(np.arange(mu * size).reshape(mu, size))
                sets.penalty[:] = 0
                self._attributes.append(sets)

    def costs(self, first: int, stop: int, partners: Int64Array) -> Float32Array:
        """(stop - first, c, c) float32: the penalty, over all attributes, of the box of record i of bucket `first` + k with record j of
        bucket `partners[k]`. What a record would add differs from it by the same for all j, which matters to no one but `sort_greedy`:
        boxes that are still small choose first then.
        """
        _, size = self._shape
        cost = np.zeros((stop - first, size, size), dtype=np.float32)
        cost += sum(attribute.penalty[first:stop, :, None] for attribute in self._attributes)
        rows = max(1, BLOCK // max(1, size * (stop - first)))
        for row in range(0, size, rows):
            last = min(size, row + rows)
            for attribute in self._attributes:
                attribute.add(cost, first, stop, row, last, partners, self._compiled)
        return cost

    def widen(self, partner: Int64Array) -> None:
        """Each box takes in one more record. partner : (mu, c) int64 record numbers, the record that each box is widened by. O(N d)."""
        for attribute in self._attributes:
            attribute.widen(partner)

    @property
    def _shape(self) -> tuple[int, int]:
        first = self._attributes[0]
        mu, size = first.values.shape if isinstance(first, _Interval) else first.codes.shape
        return mu, size
