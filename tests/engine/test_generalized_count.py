"""Counting on generalized releases: against enumerating every value of every box, and within bounds that hold for the original."""

from __future__ import annotations

import datetime
import itertools
import json
import random

import pytest

import anonlib
from anonlib.errors import SpecError
from tests.thorough import nightly

pytestmark = pytest.mark.spark
DAY = datetime.date(2020, 1, 1)
SCHEMA = "age int, height double, born date, place string, illness string"


def person(draw: random.Random) -> tuple:
    place = draw.choice(("Lima", "Cusco", "Ica", "", None, "O'Hara"))
    born = DAY + datetime.timedelta(days=draw.randrange(40))
    return draw.randrange(20, 60), round(draw.uniform(1.4, 2.0), 2), born, place, draw.choice(("flu", "cold", "HIV"))


@pytest.fixture(scope="module")
def made(spark, tmp_path_factory):
    """(original rows, a release with classes, a release with matches)"""
    draw = random.Random(5)
    people = [person(draw) for _ in range(240)]
    frame = spark.createDataFrame(people, SCHEMA)
    numeric = [{"name": name, "type": "numeric"} for name in ("age", "height", "born")]
    given = {"quasi_identifiers": [*numeric, "place"], "sensitive": "illness"}
    home = tmp_path_factory.mktemp("generalized")
    classes = anonlib.mondrian(frame, k=6, output=str(home / "classes"), **given)
    matches = anonlib.heterogeneous(frame, beta="1", matching="greedy", output=str(home / "matches"), **given)
    return people, classes, matches


CASES = {
    "TRUE": lambda a, h, b, p, i: True,
    "illness = 'flu'": lambda a, h, b, p, i: i == "flu",
    "age > 30 AND NOT age IN (40, 50)": lambda a, h, b, p, i: a > 30 and a not in (40, 50),
    "age BETWEEN 25 AND 34.5 AND illness <> 'HIV'": lambda a, h, b, p, i: 25 <= a <= 34 and i != "HIV",
    "(age < 25 OR age >= 50) AND place IN ('Lima', 'O\\'Hara', '')": lambda a, h, b, p, i: (
        (a < 25 or a >= 50) and p in ("Lima", "O'Hara", "")
    ),
    "place IS NULL": lambda a, h, b, p, i: p is None,
    "NOT place = 'Ica'": lambda a, h, b, p, i: p is not None and p != "Ica",
    "born >= DATE '2020-01-20' AND illness IN ('cold', 'HIV')": lambda a, h, b, p, i: (
        b >= datetime.date(2020, 1, 20) and i in ("cold", "HIV")
    ),
    "age = 30 AND age = 31": lambda a, h, b, p, i: False,
    "FALSE OR NOT TRUE": lambda a, h, b, p, i: False,
}


@pytest.mark.parametrize("text", CASES)
def test_whole_numbers_and_sets_are_counted_one_by_one(made, text):
    people, meets = made[0], CASES[text]
    for release in made[1:]:
        found = release.count(text)
        per_row = len(people) / (release.manifest.rows.published + release.manifest.rows.dummy)
        by_hand = 0.0
        for row in rows_of(release):
            ages = range(row["age_min"], row["age_max"] + 1)
            days = [
                row["born_min"] + datetime.timedelta(k) for k in range((row["born_max"] - row["born_min"]).days + 1)
            ]
            box = itertools.product(ages, days, row["place"])
            held = [meets(a, 1.7, b, p, row["illness"]) for a, b, p in box]
            by_hand += sum(held) / len(held)
        assert found.estimate == pytest.approx(by_hand * per_row)
        assert found.low <= sum(meets(*one) for one in people) <= found.high


def test_floating_intervals_are_measured_by_length(made):
    people, classes, _ = made
    found = classes.count("height BETWEEN 1.6 AND 1.75")
    by_hand = 0.0
    for row in rows_of(classes):
        low, high = row["height_min"], row["height_max"]
        by_hand += (
            float(1.6 <= low <= 1.75) if low == high else max(0.0, min(high, 1.75) - max(low, 1.6)) / (high - low)
        )
    assert found.estimate == pytest.approx(by_hand)
    assert found.low <= sum(1.6 <= one[1] <= 1.75 for one in people) <= found.high
    assert (found.estimator, found.standard_error) == ("uniform", None)
    assert found.interval == (found.low, found.high)
    point = classes.count("height = 1.7")
    assert point.low <= sum(one[1] == 1.7 for one in people) <= point.high


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("age > 30 OR place = 'Lima'", "mixes age and place"),
        ("age > 'x'", "is not a number"),
        ("weight = 3", "no column 'weight'"),
    ],
)
def test_what_cannot_be_counted_is_refused(made, text, words):
    with pytest.raises(SpecError, match=words):
        made[1].count(text)


@nightly  # planted releases of both kinds are at every change, against enumeration: `test_evaluate_generalized.py`
def test_both_kinds_are_evaluated_with_their_attacks(made):
    people, classes, matches = made
    frame = classes.spark.createDataFrame(people, SCHEMA)
    for release, attacked in ((classes, "minimality"), (matches, "naive Bayes")):
        found = anonlib.evaluate(release, frame, queries=40, seed=2, attacks=True)
        assert found.measures["gcp"] == pytest.approx(release.manifest.utility["gcp"])
        assert found.errors.queries == 40
        assert [name for name in found.attacks if attacked in name.lower() or attacked in name]
        played = [one for one in found.attacks.values() if set(one) != {"words"}]
        assert played
        assert all(0 <= one["accuracy"] <= 1 for one in played)
        json.dumps(found.to_dict())


def rows_of(release):
    return release.tables["microdata"].collect()
