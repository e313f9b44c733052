"""What somebody who knows the code and everybody's quasi-identifiers makes of SABRE's classes, by enumeration of all worlds.

A world says who has which sensitive value (and, under the default, which sub-bucket the key put each record into). All worlds with the
table's counts are equally likely; the release tells the classes and which values each holds. What is believed of a person is the share
of the worlds that are left. t-closeness promises that it lies within t of the table, and not only what a class shows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import comb

import numpy as np
import pytest

from anonlib.domains import NumericDomain
from anonlib.kernels.classes.equivalence_classes import Halving
from anonlib.kernels.classes.symmetric_classes import symmetric_classes
from anonlib.privacy.sub_buckets import JointValues, SubBuckets
from anonlib.privacy.t_closeness import GroundDistance, TCloseness
from anonlib.solvers.classes.sub_buckets import pack

Kind = tuple[int, int]
"""(sub-bucket, sensitive value) of a record."""
Release = tuple[tuple[int, ...], tuple[tuple[Kind, int], ...]]
Worlds = dict[Release, list[tuple[int, ...]]]
"""By release, the sensitive value of each person in every world that ends in it."""

AGE = NumericDomain("age", 0.0, 11.0)

# quasi-identifiers of the persons, how often each sensitive value occurs, t
CUT = [
    ([0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2], (9, 3), Fraction(1, 4)),
    ([0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1], (8, 4), Fraction(1, 4)),
    ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], (6, 6), Fraction(1, 3)),
]
DEALT = [
    ([0, 0, 0, 1, 1, 1, 2, 2], (6, 2), Fraction(1, 4)),
    ([0, 1, 2, 3, 4, 5, 6, 7], (4, 4), Fraction(1, 3)),
    ([0, 0, 1, 4, 4, 4, 9], (4, 3), Fraction(1, 5)),
    ([0, 0, 1, 4, 4, 4, 9, 9], (4, 2, 2), Fraction(1, 3)),
    ([0, 0, 0, 0, 7, 8, 8, 9], (5, 2, 1), Fraction(2, 5)),
]


def closeness(counts: tuple[int, ...], t: Fraction) -> TCloseness:
    return TCloseness(GroundDistance.flat(len(counts)), np.array(counts), t)


def distance(shares: list[Fraction], counts: tuple[int, ...]) -> Fraction:
    """The earth mover's distance of equally far values from the table: half the sum of the differences."""
    n = sum(counts)
    return sum((abs(share - Fraction(count, n)) for share, count in zip(shares, counts, strict=True)), Fraction(0)) / 2


def deals(kinds: list[tuple[Kind, int]], people: frozenset[int]) -> Iterator[dict[int, Kind]]:
    """Every way to say of which kind each person is, so many of each kind."""
    if not kinds:
        yield {}
        return
    (kind, number), *others = kinds
    for chosen in combinations(sorted(people), number):
        for rest in deals(others, people - {*chosen}):
            yield {**dict.fromkeys(chosen, kind), **rest}


def farthest(worlds: list[tuple[int, ...]], counts: tuple[int, ...]) -> Fraction:
    """How far anybody is believed from the table who knows that the world is one of these: the sensitive value of each person."""
    held = [Counter(values) for values in zip(*worlds, strict=True)]
    return max(distance([Fraction(of[v], len(worlds)) for v in range(len(counts))], counts) for of in held)


def release(classes: tuple[int, ...], values: tuple[int, ...]) -> Release:
    """What is published: the classes, and how many records of each have each value."""
    return classes, tuple(sorted(Counter(zip(classes, values, strict=True)).items()))


def named(classes: np.ndarray) -> tuple[int, ...]:
    """The classes as they are published: numbered by who is first in them."""
    first: dict[int, int] = {}
    return tuple(first.setdefault(c, len(first)) for c in classes.tolist())


def refined(place: list[int], counts: tuple[int, ...], t: Fraction) -> Worlds:
    """The worlds by what `refine: true` publishes in them: cuts are made where both halves' true distance allows."""
    n, of = len(place), closeness(counts, t)
    kernel = Halving((AGE,), (2,), of.distance.positions, (of,), 1)
    worlds: Worlds = defaultdict(list)
    for ill in combinations(range(n), counts[1]):
        value = np.zeros(n, dtype=np.int64)
        value[list(ill)] = 1
        classes = named(kernel([np.array(place)], [value], np.zeros(n, dtype=np.int64), 0))
        values = tuple(value.tolist())
        worlds[release(classes, values)].append(values)
    return worlds


def by_default(place: list[int], counts: tuple[int, ...], t: Fraction) -> Worlds:
    """The same of the default, over every deal of records to sub-buckets. The adversary knows the noise that decides between equals."""
    n = len(place)
    packing = pack([closeness(counts, t)], JointValues.single(np.array(counts)), 1)
    value = np.repeat(np.arange(len(counts)), counts)
    bucket = packing.sub_buckets.of(value, np.concatenate([np.arange(c) for c in counts]))
    noise = np.random.default_rng(n).permutation(n)
    kinds = Counter(zip(bucket.tolist(), value.tolist(), strict=True))

    @cache
    def classes_of(buckets: tuple[int, ...]) -> tuple[int, ...]:
        return dealt_classes(np.array(place), np.array(buckets), noise, packing.least)

    worlds: Worlds = defaultdict(list)
    for deal in deals(sorted(kinds.items()), frozenset(range(n))):
        buckets, values = zip(*(deal[person] for person in range(n)), strict=True)
        worlds[release(classes_of(buckets), values)].append(values)
    return worlds


def dealt_classes(place: np.ndarray, bucket: np.ndarray, noise: np.ndarray, least: int) -> tuple[int, ...]:
    there = np.flatnonzero(bucket != SubBuckets.REST)
    classes = np.zeros(len(bucket), dtype=np.int64)
    if there.size:
        rank = np.argsort(np.argsort(noise[there]))
        classes[there] = 1 + symmetric_classes([place[there]], [AGE], bucket[there], rank, least)
    return named(classes)


@pytest.mark.long
@pytest.mark.parametrize(("setting", "undone"), zip(CUT, [42, 103, 190], strict=True))
def test_cuts_that_true_counts_allow_are_undone(setting, undone):
    """Why `refine` must be asked for by name: in a fifth of these worlds somebody is believed farther than t."""
    worlds = refined(*setting)
    assert sum(map(len, worlds.values())) == comb(12, setting[1][1])
    assert sum(len(of) for of in worlds.values() if farthest(of, setting[1]) > setting[2]) == undone


@pytest.mark.parametrize("setting", DEALT)
def test_nobody_is_believed_farther_than_t_by_default(setting):
    worlds = by_default(*setting)
    assert all(farthest(of, setting[1]) <= setting[2] for of in worlds.values())


def test_an_uncut_class_tells_of_those_at_one_place():
    """80 records, 15 of them HIV, t = 1/4, 20 people at one place: where the cut beside them is not made, 9 of them or more are HIV."""
    place, counts, t = np.repeat([0, 1], [20, 60]), (65, 15), Fraction(1, 4)
    of = closeness(counts, t)
    kernel = Halving((AGE,), (2,), of.distance.positions, (of,), 1)
    uncut = []
    for ill in range(16):
        value = np.zeros(80, dtype=np.int64)
        value[:ill] = value[20 : 20 + 15 - ill] = 1
        classes = kernel([place], [value], np.zeros(80, dtype=np.int64), 0)
        if set(classes[place == 0]) & set(classes[place == 1]):
            uncut.append(ill)
    assert uncut == list(range(9, 16))
    assert all(distance([1 - Fraction(ill, 20), Fraction(ill, 20)], counts) > t for ill in uncut)
