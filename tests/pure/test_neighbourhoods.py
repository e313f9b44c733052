"""Pools cut into neighbourhoods: as many records of every bucket in each, and nothing that tells one bucket from another."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.domains import NumericDomain
from anonlib.kernels.matching.matching_deal import DealtRecords
from anonlib.kernels.matching.matching_graph import matching_graph
from anonlib.kernels.matching.neighbourhoods import neighbourhoods
from anonlib.keyed import Stream
from tests.pure.test_matching import DOMAINS, KEY, check_regular, records
from tests.thorough import trials


def pool(mu: int, size: int, source: np.ndarray) -> DealtRecords:
    """A pool whose sensitive values are the names of its buckets."""
    return DealtRecords(mu, size, source, np.repeat(np.arange(mu), size), np.zeros(mu * size, dtype=bool))


@settings(max_examples=trials(200, 60), deadline=None)
@given(st.integers(1, 6), st.integers(1, 40), st.integers(1, 12), st.integers(0, 2**32))
def test_a_neighbourhood_has_as_many_records_of_every_bucket(mu: int, size: int, least: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    n = mu * size
    columns = records(random, n)
    dealt = pool(mu, size, random.permutation(n))
    own = [column[dealt.source] for column in columns]
    parts = neighbourhoods(own, DOMAINS, dealt, Stream(KEY, "test", seed), least)
    assert sorted(np.concatenate([part.source for part in parts]).tolist()) == list(range(n))
    value_of = dict(zip(dealt.source.tolist(), dealt.sensitive.tolist(), strict=True))
    for part in parts:
        assert part.mu == mu
        assert least <= part.size < 2 * least or len(parts) == 1
        assert part.sensitive.tolist() == [value_of[at] for at in part.source.tolist()]
        blocks = part.sensitive.reshape(mu, part.size)
        assert (blocks == blocks[:, :1]).all(), "its buckets stand one after the other"
        assert sorted(blocks[:, 0].tolist()) == list(range(mu))


def test_a_small_pool_is_its_only_neighbourhood() -> None:
    dealt = pool(3, 9, np.arange(27))
    own = records(np.random.default_rng(1), 27)
    assert neighbourhoods(own, DOMAINS, dealt, Stream(KEY, "test"), 5) == [dealt]


def test_neighbourhoods_are_near_each_other() -> None:
    """On a line they are its parts, whichever bucket a record is of."""
    domain = (NumericDomain("age", 0.0, 40.0),)
    age = np.random.default_rng(2).permutation(40)
    dealt = pool(4, 10, np.arange(40))
    parts = neighbourhoods([age], domain, dealt, Stream(KEY, "test"), 5)
    low, high = sorted((age[part.source] for part in parts), key=np.median)
    for bucket in range(4):
        own = np.sort(age[10 * bucket : 10 * bucket + 10])
        assert set(own[:5]) <= set(low)
        assert set(own[5:]) <= set(high)


def test_the_order_of_the_buckets_is_drawn_for_each() -> None:
    dealt = pool(4, 50, np.arange(200))
    own = records(np.random.default_rng(3), 200)
    parts = neighbourhoods(own, DOMAINS, dealt, Stream(KEY, "test"), 5)
    assert len({tuple(part.sensitive[:: part.size].tolist()) for part in parts}) > 1


WORLDS = {
    # mu buckets of c persons, neighbourhoods of `least` a bucket: every way to say who is in which bucket
    "two buckets of four, in halves": (2, 4, 2),
    "two buckets of four, one by one": (2, 4, 1),
    "three buckets of two, one by one": (3, 2, 1),
}


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("table", range(3))
def test_of_all_worlds_that_give_a_graph_every_bucket_has_everybody_alike_often(name: str, table: int) -> None:
    """Who knows everybody's quasi-identifiers, the method and the graph, and runs it on every world, learns nothing of anybody's bucket:
    no person is in one bucket in more of the worlds that give this graph than in another."""
    mu, size, least = WORLDS[name]
    columns = records(np.random.default_rng(table), mu * size)
    worlds = defaultdict(list)
    for number, bucket in enumerate(assignments(mu, size)):
        worlds[graph_of(columns, bucket, mu, size, least, number)].append(bucket)
    assert len(worlds) > 1
    for held in worlds.values():
        of_person = np.array(held)
        for person in range(mu * size):
            assert len(set(np.bincount(of_person[:, person], minlength=mu).tolist())) == 1


def assignments(mu: int, size: int) -> list[tuple[int, ...]]:
    """Every way to give mu size persons a bucket each, `size` of them the same."""
    if mu == 2:
        chosen = combinations(range(2 * size), size)
        return [tuple(int(at in ones) for at in range(2 * size)) for ones in chosen]
    return sorted(set(permutations(np.repeat(np.arange(mu), size).tolist())))


def graph_of(columns: list[np.ndarray], bucket: tuple[int, ...], mu: int, size: int, least: int, number: int):
    """The edges that the method draws in this world, whatever the key."""
    source = np.argsort(bucket, kind="stable")
    own = [column[source] for column in columns]
    parts = neighbourhoods(own, DOMAINS, pool(mu, size, source), Stream(KEY, "worlds", number), least)
    edges = set()
    for part in parts:
        matches = matching_graph([column[part.source] for column in columns], DOMAINS, part, False, "hungarian")
        check_regular(matches)
        edges |= {(int(part.source[row]), int(part.source[at])) for row, list_ in enumerate(matches) for at in list_}
    return frozenset(edges)
