"""Which bucket each record goes to when some of the values that buckets list are fakes: to a place where its value is real.

A value's o_v ranks are permuted by the key. The first go to its real places among the pooled buckets, which are written down; the others
to blocks of T buckets that list the same T values. In a block the values stand in a circle in a random order, its own for every block, and
the s fakes of its p-th bucket are those at p, ..., p + s - 1: a value at y is real in the T - s buckets y + 1, y + 2, ... (mod T).

Source: inferential privacy, section 6; the lists and the pool are chosen by `anonlib.solvers.buckets.fake_values`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np

from anonlib.arrays import Int64Array, IntegerArray
from anonlib.keyed import Draws, KeyedPermutation


class ListedStretch(Protocol):
    """Buckets `start` .. `stop` - 1 list the same `codes`; the first `pooled` of them stand in no block.

    It is what `anonlib.solvers.buckets.fake_values.ListedStretch` is, by its attributes: kernels import no solver.
    """

    @property
    def start(self) -> int: ...
    @property
    def stop(self) -> int: ...
    @property
    def codes(self) -> tuple[int, ...]: ...
    @property
    def pooled(self) -> int: ...


@dataclass(frozen=True)
class Runs:
    """The blocks of a value in one stretch, R of them in order of value: all (R,) int64.

    first  : how many records of the value, of those in blocks, go to earlier runs, plus the value's `offset`
    bucket : the first bucket of the first block; size : T; label : the value's place in the list
    """

    first: Int64Array
    bucket: Int64Array
    size: Int64Array
    label: Int64Array

    @staticmethod
    def of(listed: Sequence[ListedStretch], extra: int, m: int) -> tuple[Runs, Int64Array]:
        """The runs, and `offset`: (m + 1,) where each value's records begin among all records in blocks."""
        rows = sorted(
            (code, g.start + g.pooled, len(g.codes), label, (g.stop - g.start - g.pooled) // len(g.codes) * (len(g.codes) - extra))
            for g in listed
            if g.stop - g.start > g.pooled
            for label, code in enumerate(g.codes)
        )  # fmt: skip
        code, bucket, size, label, real = np.array(rows, dtype=np.int64).reshape(-1, 5).T
        offset = np.concatenate([[0], np.cumsum(np.bincount(code, real, minlength=m))]).astype(np.int64)
        return Runs(np.cumsum(real) - real, bucket, size, label), offset


@dataclass(frozen=True)
class FakeDeal:
    """The record kernel: (value code, rank within value) -> bucket id.

    counts : (m,) int64, o_v; extra : s; listed : the stretches; real_start (m + 1,), real : the real places in the pool, value by value;
    key    : 32-byte release key

    Cost per worker: the permutation's tables, the pool (8 bytes a record of it), 32 bytes per value and stretch; per record in a block
    about T / 2 blocks of AES, some 2 us.
    """

    counts: Int64Array
    extra: int
    listed: tuple[ListedStretch, ...]
    real_start: Int64Array
    real: Int64Array
    key: bytes

    PURPOSE = "bucketize: which records of a value go where, beside fake values"
    CIRCLE = "bucketize: the order of values in a block"

    @cached_property
    def _permutation(self) -> KeyedPermutation:
        return KeyedPermutation(self.key, self.PURPOSE, self.counts)

    @cached_property
    def _runs(self) -> tuple[Runs, Int64Array]:
        return Runs.of(self.listed, self.extra, len(self.counts))

    def __getstate__(self) -> dict[str, Any]:
        names = ("counts", "extra", "listed", "real_start", "real", "key")
        return {name: getattr(self, name) for name in names}  # tables are made where they are used

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __call__(self, code: IntegerArray, rank: Int64Array) -> Int64Array:
        """Bucket ids, (N,) int64, of N records given by value code and rank within the value, both (N,)."""
        codes: Int64Array = np.asarray(code, dtype=np.int64)
        place = self._permutation(codes, rank)
        pooled = self.real_start[codes + 1] - self.real_start[codes]
        bucket = np.empty(len(code), dtype=np.int64)
        in_pool = place < pooled
        bucket[in_pool] = self.real[(self.real_start[codes] + place)[in_pool]]
        in_blocks = np.flatnonzero(~in_pool)
        bucket[in_blocks] = self._in_blocks(codes[in_blocks], (place - pooled)[in_blocks])
        return bucket

    def _in_blocks(self, code: Int64Array, place: Int64Array) -> Int64Array:
        """(N,) int64 buckets of records that blocks take. code : (N,) value codes; place : (N,) int64, the record's place among those of
        its value."""
        if not len(code):
            return place
        runs, offset = self._runs
        at = offset[code] + place
        run = np.searchsorted(runs.first, at, side="right") - 1
        size = runs.size[run]
        block, turn = np.divmod(at - runs.first[run], size - self.extra)
        start = runs.bucket[run] + block * size
        y = self._stands(start, size, runs.label[run])
        return cast(Int64Array, start + (y + 1 + turn) % size)

    def _stands(self, start: Int64Array, size: Int64Array, label: Int64Array) -> Int64Array:
        """Where the value `label` of the block that begins with bucket `start` stands on its circle: how many drew less. All (N,)."""
        draws, stands = Draws(self.key, self.CIRCLE), np.zeros(len(start), dtype=np.int64)
        pairs = [draws.words(np.full(len(start), i, dtype=np.int64), start) for i in range((int(size.max()) + 1) // 2)]
        words = np.concatenate(pairs, axis=1)  # (N, T or T + 1)
        own = words[np.arange(len(start)), label]
        for k in range(words.shape[1]):  # equal words, with a chance of T^2 / 2^65, go by label
            stands += (k < size) & ((words[:, k] < own) | ((words[:, k] == own) & (k < label)))
        return stands
