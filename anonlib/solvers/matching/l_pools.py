"""Pools for l-diversity by matches: in each one every sensitive value is in one bucket, and all buckets are full of real records.

Source: heterogeneous generalization, Algorithm 1 and Theorem 2, made exact. The paper fills up with made-up records and lets two buckets
share a value. Both betray: a made-up record's value follows from the table's counts, and with it the labels of everybody who is known to
share its bucket; a value of two buckets may be shown twice around a person, who is then believed to have it with 2/l. So:

    the remainder     if the number of records is no multiple of l but r above one, one record of each of the l + r most frequent values is
                      set aside; where that cannot be, one of each of the l + 1 most frequent ones, r times
    a perfect fit     the rest is packed into l buckets of equal size, every value in one of them (Algorithm 1, then subset sums)
    no perfect fit    one record of each of l frequent values is set aside, which keeps the rest eligible, and it is tried again

Records set aside from the same values make one pool, a bucket for each value. It always ends, since in the worst case everything is set
aside, as in Anatomy; on real tables the many rare values nearly always fit at once. By counts alone.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.match_buckets import MatchBuckets, match_buckets

Contents = dict[tuple[int, int], list[int]]
"""{(bucket, value): [records, dummies]}: what buckets hold."""
ALGORITHM = "l_pools"


def l_pools(counts: Int64Array, l: int) -> list[MatchBuckets] | None:  # noqa: E741  (the field's name)
    """The pools, largest first, that hold every record once: l buckets or more each; None when a value has more than n / l records.

    counts : (m,) int64, may be 0. Cost: O(m n / 64) word operations and some tries, the number of which is logarithmic in n / l.
    """
    if not bool(LDiversity(l).eligible(counts[None, :])[0]):
        return None
    left, aside = _without_remainder(counts, l)
    if aside is None:
        return _pools({}, 0, _dealt_round(counts, l), len(counts))
    contents: Contents | None = None
    tries = 0
    while left.any():
        if _worth_a_try(tries):
            contents = packed(left, l)
            if contents is not None:
                break
        tries += 1
        top = _to_set_aside(left, l, tries)
        left[top] -= 1
        aside[tuple(sorted(top.tolist()))] += 1
    return _pools(contents or {}, int(left.sum()) // l, aside, len(counts))


def packed(counts: Int64Array, l: int) -> Contents | None:  # noqa: E741
    """{(bucket, value): [records, 0]}: l buckets of one size with every value whole in one of them, or None where none was found.

    As in Algorithm 1 the l most frequent values found a bucket each and the next ones go to the emptiest, but for some of the rarest, which
    are kept for filling bucket after bucket to the last place; where they cannot, more are kept, and in the end all. None means that all
    these choices came to an end, not that no fit exists.
    """
    size, rest = divmod(int(counts.sum()), l)
    if rest or int(counts.max()) > size:
        return None
    order = np.lexsort((np.arange(len(counts)), -counts))
    items = [(int(counts[v]), v) for v in order.tolist() if counts[v]]
    kept = 2 * l
    while True:
        contents = _fitted(items, l, size, max(l, len(items) - kept))
        if contents is not None or l + kept >= len(items):
            return contents
        kept *= 2


def _fitted(items: list[tuple[int, int]], l: int, size: int, spread: int) -> Contents | None:  # noqa: E741
    """The first `spread` items go to the emptiest bucket in turn (l at least, one a bucket), the others fill what is left, exactly."""
    contents: Contents = {}
    room = [size] * l
    for number, value in items[:spread]:
        bucket = max(range(l), key=lambda b: room[b])
        if room[bucket] < number:
            return None
        room[bucket] -= number
        contents[bucket, value] = [number, 0]
    left = items[spread:]
    for bucket in sorted(range(l), key=lambda b: room[b]):
        chosen = _subset(left, room[bucket])
        if chosen is None:
            return None
        for k in chosen:
            contents[bucket, left[k][1]] = [left[k][0], 0]
        left = [item for k, item in enumerate(left) if k not in chosen]
    return contents


def _subset(items: list[tuple[int, int]], target: int) -> set[int] | None:
    """Places in `items`, sorted from large to small, whose numbers sum to `target`; those that come first where there is a choice."""
    mask = (1 << (target + 1)) - 1
    reach = [1]
    for number, _ in reversed(items):
        reach.append((reach[-1] | reach[-1] << number) & mask)
    reach.reverse()  # reach[i] has bit s set when s is a sum of some of items[i:]
    if not reach[0] >> target & 1:
        return None
    chosen = set()
    for i, (number, _) in enumerate(items):
        if number <= target and reach[i + 1] >> (target - number) & 1:
            chosen.add(i)
            target -= number
    return chosen


def _without_remainder(counts: Int64Array, l: int) -> tuple[Int64Array, Counter[tuple[int, ...]] | None]:  # noqa: E741
    """(counts whose sum is a multiple of l and which are eligible, what was set aside); (counts, None) when that cannot be done so."""
    rest = int(counts.sum()) % l
    # one pool of l + rest matches costs less than `rest` pools of l + 1, which are l - 1 times more records for each of them
    for width, times in ((l + rest, 1), (l + 1, rest)):
        left, aside = counts.copy(), Counter[tuple[int, ...]]()
        for _ in range(times if rest else 0):
            top = _largest(left, width)
            if len(top) < width:
                break
            left[top] -= 1
            aside[tuple(sorted(top.tolist()))] += 1
            if left.any() and not bool(LDiversity(l).eligible(left[None, :])[0]):
                break
        else:
            return left, aside
    return counts, None


def _dealt_round(counts: Int64Array, l: int) -> Counter[tuple[int, ...]]:  # noqa: E741
    """Anatomy's groups: records laid end to end, value after value, and dealt round to n // l groups never meet their like."""
    groups = int(counts.sum()) // l
    line = np.repeat(np.arange(len(counts)), counts)
    return Counter(tuple(line[k::groups].tolist()) for k in range(groups))


def _to_set_aside(left: Int64Array, l: int, tries: int) -> Int64Array:  # noqa: E741
    """The l most frequent values, or every other time those after the first, while it has room in its bucket: the room that the largest
    value leaves is then another one, which may be filled."""
    top = _largest(left, l + 1)
    if tries % 2 and len(top) > l and (int(left[top[0]]) + 1) * l <= int(left.sum()):
        return top[1:]
    return top[:l]


def _largest(counts: Int64Array, number: int) -> Int64Array:
    """Up to `number` values that have records, the most frequent first."""
    order = np.lexsort((np.arange(len(counts)), -counts))[:number]
    return np.asarray(order[counts[order] > 0], dtype=np.int64)


def _worth_a_try(tries: int) -> bool:
    """0, 1, 2, 3, 4, 6, 8, 12, 16, ...: a fit that fails once often fails for a while."""
    top = tries.bit_length()
    return tries < 4 or tries & ((1 << (top - 2)) - 1) == 0


def _pools(contents: Contents, size: int, aside: Counter[tuple[int, ...]], m: int) -> list[MatchBuckets]:
    """The pool of the packed buckets, if any, and one for each set of values that records were set aside from."""
    nobody = np.zeros(m, dtype=np.int64)
    pools = [match_buckets(size, contents, nobody, distinct=True, algorithm=ALGORITHM)] if contents else []
    for values, number in sorted(aside.items(), key=lambda item: (-item[1] * len(item[0]), item[0])):
        alone = {(b, v): [number, 0] for b, v in enumerate(values)}
        pools.append(match_buckets(number, alone, nobody, distinct=True, algorithm=ALGORITHM))
    return pools
