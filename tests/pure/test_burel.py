"""BuReL: buckets against exhaustive search, class sizes against the bound, and classes that hold what was asked."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from anonlib.kernels.burel import neighbour_classes
from anonlib.keyed import Stream
from anonlib.privacy.class_requirements import enhanced_beta_likeness
from anonlib.privacy.counts import SensitiveCounts
from anonlib.solvers.burel import class_sizes, value_buckets

KEY = bytes(range(32))


def table(rng, m=None):
    m = m or int(rng.integers(1, 8))
    return SensitiveCounts(tuple(f"v{i}" for i in range(m)), rng.integers(1, 40, m).astype(np.int64))


def test_as_few_buckets_as_any_partition_into_runs():
    rng = np.random.default_rng(1)
    for _ in range(200):
        counts, beta = table(rng), Fraction(int(rng.integers(1, 12)), 2)
        bounds = enhanced_beta_likeness(beta, counts)
        found = value_buckets(counts, bounds)
        order = sorted(range(counts.m), key=lambda i: (counts.counts[i], i))

        def fits(run, counts=counts, bounds=bounds):
            return len(run) == 1 or sum(counts.frequency(i) for i in run) < bounds.caps[run[0]]

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
        if len(sizes) > 1:
            for row in sizes:
                for b in range(buckets.q):
                    worst = [i for i in range(counts.m) if buckets.bucket[i] == b]
                    assert all(Fraction(int(row[b]), int(row.sum())) <= bounds.caps[i] for i in worst)


def test_a_class_takes_the_records_nearest_to_its_seed():
    """With one class of one record of each bucket left to last, each class but the last is a run of each bucket's ranks."""
    rng = np.random.default_rng(3)
    for _ in range(100):
        q, classes = int(rng.integers(1, 4)), int(rng.integers(1, 6))
        sizes = rng.integers(0, 4, (classes, q))
        sizes[:, 0] += 1
        bucket = rng.permutation(np.repeat(np.arange(q), sizes.sum(axis=0)))
        curve = rng.integers(0, 20, len(bucket))
        ids = neighbour_classes(curve, bucket, sizes, Stream(KEY, "test", 0))
        found = Counter(zip(ids.tolist(), bucket.tolist(), strict=True))
        assert found == {(c, b): int(sizes[c, b]) for c in range(classes) for b in range(q) if sizes[c, b]}


def test_the_first_class_has_the_nearest_neighbours():
    curve, bucket = np.array([0, 10, 20, 30, 40, 50]), np.array([0, 1, 0, 1, 0, 1])
    sizes = np.array([[1, 1], [1, 1], [1, 1]])
    ids = neighbour_classes(curve, bucket, sizes, Stream(KEY, "test", 0))
    first = int(Stream(KEY, "test", 0).permutation(3)[0])
    seed, partner = (int(np.flatnonzero((ids == first) & (bucket == b))[0]) for b in (0, 1))
    assert abs(seed - partner) == 1


def test_classes_that_ask_for_what_is_not_there_are_refused():
    with pytest.raises(ValueError, match="do not take exactly"):
        neighbour_classes(np.arange(3), np.zeros(3, dtype=np.int64), np.array([[2]]), Stream(KEY, "test", 0))


def test_the_same_key_gives_the_same_classes():
    rng = np.random.default_rng(4)
    curve, bucket = rng.integers(0, 99, 40), np.repeat([0, 1], 20)
    sizes = np.full((10, 2), 2)
    one, again, other = (
        neighbour_classes(curve, bucket, sizes, Stream(KEY, "test", part)).tolist() for part in (0, 0, 1)
    )
    assert one == again != other
