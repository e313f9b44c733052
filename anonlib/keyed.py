"""Randomness that privacy rests on: every draw is a function of (release key, purpose, coordinates).

A retried or speculative task therefore draws the same numbers, and nothing depends on the order of rows or tasks.

The stream is AES-256 in counter mode from the `cryptography` package (OpenSSL): the whole 256-bit release key counts, and
80 MB of stream cost 0.07 s where `randomgen`'s ChaCha20 costs 0.35 s and its AES counter is limited to 128-bit keys.
Stream keys are derived with keyed BLAKE2b over length-prefixed parts, so that no two purposes or coordinates can meet.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]
IndexArray = npt.NDArray[np.integer[Any]]

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
        """`count` uniform 64-bit words, (count,) uint64."""
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
class KeyedPermutation:
    """One pseudorandom permutation of [0, sizes[i]) for each i, all under one key; applied to arrays of ranks.

    A Feistel network on Z_a x Z_b with a * b just above the size (so cycle walking is rare), whose round functions are
    tables of uniform numbers from the stream; sizes up to `EXPLICIT` have a uniform permutation as a table instead.

    key     : 32-byte release key; purpose : what the permutation is for
    sizes   : (m,) int64, each >= 1

    Cost: tables of about 8 * ROUNDS * sum_i sqrt(sizes[i]) bytes (2 MB for 50 values in 20M records, 640 MB for 10^4 values in
    10^10), made on first use in each Python worker, in about a second per 80M entries; then about 0.1 us a rank.
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
        return _tables(self.key, self.purpose, np.asarray(self.sizes, dtype=np.int64))

    def __call__(self, domain: IndexArray, rank: Int64Array) -> Int64Array:
        """The permuted ranks.

        domain : (N,) integer, which of the m permutations; rank : (N,) int64 in [0, sizes[domain]). Returns (N,) int64.
        """
        t = self._tables
        domain = np.asarray(domain)
        result = np.empty(len(rank), dtype=np.int64)
        explicit = t.explicit[domain]
        here = np.flatnonzero(explicit)
        if here.size:
            result[here] = t.table[t.start[0][domain[here]] + rank[here]]
        pending = np.flatnonzero(~explicit)
        values = rank[pending]
        while (
            pending.size
        ):  # cycle walking: a value outside the domain is enciphered again; the walk ends since it is a cycle
            d = domain[pending]
            values = t.encipher(d, values)
            inside = values < self.sizes[d]
            result[pending[inside]] = values[inside]
            pending, values = pending[~inside], values[~inside]
        return result


@dataclass(frozen=True)
class _Tables:
    """start[r][i] is where the round-r table of permutation i begins in `table`; for explicit ones, start[0][i] is the whole table."""

    explicit: npt.NDArray[np.bool_]
    a: Int64Array
    b: Int64Array
    start: tuple[Int64Array, ...]
    table: Int64Array

    def encipher(self, domain: IndexArray, value: Int64Array) -> Int64Array:
        a, b = self.a[domain], self.b[domain]
        left = value // b
        right = value - left * b
        for r in range(ROUNDS):
            start = self.start[r][domain]
            if r % 2 == 0:
                left += self.table[start + right]
                left -= np.where(left >= a, a, 0)
            else:
                right += self.table[start + left]
                right -= np.where(right >= b, b, 0)
        return cast(Int64Array, left * b + right)


def _tables(key: bytes, purpose: str, sizes: Int64Array) -> _Tables:
    m = len(sizes)
    explicit = sizes <= EXPLICIT
    a = np.ones(m, dtype=np.int64)
    b = np.ones(m, dtype=np.int64)
    start = [np.zeros(m, dtype=np.int64) for _ in range(ROUNDS)]
    parts: list[Int64Array] = []
    filled = 0
    for i in range(m):
        size = int(sizes[i])
        stream = Stream(key, purpose, i, size)
        if explicit[i]:
            start[0][i] = filled
            parts.append(stream.permutation(size))
            filled += size
            continue
        a[i], b[i] = _sides(size)
        for r in range(ROUNDS):
            start[r][i] = filled
            length, bound = (int(b[i]), int(a[i])) if r % 2 == 0 else (int(a[i]), int(b[i]))
            parts.append(stream.below(bound, length))
            filled += length
    table = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
    return _Tables(explicit, a, b, tuple(start), table)


def _sides(size: int) -> tuple[int, int]:
    """(a, b) near the square root with a * b the least multiple of a that covers `size`."""
    a = max(1, int(np.sqrt(size)))
    while a * a < size:
        a += 1
    return a, -(-size // a)
