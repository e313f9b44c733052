"""Into which pools n records may be taken apart under beta-likeness, by what their boxes are expected to lose. See `beta_pools`.

A shape is (mu, c, mu', c'): a main pool of mu buckets of c records, a rare one of mu' buckets of c' (c' = 0 for none), and the rest, which
is n - mu c - mu' c' buckets of one record. By counts alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from anonlib.arrays import BoolArray, Float64Array, Int64Array
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.match_buckets import MatchBuckets

WIDENS, NARROWS = 0.25, 0.18
"""A box is as wide as mu^WIDENS / c^NARROWS: with more matches it widens slowly, and the more records of a bucket there are to choose from,
the nearer is the one chosen. Fitted to partitions of 1,000 to 12,000 census records, which it foretells within a tenth."""
_EVERY, _SPACED = 4096, 512
"""Numbers of matches are tried one by one up to here, and so many beyond, in geometric steps."""
_CELLS = 1 << 20
"""Entries of a (numbers of matches, values) table; fewer numbers are tried where there are many values."""
_SIZES = 64
"""Sizes of a bucket that are tried below the largest, once there are more than `_EVERY` records."""
_RARE, _COPIES = 6, 3
"""How many of the rarest values may say how many matches the rare pool has, and for how many buckets each."""


def loss(mu: npt.ArrayLike, c: npt.ArrayLike) -> Float64Array:
    """What the boxes of pools of mu buckets of c records lose in sum, up to a factor that depends on the table alone."""
    matches, size = np.asarray(mu, dtype=np.float64), np.asarray(c, dtype=np.float64)
    return np.asarray(matches * size * matches**WIDENS * np.maximum(size, 1) ** -NARROWS)


def loss_of(pools: Sequence[MatchBuckets]) -> float:
    """What the boxes of these pools are expected to lose in sum, up to a factor."""
    return float(sum(loss(pool.mu, pool.size) for pool in pools))


def matches_alike(lost: float, n: int) -> float:
    """The mu with which one pool of n records would lose as much."""
    return float((lost / float(loss(1, n))) ** (1 / (WIDENS + NARROWS)))


def loss_alike(mu: float, n: int) -> float:
    """What one pool of n records with so many matches would lose, its inverse."""
    return float(loss(1, n) * mu ** (WIDENS + NARROWS))


def rest(shapes: Int64Array, n: int) -> Int64Array:
    """(k,) int64: how many of n records each shape leaves to be buckets of one. shapes : (k, 4) int64, each mu, c, mu', c'."""
    return np.asarray(n - shapes[:, 0] * shapes[:, 1] - shapes[:, 2] * shapes[:, 3])


def losses(shapes: Int64Array, n: int) -> Float64Array:
    """(k,) float64: what the boxes of all pools of each shape lose in sum, up to the factor of `loss`. shapes : (k, 4) int64."""
    return np.asarray(loss(shapes[:, 0], shapes[:, 1]) + loss(shapes[:, 2], shapes[:, 3]) + loss(rest(shapes, n), 1))


def shapes_of(counts: Int64Array, likeness: BetaLikeness, largest: int | None = None) -> Int64Array:
    """(k, 4) shapes to try, each mu, c, mu', c', those of the least loss first; the last is n buckets of one record.

    No bucket has more than `largest` records.

    counts : (m,) int64. Up to `_EVERY` records every (mu, c) is among them; rare pools and larger tables are sampled.
    """
    n = int(counts.sum())
    # at beta = 0 only pools with the shares of the whole table do (Theorem 5)
    step = likeness.n // math.gcd(*likeness.table.tolist()) if likeness.beta == 0 else n
    shapes = np.concatenate([_roomy(_every(n, step), counts, likeness), _with_rare(counts, likeness)])
    if largest is not None:
        shapes = shapes[(shapes[:, 1] <= largest) & (shapes[:, 3] <= largest)]
    return np.asarray(shapes[np.argsort(losses(shapes, n), kind="stable")])


def _roomy(shapes: Int64Array, counts: Int64Array, likeness: BetaLikeness) -> Int64Array:
    """Those without a rare pool whose rest can hold all values that the main pool may not carry once: a cheap look, O((k + m) log m)."""
    order = np.argsort(likeness.table, kind="stable")
    table, held = likeness.table[order], counts[order]
    factor = float(1 + likeness.beta) / likeness.n
    records = np.concatenate([[0], np.cumsum(held)])
    needed = np.concatenate([[0], np.maximum.accumulate(held / (factor * table))])
    barred = np.searchsorted(
        table, (1 - 1e-9) / (factor * shapes[:, 0])
    )  # values with fewer records of the whole table
    left = rest(shapes, int(counts.sum()))
    return np.asarray(shapes[(left >= records[barred]) & (left >= needed[barred] * (1 - 1e-9))])


def could_hold(counts: Int64Array, likeness: BetaLikeness, shapes: Int64Array) -> BoolArray:
    """(k,) may the pools of each shape be filled within the bound, as far as numbers of copies say? Necessary, and nearly sufficient."""
    left = rest(shapes, int(counts.sum()))
    sizes = (shapes[:, 0] * shapes[:, 1], shapes[:, 2] * shapes[:, 3], left)
    room = [
        np.minimum(c[:, None] * likeness.copies(mu), counts)
        for mu, c in ((shapes[:, 0], shapes[:, 1]), (shapes[:, 2], shapes[:, 3]), (left, np.ones_like(left)))
    ]
    every = room[0] + room[1] + room[2]
    fits = (every >= counts).all(axis=1)
    for size, takes in zip(sizes, room, strict=True):
        fits &= (takes.sum(axis=1) >= size) & (np.maximum(counts - (every - takes), 0).sum(axis=1) <= size)
    return np.asarray(fits)


def matches_needed(likeness: BetaLikeness, records: int, copies: int = 1) -> int:
    """The fewest matches of which `copies` may carry a value with so many records in the whole table."""
    factor = 1 + likeness.beta
    return -(-copies * likeness.n * factor.denominator // (factor.numerator * records))


@lru_cache(maxsize=8)
def _every(n: int, step: int) -> Int64Array:
    """(k, 4) shapes of a main pool and the rest, for all the numbers of matches to try. Partitions are of few sizes, so it is kept."""
    mu = _numbers(n, step)
    sizes = np.minimum(n // mu, n if n <= _EVERY else _SIZES)
    first = np.cumsum(sizes) - sizes
    below = np.arange(int(sizes.sum())) - np.repeat(first, sizes)
    shapes = np.zeros((len(below), 4), dtype=np.int64)
    shapes[:, 0], shapes[:, 1] = np.repeat(mu, sizes), np.repeat(n // mu, sizes) - below
    return shapes


def _numbers(n: int, step: int) -> Int64Array:
    """Numbers of matches for n records, n and the first multiples of `step` among them."""
    every = np.arange(1, min(n, _EVERY) + 1)
    beyond = np.geomspace(_EVERY, n, _SPACED).astype(np.int64) if n > _EVERY else every[:0]
    pure = np.arange(step, min(n, step * _EVERY) + 1, step)
    return np.asarray(np.unique(np.concatenate([every, beyond, pure, [n]])), dtype=np.int64)


def _with_rare(counts: Int64Array, likeness: BetaLikeness) -> Int64Array:
    """The rare pool has as many matches as one of the rarest values here needs, and as few records as hold what the main pool cannot."""
    n = int(counts.sum())
    shapes: list[Any] = [np.zeros((0, 4), dtype=np.int64)]
    spaced = max(32, min(_SPACED, _CELLS // len(counts)))
    for matches in _rare_matches(counts, likeness):
        fewer = np.arange(1, matches)
        if len(fewer) > spaced:
            fewer = np.unique(np.geomspace(1, matches - 1, spaced).astype(np.int64))
        may = likeness.copies(matches)
        kept_out = np.where(likeness.copies(fewer) == 0, counts, 0)
        least = np.maximum((-(-kept_out // np.maximum(may, 1))).max(axis=1), -(-kept_out.sum(axis=1) // matches))
        for size in (np.maximum(1, least) + more for more in range(4)):
            for less in range(3):
                c = (n - matches * size) // fewer - less
                fits = c >= 1
                shapes.append(np.stack([fewer[fits], c[fits], np.full(int(fits.sum()), matches), size[fits]], axis=1))
    return np.concatenate(shapes)


def _rare_matches(counts: Int64Array, likeness: BetaLikeness) -> list[int]:
    """The numbers of matches that a rare pool may have, ascending: those that one of the rarest values here needs."""
    n = int(counts.sum())
    rarest = np.unique(likeness.table[counts > 0])[:_RARE].tolist()
    once = {matches_needed(likeness, records) for records in rarest}
    several = {matches_needed(likeness, records, k) for records in rarest for k in range(2, _COPIES + 1)}
    most = max(once, default=1) * 8 // 5
    return sorted(mu for mu in once | {k for k in several if max(once) < k <= most} if 1 < mu <= n)
