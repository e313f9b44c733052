"""Which values each bucket lists and which of them are fake, chosen so that what is listed does not tell a fake from a real value.

Source: inferential privacy, section 6 (fakes "indistinguishable"), which does not say how. Fakes drawn evenly give themselves away:
counts of values are public, so a frequent value in a bucket is hardly ever a fake and a rare one mostly is; and values dealt in turn are no
secret to whoever knows the turn. Here, for b buckets, T = |g| + s values listed in a bucket g, o_v records of value v:

    apportion   f_v, how often v is a fake: in proportion to o_v, so that o_v / (o_v + f_v) is about |g| / T for all; the largest of these
                shares is as small as whole numbers allow (the divisor method that rounds up, Adams)
    lists       one choice of fakes beside what a deal in turn holds (`anonlib.solvers.buckets.fake_lists`). It is forgotten but for what
                each bucket lists, which follows from counts alone, in at most some 2 m + q kinds of buckets
    draw        one of all ways to choose s of the T values of each bucket that add up to the f_v, drawn about evenly
                (`anonlib.solvers.buckets.fake_chain`)
    blocks      of tables of more than `POOL` buckets most stand in blocks of T that list the same T values. In a block these are put in a
                circle at random and bucket p's fakes are those at p, ..., p + s - 1: each value is a fake s times, and the fakes of any
                one bucket are any s of its T values, exactly evenly. What blocks leave is the pool, drawn as above

Everything but the draw follows from counts alone. Driver: O(kinds T) for the lists and O(POOL T) for the pool, independent of the number of
records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.errors import Unsatisfiable
from anonlib.keyed import Stream
from anonlib.solvers.buckets.fake_chain import Rows, mix, real_places, some_choice
from anonlib.solvers.buckets.fake_lists import HeldStretch, StretchWithFakes, fakes_beside

POOL = 20_000
"""Buckets whose fakes are drawn together on the driver; of larger tables, what blocks leave."""
LARGEST_POOL = 320_000
"""Where blocks would leave a smaller pool values that are too seldom, or too often, real."""
UNEVEN = 20
"""A value may be a fake in the pool this part of what is even more or less often; at least once more or less."""
PURPOSE = "bucketize: which listed values are fake"


@dataclass(frozen=True)
class ListedStretch:
    """Buckets `start` .. `stop` - 1 list the same values, `codes` ascending; the first `pooled` go to the pool, the others to blocks."""

    start: int
    stop: int
    codes: tuple[int, ...]
    pooled: int


@dataclass(frozen=True)
class FakePlan:
    """Which values each bucket lists, and where the records of the pool go.

    extra  : s; fakes : (m,) int64, f_v; listed : the stretches in order of bucket id
    real_start, real : (m + 1,), (r,) int64: the pool's records of value v go to the buckets real[real_start[v] : real_start[v + 1]]
    """

    extra: int
    fakes: Int64Array
    listed: tuple[ListedStretch, ...]
    real_start: Int64Array
    real: Int64Array


def apportion(counts: Int64Array, total: int, buckets: int) -> Int64Array:
    """(m,) f_v of sum `total` with f_v <= buckets - o_v, the largest o_v / f_v as small as can be; ties to the lower code.

    Raises Unsatisfiable when there is no room. Exact whole numbers throughout.
    """
    room = [buckets - o for o in counts.tolist()]
    if sum(room) < total:
        raise Unsatisfiable(
            f"fake_values: {total:,} fake values do not fit beside {int(counts.sum()):,} records in {buckets:,} buckets of distinct "
            "values; lower fake_values or max_bucket_size"
        )
    values, n = counts.tolist(), int(counts.sum())

    def taken(k: int) -> list[int]:  # f_v = ceil(o_v k / (n 2^20)), as far as there is room
        return [min(r, -(-o * k // (n << 20))) for o, r in zip(values, room, strict=True)]

    low, high = 0, (total + n) << 20
    while sum(taken(high)) < total:  # few values with room: theirs is filled
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sum(taken(middle)) <= total else (low, middle)
    fakes, next_ = taken(low), taken(low + 1)  # one more each, at most
    due = sorted(
        (i for i in range(len(values)) if next_[i] > fakes[i]),
        key=lambda i: (fakes[i] > 0, -Fraction(values[i], max(1, fakes[i])), i),
    )
    for i in due[: total - sum(fakes)]:
        fakes[i] += 1
    return np.array(fakes, dtype=np.int64)


def plan(counts: Int64Array, held: Sequence[HeldStretch], extra: int, key: bytes, pool: int = POOL) -> FakePlan:
    """Lists and fakes, `extra` in each bucket; value v has counts[v] records, and `held` is what a deal of them in turn holds.

    Raises Unsatisfiable.
    """
    buckets = held[-1].stop
    fakes = apportion(counts, extra * buckets, buckets)
    kinds = fakes_beside(held, fakes, extra)
    lists, chosen = [], None
    while chosen is None:
        lists = _blocks_left(kinds, pool)
        if all(g.pooled == g.stop - g.start for g in lists):
            chosen = [sorted(b.fake) for b in kinds for _ in range(b.start, b.stop)]
        else:
            chosen = _beside_blocks(lists, counts, fakes, extra)
        if chosen is None and pool >= LARGEST_POOL:
            raise _too_frequent(counts, buckets, len(lists[0].codes))
        pool = max(POOL, 4 * pool)
    start, real = _drawn(lists, chosen, len(counts), extra, key)
    return FakePlan(extra, fakes, tuple(lists), start, real)


def _blocks_left(kinds: list[StretchWithFakes], pool: int) -> list[ListedStretch]:
    """The kinds with some `pool` buckets, the same number of each, and what fills no block of T, left out of blocks."""
    keep, listed = pool // len(kinds), []
    for b in kinds:
        codes, number = b.codes, b.stop - b.start
        whole = max(0, number - keep) // len(codes)
        listed.append(ListedStretch(b.start, b.stop, codes, number - whole * len(codes)))
    return listed


def _beside_blocks(lists: list[ListedStretch], counts: Int64Array, fakes: Int64Array, extra: int) -> Rows | None:
    """Some choice of the pool's fakes where blocks take theirs, each value s times; None where it would be uneven by much."""
    left, pooled = fakes.copy(), np.zeros(len(counts), dtype=np.int64)
    for g in lists:
        left[list(g.codes)] -= extra * ((g.stop - g.start - g.pooled) // len(g.codes))
        pooled[list(g.codes)] += g.pooled
    even = pooled * (fakes / (counts + fakes))
    if (np.abs(left - even) > np.maximum(1, even / UNEVEN)).any():
        return None
    return some_choice([g.codes for g in lists for _ in range(g.pooled)], left, extra)


def _too_frequent(counts: Int64Array, buckets: int, listed: int) -> Unsatisfiable:
    most = int(counts.max())
    return Unsatisfiable(
        f"fake_values: in {buckets:,} buckets a value of {most:,} records cannot be a fake as often as others, which takes at most 1 in "
        f"{listed} of the records; lower l or fake_values so that the most frequent value is below 1/(l + fake_values)"
    )


def _drawn(lists: list[ListedStretch], fake: Rows, m: int, extra: int, key: bytes) -> tuple[Int64Array, Int64Array]:
    """(real_start, real) of the pool after the draw, which begins with `fake`."""
    bucket = np.concatenate([np.arange(g.start, g.start + g.pooled) for g in lists]).astype(np.int64)
    codes = [g.codes for g in lists for _ in range(g.pooled)]
    real = real_places(codes, fake, m)
    mix(fake, real, Stream(key, PURPOSE, len(codes), extra))
    start = np.concatenate([[0], np.cumsum([len(rows) for rows in real])]).astype(np.int64)
    return start, bucket[np.array([row for rows in real for row in sorted(rows)], dtype=np.int64)]
