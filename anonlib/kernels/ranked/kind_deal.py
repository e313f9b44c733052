"""Which bucket each record goes to where it is written down what buckets hold: kinds of buckets, so many of each.

A value's o_v ranks are permuted by the key; the permuted ranks fill the kinds one after another, and within a kind go round its buckets,
so that each takes as many records of the value as the kind holds. Kinds are those of `anonlib.solvers.buckets.pair_kinds`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np

from anonlib.arrays import Int64Array, IntegerArray
from anonlib.kernels.ranked.round_robin import Stretch
from anonlib.keyed import KeyedPermutation


class Kind(Protocol):
    """`number` buckets that all hold `counts[i]` records of value `codes[i]`; see `anonlib.solvers.buckets.pair_kinds:BucketKind`."""

    @property
    def number(self) -> int: ...
    @property
    def codes(self) -> Int64Array: ...
    @property
    def counts(self) -> Int64Array: ...


@dataclass(frozen=True, eq=False)
class KindDeal:
    """What buckets hold, as runs of a value's records, R of them: value after value, in each in the order of kinds.

    values : m, how many values there are
    value, held, number, first : (R,) int64, of each run the value, how many of its records each of `number` buckets holds, and the id of
                                 the first of these, whose ids have no hole
    """

    values: int
    value: Int64Array
    held: Int64Array
    number: Int64Array
    first: Int64Array

    @staticmethod
    def of(kinds: Sequence[Kind], values: int) -> KindDeal:
        """The deal of these kinds: bucket ids run through them in their order from 0. values : m."""
        numbers = np.array([kind.number for kind in kinds], dtype=np.int64)
        runs = np.repeat(np.arange(len(kinds)), [len(kind.codes) for kind in kinds])
        value, held = (
            np.concatenate([np.zeros(0, np.int64), *parts])
            for parts in ([k.codes for k in kinds], [k.counts for k in kinds])
        )
        order = np.lexsort((runs, value))
        first = np.cumsum(numbers) - numbers
        return KindDeal(values, value[order], held[order], numbers[runs][order], first[runs][order])

    @property
    def totals(self) -> Int64Array:
        """(m,) int64: how many records of each value are dealt."""
        totals = np.zeros(self.values, dtype=np.int64)
        np.add.at(totals, self.value, self.held * self.number)
        return totals


@dataclass(frozen=True)
class ByKind:
    """The record kernel: (value code, rank within value) -> bucket id. Plain NumPy, vectorised over records; 40 bytes a run."""

    deal: KindDeal
    key: bytes

    PURPOSE = "bucketize: which records of a combination go where"

    @cached_property
    def _permutation(self) -> KeyedPermutation:
        return KeyedPermutation(self.key, self.PURPOSE, self.deal.totals)

    @cached_property
    def _starts(self) -> tuple[Int64Array, Int64Array]:
        """Slots are numbered value by value, run by run: (start of each value's, start of each run's)."""
        length, totals = self.deal.held * self.deal.number, self.deal.totals
        return np.cumsum(totals) - totals, np.cumsum(length) - length

    def __getstate__(self) -> dict[str, Any]:
        return {"deal": self.deal, "key": self.key}  # tables are made where they are used

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __call__(self, code: IntegerArray, rank: Int64Array) -> Int64Array:
        """Bucket ids, (N,) int64, of N records given by value code and rank within the value, both (N,)."""
        value_start, run_start = self._starts
        slot = value_start[code] + self._permutation(code, rank)
        run = np.searchsorted(run_start, slot, side="right") - 1
        return cast(Int64Array, self.deal.first[run] + (slot - run_start[run]) % self.deal.number[run])


def stretches(kinds: Sequence[Kind]) -> Iterator[Stretch]:
    """What every bucket holds, a stretch a kind, in order of bucket id."""
    start = 0
    for kind in kinds:
        yield Stretch(start, start + kind.number, tuple(kind.codes.tolist()), tuple(kind.counts.tolist()))
        start += kind.number
