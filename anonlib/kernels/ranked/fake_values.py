"""Fake sensitive values: which values, that no record of a bucket has, are listed in it all the same.

Source: inferential privacy, section 6. For buckets whose records have distinct sensitive values. A bucket of |g| records then lists
|g| + s values; who knows q of its records finds a remaining value real with probability (|g| - q) / (|g| - q + s) only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.kernels.ranked.round_robin import Deal, composition
from anonlib.keyed import Stream

BLOCK = 1024
"""Buckets per stream: a bucket's draws depend on its id alone, whatever task it falls to."""


class TooFewFakes(Exception):
    """A bucket has fewer values left to choose from than it needs. `args` are (bucket id, left, needed)."""


@dataclass(frozen=True)
class FakeValues:
    """The bucket kernel: bucket ids -> the values each bucket lists, real and fake alike, in order of value code.

    m : number of sensitive values; extra : s, fakes per bucket; key : 32-byte release key
    """

    deal: Deal
    m: int
    extra: int
    key: bytes

    PURPOSE = "bucketize: fake values of a block of buckets"

    @cached_property
    def _stretches(self) -> tuple[Int64Array, list[Int64Array]]:
        stretches = list(composition(self.deal))
        return np.array([s.start for s in stretches], dtype=np.int64), [
            np.array(s.codes, dtype=np.int64) for s in stretches
        ]

    def __getstate__(self) -> dict[str, object]:
        return {"deal": self.deal, "m": self.m, "extra": self.extra, "key": self.key}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    def __call__(
        self, bucket: Int64Array, excluded: Sequence[Sequence[int]] | None = None
    ) -> tuple[Int64Array, Int64Array]:
        """(bucket ids, value codes) of all listed values, both (rows,) int64.

        bucket   : (B,) int64
        excluded : for each bucket the codes that may not be its fakes, or None

        Raises TooFewFakes. Each draw is uniform but for a bias below m / 2^64.
        """
        starts, codes = self._stretches
        at = np.searchsorted(starts, bucket, side="right") - 1
        ids: list[Int64Array] = []
        listed: list[Int64Array] = []
        for k, words in enumerate(self._words(bucket)):
            real = codes[at[k]]
            barred = real if excluded is None else np.union1d(real, np.asarray(list(excluded[k]), dtype=np.int64))
            left = np.setdiff1d(np.arange(self.m, dtype=np.int64), barred, assume_unique=True)
            if len(left) < self.extra:
                raise TooFewFakes(int(bucket[k]), len(left), self.extra)
            chosen = np.sort(np.concatenate([real, _without_replacement(left, words)]))
            listed.append(chosen)
            ids.append(np.full(len(chosen), bucket[k], dtype=np.int64))
        empty = np.zeros(0, dtype=np.int64)
        return np.concatenate([empty, *ids]), np.concatenate([empty, *listed])

    def _words(self, bucket: Int64Array) -> list[Int64Array]:
        """`extra` random words for each bucket, by its place in its block."""
        blocks: dict[int, Int64Array] = {}
        rows = []
        for b in bucket.tolist():
            block = b // BLOCK
            if block not in blocks:
                words = Stream(self.key, self.PURPOSE, block).words(BLOCK * self.extra)
                blocks[block] = words.reshape(BLOCK, self.extra)  # type: ignore[assignment]
            rows.append(blocks[block][b % BLOCK])
        return rows


def _without_replacement(values: Int64Array, words: Int64Array) -> Int64Array:
    """The first len(words) steps of a Fisher-Yates shuffle of `values`."""
    shuffled = values.copy()
    for j, word in enumerate(words.tolist()):
        k = j + word % (len(shuffled) - j)
        shuffled[j], shuffled[k] = shuffled[k], shuffled[j]
    return shuffled[: len(words)]
