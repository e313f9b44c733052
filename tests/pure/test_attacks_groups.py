"""Beliefs in groups, bounds, samples of persons and the registry, each against plain loops."""

from __future__ import annotations

import importlib
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.evaluation.attacks import Attack
from anonlib.evaluation.attacks_around import Around, Persons
from anonlib.evaluation.attacks_bounds import of_classes, thresholds
from anonlib.evaluation.attacks_corruption import corrupted
from anonlib.evaluation.attacks_decisions import NONE, decisions, minimality_words
from anonlib.evaluation.attacks_elimination import elimination, shown_most
from anonlib.evaluation.attacks_groups import Groups, Tally, added
from anonlib.evaluation.attacks_homogeneity import homogeneity
from anonlib.evaluation.attacks_posterior import SubTable, posterior
from anonlib.evaluation.attacks_registry import LAYOUTS, REGISTRY, figures_by_attack
from anonlib.evaluation.attacks_reidentification import reidentification
from anonlib.evaluation.attacks_sample import coarse, coarse_numbers
from anonlib.evaluation.attacks_skewness import skewness
from anonlib.queries.boxes import BoxReader
from anonlib.release.manifest import GuaranteePart, ValuePart
from tests.pure.test_attacks_definetti import DOMAINS, boxes, random_rows
from tests.thorough import trials

NAMES = ("a", "b", "c", "d")


def batch(groups: list[dict[int, int]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([list(g) for g in groups], pa.list_(pa.int32())),
            pa.array([list(g.values()) for g in groups], pa.list_(pa.int64())),
        ],
        names=["codes", "counts"],
    )


some_groups = st.lists(
    st.dictionaries(st.integers(0, 3), st.integers(1, 9), min_size=1, max_size=4), min_size=1, max_size=12
)
some_bounds = st.lists(
    st.one_of(st.none(), st.fractions(Fraction(1, 20), Fraction(19, 20), max_denominator=20)), min_size=4, max_size=4
)


@settings(max_examples=trials(200, 100), deadline=None)
@given(some_groups, some_bounds, st.integers(0, 12))
def test_beliefs_of_groups_are_what_a_loop_finds(groups, bounds, cut):
    shares = (0.4, 0.3, 0.2, 0.1)
    tally = Tally(shares, tuple(bounds))
    told_ = tally([batch(groups[:cut]), batch(groups[cut:])] if 0 < cut < len(groups) else [batch(groups)])
    rows = [dict(zip(("at", "total", "most"), row, strict=True)) for row in zip(*told_.values(), strict=True)]
    total, most = added(rows, tally.length)
    persons = sum(sum(g.values()) for g in groups)
    likeliest = sum(max(g.values()) for g in groups)
    above = certain = 0
    grown = 0.0
    largest = [0.0] * 4
    for g in groups:
        n = sum(g.values())
        lift = {v: c / n / shares[v] for v, c in g.items()}
        best = [v for v in g if lift[v] >= max(lift.values()) * (1 - 1e-12)]
        grown += sum(g[v] for v in best) / len(best)
        above += n * any(bounds[v] is not None and Fraction(c, n) > bounds[v] for v, c in g.items())
        certain += n * (len(g) == 1)
        for v, c in g.items():
            largest[v] = max(largest[v], c / n)
    plain = homogeneity(total, most, 0.4, bounds, "")
    assert plain.persons == persons
    assert plain.accuracy == pytest.approx(likeliest / persons)
    assert plain.detail["certain"] == certain
    promised = [v for v in range(4) if bounds[v] is not None]
    assert plain.above == (above if promised else None)
    assert plain.largest == (pytest.approx(max(largest[v] for v in promised)) if promised else None)
    lifted = skewness(total, most, NAMES, shares, 0.4, bounds, "")
    assert lifted.accuracy == pytest.approx(grown / persons)
    assert lifted.detail["lift"] == pytest.approx(max(largest[v] / shares[v] for v in range(4)))
    assert lifted.detail["gained most"] == NAMES[int(np.argmax(np.array(largest) - shares))]


def test_a_bound_that_is_met_exactly_is_kept_and_one_record_more_is_not():
    """0.29 of 100 is 29: floating point would allow 28."""
    tally = Tally((0.5, 0.5), (Fraction(29, 100), None))
    for count, above in ((29, 0), (30, 100)):
        total, most = tally.tally(
            Groups(np.array([2]), np.array([0, 1]), np.array([count, 100 - count]), np.array([100.0]))
        )
        assert homogeneity(total, most, 0.5, tally.bounds, "").above == above


def part(counts: list[int], asked=None, asked_of=None, distance="") -> GuaranteePart:
    values = [
        ValuePart(value=n, count=c, threshold=None if asked_of is None else asked_of[i])
        for i, (n, c) in enumerate(zip(NAMES, counts, strict=False))
    ]
    return GuaranteePart(
        model="", words="", sensitive="s", sensitive_type="string", values=values, asked=asked or {}, distance=distance
    )


def test_bounds_are_those_of_the_definitions():
    assert thresholds(part([6, 4], asked_of=["1", "1/3"])).of == (None, Fraction(1, 3))
    assert "none promised" in thresholds(part([6, 4], asked_of=["1", "1"])).words
    held = [6, 7, 12]
    assert of_classes(part(held, {"k": "5"})).of == (None,) * 3
    assert "which row" in of_classes(part(held, {"k": "5"})).words
    assert of_classes(part(held, {"l": "4"})).of == (Fraction(1, 4),) * 3
    assert of_classes(part(held, {"beta": "1/2"})).of == tuple(Fraction(3 * c, 50) for c in held)
    assert of_classes(part(held, {"beta": "3", "frequency_l": "2"})).of == (Fraction(1, 2),) * 3
    enhanced = of_classes(part(held, {"enhanced_beta": "2"})).of[2]
    assert float(enhanced) == pytest.approx(0.48 * (1 - math.log(0.48)))
    assert enhanced >= Fraction(0.48 * (1 - math.log(0.48)))
    assert of_classes(part(held, {"t": "0.1"}, distance="flat")).of[0] == Fraction(6, 25) + Fraction(1, 10)
    # an ordered distance of t moves a value's share by (m - 1) t at most: a step costs 1/(m - 1)
    assert of_classes(part(held, {"t": "0.1"}, distance="ordered")).of[0] == Fraction(6, 25) + Fraction(1, 5)
    assert of_classes(part(held, {"t": "0.5"}, distance="ordered")).largest is None


def test_persons_around_boxes_are_those_a_loop_finds():
    rng = np.random.default_rng(3)
    rows = random_rows(rng, 60, 3)
    persons = Persons((rng.integers(0, 6, 20), rng.integers(0, 3, 20)), np.zeros(20, dtype=np.int64), np.ones(20))
    slow = np.zeros((20, 3))
    for low, high, cities, counts in rows:
        for p in range(20):
            if low <= persons.codes[0][p] <= high and "abc"[persons.codes[1][p]] in cities:
                for code, n in counts.items():
                    slow[p, code] += n
    kernel = Around(BoxReader(DOMAINS, ("x", "y", "z")), persons, 3)
    assert kernel([boxes(rows[:7]), boxes(rows[7:])]).reshape(20, 3).tolist() == slow.tolist()
    assert Groups.of_matrix(slow, persons.weight).count.sum() == slow.sum()


def test_a_sample_of_persons_is_without_bias():
    """100 kinds of 1 to 100 persons, 20 drawn, 4,000 times: the mean of an estimate of 5,050 persons and of a count of a mark within five
    standard errors of the draws (false alarm once in 1.7e6)."""
    rng = np.random.default_rng(0)
    alike = np.arange(1, 101)
    marked = alike % 3 == 0
    people, some = [], []
    for _ in range(4_000):
        place = -np.log(rng.random(100)) / alike
        first = np.argsort(place)[:21]
        drawn = Persons.drawn([first], first, alike[first], place[first], 20)
        assert len(drawn.weight) == 20
        people.append(drawn.weight.sum())
        some.append(drawn.weight[marked[drawn.sensitive]].sum())
    for found, truth in ((people, alike.sum()), (some, alike[marked].sum())):
        assert np.mean(found) == pytest.approx(truth, abs=5 * np.std(found) / 4_000**0.5)
    all_of_them = Persons.drawn([alike], alike, alike, np.zeros(100), 200)
    assert all_of_them.weight.tolist() == alike.tolist()


def test_reidentification_by_hand():
    found = reidentification(np.array([1, 2, 4, 0]), np.array([3.0, 2.0, 4.0, 9.0]), 50, Fraction(1, 4), "k")
    assert found.accuracy == pytest.approx((3 + 2 / 2 + 4 / 4) / 9)
    assert (found.persons, found.above, found.largest, found.guarantee) == (9, 5, 1.0, 0.25)
    assert found.detail["singled out"] == pytest.approx(3 / 9)
    assert reidentification(np.array([3]), np.ones(1), 3, None, "").above is None


def test_elimination_strikes_out_values_shown_twice():
    """l = 4: the first sees four values once, the second one twice and two once, the third lies in five boxes and is not attacked."""
    around = np.array([[1, 1, 1, 1], [2, 1, 1, 0], [2, 1, 1, 1]])
    found = elimination(around, np.array([0, 1, 2]), np.array([3.0, 1.0, 5.0]), 4, 0.3)
    assert (found.persons, found.above, found.largest, found.guarantee) == (4, 1, 0.5, 0.25)
    assert found.accuracy == pytest.approx((3 / 4 + 1 / 2) / 4)
    assert elimination(around[:1], np.array([0]), np.ones(1), 4, 0.3).above == 0
    assert elimination(around[2:], np.array([0]), np.ones(1), 4, 0.3).persons == 0


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=12), some_bounds, st.data())
def test_a_value_shown_too_often_is_what_a_loop_finds(around, bounds, data):
    rows = np.array(around)
    truth = np.array([data.draw(st.sampled_from([v for v in range(4) if row[v]] or [0])) for row in around])
    weight = np.array(data.draw(st.lists(st.integers(1, 5), min_size=len(rows), max_size=len(rows))), dtype=float)
    found = shown_most(rows, truth, weight, 5, 0.3, bounds, "asked")
    persons = above = certain = 0
    right, largest = Fraction(0), Fraction(0)
    for row, own, n in zip(around, truth, weight, strict=True):
        if sum(row) != 5:
            continue
        persons += n
        best = [v for v in range(4) if row[v] == max(row)]
        right += Fraction(int(n), len(best)) if own in best else 0
        beliefs = [(Fraction(row[v], 5), bounds[v]) for v in range(4) if bounds[v] is not None]
        above += n if any(belief > bound for belief, bound in beliefs) else 0
        largest = max([largest, *(belief for belief, _ in beliefs)])
        certain += n if sum(c > 0 for c in row) == 1 else 0
    assert found.persons == persons
    assert found.accuracy == pytest.approx(float(right / int(persons))) if persons else found.accuracy == 0
    assert found.detail["certain"] == certain
    if any(bounds):
        assert (found.above, found.largest) == (above, pytest.approx(float(largest)))
        assert found.guarantee == pytest.approx(float(max(b for b in bounds if b is not None)))
    else:
        assert (found.above, found.largest, found.guarantee) == (None, None, None)


def brute_posterior(table: SubTable) -> np.ndarray:
    """(m true, m shown) as Fractions, from the transition matrix."""
    m, n = len(table.code), [int(c) for c in table.count]
    kept = table.gamma / (m - 1 + table.gamma)
    moved = 1 / (m - 1 + table.gamma)
    joint = [[n[v] * (kept if v == u else moved) for u in range(m)] for v in range(m)]
    return np.array([[joint[v][u] / sum(joint[w][u] for w in range(m)) for u in range(m)] for v in range(m)])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=2, max_size=6), st.fractions(Fraction(11, 10), 9, max_denominator=10))
def test_the_posterior_is_that_of_the_transition_matrix(counts, gamma):
    table = SubTable(gamma, np.arange(len(counts)), np.array(counts))
    found = brute_posterior(table)
    assert table.when_shown() == [found[v, v] for v in range(len(counts))]
    assert [found[g, u] for u, g in enumerate(table.guesses())] == [max(found[:, u]) for u in range(len(counts))]
    moved = 1 / (len(counts) - 1 + gamma)
    right = sum(counts[g] * (gamma if g == u else 1) * moved for u, g in enumerate(table.guesses()))
    assert table.expected() == pytest.approx(float(right))
    shown = [np.ones(len(counts), dtype=np.int64)]
    most = max(found[v, v] for v in range(len(counts)))
    protected = [True] * len(counts)
    assert posterior([table], shown, 1, 0.5, most, protected, "").above == 0
    assert posterior([table], shown, 1, 0.5, most - Fraction(1, 10**9), protected, "").above >= 1
    assert posterior([table], shown, 1, 0.5, Fraction(1, 10**6), [False] * len(counts), "").above == 0


def test_corruption_of_a_sub_table_grows_with_what_is_known():
    table = SubTable(Fraction(3), np.arange(3), np.array([50, 30, 20]))
    none, half, all_but_one = (corrupted([table], q, 0.5) for q in (Fraction(0), Fraction(1, 2), None))
    assert none.accuracy == pytest.approx(table.expected() / 100)
    assert (half.persons, all_but_one.persons) == (50, 1)
    assert all_but_one.accuracy == 1.0
    assert half.guarantee is None


def test_numbers_with_many_values_are_cut_into_stretches():
    assert coarse(["b", None, "a", "b"]).tolist() == [2, 0, 1, 2]
    codes = coarse([str(i / 7) for i in range(1_000)])
    assert len(set(codes.tolist())) == 100
    assert (np.diff(codes) >= 0).all()
    assert len(set(coarse([f"x{i}" for i in range(500)]).tolist())) == 500
    assert coarse_numbers(np.array([3.0, np.nan, 1.0])).tolist() == [1, 2, 0]


@pytest.mark.parametrize("entry", REGISTRY, ids=lambda entry: entry.name)
def test_every_attack_is_played_or_explained_on_every_layout(entry):
    if entry.on:
        module, _, name = entry.function.partition(":")
        assert callable(getattr(importlib.import_module(module), name))
    assert set(entry.on) | set(entry.elsewhere) == set(LAYOUTS)
    assert not set(entry.on) & set(entry.elsewhere)
    assert entry.bound


def test_the_table_leaves_nothing_out_and_takes_nothing_unknown():
    for kind in LAYOUTS:
        words = {entry.name: "why not" for entry in REGISTRY if kind in entry.on}
        found = figures_by_attack(kind, [], words)
        assert list(found) == [entry.name for entry in REGISTRY]
        assert all(one["words"] for one in found.values())
    with pytest.raises(AssertionError, match="no such"):
        figures_by_attack("perturbed", [Attack("no such", 0, 0, None)], {entry.name: "x" for entry in REGISTRY})


def test_decisions_that_looked_at_both_are_named():
    assert decisions("bucketize", {}) == decisions("perturb", {}) == ()
    assert minimality_words("bucketize", {}) == NONE
    assert "cut" in minimality_words("sabre", {"allow_minimality_leak": True})
    assert minimality_words("sabre", {"allow_minimality_leak": False}) == NONE
    assert "nearest" in minimality_words("sabre", {"neighbours": "exact", "allow_minimality_leak": False})
    assert "cut" in minimality_words("mondrian", {})
