"""SABRE's second phase: how many records every equivalence class takes from every bucket.

The whole table is a class; a class is halved, bucket by bucket, while both halves stay within t by D + U <= t (Theorem 4) and keep k
records (function ECSize). The left half rounds up. Written with the path's bits as a number R, a node at depth L holds
floor((N_i + R) / 2^L) of bucket i, so a level has at most b + 1 different nodes: the tree is kept as those, with two links each, and is
never listed. D is an exact earth mover's distance in closed form (`BucketPartition.mover`), computed once per different node.

Cost, on the driver: O(b log n) nodes of b numbers, whatever the number of classes.
"""

from __future__ import annotations

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.errors import Unsatisfiable
from anonlib.privacy.ec_sizes import EcSizeTree
from anonlib.privacy.t_closeness import TCloseness
from anonlib.solvers.classes.sabre_buckets import BucketPartition, bucketize, greedy_path

GROWTH = 1.1
"""Buckets of the next partition that `choose` tries, over those of the last."""
GIVE_UP = 0.25
"""`choose` ends its search at a partition with fewer classes than this share of the best."""
MANY = 512
"""`choose` tries partitions of at most so many buckets, or twice SABRE's own number: the cost of a tree grows with its square."""


def ec_sizes(closeness: TCloseness, buckets: BucketPartition, k: int = 1) -> EcSizeTree:
    """The tree of class sizes, whose leaves are the classes (SABRE, function ECSize, Theorem 4). Level by level, nothing recurses.

    closeness : of the one sensitive attribute; buckets : of its values; k : records of a class, at least
    Raises Unsatisfiable when the table has fewer than k records. O(b log n) nodes of b numbers, and as many distances.
    """
    n = closeness.n
    refuse_few(n, k)
    mover, budget = buckets.mover, closeness.t - buckets.bound
    rows: list[Int64Array] = [buckets.sizes]
    number: dict[bytes, int] = {buckets.sizes.tobytes(): 0}
    links: dict[int, tuple[int, int]] = {}
    level = [0]
    while level and budget >= 0:
        parents = np.stack([rows[node] for node in level])
        larger = (parents + 1) // 2
        halves = np.stack([larger, parents - larger], axis=1)  # (nodes of the level, 2, b)
        sizes = halves.sum(axis=2)
        work = mover.work(buckets.sizes, halves.reshape(-1, buckets.b)).reshape(-1, 2)
        within = (work <= mover.allowed(budget, n, sizes.ravel()).reshape(-1, 2)).astype(bool) & (sizes >= k)
        following: list[int] = []
        for node, pair, allowed in zip(level, halves, within.all(axis=1).tolist(), strict=True):
            if not allowed:
                continue
            ends = []
            for half in pair:
                if half.tobytes() not in number:
                    number[half.tobytes()] = len(rows)
                    following.append(len(rows))
                    rows.append(half)
                ends.append(number[half.tobytes()])
            links[node] = (ends[0], ends[1])
        level = following
    return _ordered(np.stack(rows), links)


def refuse_few(n: int, k: int) -> None:
    """Raises Unsatisfiable when a table of n records cannot have a class of k."""
    if n < k:
        raise Unsatisfiable(
            f"k: {k} records cannot share their quasi-identifiers in a table of {n:,}; at most k: {n} can be kept"
        )


def _ordered(counts: Int64Array, links: dict[int, tuple[int, int]]) -> EcSizeTree:
    """The tree with its nodes by falling size: a half is smaller than the whole, so links then point to later nodes."""
    order = np.argsort(-counts.sum(axis=1), kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    left, right = np.full(len(order), -1, dtype=np.int64), np.full(len(order), -1, dtype=np.int64)
    for node, (one, other) in links.items():
        left[place[node]], right[place[node]] = place[one], place[other]
    return EcSizeTree(counts[order], left, right)


def choose(closeness: TCloseness, k: int = 1, refine: bool = False) -> tuple[BucketPartition, EcSizeTree]:
    """Buckets and class sizes: SABRE's own, or with `refine` those with the most classes along the greedy path of buckets.

    SABRE stops at the first U < t, which may leave almost nothing of t for D and so very large classes; further splits move the
    budget from U to D. One tree for each partition tried: their numbers of buckets grow by a tenth at least, until classes become few or
    buckets `MANY`. O(b^2 log n) time a tree.
    """
    best = bucketize(closeness)
    tree = ec_sizes(closeness, best, k)
    if not refine:
        return best, tree
    tried, most = best.b, max(MANY, 2 * best.b)
    for partition in greedy_path(closeness):
        if partition.b > most:
            break
        if partition.bound >= closeness.t or partition.b <= tried or (partition.b < tried * GROWTH and partition.bound):
            continue
        tried = partition.b
        other = ec_sizes(closeness, partition, k)
        if other.classes[0] > tree.classes[0]:
            best, tree = partition, other
        elif other.classes[0] < tree.classes[0] * GIVE_UP:
            break
    return best, tree
