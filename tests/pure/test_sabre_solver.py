"""SABRE's buckets and class sizes against slow twins: every bound by trying everything, every distance by a linear program."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from anonlib.errors import Unsatisfiable
from anonlib.hierarchy import parse_hierarchy
from anonlib.privacy.ec_sizes import Partitions
from anonlib.privacy.t_closeness import GroundDistance, TCloseness
from anonlib.solvers.classes.ec_size_tree import choose, ec_sizes
from anonlib.solvers.classes.sabre_buckets import BucketPartition, bucketize, greedy_path

TREE = parse_hierarchy(
    "a,1,x,any\nb,1,x,any\nc,2,x,any\nd,d,y,any\ne,3,y,any\nf,3,y,any\ng,g,g,any\nh,4,z,any\ni,4,z,any\nj,5,z,any\n"
)
LEAVES = "abcdefghij"


def requirement(kind: str, table: np.ndarray, t: str) -> TCloseness:
    m = len(table)
    distance = {
        "ordered": lambda: GroundDistance.ordered([str(i) for i in range(m)]),
        "flat": lambda: GroundDistance.flat(m),
        "hierarchical": lambda: GroundDistance.hierarchical(TREE, list(LEAVES[:m])),
    }[kind]()
    return TCloseness(distance, table, Fraction(t))


def tables(seed: int, number: int):
    draw = np.random.default_rng(seed)
    for _ in range(number):
        m = int(draw.integers(2, 11))
        yield draw.integers(1, 60, m), ("ordered", "flat", "hierarchical")[int(draw.integers(3))]


def cheapest(cost: np.ndarray, table: np.ndarray, group: np.ndarray) -> float:
    b = len(table)
    if b == 1:
        return 0.0
    constraints = np.vstack([np.kron(np.eye(b), np.ones(b)), np.kron(np.ones(b), np.eye(b))])
    right = np.concatenate([table / table.sum(), group / group.sum()])
    found = linprog(cost.ravel(), A_eq=constraints[:-1], b_eq=right[:-1], method="highs")
    assert found.status == 0
    return float(found.fun)


def slow_bound(buckets: BucketPartition, of: TCloseness) -> Fraction:
    """U by Theorem 2 as it is written: numeric, the farthest value; categorical, all but the rarest value at the node's height."""
    distance, total = of.distance, Fraction(0)
    for first, last in zip(buckets.first.tolist(), buckets.last.tolist(), strict=True):
        positions = range(first, last + 1)
        p = {i: Fraction(int(of.table[distance.order[i]]), of.n) for i in positions}
        if distance.kind == "ordered":
            total += max(sum((distance.between(far, i) * p[i] for i in positions), Fraction(0)) for far in positions)
        else:
            total += distance.between(first, last) * (sum(p.values()) - min(p.values()))
    return total


def test_buckets_hold_every_value_once_and_their_bound_is_theorem_2_s():
    for table, kind in tables(1, 60):
        of = requirement(kind, table, "0.3")
        path = list(greedy_path(of))
        for buckets in path:
            assert buckets.bound == slow_bound(buckets, of)
            assert buckets.sizes.tolist() == [
                int(table[buckets.bucket_of == bucket].sum()) for bucket in range(buckets.b)
            ]
        assert path[0].b == 1
        assert path[-1].b == len(table)
        assert path[-1].bound == 0
        assert all(later.bound <= earlier.bound for earlier, later in itertools.pairwise(path))
        assert bucketize(of).bound < of.t
        assert bucketize(of).b == next(buckets.b for buckets in path if buckets.bound < of.t)


def test_a_split_is_the_best_of_all_cuts():
    for table, _ in tables(2, 40):
        of = requirement("ordered", table, "0.3")
        one, two, *_ = greedy_path(of)
        assert one.b == 1
        best = min(
            slow_bound(
                BucketPartition(
                    np.array([0, cut]), np.array([cut - 1, of.distance.m - 1]), table, Fraction(0), of.distance
                ),
                of,
            )
            for cut in range(1, of.distance.m)
        )
        assert two.bound == best


def test_the_distance_between_buckets_is_the_transport_problem_s_for_every_kind():
    draw = np.random.default_rng(3)
    for table, kind in tables(4, 60):
        for buckets in greedy_path(requirement(kind, table, "0.3")):
            cost = np.array([[float(buckets.between(i, j)) for j in range(buckets.b)] for i in range(buckets.b)])
            group = draw.multinomial(7, draw.dirichlet(np.ones(buckets.b)))
            work = buckets.mover.work(buckets.sizes, group[None, :])[0]
            exact = Fraction(int(work), buckets.mover.unit * int(table.sum()) * 7)
            assert float(exact) == pytest.approx(cheapest(cost, buckets.sizes, group), abs=1e-9)


def test_any_records_taken_by_a_leaf_are_t_close():
    """Theorem 4: whichever records a class takes from its buckets, also the worst."""
    draw = np.random.default_rng(5)
    for table, kind in tables(6, 80):
        of = requirement(kind, table, ("0.15", "0.3", "1/2")[int(draw.integers(3))])
        buckets = bucketize(of)
        tree = ec_sizes(of, buckets, k=2)
        assert sum(size * times for size, times in tree.size_histogram().items()) == of.n
        assert sum(tree.size_histogram().values()) == tree.classes[0]
        for leaf in set(tree.leaves()):
            taken = tree.counts[leaf]
            assert taken.sum() >= 2
            worst = np.zeros((20, of.distance.m), dtype=np.int64)
            for group in worst:
                for bucket, number in enumerate(taken.tolist()):
                    codes = np.flatnonzero(buckets.bucket_of == bucket)
                    group[codes[draw.integers(len(codes))]] += number
            assert of.close(worst).all()


def test_a_half_that_theorem_4_allows_is_made():
    for table, kind in tables(7, 40):
        of = requirement(kind, table, "0.3")
        buckets = bucketize(of)
        tree = ec_sizes(of, buckets, k=3)
        mover = buckets.mover
        for node, counts in enumerate(tree.counts):
            halves = np.stack([(counts + 1) // 2, counts // 2])
            sizes = halves.sum(axis=1)
            close = sizes.min() >= 3 and all(
                Fraction(int(w), mover.unit * of.n * int(s)) + buckets.bound <= of.t
                for w, s in zip(mover.work(buckets.sizes, halves).tolist(), sizes.tolist(), strict=True)
            )
            assert (tree.left[node] >= 0) == close
            if close:
                assert tree.counts[tree.left[node]].tolist() == halves[0].tolist()
                assert tree.counts[tree.right[node]].tolist() == halves[1].tolist()
                assert min(tree.left[node], tree.right[node]) > node


def test_a_tree_of_ten_thousand_million_records_has_few_nodes():
    of = requirement("ordered", np.array([10**9 + 7 * i for i in range(10)]), "0.2")
    tree = ec_sizes(of, bucketize(of), k=6)
    assert tree.classes[0] > 10**8
    assert len(tree.counts) < 40 * (tree.counts.shape[1] + 1)


def test_partitions_take_every_record_once_and_exactly_a_node_s_counts():
    for table, kind in tables(8, 30):
        of = requirement(kind, table * 7, "0.3")
        buckets = bucketize(of)
        tree = ec_sizes(of, buckets)
        cut = Partitions(tree, 60)
        bucket = np.repeat(np.arange(buckets.b), buckets.sizes)
        rank = np.concatenate([np.arange(size) for size in buckets.sizes])
        partition, node = cut.locate(bucket, rank)
        assert sorted(set(partition.tolist())) == list(range(cut.number))
        for number in range(cut.number):
            here = partition == number
            (of_tree,) = set(node[here].tolist())
            assert np.bincount(bucket[here], minlength=buckets.b).tolist() == tree.counts[of_tree].tolist()
            assert tree.left[of_tree] < 0 or tree.counts[of_tree].sum() <= 60
            for b in range(buckets.b):  # neighbours in a bucket's order stay neighbours
                ranks = rank[here & (bucket == b)]
                assert len(ranks) == 0 or ranks.max() - ranks.min() + 1 == len(ranks)


def test_refining_the_buckets_never_makes_fewer_classes():
    more = 0
    for table, kind in tables(9, 40):
        of = requirement(kind, table, "0.25")
        _, tree = choose(of)
        buckets, refined = choose(of, refine=True)
        assert refined.classes[0] >= tree.classes[0]
        assert buckets.bound < of.t
        more += refined.classes[0] > tree.classes[0]
    assert more > 5


def test_fewer_than_k_records_are_refused():
    of = requirement("flat", np.array([2, 1]), "0.5")
    with pytest.raises(Unsatisfiable, match="at most k: 3"):
        ec_sizes(of, bucketize(of), k=4)


def test_fifteen_thousand_values_are_bucketized_at_once():
    m = 15_000
    table = 1 + (np.random.default_rng(0).pareto(1.0, m) * 50).astype(np.int64)
    of = TCloseness(GroundDistance.ordered([str(i) for i in range(m)]), table, Fraction("0.001"))
    buckets = bucketize(of)
    assert buckets.bound < of.t
    assert 100 < buckets.b < m
