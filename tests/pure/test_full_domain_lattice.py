"""Full-domain recoding against a search through every choice."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from anonlib.domains import CategoricalDomain, NumericDomain
from anonlib.errors import Unsatisfiable
from anonlib.hierarchy import parse_hierarchy
from anonlib.privacy.class_requirements import AllOf, DistinctDiversity, KAnonymity, frequency_diversity
from anonlib.privacy.t_closeness import GroundDistance, TCloseness
from anonlib.solvers.classes.full_domain_lattice import ClassFinder, Combinations, lattice, search

TREE = parse_hierarchy("a,x,any\nb,x,any\nc,y,any\nd,y,any\ne,y,any\nf,f,any")
DOMAINS = (
    NumericDomain("age", 0, 20),
    CategoricalDomain("job", TREE.labels[:6], TREE),
    CategoricalDomain("town", ("p", "q", "r")),
)
M = 3


def table(rng):
    """(records' codes (n, 3), their sensitive values, the same as combinations)."""
    n = int(rng.integers(1, 40))
    records = np.stack([rng.integers(0, 21, n), rng.integers(0, 6, n), rng.integers(0, 3, n)], axis=1)
    sensitive = rng.integers(0, M, n)
    distinct, of_record = np.unique(records, axis=0, return_inverse=True)
    cells, count = np.unique(of_record.ravel() * M + sensitive, return_counts=True)
    columns = tuple(distinct[:, a] for a in range(3))
    return records, sensitive, Combinations(columns, cells // M, cells % M, count.astype(np.int64), M)


def requirements(sensitive):
    counts = np.bincount(sensitive, minlength=M)
    yield KAnonymity(3)
    yield AllOf((KAnonymity(2), DistinctDiversity(2)))
    yield frequency_diversity(2, M)
    yield AllOf((KAnonymity(2), TCloseness(GroundDistance.flat(M), counts.astype(np.int64), Fraction(1, 4))))


def label(value, a, level, levels):
    """What a value becomes, as a reader of the module's docstring would do it. `levels` were not thinned out."""
    if a == 1:
        return (value, "xxyyyf"[value], "any")[level]
    if a == 2:
        return (value, "any")[level]
    return value if level == 0 else min(int(Fraction(int(value), 20) * 2 ** (8 - level)), 2 ** (8 - level) - 1)


def recoded(records, node):
    return [
        tuple(label(v, a, h, 9) for a, (v, h) in enumerate(zip(row, node, strict=True))) for row in records.tolist()
    ]


def penalty(records, classes):
    total = Fraction(0)
    for number in set(classes):
        rows = [row for row, c in zip(records.tolist(), classes, strict=True) if c == number]
        ages, jobs, towns = zip(*rows, strict=True)
        loss = Fraction(max(ages) - min(ages), 20) + Fraction(len(set(jobs)) - 1, 5) + Fraction(len(set(towns)) - 1, 2)
        total += len(rows) * loss
    return float(total / (3 * len(records)))


def test_no_choice_that_keeps_the_promise_is_better():
    rng = np.random.default_rng(5)
    answers = 0
    for _ in range(12):
        records, sensitive, combinations = table(rng)
        for requirement in requirements(sensitive):
            best = None
            for node in itertools.product(range(9), range(3), range(2)):
                classes = recoded(records, node)
                counts = np.zeros((len(set(classes)), M), dtype=np.int64)
                number = {c: i for i, c in enumerate(dict.fromkeys(classes))}
                np.add.at(counts, ([number[c] for c in classes], sensitive), 1)
                if requirement.holds(counts).all():
                    loss = penalty(records, classes)
                    best = loss if best is None else min(best, loss)
            if best is None:
                with pytest.raises(Unsatisfiable, match="not even one class"):
                    search(combinations, DOMAINS, requirement)
                continue
            found = search(combinations, DOMAINS, requirement)
            assert found.penalty == pytest.approx(best, abs=1e-12)
            assert found.checked <= found.nodes
            answers += 1
    assert answers > 20


def test_levels_that_tell_no_fewer_values_apart_are_left_out():
    columns = (np.array([0, 5, 20]), np.array([0, 1, 5]), np.array([0, 0, 1]))
    cells = np.arange(3)
    found = lattice(Combinations(columns, cells, np.zeros(3, dtype=np.int64), np.ones(3, dtype=np.int64), 1), DOMAINS)
    assert [[int(level.max()) + 1 for level in levels] for levels in found.groups] == [[3, 2, 1], [3, 2, 1], [2, 1]]


def test_too_many_choices_are_refused():
    tall = parse_hierarchy("\n".join(",".join(f"{j // 2**h}_{h}" for h in range(8)) for j in range(128)))
    n = 128
    column, domain = np.arange(n), CategoricalDomain("code", tall.labels[:128], tall)
    ones = np.ones(n, dtype=np.int64)
    combinations = Combinations((column,) * 8, np.arange(n), np.zeros(n, dtype=np.int64), ones, 1)
    with pytest.raises(Unsatisfiable, match="choices of levels for 8 quasi-identifiers"):
        search(combinations, (domain,) * 8, KAnonymity(2))


def test_any_record_finds_its_class_and_an_unknown_one_is_refused():
    rng = np.random.default_rng(6)
    for _ in range(20):
        records, _, combinations = table(rng)
        chosen = search(combinations, DOMAINS, KAnonymity(min(3, len(records))))
        finder = ClassFinder.of(combinations.columns, DOMAINS, chosen.heights)
        classes = finder([records[:, a] for a in range(3)])
        assert classes.max() + 1 == len(set(classes.tolist()))
        by_record = {row: int(c) for row, c in zip(map(tuple, records.tolist()), classes, strict=True)}
        by_combination = zip(*(column.tolist() for column in combinations.columns), strict=True)
        assert by_record == dict(zip(by_combination, chosen.classes.tolist(), strict=True))
    few = Combinations(tuple(np.array([v]) for v in (3, 1, 0)), *(np.zeros(1, dtype=np.int64),) * 3, 1)
    finder = ClassFinder.of(few.columns, DOMAINS, (0, 0, 0))
    with pytest.raises(ValueError, match="not counted before"):
        finder([np.array([4]), np.array([1]), np.array([0])])
