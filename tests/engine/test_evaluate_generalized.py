"""Evaluating generalized releases on Spark: true counts, estimates and cube cells against enumerating every value of every box."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest

from anonlib.evaluation.generalized import confidence, evaluate
from anonlib.release.generalized import MICRODATA
from tests import planted_generalized as planted
from tests.thorough import cases

pytestmark = pytest.mark.spark

PLACE = {str(c): i for i, c in enumerate(planted.CODES)}


def codes_of(row) -> tuple[list[list[int]], int]:
    """(the codes that a published row may have on age, code and city; its sensitive code)."""
    low, high, codes, _, cities, illness = row[:6]
    box = [list(range(low, high + 1)), [PLACE[str(c)] for c in codes], [planted.CITIES.index(c) for c in cities]]
    return box, planted.ILLNESS.index(illness)


def point_of(person) -> tuple[list[list[int]], int]:
    age, code, city, illness, _ = person
    return [[age], [PLACE[str(code)]], [planted.CITIES.index(city)]], planted.ILLNESS.index(illness)


def counted(rows, within) -> float:
    """How many rows meet a query, boxes by their share."""
    names = ("age", "code", "city")
    total = 0.0
    for box, secret in rows:
        low, high = within["illness"]
        asked = [(box[i], within[name]) for i, name in enumerate(names) if name in within]
        share = math.prod(sum(a <= c <= b for c in held) / len(held) for held, (a, b) in asked)
        total += share * (low <= secret <= high)
    return total


def cells(rows, pair) -> Counter:
    found: Counter = Counter()
    for box, secret in rows:
        for one, other in itertools.product(box[pair[0]], box[pair[1]]):
            found[one, other, secret] += 1 / len(box[pair[0]]) / len(box[pair[1]])
    return found


@pytest.mark.parametrize("kind", cases("classes", nightly=["graph"]))
def test_an_evaluation_is_what_enumeration_gives(spark, kind):
    release = getattr(planted, kind)()
    original = spark.createDataFrame(release.original, planted.SCHEMA)
    tables = {MICRODATA: release.frame(spark)}
    found = evaluate(tables, release.manifest, original, queries=80, selectivity=0.2, seed=4, attacks=True)
    boxes, points = [codes_of(row) for row in release.rows], [point_of(person) for person in release.original]
    within = [query.within for query in found.workload.queries]
    assert found.actual.tolist() == [counted(points, w) for w in within]
    per_row = len(points) / len(boxes)
    assert found.estimated == pytest.approx([counted(boxes, w) * per_row for w in within], rel=1e-4, abs=1e-5)
    divergences = []
    for pair in itertools.combinations(range(3), 2):
        a, b = cells(points, pair), cells(boxes, pair)
        divergences.append(
            sum(n / len(points) * math.log(n / len(points) / (b[cell] / len(boxes))) for cell, n in a.items())
        )
    assert found.measures["kl_2"] == pytest.approx(sum(divergences) / 3, rel=1e-4)
    assert found.attacks["naive Bayes"]["prior"] == pytest.approx(1 / 3)
    assert found.attacks["naive Bayes"]["allowed of one person"] == pytest.approx(1 / 3)
    assert "guarantee" not in found.attacks["naive Bayes"]  # nothing bounds a learner
    assert all(one["words"] for one in found.attacks.values())
    if kind == "classes":  # eight classes of neighbours by age, whose boxes do not overlap
        assert (found.attacks["outermost record"]["classes"], found.attacks["outermost record"]["records"]) == (8, 48)
        assert found.attacks["homogeneity"]["above"] == 0
        assert found.attacks["homogeneity"]["persons"] == 48


def test_the_certainty_that_promises_allow():
    held = ["a"] * 6 + ["b"] * 7 + ["d"] * 12

    def allowed(**asked):
        return confidence(planted.guarantee("illness", "string", held, asked, distance="flat"))

    assert allowed(k="5") is None
    assert allowed(l="4") == 0.25
    assert allowed(beta="1/2") == pytest.approx(0.72)
    assert allowed(beta="2") == 1.0
    assert allowed(enhanced_beta="2") == pytest.approx(0.48 * (1 - math.log(0.48)))
    assert allowed(t="0.1", frequency_l="2") == 0.5
    assert allowed(t="0.01") == pytest.approx(0.49)
