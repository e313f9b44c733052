"""Beliefs of insiders: against every assignment of small graphs, one by one."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from anonlib.evaluation.attacks_insiders import (
    all_labellings,
    allowed_by_rows,
    believed,
    gain,
    in_classes,
    known_buckets,
    proven,
    walk,
    worst_first,
)
from anonlib.kernels.matching.disjoint_matchings import random_matching
from anonlib.kernels.matching.rainbow_colouring import rainbow_matching
from tests.oracles.consistent_assignments import beliefs
from tests.pure.test_matching import KEY
from tests.pure.test_rainbow_colouring import random_graph
from tests.thorough import trials


def small_graphs(number: int):
    """(matches, buckets, what each record shows by the paper's draw or by a rainbow, its number)"""
    seed = 0
    while number:
        seed += 1
        made = random_graph(seed, True)
        if made is None:
            continue
        number -= 1
        matches, bucket = made
        draw = (rainbow_matching, random_matching)[seed % 2]
        yield matches, bucket, bucket[draw(matches, KEY, seed)], seed


def test_labellings_are_the_consistent_assignments_that_give_insiders_their_buckets() -> None:
    """Exactly, for 0 to 2 insiders of hundreds of graphs; walks reach what is said of them."""
    several = 0
    for matches, bucket, shown, seed in small_graphs(trials(600, 60)):
        n, mu = matches.shape
        random = np.random.default_rng(seed)
        insiders = random.choice(n, int(random.integers(0, 3)), replace=False).tolist()
        worlds = np.array(list(all_labellings(matches, allowed_by_rows(matches, shown))))
        several += len(worlds) > 1
        expected = beliefs(matches, shown, {i: int(bucket[i]) for i in insiders})
        found = believed(worlds, bucket, insiders, mu)
        for person in range(n):
            for label in range(mu):
                assert abs(found[person, label] - float(expected[person][label])) < 1e-12
    assert several > 20


def test_what_is_proven_leaves_every_labelling() -> None:
    """And strikes out, by the paper's draw or an insider, most of what no labelling has."""
    struck = missed = 0
    for matches, bucket, shown, seed in small_graphs(trials(600, 60)):
        n, mu = matches.shape
        allowed, who = allowed_by_rows(matches, shown), [seed % n][: seed % 3]
        worlds = np.array(list(all_labellings(matches, allowed)))
        possible = believed(worlds, bucket, who, mu) > 0
        left = proven(matches, bucket, allowed, who)
        assert (left | ~possible).all()
        struck += int((~left).sum())
        missed += int((left & ~possible).sum())
    assert missed < struck / 4


@pytest.mark.long
def test_walks_find_the_shares_of_small_graphs() -> None:
    """400 samples: a share is off by more than .15, six standard errors of independent ones, only where the walk does not reach some
    labelling. Nobody is thought impossible to be where no labelling puts them, and the certain are certain."""
    off = compared = 0
    for matches, bucket, shown, seed in small_graphs(trials(60, 8)):
        n, mu = matches.shape
        allowed = allowed_by_rows(matches, shown)
        insiders = [[seed % n], [seed % n, (seed + 1) % n]]
        worlds = np.array(list(all_labellings(matches, allowed)))
        sampled = walk(matches, bucket, allowed, insiders, 400, seed=seed)
        for k, who in enumerate(insiders):
            exact = believed(worlds, bucket, who, mu)
            assert (sampled[k][exact == 0] == 0).all()
            assert (sampled[k][exact == 1] == 1).all()
            assert (sampled[k][who, bucket[who]] == 1).all()
            off += bool((np.abs(sampled[k] - exact) > 0.15).any())
            compared += 1
    assert off <= compared / 10


def test_who_knows_the_buckets_is_left_with_their_names() -> None:
    """Of all renamings of the true buckets, those that give the insiders their own: by enumeration."""
    random = np.random.default_rng(3)
    for _ in range(200):
        mu, size = int(random.integers(2, 5)), int(random.integers(1, 4))
        bucket = np.repeat(np.arange(mu), size)
        who = random.choice(len(bucket), int(random.integers(0, min(4, len(bucket)))), replace=False).tolist()
        worlds = np.array([np.array(names)[bucket] for names in itertools.permutations(range(mu))])
        expected = believed(worlds, bucket, who, mu).max(axis=1)
        assert np.allclose(known_buckets(bucket, who, mu), expected)


def test_in_classes_one_value_less_is_left() -> None:
    group, value = np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3)
    belief = in_classes(group, value, [0])
    assert belief[1:4].tolist() == [1 / 3] * 3
    assert belief[4:].tolist() == [1 / 4] * 8
    assert in_classes(group, value, [0, 1, 2])[3] == 1
    found = gain(in_classes(group, value, [0, 5]), [0, 5], 4)
    assert (found.others, found.above, found.half, found.certain) == (10, 0, 0, 0)
    assert found.largest == float(Fraction(1, 3))


def test_gain_counts_beyond_noise_alone() -> None:
    belief = np.array([1.0, 0.34, 0.6, 1.0, 0.2])
    exact = gain(belief, [0], 4)
    assert (exact.others, exact.above, exact.half, exact.certain) == (4, 3, 2, 1)
    sampled = gain(belief, [0], 4, samples=100)
    assert (sampled.above, sampled.half, sampled.certain) == (2, 1, 1)
    assert gain(belief, [0, 1, 2, 3], 4).above == 0


def test_the_worst_insiders_of_small_graphs() -> None:
    """The first one chosen tells as much of the target as any, and each of the others at least as much as none: by all labellings."""
    told = 0
    for matches, bucket, shown, seed in small_graphs(trials(150, 60)):
        n, mu = matches.shape
        allowed = allowed_by_rows(matches, shown)
        worlds = np.array(list(all_labellings(matches, allowed)))
        often = np.tile(
            worlds, (-(-4000 // len(worlds)), 1)
        )  # each as often as the others, enough of them to be judged by
        target = seed % n
        chosen = worst_first(often, bucket, target, 2, mu if allowed.all() else None)

        def belief(who: list[int], worlds=worlds, bucket=bucket, mu=mu, target=target) -> float:
            return believed(worlds, bucket, who, mu)[target, bucket[target]]

        singles = [belief([j]) for j in range(n) if j != target]
        assert abs(belief(chosen[:1]) - max(singles)) < 1e-12
        pairs = [belief([chosen[0], j]) for j in range(n) if j not in (target, chosen[0])]
        assert len(chosen) == 2
        assert abs(belief(chosen) - max(pairs)) < 1e-12
        told += max(singles) > 1 / (mu - 1) + 1e-12
    assert told > 5


def test_names_of_buckets_by_the_paper_s_draw() -> None:
    """As renamings are told by the rows: by enumeration."""
    few = 0
    for matches, bucket, shown, seed in small_graphs(trials(400, 200)):
        mu = matches.shape[1]
        allowed = allowed_by_rows(matches, shown)
        who = [seed % len(bucket)][: seed % 3]
        renamed = [np.array(names)[bucket] for names in itertools.permutations(range(mu))]
        worlds = np.array([w for w in renamed if allowed[np.arange(len(w)), w].all()])
        few += len(worlds) < len(renamed)
        assert np.allclose(known_buckets(bucket, who, mu, allowed), believed(worlds, bucket, who, mu).max(axis=1))
    assert few > 10
