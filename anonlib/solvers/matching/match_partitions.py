"""Which partitions can keep the promise by themselves, and how neighbours merge until they can: from counts alone.

Source: heterogeneous generalization, sections 3.1, 4 and 5 ("scalability by partitioning"); the merging is ours. A partition is held to the
shares phi_i of the *whole* table. What its boxes lose grows with the number mu of matches, hardly with the number of records: among
twice as many records matches are as much nearer as there are more of them to reach. So a partition must not only be able to keep
beta-likeness but with at most `WIDEST` times the matches that the whole table needs. Where its records are matched in several pools, those
count that one pool would need to lose as much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anonlib.arrays import BoolArray, Int64Array
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.match_buckets import MatchBuckets, mean_matches
from anonlib.privacy.match_limits import MatchLimits
from anonlib.solvers.matching.beta_buckets import beta_buckets, by_l_diversity, largest_buckets
from anonlib.solvers.matching.beta_pools import alike, beta_pools
from anonlib.solvers.matching.l_buckets import l_buckets
from anonlib.solvers.matching.l_pools import l_pools
from anonlib.solvers.matching.line_pools import line_pools
from anonlib.solvers.matching.pair_pools import pair_pools

WIDEST = Fraction(5, 4)
ROOM = 10
"""A pool that `refine` cuts has at least so many records for each of l matches: what is set aside is then small beside it."""
MAX_BUCKET = 20_000
"""Records of a bucket at most: the costs of all pairs of two buckets then take 1.6 GB, and twice that for the best assignment."""


@dataclass(frozen=True)
class Bucketing:
    """The promise, and the buckets that keep it. Exactly one of l and likeness is given.

    dummies : None where everything comes out even, in pools; True or False asks for the paper's buckets of the whole, with remainders made
        up or left out. Under l that is for `far_apart` alone.
    limits  : on values and on nodes above them, the promise on each value among them, where more is promised than l or likeness says; only
        where everything comes out even
    codes   : (2, m) int64, of two sensitive columns: counts are then of the m combinations of their values, and l of the values of each;
        these are the numbers of a combination's values
    """

    l: int | None  # noqa: E741  (the field's name)
    likeness: BetaLikeness | None
    dummies: bool | None = None
    limits: MatchLimits | None = None
    codes: Int64Array | None = None

    def least_bucket(self, n: int) -> int:
        """How many of n records the largest bucket has, before pools are looked for; 0 where that cannot be said.

        Under l of one column the perfect fit has buckets of n / l, less the few records that are set aside. Of two columns nothing can be
        said: what the first l diagonals leave over makes more pools, of any number of buckets, and these may hold most of the records.
        """
        return 0 if self.l is None or self.codes is not None else n // self.l

    def buckets(self, counts: Int64Array) -> MatchBuckets | None:
        """The paper's buckets of records with (m,) counts of the sensitive values; None if there are none."""
        if self.likeness is None:
            assert self.l is not None
            return l_buckets(counts, self.l, self.dummies is not False)
        return beta_buckets(counts, self.likeness, self.dummies is not False)

    def pools(self, counts: Int64Array) -> list[MatchBuckets] | None:
        """The buckets of each pool that a partition with such counts is matched in, the largest first; None if it cannot keep the promise.
        But for the paper's buckets, every record is in one and none is made up, and under l no value is in two buckets of a pool."""
        if self.likeness is None:
            assert self.l is not None
            if self.codes is not None:
                return pair_pools(counts, self.codes, self.l)
            return l_pools(counts, self.l) if self.limits is None else line_pools(counts, self.limits, MAX_BUCKET)
        if self.dummies is None:
            return beta_pools(counts, self.likeness, MAX_BUCKET, limits=self.limits)
        whole = beta_buckets(counts, self.likeness, self.dummies)
        return None if whole is None else [whole]

    def of_whole(self, counts: Int64Array) -> list[MatchBuckets] | None:
        """The pools of the whole table, however large its buckets; under l its buckets. None if there are none. On the driver."""
        if self.likeness is not None and self.dummies is None:
            return beta_pools(counts, self.likeness, limits=self.limits)
        if self.limits is not None:
            return line_pools(counts, self.limits)
        whole = self.buckets(counts)
        return None if whole is None else [whole]

    def matches(self, whole: list[MatchBuckets]) -> float:
        """How many matches the whole table needs, in such pools."""
        if self.likeness is None and self.limits is not None:
            return mean_matches(whole)
        return whole[0].mu if self.likeness is None or self.dummies is not None else alike(whole)

    def good_enough(self, counts: Int64Array, fewest: float) -> bool:
        """May these records be a partition, where the whole table needs `fewest` matches?"""
        if self.likeness is None:
            assert self.l is not None
            if self.limits is not None:
                pools = line_pools(counts, self.limits, MAX_BUCKET)
                return pools is not None and mean_matches(pools) <= fewest * WIDEST
            return bool(LDiversity(self.l).eligible(counts[None, :])[0])
        if self.dummies is None:
            return beta_pools(counts, self.likeness, MAX_BUCKET, fewest * float(WIDEST), self.limits) is not None
        n, most = int(counts.sum()), int(fewest * WIDEST)
        if self.likeness.equivalent_l <= most and by_l_diversity(counts, self.likeness, self.dummies) is not None:
            return True
        return largest_buckets(counts, self.likeness, max(1, -(-n // most)), self.dummies) is not None


@dataclass(frozen=True)
class GoodPool:
    """What both halves of a cut must keep, as `anonlib.privacy.class_requirements.Requirement`: to be good enough by themselves."""

    promised: Bucketing
    fewest: float

    @property
    def smallest(self) -> int:
        """The fewest records a pool may have: `ROOM` for each of l matches, 1 under beta-likeness."""
        return 1 if self.promised.l is None else ROOM * self.promised.l

    def holds(self, counts: Int64Array) -> BoolArray:
        """Which of g pools are good enough by themselves, (g,) bool. counts : (g, m) int64. A packing is tried for each that may be."""
        likeness = self.promised.likeness
        good = counts.sum(axis=1) >= self.smallest
        if likeness is not None:
            good &= likeness.holds(counts)  # cheap, and seldom met
        for row in np.flatnonzero(good).tolist():
            good[row] = self.promised.good_enough(counts[row], self.fewest)
        return np.asarray(good)


def merged_runs(counts: Int64Array, keeps: Callable[[Int64Array], bool]) -> Int64Array:
    """(k,) int64: the run of neighbours that each of k partitions joins, so that every run keeps the promise if the whole does.

    counts : (k, m) int64, partitions in the order of the curve. Runs are as short as they can be from the left; the last ones join until
    they keep it. O(k m) and at most 2 k questions.
    """
    starts: list[int] = []
    held: list[Int64Array] = []
    done = True
    for place, row in enumerate(counts):
        if done:
            starts.append(place)
            held.append(row.copy())
        else:
            held[-1] += row
        done = keeps(held[-1])
    while len(starts) > 1 and not done:
        last = held.pop()
        starts.pop()
        held[-1] += last
        done = keeps(held[-1])
    marks = np.zeros(len(counts), dtype=np.int64)
    marks[starts] = 1
    return np.asarray(np.cumsum(marks) - 1, dtype=np.int64)
