"""Mondrian: against its recursive twin, and what every run must keep."""

from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest

from anonlib.domains import CategoricalDomain, NumericDomain
from anonlib.hierarchy import parse_hierarchy
from anonlib.kernels.classes.mondrian import mondrian
from anonlib.privacy.class_requirements import (
    AllOf,
    DistinctDiversity,
    KAnonymity,
    beta_likeness,
    frequency_diversity,
)
from anonlib.privacy.counts import SensitiveCounts
from tests.oracles import mondrian_recursive

TREE = parse_hierarchy("a,x,any\nb,x,any\nc,y,any\nd,y,any\ne,y,any\nf,f,any")


def table(rng, n):
    columns = [
        rng.integers(0, 9, n),
        rng.integers(0, 4, n) ** 2 / 4,
        rng.integers(0, TREE.leaves, n),
        rng.integers(0, 3, n),
    ]
    domains = [
        NumericDomain("age", 0, 8),
        NumericDomain("dose", 0.0, 2.25),
        CategoricalDomain("job", TREE.labels[: TREE.leaves], TREE),
        CategoricalDomain("town", ("p", "q", "r")),
    ]
    return columns, domains, rng.integers(0, 4, n)


def requirements(sensitive):
    counts = np.bincount(sensitive, minlength=4)
    whole = SensitiveCounts(tuple("wxyz"[i] for i in range(4) if counts[i]), counts[counts > 0])
    code = np.cumsum(counts > 0) - 1  # codes without a hole
    yield code, whole.m, KAnonymity(3)
    yield code, whole.m, AllOf((KAnonymity(2), DistinctDiversity(2)))
    yield code, whole.m, frequency_diversity(2, whole.m)
    yield code, whole.m, beta_likeness(Fraction(1, 2), whole)


def children(codes):
    """{code: first leaf of its child under the lowest node above all codes}, by walking up."""

    def path(leaf):
        found = [leaf]
        while TREE.parents[found[-1]] >= 0:
            found.append(int(TREE.parents[found[-1]]))
        return found

    lowest = next(node for node in path(min(codes)) if all(node in path(c) for c in codes))
    return {c: int(TREE.first[[c, *path(c)][path(c).index(lowest)]]) for c in codes}


def classes_of(ids):
    members = defaultdict(set)
    for record, number in enumerate(ids.tolist()):
        members[number].add(record)
    return members


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_the_same_classes_as_by_recursion(seed):
    rng = np.random.default_rng(seed)
    for _ in range(25):
        columns, domains, raw = table(rng, int(rng.integers(1, 60)))
        for code, m, requirement in requirements(raw):
            sensitive = code[raw]

            def keeps(found, m=m, requirement=requirement):
                return bool(requirement.holds(np.array([[found[i] for i in range(m)]], dtype=np.int64))[0])

            wanted = mondrian_recursive.mondrian(columns, domains, sensitive, keeps, [None, None, children, None])
            ids = mondrian(columns, domains, sensitive, m, requirement)
            assert {frozenset(c) for c in classes_of(ids).values()} == wanted


@pytest.mark.long
@pytest.mark.parametrize("strict", [True, False])
def test_every_class_keeps_the_promise_and_every_record_is_in_one(strict):
    rng = np.random.default_rng(7)
    for _ in range(25):
        columns, domains, raw = table(rng, int(rng.integers(1, 200)))
        for code, m, requirement in requirements(raw):
            sensitive = code[raw]
            ids = mondrian(columns, domains, sensitive, m, requirement, strict)
            assert ids.shape == raw.shape
            members = classes_of(ids)
            assert sorted(members) == list(range(len(members)))
            counts = np.zeros((len(members), m), dtype=np.int64)
            np.add.at(counts, (ids, sensitive), 1)
            if requirement.holds(counts.sum(axis=0)[None])[0]:
                assert requirement.holds(counts).all()
            assert Counter(sensitive.tolist()) == Counter(np.repeat(np.arange(m), counts.sum(axis=0)).tolist())


def test_strict_keeps_equal_values_together_and_relaxed_cuts_them():
    column, domain = [np.array([1] * 6 + [2, 3])], [NumericDomain("age", 1, 3)]
    sensitive = np.zeros(8, dtype=np.int64)
    assert sorted(Counter(mondrian(column, domain, sensitive, 1, KAnonymity(2)).tolist()).values()) == [2, 6]
    relaxed = mondrian(column, domain, sensitive, 1, KAnonymity(2), strict=False)
    assert sorted(Counter(relaxed.tolist()).values()) == [2, 2, 4]


def test_a_cut_follows_the_hierarchy():
    """Codes 1 | 2 would halve the records, but b belongs to a and c to d."""
    codes = np.array([0] * 2 + [1] * 4 + [2] * 2 + [3] * 1)
    ids = mondrian(
        [codes],
        [CategoricalDomain("job", TREE.labels[:6], TREE)],
        np.zeros(9, dtype=np.int64),
        1,
        KAnonymity(3),
    )
    assert {frozenset(codes[list(c)].tolist()) for c in classes_of(ids).values()} == {
        frozenset({0, 1}),
        frozenset({2, 3}),
    }


def test_the_order_of_the_records_does_not_matter():
    rng = np.random.default_rng(11)
    columns, domains, raw = table(rng, 300)
    mixed = rng.permutation(300)
    ids = mondrian(columns, domains, raw, 4, KAnonymity(5))
    again = mondrian([c[mixed] for c in columns], domains, raw[mixed], 4, KAnonymity(5))
    assert {frozenset(c) for c in classes_of(ids).values()} == {
        frozenset(mixed[list(c)].tolist()) for c in classes_of(again).values()
    }


def test_no_records_and_a_single_one():
    domain = [NumericDomain("age", 0, 0)]
    none = mondrian([np.zeros(0, dtype=np.int64)], domain, np.zeros(0, dtype=np.int64), 1, KAnonymity(1))
    assert none.shape == (0,)
    assert mondrian([np.zeros(1, dtype=np.int64)], domain, np.zeros(1, dtype=np.int64), 1, KAnonymity(1)).tolist() == [
        0
    ]
