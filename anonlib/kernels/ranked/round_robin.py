"""Round robin: which bucket each record goes to, and what each bucket then holds, from one and the same deal.

Source: generalized bucketization, sections 4.1 to 4.3 (Lemma 2, Theorem 1, Algorithm 1); inferential privacy, section 4.1: within one
size the t-th record of x_i goes to bucket (o_1j + ... + o_(i-1)j + t) mod b_j, so each bucket gets exactly its size and floor or
ceil of o_ij / b_j records of each value.

Where values stand under nodes of a hierarchy, they go round with the values of every node as neighbours: the records of a node then come
one after another too, and each bucket gets floor or ceil of o_Nj / b_j of them (`anonlib.solvers.buckets.node_limits`).

A mixed deal goes round in several bands for each size, in each of them with the values in another order, so that a value meets many others
(`Deal.mixed`).

Which record is "the t-th" is decided by a keyed permutation of the records' ranks within their value, so neither the file's
order nor its neighbourhoods say anything about buckets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from anonlib.arrays import Int64Array, IntegerArray
from anonlib.keyed import KeyedPermutation, Stream
from anonlib.privacy.buckets import BucketSetting

BANDS = 32
"""Bands for each size in a mixed deal; twice as many make counts no better (`benchmarks.estimates`)."""
MAX_ENTRIES = 1 << 20
"""Entries of the partition of a mixed deal, which tasks carry: beyond that there are fewer bands."""
_ORDERS = bytes(32)
"""The order of values in a band is no secret: `st` shows it. It is drawn from a key that everybody knows."""


@dataclass(frozen=True)
class Deal:
    """The whole assignment, as numbers: how many buckets of each of q sizes, and how many records of each value they take.

    partition : (m, q) int64, o_ij, records of value i in buckets of size j; columns sum to S_j b_j
    numbers   : (q,) int64, b_j, buckets of each size
    ordered   : whether values go round in the order of their codes, or of their paths; else in one that differs by column
    paths     : (m, levels) int64, the nodes above each value, the highest first, down to itself (`anonlib.privacy.value_tree`);
                the values of a node go round one after another, in whatever order. None where values stand under no nodes
    first     : (q,) int64, the bucket id of the first bucket of each size; ids run through the sizes without a hole
    """

    partition: Int64Array
    numbers: Int64Array
    ordered: bool = True
    paths: Int64Array | None = None

    @staticmethod
    def of(setting: BucketSetting, partition: Int64Array, paths: Int64Array | None = None) -> Deal:
        """The deal of a solver's answer: `setting` with its record partition, (m, q), and the paths of values under nodes, if any."""
        return Deal(np.asarray(partition, dtype=np.int64), np.array(setting.numbers, dtype=np.int64), paths=paths)

    def mixed(self, bands: int = BANDS) -> Deal:
        """The same sizes and the same records of each value for each, dealt in up to `bands` bands a size.

        The buckets that round robin numbers k, k + B, k + 2 B, ... within a size become band k of B, with what records of each value they
        hold; so a bucket still takes floor or ceil of o_ij / b_j of each, and of each node. Then every band is dealt anew, values in an
        order of its own: compositions vary, each value has many companions, and shares of values can be told apart
        (`anonlib.queries.flattening`). Counts alone are looked at.
        """
        m, q = self.partition.shape
        most = max(1, min(bands, MAX_ENTRIES // max(1, m * q)))
        columns, numbers = [], []
        for j in range(q):
            b = int(self.numbers[j])
            B = min(most, max(b, 1))
            start = self.before[:, j] % max(b, 1)
            rest = self.partition[:, j] % max(b, 1)
            for k in range(B):
                band = (b - k + B - 1) // B
                # the rest of a value's records lie at start .. upto - 1, around the b buckets
                upto = start + rest
                own = _congruent(np.minimum(upto, b), k, B) - _congruent(start, k, B)
                own += _congruent(np.maximum(upto - b, 0), k, B)
                columns.append(self.partition[:, j] // max(b, 1) * band + own)
                numbers.append(band)
        dealt = np.array(numbers, dtype=np.int64)
        return Deal(np.stack(columns, axis=1), dealt, ordered=False, paths=self.paths)

    @cached_property
    def order(self) -> Int64Array:
        """(m, q) int64: the values of each column in the order in which they go round."""
        m, q = self.partition.shape
        if self.ordered:
            line = np.arange(m) if self.paths is None else np.lexsort(self.paths.T[::-1])
            return np.broadcast_to(line[:, None], (m, q))
        order = np.broadcast_to(np.arange(m)[:, None], (m, q)).copy()
        for j in range(q):
            if self.paths is not None:
                order[:, j] = self._mixed_line(j)
                continue
            held = np.flatnonzero(self.partition[:, j])
            order[held, j] = held[Stream(_ORDERS, "bucketize: the order of values in a band", j).permutation(len(held))]
        return order

    def _mixed_line(self, j: int) -> Int64Array:
        """(m,) int64: an order of column j's own of the values, those of every node still neighbours."""
        assert self.paths is not None
        draws = Stream(_ORDERS, "bucketize: the order of nodes in a band", j)
        levels = [draws.permutation(int(self.paths.max()) + 1)[level] for level in self.paths.T]
        return np.asarray(np.lexsort(levels[::-1]), dtype=np.int64)

    @cached_property
    def first(self) -> Int64Array:
        """(q,) int64, see the class."""
        return np.cumsum(self.numbers) - self.numbers

    @cached_property
    def before(self) -> Int64Array:
        """(m, q) int64: o_1j + ... + o_(i-1)j, the bucket of size j, mod b_j, at which the records of value i begin."""
        dealt = np.take_along_axis(self.partition, self.order, axis=0)
        before = np.empty_like(dealt)
        np.put_along_axis(before, self.order, np.cumsum(dealt, axis=0) - dealt, axis=0)
        return before

    @property
    def buckets(self) -> int:
        """How many buckets there are over all sizes."""
        return int(self.numbers.sum())


@dataclass(frozen=True)
class RoundRobin:
    """The record kernel: (value code, rank within value) -> bucket id. Plain NumPy, vectorised over records.

    A value's o_i ranks are first permuted by the key; the permuted rank says buckets of which size take the record (the first o_i1 go to
    the first size, ...) and which of them.

    Cost per worker: the permutation's tables, and 24 bytes for each (value, size) that holds records; about 0.15 us a record.
    """

    deal: Deal
    key: bytes

    PURPOSE = "bucketize: which records of a value go where"

    @cached_property
    def _permutation(self) -> KeyedPermutation:
        return KeyedPermutation(self.key, self.PURPOSE, self.deal.partition.sum(axis=1))

    @cached_property
    def _runs(self) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array]:
        """Slots are numbered value by value, size by size; each (value, size) with records is one run of slots.

        Returns (start of each value's slots, start of each run, b_j, id of the size's first bucket, place in the round at the run's start).
        """
        partition = self.deal.partition
        value, size = np.nonzero(partition)  # row-major: value by value, size by size
        length = partition[value, size]
        start = np.cumsum(length) - length
        totals = partition.sum(axis=1)
        return (
            np.cumsum(totals) - totals,
            start,
            self.deal.numbers[size],
            self.deal.first[size],
            self.deal.before[value, size],
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"deal": self.deal, "key": self.key}  # tables are made where they are used

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __call__(self, code: IntegerArray, rank: Int64Array) -> Int64Array:
        """Bucket ids, (N,) int64, of N records given by value code and rank within the value, both (N,)."""
        value_start, run_start, buckets_of_size, first_bucket, offset = self._runs
        slot = value_start[code] + self._permutation(code, rank)
        run = np.searchsorted(run_start, slot, side="right") - 1
        return cast(Int64Array, first_bucket[run] + (offset[run] + slot - run_start[run]) % buckets_of_size[run])


@dataclass(frozen=True)
class Stretch:
    """Buckets `start` .. `stop`-1 all hold the same: `counts[k]` records of value `codes[k]`, codes ascending."""

    start: int
    stop: int
    codes: tuple[int, ...]
    counts: tuple[int, ...]


def composition(deal: Deal) -> Iterator[Stretch]:
    """What every bucket holds, as at most m + 1 stretches of equal neighbours for each size, in order of bucket id.

    Follows from the deal alone: the records of size j, value by value, are numbered 0 .. S b - 1, and bucket p of that size takes those
    numbered p, p + b, ..., p + (S - 1) b. Cost: S_j entries per stretch, no pass over records.
    """
    for j in range(len(deal.numbers)):
        number = int(deal.numbers[j])
        if number:
            yield from _stretches_of_size(deal.partition[:, j], deal.order[:, j], number, int(deal.first[j]))


def _stretches_of_size(records: Int64Array, order: Int64Array, number: int, first: int) -> Iterator[Stretch]:
    """The stretches of the buckets of one column. records, order : (m,) of each value; number : of buckets; first : the id of the first."""
    order = order[records[order] > 0]
    stop = np.cumsum(records[order])  # the i-th in order is numbered stop[i-1] .. stop[i]-1
    rounds = np.arange(int(stop[-1]) // number, dtype=np.int64) * number
    cuts = np.unique(np.concatenate([[0], stop % number]))
    for left, right in zip(cuts.tolist(), [*cuts[1:].tolist(), number], strict=True):
        codes, counts = np.unique(order[np.searchsorted(stop, left + rounds, side="right")], return_counts=True)
        yield Stretch(first + left, first + right, tuple(codes.tolist()), tuple(counts.tolist()))


def _congruent(below: Int64Array, k: int, B: int) -> Int64Array:
    """How many whole numbers from 0 to below - 1 leave the remainder k when divided by B. 0 <= k < B."""
    return (below - k + B - 1) // B
