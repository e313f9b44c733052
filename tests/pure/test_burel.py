"""BuReL: buckets against exhaustive search, and class sizes against the bound, whatever records a class takes."""

import itertools
from fractions import Fraction

import numpy as np

from anonlib.privacy.class_requirements import enhanced_beta_likeness
from anonlib.privacy.counts import SensitiveCounts
from anonlib.solvers.classes.burel import class_sizes, number_of_classes, value_buckets


def table(rng, m=None):
    m = m or int(rng.integers(1, 8))
    return SensitiveCounts(tuple(f"v{i}" for i in range(m)), rng.integers(1, 40, m).astype(np.int64))


def test_as_few_buckets_as_any_partition_into_runs():
    rng = np.random.default_rng(1)
    for _ in range(200):
        counts, beta = table(rng), Fraction(int(rng.integers(1, 12)), 2)
        bounds, room = enhanced_beta_likeness(beta, counts), Fraction(int(rng.integers(5, 9)), 5)
        found = value_buckets(counts, bounds, room)
        order = sorted(range(counts.m), key=lambda i: (counts.counts[i], i))

        def fits(run, counts=counts, bounds=bounds, room=room):
            return len(run) == 1 or sum(counts.frequency(i) for i in run) * room < bounds.caps[run[0]]

        fewest = min(
            len(cuts) + 1
            for size in range(counts.m)
            for cuts in itertools.combinations(range(1, counts.m), size)
            if all(fits(order[a:b]) for a, b in itertools.pairwise((0, *cuts, counts.m)))
        )
        assert found.q == fewest
        for b in range(found.q):
            run = [i for i in order if found.bucket[i] == b]
            assert fits(run)
            assert found.bounds.caps[b] == bounds.caps[run[0]] == min(bounds.caps[i] for i in run)


def test_classes_take_every_record_and_keep_every_bound_whatever_they_take():
    rng = np.random.default_rng(2)
    for _ in range(200):
        counts = table(rng)
        bounds = enhanced_beta_likeness(Fraction(int(rng.integers(1, 5))), counts)
        buckets = value_buckets(counts, bounds)
        records = buckets.counts(counts.counts)
        sizes = class_sizes(records, buckets.bounds)
        assert sizes.sum(axis=0).tolist() == records.tolist()
        assert number_of_classes(records, buckets.bounds) == len(sizes)
        if len(sizes) > 1:
            for row in sizes:
                for b in range(buckets.q):
                    worst = [i for i in range(counts.m) if buckets.bucket[i] == b]
                    assert all(Fraction(int(row[b]), int(row.sum())) <= bounds.caps[i] for i in worst)


def test_classes_are_counted_of_tables_that_nobody_could_list():
    counts = SensitiveCounts(tuple("abcdefgh"), np.array([3, 5, 8, 13, 21, 34, 55, 89]) * 10**8 + 7)
    bounds = enhanced_beta_likeness(Fraction(3), counts)
    buckets = value_buckets(counts, bounds)
    assert number_of_classes(buckets.counts(counts.counts), buckets.bounds) > 10**8
