"""Pools cut from a line keep every limit on values and nodes, and are refused where nobody could keep them, against brute force."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.match_buckets import MatchBuckets, mean_matches
from anonlib.privacy.match_limits import MatchLimits, match_limits
from anonlib.solvers.matching.beta_pool_shapes import loss_of
from anonlib.solvers.matching.beta_pools import beta_pools
from anonlib.solvers.matching.l_pools import l_pools
from anonlib.solvers.matching.line_pools import line_pools
from anonlib.solvers.matching.match_partitions import WIDEST, Bucketing
from tests.oracles.pool_arrangements import any_arrangement, fewest_buckets, keeps
from tests.thorough import trials

TREES = (
    ((-1, -1), (0, 0, 1, 1, -1, 0, 1, 1)),
    ((1, -1, -1), (0, 0, 1, 1, 2, 2, -1, 0)),
    ((2, 2, -1, -1), (0, 1, 2, 0, 1, 3, -1, 3)),
)
"""(the node above each node, the node above each of eight values)."""
SHARES = st.sampled_from([Fraction(1, 5), Fraction(1, 3), Fraction(2, 5), Fraction(1, 2), Fraction(2, 3), Fraction(1)])


@st.composite
def limited(draw: st.DrawFn, most: int = 40, values: int = 8) -> tuple[np.ndarray, MatchLimits]:
    parents, above = draw(st.sampled_from(TREES))
    m = draw(st.integers(1, values))
    counts = draw(st.lists(st.integers(0, most), min_size=m, max_size=m))
    of_values = draw(st.lists(SHARES, min_size=m, max_size=m))
    nodes = draw(st.lists(SHARES, min_size=len(parents), max_size=len(parents)))
    labels = tuple(f"node {k}" for k in range(len(parents)))
    limits = MatchLimits(tuple(of_values), tuple(nodes), np.array(parents), np.array(above[:m]), labels)
    return np.array(counts, dtype=np.int64), limits


def sets_of(limits: MatchLimits) -> list[tuple[frozenset[int], Fraction]]:
    """Every set with its share, walked up from each value."""
    under: list[set[int]] = [set() for _ in limits.nodes]
    for value, node in enumerate(limits.above.tolist()):
        while node >= 0:
            under[node].add(value)
            node = int(limits.parents[node])
    of_values = [(frozenset({v}), f) for v, f in enumerate(limits.values)]
    return of_values + [(frozenset(of), f) for of, f in zip(under, limits.nodes, strict=True)]


def buckets_of(pool: MatchBuckets) -> list[tuple[int, ...]]:
    held: list[list[int]] = [[] for _ in range(pool.mu)]
    for bucket, value, number in zip(pool.bucket.tolist(), pool.value.tolist(), pool.records.tolist(), strict=True):
        held[bucket] += [value] * number
    return [tuple(sorted(each)) for each in held]


def check(counts: np.ndarray, pools: list[MatchBuckets], limits: MatchLimits) -> None:
    """Every record once, buckets of one size, nobody made up, every limit kept, as plain Python counts."""
    held = np.zeros(len(counts), dtype=np.int64)
    for pool in pools:
        buckets = buckets_of(pool)
        assert {len(bucket) for bucket in buckets} == {pool.size}
        assert (pool.made_up, pool.left_out, pool.distinct) == (0, 0, False)
        assert keeps(buckets, sets_of(limits))
        np.add.at(held, pool.value, pool.records)
    assert (held == counts).all()
    assert [pool.mu * pool.size for pool in pools] == sorted((pool.mu * pool.size for pool in pools), reverse=True)


def possible(counts: np.ndarray, limits: MatchLimits) -> bool:
    n = int(counts.sum())
    return n > 0 and all(sum(int(counts[v]) for v in of) <= f * n for of, f in sets_of(limits))


@settings(max_examples=trials(3000, 80), deadline=None)
@given(limited())
def test_every_limit_is_kept_and_only_what_nobody_can_keep_is_refused(case: tuple[np.ndarray, MatchLimits]) -> None:
    counts, limits = case
    pools = line_pools(counts, limits)
    assert (pools is not None) == possible(counts, limits)
    if pools is not None:
        check(counts, pools, limits)
        small = line_pools(counts, limits, largest=3)
        assert small is None or max(pool.size for pool in small) <= 3


@settings(max_examples=trials(400, 25), deadline=None)
@given(limited(most=3, values=5))
def test_a_refusal_is_where_brute_force_finds_no_pools(case: tuple[np.ndarray, MatchLimits]) -> None:
    counts, limits = case
    records = tuple(np.repeat(np.arange(len(counts)), counts).tolist())[:7]
    counts = np.bincount(np.array(records, dtype=np.int64), minlength=len(counts))
    pools = line_pools(counts, limits)
    assert (pools is not None) == (bool(records) and any_arrangement(records, sets_of(limits)))
    if pools is not None:
        check(counts, pools, limits)
        fewest = fewest_buckets(records, sets_of(limits))
        assert fewest is not None  # one bucket a record, if nothing else
        assert len(pools) > 1 or pools[0].mu >= fewest


@settings(max_examples=trials(600, 25), deadline=None)
@given(limited(), st.integers(0, 30), st.integers(0, 7))
def test_pools_under_beta_keep_every_limit_too(case: tuple[np.ndarray, MatchLimits], tenths: int, gone: int) -> None:
    part, limits = case
    table = np.maximum(part, 1)
    part = part.copy()
    part[gone % len(part)] = 0
    likeness = BetaLikeness(Fraction(tenths, 10), table)
    bounds = [min(Fraction(1), (1 + likeness.beta) * Fraction(int(t), likeness.n)) for t in table]
    both = MatchLimits(
        tuple(map(min, zip(bounds, limits.values, strict=True))),
        limits.nodes,
        limits.parents,
        limits.above,
        limits.labels,
    )
    for counts in (table, part):
        pools = beta_pools(counts, likeness, limits=both)
        assert (pools is not None) == possible(counts, both)
        if pools is not None:
            check(counts, pools, both)


def test_without_limits_on_nodes_little_is_lost_beside_the_pools_of_l() -> None:
    """And with them no more than the matches that they ask for."""
    random, lost = np.random.default_rng(7), []
    shares = 1 / (np.arange(60) + 8.0)
    above = np.arange(60) % 3 - 1
    for l in (2, 4, 6):  # noqa: E741
        for _ in range(10):
            counts = random.multinomial(1000, shares / shares.sum())
            none = (Fraction(1), Fraction(1))
            limits = MatchLimits((Fraction(1, l),) * 60, none, np.array([-1, -1]), above, ("a", "b"))
            pools, before = line_pools(counts, limits), l_pools(counts, l)
            assert pools is not None
            assert before is not None
            lost.append(loss_of(pools) / loss_of(before))
            half = MatchLimits(limits.values, (Fraction(1, 2),) * 2, limits.parents, above, limits.labels)
            kept = line_pools(counts, half)
            assert kept is not None
            check(counts, kept, half)
            assert mean_matches(kept) < 1.05 * l
    assert np.mean(lost) < 1.02


def test_a_strict_node_does_not_make_everybody_have_as_many_matches() -> None:
    counts = np.array([300, 300, 290, 90, 15, 5])
    limits = MatchLimits(
        (Fraction(1, 3),) * 6, (Fraction(1, 20),), np.array([-1]), np.array([-1] * 4 + [0, 0]), ("rare",)
    )
    pools = line_pools(counts, limits)
    assert pools is not None
    check(counts, pools, limits)
    assert pools[0].mu == 3
    assert max(pool.mu for pool in pools) >= 20
    assert mean_matches(pools) < 12


def test_what_everybody_keeps_costs_no_match() -> None:
    """A node above all values with the threshold 1, whatever divides the number of records."""
    for n in (101, 1009):
        counts = np.array([n // 3, n // 4, n - n // 3 - n // 4 - 7, 7])
        half = (Fraction(1, 2),) * 4
        without = line_pools(counts, MatchLimits(half, (), np.zeros(0, dtype=np.int64), np.full(4, -1), ()))
        limits = MatchLimits(half, (Fraction(1),), np.array([-1]), np.zeros(4, dtype=np.int64), ("every",))
        pools = line_pools(counts, limits)
        assert without is not None
        assert pools is not None
        check(counts, pools, limits)
        assert loss_of(pools) == loss_of(without)


def test_numbers_of_any_length_are_exact() -> None:
    """A threshold a hair below what is there is refused, though no float could tell."""
    counts = np.array([10**6, 2 * 10**6])
    hair = Fraction(1, 10**40)
    for share, fits in ((Fraction(1, 3), True), (Fraction(1, 3) - hair, False)):
        limits = match_limits(("a", "b"), [Fraction(1)] * 2, {"a": share}, None)
        assert (line_pools(counts, limits) is not None) == fits
    tiny = match_limits(("a", "b"), [Fraction(1)] * 2, {"a": hair}, None)
    assert line_pools(np.array([0, 5]), tiny) is not None


def test_a_partition_that_needs_many_more_matches_is_not_good_enough() -> None:
    values = (Fraction(1, 2),) * 4
    limits = MatchLimits(values, (Fraction(2, 5),), np.array([-1]), np.array([0, 0, -1, -1]), ("a",))
    promised = Bucketing(2, None, None, limits)
    whole = promised.of_whole(np.array([100, 100, 300, 500]))
    fewest = promised.matches(whole or [])
    assert promised.good_enough(np.array([10, 10, 30, 50]), fewest)
    tight = np.array([20, 19, 50, 11])  # 39 of 100: five buckets are too small, and so are most numbers of them
    pools = promised.pools(tight)
    assert pools is not None
    assert promised.good_enough(tight, fewest) == (mean_matches(pools) <= WIDEST * fewest)
    assert not promised.good_enough(np.array([30, 30, 20, 20]), fewest)
