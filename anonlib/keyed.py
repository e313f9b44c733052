"""Randomness that privacy rests on: every draw is a function of (release key, purpose, coordinates).

A retried or speculative task therefore draws the same numbers, and nothing depends on the order of rows or tasks.

The stream is AES-256 in counter mode from the `cryptography` package (OpenSSL): the whole 256-bit release key counts, and
80 MB of stream cost 0.07 s where `randomgen`'s ChaCha20 costs 0.35 s and its AES counter is limited to 128-bit keys.
Stream keys are derived with keyed BLAKE2b over length-prefixed parts, so that no two purposes or coordinates can meet.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import cast

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from anonlib.arrays import BoolArray, Int32Array, Int64Array, IntegerArray, UInt64Array

KEY_BYTES = 32
ROUNDS = 8
"""Rounds of the Feistel network. Round functions are random tables, so each round is as strong as a round can be;
four suffice against an observer of single outputs (Luby and Rackoff), eight leave a margin on the small domains met here."""
EXPLICIT = 1024
"""Domains up to this size get a permutation drawn uniformly and kept as a table: on tiny domains a Feistel network is not uniform."""


def derive(key: bytes, purpose: str, *coordinates: int | str) -> bytes:
    """A 32-byte key for one purpose and place. Parts are hashed with their lengths and kinds: ("a", "bc") is not ("ab", "c")."""
    if len(key) != KEY_BYTES:
        raise ValueError(f"a release key has {KEY_BYTES} bytes, this one has {len(key)}")
    digest = hashlib.blake2b(key=key, digest_size=KEY_BYTES)
    for part in (purpose, *coordinates):
        data = part.encode("utf-8") if isinstance(part, str) else str(int(part)).encode("ascii")
        digest.update((b"s" if isinstance(part, str) else b"i") + len(data).to_bytes(8, "little") + data)
    return digest.digest()


class Stream:
    """A cryptographic stream of random numbers for one (key, purpose, coordinates)."""

    def __init__(self, key: bytes, purpose: str, *coordinates: int | str) -> None:
        cipher = Cipher(algorithms.AES(derive(key, purpose, *coordinates)), modes.CTR(bytes(16)))
        self._encryptor = cipher.encryptor()

    def words(self, count: int) -> UInt64Array:
        """The next `count` words of the stream, (count,) uint64, each uniform on [0, 2^64)."""
        return np.frombuffer(self._encryptor.update(bytes(8 * count)), dtype="<u8").astype(np.uint64, copy=False)

    def below(self, bound: int, count: int) -> Int64Array:
        """`count` integers uniform on [0, bound), exactly (by rejection), (count,) int64; 1 <= bound < 2^63."""
        if not 1 <= bound < 1 << 63:
            raise ValueError(f"a bound must lie in [1, 2^63), not {bound}")
        limit = np.uint64((1 << 64) // bound * bound - 1)  # the largest word of a whole number of cycles
        words = self.words(count)
        while (bad := np.flatnonzero(words > limit)).size:
            words = words.copy()
            words[bad] = self.words(bad.size)
        return (words % np.uint64(bound)).astype(np.int64)

    def permutation(self, count: int) -> Int64Array:
        """A uniform permutation of [0, count), (count,) int64.

        Sorts random words; two equal words (probability below count^2 / 2^65) are drawn again, so the order is exactly uniform.
        """
        words = self.words(count)
        while len(np.unique(words)) != count:
            words = self.words(count)
        return np.argsort(words, kind="stable").astype(np.int64)


@dataclass(frozen=True)
class Draws:
    """Random words at given places: what a record draws depends on its coordinates alone, not on which records came before it.

    A block of AES-256 for each pair of coordinates, under a key derived for the purpose: counter mode with the coordinates as counter.
    Cost: about 0.02 us a pair.
    """

    key: bytes
    purpose: str

    def words(self, i: IntegerArray, j: IntegerArray, attempt: int = 0) -> UInt64Array:
        """(N, 2) uint64 uniform words for N pairs of coordinates, 0 <= i < 2^32, 0 <= j < 2^63; another `attempt` gives other words."""
        places = np.empty((len(i), 2), dtype="<u8")
        places[:, 0] = np.asarray(i, dtype=np.uint64) | (np.uint64(attempt) << np.uint64(32))
        places[:, 1] = j
        encryptor = Cipher(algorithms.AES(derive(self.key, self.purpose)), modes.ECB()).encryptor()
        return (
            np.frombuffer(encryptor.update(places.tobytes()), dtype="<u8").reshape(-1, 2).astype(np.uint64, copy=False)
        )


@dataclass(frozen=True)
class KeyedPermutation:
    """One pseudorandom permutation of [0, sizes[i]) for each i, all under one key; applied to arrays of ranks.

    A Feistel network on pairs of numbers below a = ceil(sqrt(size)) (so a * a is just above the size and cycle walking is rare),
    whose round functions are tables of uniform numbers from the stream; sizes up to `EXPLICIT` have a uniform permutation as a
    table instead.

    key     : 32-byte release key; purpose : what the permutation is for
    sizes   : (m,) int64, each below 2^62

    Cost: tables of 4 * ROUNDS * sum_i sqrt(sizes[i]) bytes (1 MB for 50 values in 20M records, 320 MB for 10^4 values in 10^10),
    made on first use in each Python worker and kept for its next tasks, in 50 us for each of the m and about a second per 80M entries;
    then about 0.06 us a rank.
    """

    key: bytes
    purpose: str
    sizes: Int64Array

    def __getstate__(self) -> dict[str, object]:
        return {"key": self.key, "purpose": self.purpose, "sizes": self.sizes}  # tables are made where they are used

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    @cached_property
    def _tables(self) -> _Tables:
        return _tables(self.key, self.purpose, np.asarray(self.sizes, dtype=np.int64).tobytes())

    def __call__(self, domain: IntegerArray, rank: Int64Array) -> Int64Array:
        """The permuted ranks.

        domain : (N,) integer, which of the m permutations; rank : (N,) int64 in [0, sizes[domain]). Returns (N,) int64.
        """
        t = self._tables
        explicit = t.explicit[domain]
        if not explicit.any():
            return self._walk(domain, rank)
        result = np.empty(len(rank), dtype=np.int64)
        in_table, in_network = np.flatnonzero(explicit), np.flatnonzero(~explicit)
        result[in_table] = t.table[t.start[domain[in_table]] + rank[in_table]]
        result[in_network] = self._walk(domain[in_network], rank[in_network])
        return result

    def _walk(self, domain: IntegerArray, rank: Int64Array) -> Int64Array:
        """Cycle walking: a value outside its domain is enciphered again. The walk ends, since a permutation's cycles return."""
        values = self._tables.encipher(domain, rank)
        outside = np.flatnonzero(values >= self.sizes[domain])
        while outside.size:
            values[outside] = self._tables.encipher(domain[outside], values[outside])
            outside = outside[values[outside] >= self.sizes[domain[outside]]]
        return values


@dataclass(frozen=True)
class _Tables:
    """Round functions, or whole permutations, of all domains in one array.

    side[i] is a; the round-r function of domain i begins at start[i] + r * side[i].
    For an explicit domain the permutation begins at start[i].
    """

    explicit: BoolArray
    side: Int32Array
    start: Int64Array
    table: Int32Array

    def encipher(self, domain: IntegerArray, value: Int64Array) -> Int64Array:
        """One pass of the Feistel network, (N,) int64: a permutation of [0, side^2) for each domain, explicit ones not among them."""
        side = self.side[domain]
        start = self.start[domain]
        quotient, remainder = np.divmod(value, side)
        left, right = quotient.astype(np.int32), remainder.astype(np.int32)
        for _ in range(ROUNDS):
            left += self.table[start + right]
            left -= side * (left >= side)
            left, right = right, left
            start += side
        return cast(Int64Array, left.astype(np.int64) * side + right)


@lru_cache(maxsize=1)
def _tables(key: bytes, purpose: str, sizes_in_bytes: bytes) -> _Tables:
    """The tables of one permutation. The last ones are kept: a Python worker runs many tasks of one release."""
    sizes = np.frombuffer(sizes_in_bytes, dtype=np.int64)
    m = len(sizes)
    explicit = sizes <= EXPLICIT
    side = np.array([math.isqrt(max(0, size - 1)) + 1 for size in sizes.tolist()], dtype=np.int32)
    start = np.zeros(m, dtype=np.int64)
    parts: list[Int32Array] = []
    filled = 0
    for i in range(m):
        stream = Stream(key, purpose, i, int(sizes[i]))
        drawn = stream.permutation(int(sizes[i])) if explicit[i] else stream.below(int(side[i]), ROUNDS * int(side[i]))
        start[i] = filled
        filled += len(drawn)
        parts.append(drawn.astype(np.int32))
    return _Tables(explicit, side, start, np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32))
