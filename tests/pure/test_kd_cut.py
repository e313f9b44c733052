"""Partitions by quasi-identifiers alone: where records go, how large leaves are, and merging until a promise can be kept."""

from fractions import Fraction

import numpy as np

from anonlib.domains import CategoricalDomain, NumericDomain
from anonlib.hierarchy import parse_hierarchy
from anonlib.kernels.boxes import boxes_of_classes
from anonlib.privacy.class_requirements import beta_likeness, frequency_diversity
from anonlib.privacy.counts import SensitiveCounts
from anonlib.solvers.classes.kd_cut import LEAF, kd_tree

TREE = parse_hierarchy("a,x,any\nb,x,any\nc,y,any\nd,y,any\ne,y,any\nf,f,any")
DOMAINS = (
    NumericDomain("age", 0, 20),
    CategoricalDomain("job", TREE.labels[:6], TREE),
    CategoricalDomain("town", ("p", "q", "r")),
    NumericDomain("dose", 0.0, 1.0),
)


def records(rng, n):
    return [rng.integers(0, 21, n), rng.integers(0, 6, n), rng.integers(0, 3, n), rng.integers(0, 5, n) / 4]


def test_leaves_hold_what_they_should_and_a_leaf_is_a_box_of_its_own():
    rng = np.random.default_rng(1)
    for _ in range(60):
        n, size = int(rng.integers(1, 400)), int(rng.integers(1, 60))
        columns = records(rng, n)
        tree = kd_tree(columns, DOMAINS, np.ones(n, dtype=np.int64), size)
        leaf = tree.leaf_of(columns)
        sizes = np.bincount(leaf, minlength=tree.leaves)
        assert sizes.min() >= min(size, n)
        assert sizes.sum() == n
        for node in np.flatnonzero(tree.attribute != LEAF):
            assert tree.left[node] > node
            assert tree.right[node] > node
        # a leaf that could still be cut in two halves of `size` has no gap that does it
        for number in np.flatnonzero(sizes >= 2 * size):
            mine = [c[leaf == number] for c in columns]
            for a in (0, 2, 3):
                below = np.cumsum(np.unique(mine[a], return_counts=True)[1])[:-1]
                assert not ((below >= size) & (sizes[number] - below >= size)).any()


def test_weights_count_as_records():
    rng = np.random.default_rng(2)
    columns, weights = records(rng, 50), rng.integers(1, 9, 50)
    repeated = [np.repeat(c, weights) for c in columns]
    by_weight = kd_tree(columns, DOMAINS, weights, 30)
    by_record = kd_tree(repeated, DOMAINS, np.ones(weights.sum(), dtype=np.int64), 30)
    np.testing.assert_array_equal(by_weight.leaf_of(repeated), by_record.leaf_of(repeated))


def test_large_codes_are_not_rounded():
    codes = np.array([2**60, 2**60 + 1, 2**60 + 2, 2**60 + 3])
    tree = kd_tree([codes], [NumericDomain("id", 2**60, 2**60 + 3)], np.ones(4, dtype=np.int64), 2)
    assert tree.leaf_of([codes]).tolist() == [
        0,
        0,
        0,
        0,
    ]  # the domain's span vanishes in floating point: nothing to cut by
    near = codes - 2**60
    tree = kd_tree([near * 2**40], [NumericDomain("id", 0, 3 * 2**40)], np.ones(4, dtype=np.int64), 2)
    assert tree.leaf_of([near * 2**40]).tolist() == [0, 0, 1, 1]


def test_partitions_that_cannot_keep_the_promise_are_merged_with_their_neighbours_only():
    rng = np.random.default_rng(3)
    merged_some = kept_some = False
    for _ in range(80):
        n, m = 300, 4
        columns = records(rng, n)
        sensitive = rng.choice(m, n, p=[0.4, 0.3, 0.2, 0.1])
        whole = SensitiveCounts(tuple(range(m)), np.bincount(sensitive, minlength=m))
        requirement = [frequency_diversity(2, m), beta_likeness(Fraction(1, 3), whole)][int(rng.integers(2))]
        tree = kd_tree(columns, DOMAINS, np.ones(n, dtype=np.int64), 10)
        leaf = tree.leaf_of(columns)
        counts = np.bincount(leaf * m + sensitive, minlength=tree.leaves * m).reshape(-1, m)
        partition = tree.merged(counts, requirement)
        assert np.diff(partition).min(initial=0) >= 0  # leaves are numbered from left to right: neighbours merge
        assert set(np.diff(partition).tolist()) <= {0, 1}
        together = np.zeros((partition.max() + 1, m), dtype=np.int64)
        np.add.at(together, partition, counts)
        if requirement.holds(counts.sum(axis=0)[None])[0]:
            assert requirement.holds(together).all()
        merged_some |= len(together) < tree.leaves
        kept_some |= len(together) > 1
    assert merged_some
    assert kept_some


def test_boxes_are_tight():
    rng = np.random.default_rng(4)
    for _ in range(50):
        n = int(rng.integers(1, 60))
        columns = records(rng, n)
        classes = np.unique(rng.integers(0, 8, n), return_inverse=True)[1].astype(np.int64)
        boxes = boxes_of_classes(columns, DOMAINS, classes)
        for g in range(classes.max() + 1):
            mine = [c[classes == g] for c in columns]
            assert (boxes[0].low[g], boxes[0].high[g]) == (mine[0].min(), mine[0].max())
            assert (boxes[3].low[g], boxes[3].high[g]) == (mine[3].min(), mine[3].max())
            assert boxes[1].lists().listed()[g].tolist() == np.unique(mine[1]).tolist()
            assert boxes[2].lists().listed()[g].tolist() == np.unique(mine[2]).tolist()
