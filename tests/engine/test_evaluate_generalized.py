"""Evaluating generalized releases on Spark: true counts, estimates and cube cells against enumerating every value of every box."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace

import pytest

from anonlib.evaluation.generalized import confidence, evaluate
from anonlib.release.generalized import MICRODATA
from tests import planted_generalized as planted
from tests.thorough import cases

pytestmark = pytest.mark.spark

PLACE = {str(c): i for i, c in enumerate(planted.CODES)}


SECRET = {"illness": planted.ILLNESS, "income": (1000, 2000, 3000, 4000)}
"""Sensitive columns, and their values in the order of their codes; a release of matches has the first alone."""


def secret_of(values) -> dict[str, int]:
    return {name: SECRET[name].index(v) for name, v in zip(SECRET, values, strict=False)}


def codes_of(row, secret) -> tuple[list[list[int]], dict[str, int]]:
    """(the codes that a published row may have on age, code and city; its code of each of so many sensitive columns)."""
    low, high, codes, _, cities = row[:5]
    box = [list(range(low, high + 1)), [PLACE[str(c)] for c in codes], [planted.CITIES.index(c) for c in cities]]
    return box, secret_of(row[5 : 5 + secret])


def point_of(person, secret) -> tuple[list[list[int]], dict[str, int]]:
    age, code, city, *more = person
    return [[age], [PLACE[str(code)]], [planted.CITIES.index(city)]], secret_of(more[:secret])


def counted(rows, within) -> float:
    """How many rows meet a query, boxes by their share."""
    names = ("age", "code", "city")
    total = 0.0
    for box, secret in rows:
        asked = [(box[i], within[name]) for i, name in enumerate(names) if name in within]
        share = math.prod(sum(a <= c <= b for c in held) / len(held) for held, (a, b) in asked)
        total += share * all(within[name][0] <= code <= within[name][1] for name, code in secret.items())
    return total


def cells(rows, pair, column) -> Counter:
    found: Counter = Counter()
    for box, secret in rows:
        for one, other in itertools.product(box[pair[0]], box[pair[1]]):
            found[one, other, secret[column]] += 1 / len(box[pair[0]]) / len(box[pair[1]])
    return found


@pytest.mark.parametrize(("kind", "columns"), cases(("classes", 1), nightly=[("classes", 2), ("graph", 1)]))
def test_an_evaluation_is_what_enumeration_gives(spark, kind, columns):
    release = getattr(planted, kind)()
    if columns == 1:
        alone = release.manifest.guarantee.model_copy(update={"also": []})
        release = replace(release, manifest=release.manifest.model_copy(update={"guarantee": alone}))
    original = spark.createDataFrame(release.original, planted.SCHEMA)
    tables = {MICRODATA: release.frame(spark)}
    found = evaluate(tables, release.manifest, original, queries=80, selectivity=0.2, seed=4, attacks=True)
    part = release.manifest.guarantee
    secret = [part.sensitive, *(each.sensitive for each in part.also)]
    boxes = [codes_of(row, len(secret)) for row in release.rows]
    points = [point_of(person, len(secret)) for person in release.original]
    within = [query.within for query in found.workload.queries]
    assert found.actual.tolist() == [counted(points, w) for w in within]
    per_row = len(points) / len(boxes)
    assert found.estimated == pytest.approx([counted(boxes, w) * per_row for w in within], rel=1e-4, abs=1e-5)
    for name in secret:
        divergences = []
        for pair in itertools.combinations(range(3), 2):
            a, b = cells(points, pair, name), cells(boxes, pair, name)
            divergences.append(
                sum(n / len(points) * math.log(n / len(points) / (b[cell] / len(boxes))) for cell, n in a.items())
            )
        of = f" of {name}" if len(secret) > 1 else ""
        assert found.measures[f"kl_2{of}"] == pytest.approx(sum(divergences) / 3, rel=1e-4)
    on = ", illness" if len(secret) > 1 else ""
    assert found.attacks[f"naive Bayes{on}"]["prior"] == pytest.approx(1 / 3)
    assert found.attacks[f"naive Bayes{on}"]["allowed of one person"] == pytest.approx(1 / 3)
    assert "guarantee" not in found.attacks[f"naive Bayes{on}"]  # nothing bounds a learner
    assert all(one["words"] for one in found.attacks.values())
    if kind == "classes":  # eight classes of neighbours by age, whose boxes do not overlap
        of_rows = found.attacks[f"outermost record{on}"]
        assert (of_rows["classes"], of_rows["records"]) == (8, 48)
        assert found.attacks[f"homogeneity{on}"]["above"] == 0
        assert found.attacks[f"homogeneity{on}"]["persons"] == 48
        for name in secret[1:]:
            assert found.attacks[f"homogeneity, {name}"]["persons"] == 48
            assert found.attacks[f"naive Bayes, {name}"]["prior"] == pytest.approx(1 / len(SECRET[name]))
        assert {"re-identification", "minimality"} <= set(found.attacks)  # of rows, and not played: said once


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
