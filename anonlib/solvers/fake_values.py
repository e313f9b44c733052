"""Which values each bucket lists and which of them are fake, chosen so that what is listed does not tell a fake from a real value.

Source: inferential privacy, section 6 (fakes "indistinguishable"), which does not say how. Fakes drawn evenly give themselves away:
counts of values are public, so a frequent value in a bucket is hardly ever a fake and a rare one mostly is. Here, for b buckets,
T = |g| + s values listed in a bucket g, o_v records of value v:

    apportion   f_v, how often v is a fake: in proportion to o_v, so that o_v / (o_v + f_v) is about |g| / T for all; the largest of these
                shares is as small as whole numbers allow (the divisor method that rounds up, Adams)
    listing     e_v = o_v + f_v places of v in lists of distinct values: values in order of e_v, each to the buckets with the most room
                (Gale and Ryser); buckets that list the same stand in at most q + m stretches
    fakes       a stretch is cut into blocks of T buckets. In a block the T values are put in a circle at random and bucket p's fakes are
                those at p, ..., p + s - 1: each value is a fake s times, and the fakes of any one bucket are any s of its T values,
                exactly evenly
    pool        what is left, at most about `POOL` buckets: one of all ways to choose s fakes in each that add up to the f_v, drawn by a
                Markov chain whose law in the limit is the even one over all of them

Everything but the draw follows from counts alone. Driver: O(m T) for the lists, and for the pool O(POOL T) memory and some `SWEEPS`
random steps for each of its fakes (about 2 us each); independent of the number of records.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import isqrt

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_flow

from anonlib.errors import Unsatisfiable
from anonlib.keyed import Int64Array, Stream

POOL = 20_000
"""Buckets whose fakes are drawn together on the driver; of larger tables, what blocks leave."""
SWEEPS = 20
"""Steps of walks for each fake of the pool, about; half of them or more end in a change."""
PURPOSE = "bucketize: which listed values are fake"


@dataclass(frozen=True)
class Listed:
    """Buckets `start` .. `stop` - 1 list the same values, `codes` ascending; the first `pooled` go to the pool, the others to blocks."""

    start: int
    stop: int
    codes: tuple[int, ...]
    pooled: int


@dataclass(frozen=True)
class FakePlan:
    """extra : s; fakes : (m,) f_v; listed : the stretches in order of bucket id; real_start : (m + 1,), real : where the pool's records of
    value v go, buckets real[real_start[v] : real_start[v + 1]]."""

    extra: int
    fakes: Int64Array
    listed: tuple[Listed, ...]
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
    found = taken(low)
    for _ in range(total - sum(found)):  # at most m, ties of the last step
        best = max(
            (i for i in range(len(values)) if found[i] < room[i]),
            key=lambda i: (values[i] / found[i] if found[i] else float("inf"), -i),
        )
        found[best] += 1
    return np.array(found, dtype=np.int64)


def list_values(places: Int64Array, sizes: list[int], numbers: list[int]) -> list[tuple[int, int, tuple[int, ...]]]:
    """(start, stop, codes) of buckets that list the same: numbers[j] buckets of sizes[j] distinct values, ids in order of j; value v
    stands in places[v] of them.

    Raises Unsatisfiable when no such lists exist (Gale and Ryser).
    """
    levels: dict[int, deque[tuple[int, int, tuple[int, ...]]]] = {}
    start = 0
    for size, number in zip(sizes, numbers, strict=True):
        if number:
            levels.setdefault(size, deque()).append((start, start + number, ()))
        start += number
    for code in sorted(range(len(places)), key=lambda v: (-int(places[v]), v)):
        wanted, moved = int(places[code]), []
        while wanted:
            top = max(levels)
            if top == 0:
                raise Unsatisfiable(
                    "fake_values: buckets of these sizes cannot list that many distinct values; lower max_bucket_size or fake_values"
                )
            left, right, codes = levels[top].popleft()
            cut = min(right, left + wanted)
            if cut < right:
                levels[top].appendleft((cut, right, codes))
            if not levels[top]:
                del levels[top]
            moved.append((top - 1, (left, cut, (*codes, code))))
            wanted -= cut - left
        for level, stretch in moved:  # only now: a bucket lists a value once
            levels.setdefault(level, deque()).append(stretch)
    return sorted((a, b, tuple(sorted(codes))) for stretches in levels.values() for a, b, codes in stretches)


def plan(
    counts: Int64Array, sizes: list[int], numbers: list[int], extra: int, key: bytes, pool: int = POOL
) -> FakePlan:
    """Lists and fakes of numbers[j] buckets of sizes[j] records with distinct values, `extra` fakes each; value v has counts[v] records.

    Raises Unsatisfiable.
    """
    buckets = sum(numbers)
    fakes = apportion(counts, extra * buckets, buckets)
    lists = list_values(counts + fakes, [size + extra for size in sizes], numbers)
    keep = pool // len(lists)
    listed, blocks = [], np.zeros(len(counts), dtype=np.int64)  # blocks in which a value is
    for start, stop, codes in lists:
        whole = max(0, stop - start - keep) // len(codes)
        listed.append(Listed(start, stop, codes, stop - start - whole * len(codes)))
        blocks[list(codes)] += whole
    start_of, real = _pooled(listed, fakes - extra * blocks, extra, key)
    return FakePlan(extra, fakes, tuple(listed), start_of, real)


def _pooled(listed: list[Listed], fakes: Int64Array, extra: int, key: bytes) -> tuple[Int64Array, Int64Array]:
    """(real_start, real) of the pool, in which value v is to be a fake fakes[v] times."""
    bucket = np.concatenate([np.arange(g.start, g.start + g.pooled) for g in listed]).astype(np.int64)
    lists = [g.codes for g in listed for _ in range(g.pooled)]
    chosen = _feasible(lists, fakes, extra)
    real: list[list[int]] = [[] for _ in fakes]
    for row, (codes, fake) in enumerate(zip(lists, chosen, strict=True)):
        for code in set(codes) - set(fake):
            real[code].append(row)
    for rows in real:
        rows.sort()
    _mix(chosen, real, Stream(key, PURPOSE, len(lists), extra))
    start = np.concatenate([[0], np.cumsum([len(rows) for rows in real])]).astype(np.int64)
    return start, bucket[np.array([row for rows in real for row in sorted(rows)], dtype=np.int64)]


def _feasible(lists: list[tuple[int, ...]], fakes: Int64Array, extra: int) -> list[list[int]]:
    """For each list `extra` of its values, value v fakes[v] times in all: a maximum flow. Raises Unsatisfiable."""
    rows, m = len(lists), len(fakes)
    impossible = Unsatisfiable(
        "fake_values: no choice of fakes lets every value be one about as often as it is common; lower fake_values or max_bucket_size"
    )
    if (fakes < 0).any():
        raise impossible
    source, sink = rows + m, rows + m + 1
    tail = [np.full(rows, source), np.repeat(np.arange(rows), [len(codes) for codes in lists]), rows + np.arange(m)]
    head = [np.arange(rows), rows + np.array([c for codes in lists for c in codes], dtype=np.int64), np.full(m, sink)]
    room = [np.full(rows, extra), np.ones(len(tail[1]), dtype=np.int64), fakes]
    graph = csr_matrix(
        (np.concatenate(room).astype(np.int32), (np.concatenate(tail), np.concatenate(head))),
        shape=(sink + 1, sink + 1),
    )
    flow = maximum_flow(graph, source, sink)
    if flow.flow_value != extra * rows:
        raise impossible
    taken = flow.flow.tocoo()
    chosen: list[list[int]] = [[] for _ in lists]
    used = (taken.data > 0) & (taken.row < rows) & (taken.col >= rows) & (taken.col < rows + m)
    for row, code in sorted(zip(taken.row[used].tolist(), (taken.col[used] - rows).tolist(), strict=True)):
        chosen[row].append(code)
    return chosen


def _mix(fake: list[list[int]], real: list[list[int]], stream: Stream) -> None:
    """Walks, in place, through the ways to choose fakes with the same sums by row and by value; in the limit every way is equally likely.

    A walk alternates: from a row by one of its s fakes to a value, from there by one of the value's real places to a row, each evenly,
    until it meets a row again; along the loop it has closed, fake and real change places. How many ways on there are is fixed by the sums,
    so a loop is as likely as its reverse after the change: the chain is symmetric. Two choices differ by such loops, so all are reached.
    A loop that leaves its first row by the very place at which the walk came in is not taken; after the change the walk could not come so.
    """
    rows = len(fake)
    if not rows or not fake[0]:
        return
    extra, step = len(fake[0]), _Steps(stream)
    for _ in range(SWEEPS * rows * extra // (isqrt(rows) + 1) + 1):  # a walk meets itself after some sqrt(rows) steps
        loop = _loop(fake, real, step, rows, extra)
        before = loop[-1][2] if loop else -1
        for row, which, code, place in loop:
            fake[row][which] = before
            real[code][place] = row
            before = code


def _loop(
    fake: list[list[int]], real: list[list[int]], step: _Steps, rows: int, extra: int
) -> list[tuple[int, int, int, int]]:
    """One walk: the loop it closes, as (row, which of its fakes, value, which of its real places); empty when it may not be taken."""
    at = step.below(rows)
    path: list[tuple[int, int, int, int]] = []
    seen: dict[int, int] = {}
    while at not in seen:
        seen[at] = len(path)
        which = step.below(extra)
        code = fake[at][which]
        if not real[code]:
            return []
        place = step.below(len(real[code]))
        path.append((at, which, code, place))
        at = real[code][place]
    first = seen[at]
    return [] if first and path[first - 1][2] == path[-1][2] else path[first:]


class _Steps:
    """Whole numbers below small bounds, even but for a bias below bound / 2^64."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._words: list[int] = []

    def below(self, bound: int) -> int:
        if not self._words:
            self._words = self._stream.words(1 << 15).tolist()
        return self._words.pop() % bound
