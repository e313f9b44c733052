"""Pools under limits on values and on the nodes above them: the records in a line, cut into buckets.

Records are laid end to end, value after value and node after node, so that those of every set with a limit are neighbours. Bucket j
of mu has the records j b to (j + 1) b of the line, b = n / mu of them. Seen at one place k of every bucket, the records k, b + k, 2 b + k,
... are one of each bucket, and of a set of o neighbours they have ceil(o / b) at most. So the b places can be dealt to pools, neighbours
to one pool as long as no set is in more of its buckets than it may be; one pool for all would be best, and where a set begins or ends
within a bucket there may have to be two.

    the number of buckets   mu for which ceil(o_S / b) <= floor(f_S mu) for every set S with f_S < 1: then pools exist, of one place each
                            if need be. mu = n always does where no set has more than f_S n records
    the line                at the start of a bucket what has most records, then what fits into the rest of it; so nodes seldom begin
                            within a bucket, and the values that two buckets share are rare ones
    what is over            n - mu b records lengthen the first places, or all of them one place
    two lines               where few records need many matches, those are laid in a line of their own, with others beside them

Of the numbers of buckets the one of the least expected loss is taken (`anonlib.solvers.matching.beta_pool_shapes:loss`). By counts alone.
Values of nodes without a limit lie wherever they fit: whoever is matched across nodes is matched farther away (docs/heterogeneous.md).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.privacy.match_buckets import MatchBuckets, match_buckets
from anonlib.privacy.match_limits import MatchLimits
from anonlib.solvers.matching.beta_pool_shapes import loss, loss_of

ALGORITHM = "line_pools"
Group = tuple[int, Any]
"""(records, the value) or (records, its groups)."""
TIERS, TRIES = 4, 3
"""Of two lines: how many ways to say which sets are strict, and how many lengths of the shorter line for each."""


def line_pools(counts: Int64Array, limits: MatchLimits, largest: int | None = None) -> list[MatchBuckets] | None:
    """The pools of the least loss found, largest first, every record in one; None where a set has more records than its limit allows, or
    buckets would have to be larger than `largest`.

    counts : (m,) int64, may be 0
    Cost: O(m + K) vectorised for each number of buckets, O(m log m) Python steps for those that may be the best, a few.
    """
    best = _one_line(counts, limits, largest)
    if best is None:
        return None
    for two in _two_lines(counts, limits, largest):
        if loss_of(two) < loss_of(best):
            best = two
    return best


def _one_line(counts: Int64Array, limits: MatchLimits, largest: int | None) -> list[MatchBuckets] | None:
    """As `line_pools`, where all records are in one line."""
    n = int(counts.sum())
    if not n or not bool(limits.eligible(counts).all()):
        return None
    groups, records = _groups(counts, limits), limits.records(counts)
    best: list[MatchBuckets] | None = None
    least = float("inf")
    for b in _sizes(n if largest is None else min(n, largest)):
        mu = n // b
        if float(loss(mu, b)) >= least:
            break
        if bool(
            (np.minimum(-(-records // b), mu) > limits.allowed(mu)).any()
        ):  # of mu buckets no set is in more than all
            continue
        line = _Line.of(groups, b, limits)
        for pools in (line.with_longer_places(), line.with_one_long_place()):
            if pools is not None and loss_of(pools) < least:
                best, least = pools, loss_of(pools)
    return best


def _two_lines(counts: Int64Array, limits: MatchLimits, largest: int | None) -> Iterator[list[MatchBuckets]]:
    """Pools of two lines: in the shorter one the records of the strictest sets, and as many others as they have to be matched with, spread
    as in the rest. So the others need not have as many matches for the sake of a few."""
    n, records, needed = int(counts.sum()), limits.records(counts), limits.matches_needed
    tiers = np.unique(needed[records > 0])
    for tier in tiers[:-1][:TIERS].tolist():
        strict = (needed > tier) & (records > 0)
        barred = strict[: len(counts)] | limits.members[strict[len(counts) :]].any(axis=0)
        apart = np.where(barred, counts, 0)
        mu = int(tiers[-1])
        least = int((-(-records[strict] // limits.allowed(mu)[strict])).max())
        least = max(least, -(-int(apart.sum()) // mu))
        for c in range(least, least + TRIES):
            if 2 * mu * c > n:
                break
            short = apart + _spread(counts - apart, mu * c - int(apart.sum()))
            pools = [_one_line(part, limits, largest) for part in (short, counts - short)]
            if pools[0] is not None and pools[1] is not None:
                yield sorted([*pools[0], *pools[1]], key=lambda pool: -pool.mu * pool.size)


def _spread(counts: Int64Array, number: int) -> Int64Array:
    """(m,) int64: `number` records of these, by the largest remainder; of one value no more than it has."""
    n = int(counts.sum())
    whole, rest = np.divmod(counts * number, n)
    whole[np.argsort(-rest, kind="stable")[: number - int(whole.sum())]] += 1
    return np.asarray(whole)


def poured(counts: Int64Array, limits: MatchLimits, c: int) -> MatchBuckets | None:
    """All of these records in one pool of buckets of c, cut from the line; None where that breaks a limit. c divides their number."""
    line = _Line.of(_groups(counts, limits), c, limits)
    return line.with_longer_places()[0] if line._reach(0, c, line.mu, line.first, line.last) == c else None


def _sizes(n: int) -> Iterator[int]:
    """Bucket sizes from n down: of each number n // b of buckets the largest. O(sqrt n) of them."""
    b = n
    while b:
        yield b
        b = n // (n // b + 1)


def _groups(counts: Int64Array, limits: MatchLimits) -> list[Group]:
    """The records as a tree of groups: those of a value, and of a node with a limit."""
    inner: list[list[Group]] = [[] for _ in range(len(limits.nodes) + 1)]
    for value in np.flatnonzero(counts).tolist():
        inner[limits.above[value]].append((int(counts[value]), value))  # -1 is the last
    for k, parent in enumerate(limits.parents.tolist()):
        if inner[k]:
            inner[parent].append((sum(records for records, _ in inner[k]), inner[k]))
    return inner[-1]


@dataclass(frozen=True, eq=False)
class _Line:
    """The line for buckets of b records.

    value, start : (k,) int64, the values in their order and where each begins; n, b : records, and those of a bucket
    first, last  : (S,) int64, where each set that has records begins and ends (beyond its last record); which : (S,) its number in `limits`
    """

    value: Int64Array
    start: Int64Array
    n: int
    b: int
    first: Int64Array
    last: Int64Array
    which: Int64Array
    limits: MatchLimits

    @staticmethod
    def of(groups: list[Group], b: int, limits: MatchLimits) -> _Line:
        order: list[tuple[int, int]] = []  # (value, where it begins)
        n = _laid(groups, b, 0, order)
        value, start = (np.array(column, dtype=np.int64) for column in zip(*order, strict=True))
        stop = np.append(start[1:], n)
        first, last, which = [start], [stop], [value]
        for k, member in enumerate(limits.members):
            inside = np.flatnonzero(member[value])
            if len(inside):
                first.append(start[inside[:1]])
                last.append(stop[inside[-1:]])
                which.append(np.array([len(limits.values) + k]))
        return _Line(value, start, n, b, np.concatenate(first), np.concatenate(last), np.concatenate(which), limits)

    @property
    def mu(self) -> int:
        """How many buckets there are, but for what is over."""
        return self.n // self.b

    def with_longer_places(self) -> list[MatchBuckets]:
        """Pools of mu buckets, and of mu + 1 where some records are over. Never fails for a `b` as `line_pools` tries it."""
        over = self.n - self.mu * self.b
        pools = []
        for begin, end, mu in ((0, over, self.mu + 1), (over, self.b, self.mu)):
            while begin < end:
                stop = self._reach(begin, end, mu, self.first, self.last)
                assert stop is not None, "a place by itself keeps every limit"
                pools.append(self._pool(begin, stop, mu))
                begin = stop
        return sorted(pools, key=lambda pool: -pool.mu * pool.size)

    def with_one_long_place(self) -> list[MatchBuckets] | None:
        """The same, but that what is over goes all to one place, the first or the last; None where nothing is over, or it has no room."""
        line = self.mu * self.b
        if line == self.n or self.b == 1:
            return None
        first, last = np.minimum(self.first, line), np.minimum(self.last, line)
        over = self.last - self.first - (last - first)
        for long, begin, end in ((0, 1, self.b), (self.b - 1, 0, self.b - 1)):
            held = np.maximum((last - 1 - long) // self.b - (first - 1 - long) // self.b, 0) + over
            mu = self.mu + self.n - line
            if (held > self.limits.allowed(mu)[self.which]).any():
                continue
            records = [*range(long, line, self.b), *range(line, self.n)]
            pools = [self._of_one(records)]
            while begin < end:
                stop = self._reach(begin, end, self.mu, first, last)
                assert stop is not None, "a place by itself keeps every limit"
                pools.append(self._pool(begin, stop, self.mu))
                begin = stop
            return sorted(pools, key=lambda pool: -pool.mu * pool.size)
        return None

    def _reach(self, begin: int, end: int, mu: int, first: Int64Array, last: Int64Array) -> int | None:
        """The end of the longest run of places from `begin` that one pool of mu buckets can take; None where not even one can be."""
        allowed = self.limits.allowed(mu)[self.which]
        lowest = first // self.b  # the bucket in which a set begins, at this place of it
        within = first % self.b
        highest = (last - 1 - begin) // self.b
        tight = highest - lowest + 1 > allowed
        tight &= last > first
        if (highest - lowest > allowed)[tight].any() or (within[tight] <= begin).any():
            return None
        return int(min([end, *within[tight].tolist()]))

    def _pool(self, begin: int, stop: int, mu: int) -> MatchBuckets:
        """The pool of the places from `begin` to before `stop`."""
        contents: dict[tuple[int, int], list[int]] = {}
        starts = self.start.tolist()
        for bucket in range(mu):
            at, end = bucket * self.b + begin, bucket * self.b + stop
            k = bisect.bisect_right(starts, at) - 1
            while at < end:
                until = min(end, starts[k + 1] if k + 1 < len(starts) else self.n)
                contents[bucket, int(self.value[k])] = [until - at, 0]
                at, k = until, k + 1
        return self._buckets(stop - begin, contents)

    def _of_one(self, records: list[int]) -> MatchBuckets:
        """The pool of these records of the line, each a bucket of its own."""
        held = self.value[np.searchsorted(self.start, records, side="right") - 1].tolist()
        return self._buckets(1, {(bucket, value): [1, 0] for bucket, value in enumerate(held)})

    def _buckets(self, size: int, contents: dict[tuple[int, int], list[int]]) -> MatchBuckets:
        nobody = np.zeros(len(self.limits.values), dtype=np.int64)
        return match_buckets(size, contents, nobody, distinct=False, algorithm=ALGORITHM)


def _laid(groups: list[Group], b: int, at: int, order: list[tuple[int, int]]) -> int:
    """Lay the groups from `at` on: the largest at the start of a bucket, then the largest that fits into it, else the smallest. Returns
    where they end."""
    left = sorted(groups, key=lambda group: group[0])
    sizes = [records for records, _ in left]
    while left:
        room = b - at % b
        place = len(left) - 1 if room == b else max(bisect.bisect_right(sizes, room) - 1, 0)
        records, inner = left.pop(place)
        sizes.pop(place)
        if isinstance(inner, list):
            at = _laid(inner, b, at, order)
        else:
            order.append((inner, at))
            at += records
    return at
