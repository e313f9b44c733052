"""What a SABRE task makes of its records: takeOut against a slow twin, and halves that keep what was asked, by an independent distance."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from anonlib.domains import CategoricalDomain, NumericDomain
from anonlib.errors import AnonlibError
from anonlib.hierarchy import parse_hierarchy
from anonlib.kernels.classes.equivalence_classes import (
    Halving,
    TakeOut,
    broken_classes,
    merged_until_kept,
    refuse_broken,
)
from anonlib.kernels.classes.halving import Records, halved, information_loss
from anonlib.kernels.classes.take_out import approximate, exact
from anonlib.privacy.class_requirements import KAnonymity
from anonlib.privacy.t_closeness import GroundDistance, SeveralAttributes, TCloseness
from anonlib.solvers.classes.ec_size_tree import ec_sizes
from anonlib.solvers.classes.sabre_buckets import bucketize

TREE = parse_hierarchy("a,1,any\nb,1,any\nc,2,any\nd,2,any\ne,2,any\n")
DOMAINS = (
    NumericDomain("age", 0.0, 60.0),
    CategoricalDomain("place", TREE.labels[:5], TREE),
    CategoricalDomain("colour", ("blue", "green", "red")),
)
KEY = bytes(range(32))


def people(seed: int, n: int, m: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Three quasi-identifiers and a sensitive value that goes with the first."""
    draw = np.random.default_rng(seed)
    age = draw.integers(0, 61, n)
    sensitive = np.clip((age / 61 * m * 0.7 + draw.normal(0, m / 4, n) + 0.15 * m).astype(np.int64), 0, m - 1)
    return [age, draw.integers(0, 5, n), draw.integers(0, 3, n)], np.unique(sensitive, return_inverse=True)[1]


def slow_take_out(away, bucket: np.ndarray, sizes: list[list[int]], seeds: np.ndarray) -> np.ndarray:
    """takeOut by sorting everything for every class. away(record) -> (n,) distances."""
    result = np.full(len(bucket), -1)
    for number, size in enumerate(sizes):
        start = next(record for record in seeds.tolist() if result[record] < 0)
        distances = away(start)
        for which, wanted in enumerate(size):
            left = [record for record in np.flatnonzero(bucket == which) if result[record] < 0]
            result[sorted(left, key=lambda record: (distances[record], record))[:wanted]] = number
    return result


def settings(seed: int):
    draw = np.random.default_rng(seed)
    n = int(draw.integers(5, 60))
    bucket = draw.integers(0, 3, n)
    sizes, left = [], np.bincount(bucket, minlength=3)
    while left.sum():
        size = np.minimum(left, draw.integers(0, 4, 3))
        if size.sum():
            sizes.append(size.tolist())
            left = left - size
    return draw, n, bucket, sizes


def test_exact_neighbours_are_the_slow_twin_s():
    for seed in range(60):
        draw, n, bucket, sizes = settings(seed)
        points = draw.integers(0, 4, (n, 2)) / 3  # with ties
        seeds = draw.permutation(n)
        expected = slow_take_out(lambda x, p=points: ((p - p[x]) ** 2).sum(axis=1), bucket, sizes, seeds)
        assert exact(points, bucket, sizes, seeds).tolist() == expected.tolist()


def test_approximate_neighbours_are_the_nearest_along_the_curve():
    for seed in range(60):
        draw, n, bucket, sizes = settings(seed)
        curve = draw.integers(0, 1 << 62, n)
        seeds = draw.permutation(n)
        expected = slow_take_out(lambda x, c=curve: [abs(int(v) - int(c[x])) for v in c], bucket, sizes, seeds)
        assert approximate(curve.tolist(), bucket, sizes, seeds).tolist() == expected.tolist()


def test_equal_places_on_the_curve_are_taken_once_each():
    classes = approximate([7] * 6, np.array([0, 0, 0, 1, 1, 1]), [[1, 2], [2, 1]], np.arange(6))
    assert np.bincount(classes).tolist() == [3, 3]
    assert np.bincount(classes[:3]).tolist() == [1, 2]


def take_out(of: TCloseness, k: int, neighbours: str) -> TakeOut:
    buckets = bucketize(of)
    tree = ec_sizes(of, buckets, k)
    return TakeOut(DOMAINS, (of.distance.m,), buckets.bucket_of, tree, neighbours, of, KEY)


@pytest.mark.parametrize("neighbours", ["approximate", "exact"])
def test_classes_of_a_task_are_close_by_scipy_s_distance_and_no_record_is_lost(neighbours):
    for seed in range(12):
        columns, sensitive = people(seed, 400, 9)
        table = np.bincount(sensitive)
        of = TCloseness(GroundDistance.ordered([str(i) for i in range(len(table))]), table, Fraction("0.25"))
        kernel = take_out(of, 4, neighbours)
        classes = kernel(columns, [sensitive], np.zeros(400, dtype=np.int64), 0)
        sizes = np.bincount(classes)
        assert len(sizes) == kernel.tree.classes[0]
        assert sorted(sizes.tolist()) == sorted(
            s for s, times in kernel.tree.size_histogram().items() for _ in range(times)
        )
        assert sizes.min() >= 4
        worst = max(
            wasserstein_distance(sensitive[classes == c], sensitive) / (len(table) - 1) for c in range(len(sizes))
        )
        assert 0 < worst <= 0.25 + 1e-12
        again = kernel(columns, [sensitive], np.zeros(400, dtype=np.int64), 0)
        assert classes.tolist() == again.tolist()
        assert classes.tolist() != kernel(columns, [sensitive], np.zeros(400, dtype=np.int64), 1).tolist()


def test_a_partition_that_is_not_the_tree_s_is_refused():
    columns, sensitive = people(0, 400, 9)
    of = TCloseness(GroundDistance.flat(int(sensitive.max()) + 1), np.bincount(sensitive), Fraction("0.5"))
    kernel = take_out(of, 1, "approximate")
    some = slice(0, 399)
    with pytest.raises(AnonlibError, match="does not hold the records"):
        kernel([column[some] for column in columns], [sensitive[some]], np.zeros(399, dtype=np.int64), 0)


def records(columns: list[np.ndarray], *sensitive: np.ndarray) -> Records:
    sizes = [int(codes.max()) + 1 for codes in sensitive]
    return Records(columns, DOMAINS, list(sensitive), sizes, sensitive[0], np.arange(len(sensitive[0])))


def slow_loss(columns: list[np.ndarray], members: np.ndarray) -> float:
    """SABRE, section 3.2, for one class."""
    age, place, colour = (column[members] for column in columns)
    node = TREE.cover(place.min()[None], place.max()[None])[0]
    leaves = TREE.last[node] - TREE.first[node] + 1
    colours = len(set(colour.tolist()))
    return (age.max() - age.min()) / 60 + (leaves / 5 if leaves > 1 else 0) + (colours / 3 if colours > 1 else 0)


def test_halves_are_close_large_enough_and_lose_less():
    for seed in range(12):
        columns, sensitive = people(seed, 500, 8)
        table = np.bincount(sensitive)
        kind = ("ordered", "flat")[seed % 2]
        distance = (
            GroundDistance.ordered([str(i) for i in range(len(table))])
            if kind == "ordered"
            else GroundDistance.flat(len(table))
        )
        for t in ("0.1", "0.3"):
            of = TCloseness(distance, table, Fraction(t))
            table_of = records(columns, sensitive)
            whole = np.zeros(500, dtype=np.int64)
            classes = halved(table_of, whole, of, 5)
            sizes = np.bincount(classes)
            assert sizes.min() >= 5
            assert len(sizes) > 4
            for c in range(len(sizes)):
                members = sensitive[classes == c]
                if kind == "ordered":
                    away = wasserstein_distance(members, sensitive) / (len(table) - 1)
                else:
                    away = abs(np.bincount(members, minlength=len(table)) / len(members) - table / 500).sum() / 2
                assert away <= float(Fraction(t)) + 1e-12
            loss = information_loss(table_of, np.arange(500), classes, len(sizes))
            assert loss == pytest.approx([slow_loss(columns, np.flatnonzero(classes == c)) for c in range(len(sizes))])
            assert (loss * sizes).sum() < 500 * slow_loss(columns, np.arange(500))


def test_splitting_on_refines_what_is_given_and_stops_at_what_is_asked():
    columns, sensitive = people(3, 300, 6)
    of = TCloseness(GroundDistance.flat(int(sensitive.max()) + 1), np.bincount(sensitive), Fraction("0.4"))
    start = np.where(columns[0] < 30, 0, 1)
    classes = halved(records(columns, sensitive), start, of, 10)
    assert all(len(set(start[classes == c].tolist())) == 1 for c in range(int(classes.max()) + 1))
    again = halved(records(columns, sensitive), classes, of, 10)
    assert again.tolist() == classes.tolist()  # nothing is left to split


def test_a_tight_promise_is_kept_by_dealing_each_value_to_both_halves():
    """Mondrian's cuts alone get nowhere where the sensitive value goes with the only quasi-identifier."""
    n = 512
    sensitive = np.arange(n) * 4 // n
    columns = [np.arange(n) * 60 // n, np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)]
    of = TCloseness(GroundDistance.flat(4), np.bincount(sensitive), Fraction("0.01"))
    classes = halved(records(columns, sensitive), np.zeros(n, dtype=np.int64), of, 4)
    assert int(classes.max()) + 1 > 40  # until the two records of a value have the same age
    assert of.close(
        np.array([np.bincount(sensitive[classes == c], minlength=4) for c in range(int(classes.max()) + 1)])
    ).all()


def test_several_attributes_are_all_kept():
    columns, one = people(5, 400, 6)
    other = np.random.default_rng(6).integers(0, 5, 400)
    parts = [
        TCloseness(
            GroundDistance.ordered([str(i) for i in range(int(one.max()) + 1)]), np.bincount(one), Fraction("0.3")
        ),
        TCloseness(GroundDistance.flat(5), np.bincount(other), Fraction("0.3")),
    ]
    both = SeveralAttributes(tuple(parts))
    classes = halved(records(columns, one, other), np.zeros(400, dtype=np.int64), both, 3)
    number = int(classes.max()) + 1
    assert number > 4
    for of, codes in zip(parts, (one, other), strict=True):
        assert of.close([np.bincount(codes[classes == c], minlength=of.distance.m) for c in range(number)]).all()


def test_merging_along_the_curve_makes_broken_classes_whole():
    draw = np.random.default_rng(7)
    curve = draw.permutation(200)
    other = draw.integers(0, 4, 200)
    classes = np.argsort(np.argsort(curve)) // 4
    of = TCloseness(GroundDistance.flat(4), np.bincount(other), Fraction("0.2"))
    assert broken_classes(classes, [other], [4], of).size
    merged = merged_until_kept(classes, curve, [other], [4], of)
    refuse_broken(merged, [other], [4], of)
    number = int(merged.max()) + 1
    assert 2 < number < 50
    assert all(len(set(merged[classes == c].tolist())) == 1 for c in range(50))
    spans = sorted((curve[merged == c].min(), curve[merged == c].max()) for c in range(number))
    assert all(one[1] < other[0] for one, other in itertools.pairwise(spans))  # neighbours only


def test_a_class_that_breaks_the_promise_does_not_leave_the_task():
    classes, codes = np.array([0, 0, 1, 1]), [np.array([0, 1, 0, 0])]
    refuse_broken(classes, codes, [2], TCloseness(GroundDistance.flat(2), np.array([3, 1]), Fraction(1, 4)))
    with pytest.raises(AnonlibError, match="does not keep what was asked"):
        refuse_broken(classes, codes, [2], TCloseness(GroundDistance.flat(2), np.array([3, 1]), Fraction(24, 100)))
    with pytest.raises(AnonlibError, match="does not keep what was asked"):
        merged_until_kept(classes, np.arange(4), codes, [2], KAnonymity(5))


def test_a_partition_of_less_than_k_records_does_not_leave_the_task():
    columns, sensitive = people(0, 8, 2)
    of = TCloseness(GroundDistance.flat(2), np.bincount(sensitive, minlength=2), Fraction("0.9"))
    zeros = np.zeros(8, dtype=np.int64)
    assert Halving(DOMAINS, (2,), of.distance.positions, (of,), 8)(columns, [sensitive], zeros, 0).tolist() == [0] * 8
    with pytest.raises(AnonlibError, match="does not keep what was asked"):
        Halving(DOMAINS, (2,), of.distance.positions, (of,), 9)(columns, [sensitive], zeros, 0)
