"""A fingerprint of boxes of codes with their sensitive values, in any order: sums of a salted 64-bit hash of each row. Pure.

As `anonlib.engine.checksum`, for whoever has the rows as arrays of codes: nothing must be decoded or leave Python. With a salt drawn after
the tables were written, equal fingerprints mean equal multisets of rows but for a chance of about 2^-64, provided the hash behaves like a
random one. The mixing is SplitMix64's (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonlib.arrays import Codes, Float64Array, IntegerArray, UInt64Array

PIECES = 4
"""Parts of 16 bits that a hash is summed in: whole numbers below 2^53, exact as doubles too, for up to 10^11 rows."""
_STEP = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class BoxFingerprint:
    """A way to hash rows of boxes, known by its salt."""

    salt: int

    def interval(self, low: Codes, high: Codes) -> UInt64Array:
        """(n,) what tells the interval of each row. low, high : (n,) int64 or float64 codes"""
        return _mixed(_mixed(_bits(low) + self._start(0)) + _bits(high))

    def members(self, size: int) -> UInt64Array:
        """(size + 1,) what tells that a value is in a set; the last one is for values outside the domain. Of a set: their sum."""
        return _mixed(_mixed(np.arange(size + 1, dtype=np.uint64) + self._start(1)) + self._start(2))

    def rows(self, boxes: list[UInt64Array], sensitive: Sequence[IntegerArray]) -> UInt64Array:
        """(n,) the hash of each row. boxes : of each quasi-identifier in order what tells its part of the box; sensitive : (n,) codes of
        each sensitive column, of which there is one or more"""
        hashed = _mixed(_bits(sensitive[0]) + self._start(3))
        for codes in sensitive[1:]:
            hashed = _mixed(hashed * _STEP + _bits(codes))
        for part in boxes:
            hashed = _mixed(hashed + part) * _STEP
        return _mixed(hashed)

    def _start(self, place: int) -> np.uint64:
        return np.uint64((self.salt * 4 + place) & (1 << 64) - 1)


def summed(hashed: UInt64Array) -> Float64Array:
    """(PIECES,) the sums of the hashes, piece by piece; sums of several tasks add up."""
    pieces = [(hashed >> np.uint64(16 * k) & np.uint64(0xFFFF)).sum() for k in range(PIECES)]
    return np.array(pieces, dtype=np.float64)


def _bits(codes: Codes) -> UInt64Array:
    """The codes as 64 bits; -0.0 as 0.0."""
    if codes.dtype.kind == "f":
        return np.asarray((codes.astype(np.float64) + 0.0).view(np.uint64))
    return np.asarray(codes.astype(np.int64).view(np.uint64))


def _mixed(words: UInt64Array) -> UInt64Array:
    """SplitMix64's step and finalizer, a permutation of all words."""
    mixed = words + _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
