"""Uniform perturbation within sub-tables: which sub-table a record goes to, and the value it is published with.

Source: small domain randomization, section 3.1 (equations 1, 4, 5) within each sub-table of section 4. Which of a value's records go to
which sub-table is decided by a keyed permutation of their ranks, as in `round_robin`; what a record draws is a function of its
value and that permuted rank. No matrix of transitions is ever built.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anonlib.arrays import Int64Array, IntegerArray, UInt64Array
from anonlib.keyed import Draws, KeyedPermutation, derive
from anonlib.privacy.subtables import SubTables

CODE_BITS = 32
"""A record's sub-table and published value travel as one int64: sub-table << 32 | value code."""


@dataclass(frozen=True)
class Perturbed:
    """(N,) each: `subtable` and published value `code` of N records."""

    subtable: Int64Array
    code: Int64Array


def unpack(packed: Int64Array) -> Perturbed:
    """The sub-tables and published codes of (N,) int64 as `Perturb` packs them."""
    return Perturbed(packed >> CODE_BITS, packed & ((1 << CODE_BITS) - 1))


@dataclass(frozen=True)
class Perturb:
    """The record kernel: (value code, rank within value) -> sub-table and published value code. Plain NumPy, vectorised over records.

    A record of sub-table T_i keeps its value with probability floor(2^64 p_i) / 2^64, p_i of equation (4): never more than the promise
    allows, and less by 2^-64 at most. Else it gets one of the m_i values, its own among them, with equal chances exactly (by rejection).

    subtables : over the value codes of the table's counts; key : the release's. Other sub-tables or another gamma draw everything anew.

    Cost per worker: the permutation's tables, 16 bytes for each (value, sub-table) that has records, and some 0.3 us a record.
    """

    subtables: SubTables
    key: bytes

    OPERATORS = "perturb: the sub-tables and their gammas"
    SPLIT = "perturb: which records of a value go where"
    DRAW = "perturb: which value a record is published with"

    @cached_property
    def _tables(self) -> _Tables:
        return _tables(self.subtables)

    @cached_property
    def _own_key(self) -> bytes:
        """The release key made one of these sub-tables' own. A table published with two bounds under one key would else draw the same
        words twice, and a record that only the weaker bound keeps would be known by its two values: the second is the true one."""
        operators = [
            part
            for t in self.subtables
            for part in (t.codes.astype("<i8").tobytes().hex(), t.counts.astype("<i8").tobytes().hex(), str(t.gamma))
        ]
        return derive(self.key, self.OPERATORS, *operators)

    @cached_property
    def _permutation(self) -> KeyedPermutation:
        return KeyedPermutation(self._own_key, self.SPLIT, self._tables.records)

    def __getstate__(self) -> dict[str, Any]:
        return {"subtables": self.subtables, "key": self.key}  # tables are made where they are used

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __call__(self, code: IntegerArray, rank: Int64Array) -> Int64Array:
        """(N,) int64 for N records given by value code and rank within the value, both (N,); see `unpack`."""
        t = self._tables
        place = self._permutation(code, rank)
        run = np.searchsorted(t.run_start, t.value_start[code] + place, side="right") - 1
        subtable = t.run_subtable[run]
        words = Draws(self._own_key, self.DRAW).words(code, place)
        published = np.asarray(code, dtype=np.int64).copy()
        replaced = np.flatnonzero(words[:, 0] >= t.keeps[subtable])
        one_of = subtable[replaced]
        pick = self._below(t.domain_sizes[one_of], words[replaced, 1], code[replaced], place[replaced])
        published[replaced] = t.domains[t.domain_start[one_of] + pick]
        packed: Int64Array = (subtable << CODE_BITS) | published
        return packed

    def _below(self, bound: Int64Array, words: UInt64Array, code: IntegerArray, place: Int64Array) -> Int64Array:
        """Integers uniform on [0, bound), from words that are drawn again while they lie beyond the last whole cycle."""
        bounds = bound.astype(np.uint64)
        beyond = (
            np.uint64(2**64 - 1) % bounds + np.uint64(1)
        ) % bounds  # 2^64 mod bound: so many words at the top are left over
        words = words.copy()
        attempt, again = 1, np.flatnonzero(words > np.uint64(2**64 - 1) - beyond)
        while again.size:
            words[again] = Draws(self._own_key, self.DRAW).words(code[again], place[again], attempt)[:, 1]
            again = again[words[again] > np.uint64(2**64 - 1) - beyond[again]]
            attempt += 1
        return (words % bounds).astype(np.int64)


@dataclass(frozen=True)
class _Tables:
    """The sub-tables as arrays. Slots are numbered value by value, sub-table by sub-table; each (value, sub-table) is a run of slots.

    records      : (m,) int64, of each value; value_start : (m,) its first slot
    run_start    : (runs,) int64; run_subtable : (runs,)
    keeps        : (k,) uint64, floor(2^64 p_i)
    domains      : all SA_i one after the other; domain_start, domain_sizes : (k,)
    """

    records: Int64Array
    value_start: Int64Array
    run_start: Int64Array
    run_subtable: Int64Array
    keeps: UInt64Array
    domains: Int64Array
    domain_start: Int64Array
    domain_sizes: Int64Array


def _tables(subtables: SubTables) -> _Tables:
    codes = np.concatenate([t.codes for t in subtables])
    counts = np.concatenate([t.counts for t in subtables])
    sizes = np.array([t.domain_size for t in subtables], dtype=np.int64)
    subtable = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    by_value = np.lexsort((subtable, codes))
    length = counts[by_value]
    records = np.zeros(int(codes.max()) + 1, dtype=np.int64)
    np.add.at(records, codes, counts)
    return _Tables(
        records=records,
        value_start=np.cumsum(records) - records,
        run_start=np.cumsum(length) - length,
        run_subtable=subtable[by_value],
        keeps=np.array([(t.retention.numerator << 64) // t.retention.denominator for t in subtables], dtype=np.uint64),
        domains=codes,
        domain_start=np.cumsum(sizes) - sizes,
        domain_sizes=sizes,
    )
