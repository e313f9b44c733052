"""How many records a class has, and which sensitive values are exchangeable in it, from counts of sensitive values alone.

A class takes one record of each of mu sub-buckets of equal size (`anonlib.privacy.sub_buckets`). If it shows v_b of sub-bucket b, whose
own values are spread as Q_b, the class is the mean of the points v_b and the table the mean of the Q_b, so by the triangle inequality

    EMD(class, table) <= 1/mu sum_b EMD(v_b, Q_b) <= 1/mu sum_b max_{v in b} EMD(v, Q_b) = W

whichever records it takes. Values of an ordered column are packed in order: of a prefix of the order at most one sub-bucket is cut, so
nothing cancels and W is the true worst case. A sub-bucket of one value costs nothing. What does not come out even goes into one class of
the rest, whose values are rounded shares of the table; the mean of the Q_b then lies a little off the table, and that is added.

The same holds of a class that takes h records of each sub-bucket. The smallest mu with W <= t in every column is taken, and h such that
mu h >= k; mu = n, everything in one class, always keeps t. Cost: O(M log M) for each mu tried, M values or combinations of values; every mu
up to `EACH` is tried, then one in a hundred.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.privacy.sub_buckets import JointValues, SubBuckets
from anonlib.privacy.t_closeness import GroundDistance, TCloseness

EACH = 1024
"""Numbers of sub-buckets up to this are tried one by one."""


@dataclass(frozen=True, eq=False)
class Packing:
    """The sub-buckets chosen; how many records a class takes of each, at least; and W of each sensitive column: no class can be farther
    from the table."""

    sub_buckets: SubBuckets
    least: int
    worst: tuple[Fraction, ...]


def pack(closeness: Sequence[TCloseness], joint: JointValues, k: int) -> Packing:
    """The fewest sub-buckets such that classes of k records or more keep t in every column whatever records they take.

    closeness : per sensitive column; joint : the combinations of their values; k <= n, else ValueError.
    """
    n = int(joint.counts.sum())
    if not 1 <= k <= n:
        raise ValueError(f"a class of {k} records cannot be had from {n}")
    lines = _lines([column.distance for column in closeness], joint)
    for number in _numbers(n):
        best = min(
            (_packed(closeness, joint, number, k, order, whole) for order, whole in lines),
            key=lambda packing: _excess(packing, closeness),
        )
        if _excess(best, closeness) <= 0:
            return best
    raise AssertionError("everything in one class is as close as can be")


def _excess(packing: Packing, closeness: Sequence[TCloseness]) -> Fraction:
    """By how much W is above t in the worst column; at most 0 where all keep it."""
    return max(worst - column.t for worst, column in zip(packing.worst, closeness, strict=True))


def _numbers(n: int) -> Iterator[int]:
    """The numbers of sub-buckets that are tried for n records, ascending, n last."""
    number = 1
    while number <= n // 2:
        yield number
        number += max(1, number // 100 if number >= EACH else 1)
    yield n


def _lines(distances: Sequence[GroundDistance], joint: JointValues) -> list[tuple[Int64Array, bool]]:
    """(order of the values on the line, whether frequent values fill sub-buckets of their own first)."""
    if len(distances) > 1:
        places = [distance.positions[codes] for distance, codes in zip(distances, joint.codes, strict=True)]
        orders = [np.lexsort(places[::-1]), _interleaved(places, joint.counts)]
    elif distances[0].kind == "flat":
        orders = [np.argsort(-joint.counts, kind="stable")]
    else:
        orders = [distances[0].order]
    return [(order.astype(np.int64), whole) for order in orders for whole in (False, True)]


def _interleaved(places: Sequence[Int64Array], counts: Int64Array) -> Int64Array:
    """Combinations in an order that keeps all columns near: the bits of their middle ranks, interleaved (a Z-order curve)."""
    bits = 62 // len(places)
    key, n = np.zeros(len(counts), dtype=np.int64), int(counts.sum())
    cells = []
    for place in places:
        records = np.bincount(place, counts).astype(np.int64)
        middle = (np.cumsum(records) - records // 2)[place]
        cells.append(np.minimum((middle / n * (1 << bits)).astype(np.int64), (1 << bits) - 1))
    for bit in range(bits - 1, -1, -1):
        for cell in cells:
            key = 2 * key + ((cell >> bit) & 1)
    return np.argsort(key, kind="stable")


def _packed(
    closeness: Sequence[TCloseness], joint: JointValues, number: int, k: int, order: Int64Array, whole: bool
) -> Packing:
    """Sub-buckets of this number; one class of everything where they leave no room for a class and a rest."""
    n, least = int(joint.counts.sum()), -(-k // number)
    over = n % number
    rest_size = over + number * -(-max(number, k - over) // number) if over else 0
    records = (n - rest_size) // number
    if records < least:
        number, least, rest_size, records = n, 1, 0, 1
    rest = _rounded(joint.counts, rest_size)
    flat = len(closeness) == 1 and closeness[0].distance.kind == "flat"
    value, length = _runs(joint.counts - rest, order, records, whole, flat)
    sub_buckets = SubBuckets(number, records, value, length, rest)
    worst = tuple(_worst(sub_buckets, column, codes) for column, codes in zip(closeness, joint.codes, strict=True))
    return Packing(sub_buckets, least, worst)


def _rounded(counts: Int64Array, size: int) -> Int64Array:
    """`size` records in the proportions of `counts`, by largest remainders; never more than there are."""
    n = int(counts.sum())
    exact = [divmod(int(count) * size, n) for count in counts]
    rounded = np.array([whole for whole, _ in exact], dtype=np.int64)
    short = size - int(rounded.sum())
    rounded[sorted(range(len(exact)), key=lambda i: (-exact[i][1], i))[:short]] += 1
    return rounded


def _runs(
    left: Int64Array, order: Int64Array, records: int, whole: bool, by_size: bool
) -> tuple[Int64Array, Int64Array]:
    """The line: values in `order`, or first the sub-buckets that a value fills alone and then what is over of each."""
    if not whole:
        value, length = order, left[order]
    else:
        over = left % records
        last = order[np.argsort(-over[order], kind="stable")] if by_size else order
        value, length = np.concatenate([order, last]), np.concatenate([(left - over)[order], over[last]])
    not_empty = length > 0
    return value[not_empty], length[not_empty]


def _worst(parts: SubBuckets, closeness: TCloseness, codes: Int64Array) -> Fraction:
    """W of one column, and the distance of the rest if that is larger."""
    distance, table = closeness.distance, closeness.table
    spread = np.zeros(distance.m, dtype=np.int64)
    np.add.at(spread, codes, parts.counts - parts.rest)
    bucket, value, count = _pieces(parts)
    farthest = _farthest(distance, bucket, distance.positions[codes[value]], count)
    worst = Fraction(farthest, parts.number * parts.records * distance.height)
    (off,) = closeness.emd(spread)
    rest = np.zeros_like(table)
    np.add.at(rest, codes, parts.rest)
    return max(worst + off, closeness.emd(rest)[0]) if rest.any() else worst + off


def _pieces(parts: SubBuckets) -> tuple[Int64Array, Int64Array, Int64Array]:
    """(sub-bucket, value, records) of what stands in sub-buckets of more than one run; ascending by sub-bucket."""
    c = parts.records
    stop = np.cumsum(parts.run_length)
    start = stop - parts.run_length
    first, last = start // c, (stop - 1) // c
    head = np.minimum(stop, (first + 1) * c) - start
    several = last > first
    bucket = np.concatenate([first, last[several]])
    value = np.concatenate([parts.run_value, parts.run_value[several]])
    count = np.concatenate([head, (stop - last * c)[several]])
    order = np.lexsort((np.concatenate([np.arange(len(first)), np.flatnonzero(several)]), bucket))
    order = order[count[order] < c]
    return bucket[order], value[order], count[order]


def _farthest(distance: GroundDistance, bucket: Int64Array, place: Int64Array, count: Int64Array) -> int:
    """sum over sub-buckets of the largest, over its values v, of sum_w records of w times the distance of v and w (times `height`)."""
    if not len(bucket):
        return 0
    starts = np.flatnonzero(np.r_[True, bucket[1:] != bucket[:-1]])
    if distance.kind == "ordered":  # convex in the place of v, so largest at an end
        low, high = np.minimum.reduceat(place, starts), np.maximum.reduceat(place, starts)
        total, moment = np.add.reduceat(count, starts), np.add.reduceat(count * place, starts)
        return int(np.maximum(moment - low * total, high * total - moment).sum())
    number = np.cumsum(np.r_[False, bucket[1:] != bucket[:-1]])
    total = np.add.reduceat(count, starts)[number]
    away = np.zeros(len(bucket), dtype=np.int64)
    steps = [*sorted(set(distance.gaps.tolist()), reverse=True), 0]
    for upper, lower in pairwise(steps):
        # values on the two sides of a gap of `upper` or more are that much farther apart
        node = np.r_[0, np.cumsum(distance.gaps >= upper)][place]
        _, group = np.unique(number * distance.m + node, return_inverse=True)
        near = np.bincount(group, count).astype(np.int64)
        away += (upper - lower) * (total - near[group])
    return int(np.maximum.reduceat(away, starts).sum())
