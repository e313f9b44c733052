"""Groups, distributions and means on opened releases of every layout: against one question at a time, or by hand."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anonlib
from anonlib.errors import SpecError
from anonlib.release.answers import ESTIMATES
from tests.thorough import cases, nightly, trials

pytestmark = pytest.mark.spark
SCHEMA = "age int, sex string, place string, stay int"
STAYS = {1: 160, 2: 120, 3: 60, 5: 40, None: 20}


class OnDemand(dict):
    """A release of each kind, published when it is first asked for: {kind: (its name) -> the release}."""

    def __init__(self, **publish):
        super().__init__()
        self.publish = publish

    def __missing__(self, kind):
        self[kind] = self.publish[kind](kind)
        return self[kind]


@pytest.fixture(scope="module")
def made(spark, tmp_path_factory):
    """(the records, a release of each kind)"""
    draw = random.Random(4)
    stays = [stay for stay, number in STAYS.items() for _ in range(number)]
    draw.shuffle(stays)
    people = [
        (
            draw.randrange(20, 40),
            draw.choice(("F", "M") if (stay or 0) < 3 else ("F", "F", "F", "M")),
            draw.choice(("Lima", "Ica", None, "O'Hara")),
            stay,
        )
        for stay in stays
    ]
    frame = spark.createDataFrame(people, SCHEMA)
    home = tmp_path_factory.mktemp("groups")
    given = {
        "quasi_identifiers": [{"name": "age", "type": "numeric"}, "sex", "place"],
        "sensitive": "stay",
        "missing": {"sensitive": "keep"},
    }

    def release(verb, name, **more):
        return verb(frame, **given, **more, output=str(home / name))

    return people, OnDemand(
        buckets=lambda name: release(
            anonlib.bucketize, name, privacy={"theta": "1.5", "offset": "0.1"}, mix_companions=True
        ),
        fakes=lambda name: release(anonlib.bucketize, name, privacy={"l": 2}, fake_values=1, max_bucket_size=3),
        perturbed=lambda name: release(anonlib.perturb, name, rho2="0.7"),
        boxes=lambda name: release(anonlib.mondrian, name, k=8),
    )


def asked(row, names):
    parts = []
    for name in names:
        value = row[name]
        shown = f"= {value}" if isinstance(value, int) else '= "O\'Hara"' if value == "O'Hara" else f"= '{value}'"
        parts.append(f"{name} {'IS NULL' if value is None else shown}")
    return " AND ".join(parts)


ONE, TWO, NONE = (["sex"], None), (["place", "sex"], "age < 35"), ([], "age < 35 AND sex = 'F'")


@pytest.mark.parametrize(
    ("kind", "by", "where"),
    cases(
        ("buckets", *TWO),
        nightly=[
            *(("buckets", *asked_for) for asked_for in (ONE, NONE)),
            *(("fakes", *asked_for) for asked_for in (ONE, TWO, NONE)),
        ],
    ),
)
def test_a_distribution_on_buckets_is_a_count_for_each_row(made, kind, by, where):
    release = made[1][kind]
    frame = release.distribution(by, where)
    assert frame.columns == [*by, "stay", *ESTIMATES, "flattened"]
    found = frame.collect()
    assert found
    for row in found[: trials(4, 1)]:
        text = asked(row, [*by, "stay"]) + (f" AND {where}" if where else "")
        alone = release.count(text)
        assert (row.low, row.high, row.estimator) == (alone.low, alone.high, alone.estimator), text
        assert row.estimate == pytest.approx(alone.estimate), text
        assert (row.interval_low, row.interval_high) == pytest.approx(alone.interval), text
        for name in ("unbiased", "standard_error"):
            assert (row[name] is None) == (getattr(alone, name) is None), text
            assert row[name] is None or row[name] == pytest.approx(getattr(alone, name), abs=1e-6), text


@pytest.mark.parametrize("kind", ["buckets", "perturbed"])
def test_groups_without_a_sensitive_column_are_exact(made, kind):
    people, releases = made
    found = {(r.place, r.sex): r for r in releases[kind].group_by("place", "sex", where="age >= 30").collect()}
    for (place, sex), row in found.items():
        true = sum(p == place and s == sex and age >= 30 for age, s, p, _ in people)
        assert (row.estimate, row.low, row.high, row.standard_error, row.estimator) == (true, true, true, 0, "exact")
    assert sum(row.low for row in found.values()) == sum(age >= 30 for age, *_ in people)


def test_a_sensitive_column_among_the_groups_is_a_distribution(made):
    release = made[1]["perturbed"]
    one = {(r.sex, r.stay): r.estimate for r in release.group_by("STAY", "sex").collect()}
    assert one == pytest.approx({(r.sex, r.stay): r.estimate for r in release.distribution(["sex"]).collect()})
    with pytest.raises(SpecError, match="named twice"):
        release.group_by("stay", "stay")


@pytest.mark.parametrize(
    ("by", "where"), cases((["place", "sex"], "age < 30 AND place <> 'Ica'"), nightly=[(["sex"], None), ([], None)])
)
def test_a_distribution_on_boxes(made, by, where):
    people, releases = made
    release, names = releases["boxes"], ("age", "sex", "place")
    found = release.distribution(by, where).collect()
    boxes = release.tables["microdata"].collect()
    wanted = {}
    for box in boxes:
        ages = range(box["age_min"], box["age_max"] + 1)
        cells = [(a, s, p) for a in ages for s in box["sex"] for p in box["place"]]
        for cell in cells:
            if where and not (cell[0] < 30 and cell[2] not in ("Ica", None)):
                continue
            key = (*(cell[names.index(name)] for name in by), box["stay"])
            wanted[key] = wanted.get(key, 0) + 1 / len(cells)
    assert {tuple(row[name] for name in (*by, "stay")) for row in found} >= set(wanted)
    for row in found:
        key = tuple(row[name] for name in (*by, "stay"))
        assert row.estimate == pytest.approx(wanted.get(key, 0), abs=1e-9)
        true = sum(
            (*(person[names.index(name)] for name in by), person[3]) == key
            and (where is None or (person[0] < 30 and person[2] not in ("Ica", None)))
            for person in people
        )
        assert row.low <= true <= row.high
        assert (row.interval_low, row.interval_high) == (row.low, row.high)
        assert row.standard_error == (0 if row.estimator == "exact" else None)


def test_sizes_of_groups_of_boxes(made):
    people, releases = made
    found = {row.sex: row for row in releases["boxes"].group_by("sex").collect()}
    assert sum(row.estimate for row in found.values()) == pytest.approx(len(people))
    for sex, row in found.items():
        assert row.low <= sum(s == sex for _, s, _, _ in people) <= row.high


def test_means(made):
    people, releases = made
    of_women = [stay for _, sex, _, stay in people if sex == "F" and stay is not None]
    true = sum(of_women) / len(of_women)
    for kind in ("buckets", "perturbed"):
        found = releases[kind].mean("STAY", where="sex = 'F'")
        assert abs(found.unbiased - true) < 4.5 * found.standard_error
        assert found.interval[0] < found.unbiased < found.interval[1]
        ages = releases[kind].mean("age", where="sex = 'F'")
        assert ages.estimate == pytest.approx(
            sum(a for a, s, *_ in people if s == "F") / sum(s == "F" for _, s, *_ in people)
        )
        assert (ages.estimator, ages.standard_error) == ("exact", 0)
    everybody = [stay for *_, stay in people if stay is not None]
    whole = releases["boxes"].mean("stay")
    assert (whole.estimate, whole.estimator) == (pytest.approx(sum(everybody) / len(everybody)), "exact")
    women = releases["boxes"].mean("stay", where="sex = 'F'")
    assert (women.interval, women.standard_error) in ((None, None), ((women.estimate, women.estimate), 0))
    assert 1 <= women.estimate <= 5
    assert math.isnan(releases["buckets"].mean("stay", where="age > 100").estimate)
    assert math.isnan(releases["perturbed"].mean("age", where="age > 100").estimate)


@nightly
def test_a_mean_on_buckets_with_fakes(made):
    with_fakes = made[1]["fakes"].mean("stay", where="sex = 'F'")
    assert (with_fakes.estimator, with_fakes.interval) == ("flattened", None)
    assert 1 <= with_fakes.estimate <= 5


@pytest.mark.parametrize(
    ("kind", "ask", "words"),
    [
        ("buckets", lambda r: r.distribution(["county"]), "no column 'county'"),
        ("buckets", lambda r: r.distribution(["stay"]), "is sensitive"),
        ("buckets", lambda r: r.distribution([], "stay = 1"), "tells all of them"),
        ("buckets", lambda r: r.mean("sex"), "which has no mean"),
        ("buckets", lambda r: r.mean("pay"), "no column 'pay'"),
        ("buckets", lambda r: r.mean("age", "stay = 1"), "tells all of them"),
        ("boxes", lambda r: r.distribution(["age"]), "published in intervals"),
        ("boxes", lambda r: r.distribution([], "stay = 1"), "tells all of them"),
        ("boxes", lambda r: r.mean("age"), "no column 'age' published value by value"),
        ("perturbed", lambda r: r.group_by("age", where="stay = 1"), "tells all of them"),
    ],
)
def test_what_cannot_be_asked(made, kind, ask, words):
    with pytest.raises(SpecError, match=words):
        ask(made[1][kind])


def test_prefixes(made):
    people, releases = made
    for kind in ("buckets", "perturbed", "boxes"):
        found = releases[kind].count("place LIKE 'L%'")
        assert found.low <= sum(place == "Lima" for _, _, place, _ in people) <= found.high


@nightly
def test_on_the_command_line(made, door):
    release = made[1]["buckets"]
    found = door.call("query", release.path, "age < 35", "--by", "sex", "--by", "stay", "--json")
    groups = json.loads(found.out)["groups"]
    assert {(g["sex"], g["stay"]) for g in groups} == {
        (r.sex, r.stay) for r in release.group_by("sex", "stay", where="age < 35").collect()
    }
    mean = json.loads(door.call("query", release.path, "--mean", "stay", "--json").out)
    assert mean["estimate"] == pytest.approx(release.mean("stay").estimate)
    nobody = json.loads(door.call("query", release.path, "age > 100", "--mean", "stay", "--json").out)
    assert (nobody["estimate"], nobody["interval"]) == (None, None)
    assert door.call("query", release.path, "--by", "sex").code == 0
    assert door.call("query", release.path).code == 2
    assert door.call("query", release.path, "--by", "sex", "--mean", "stay").code == 2


# --- docs/analyst.md: every block of it, without anonlib ---------------------------------------------------------------------------

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "analyst.md").read_text(encoding="utf-8")


def blocks(heading: str, language: str) -> list[str]:
    """The fenced blocks of a language under a heading of the page."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def run_python(names: dict, heading: str, release) -> dict:
    """The page's Python of one section, on a release in place of the one that it names."""
    for block in blocks(heading, "python"):
        exec(compile(re.sub(r'"releases/\w+/', f'"{release.path}/', block), "analyst.md", "exec"), names)
    return names


def answers(spark, heading: str, release) -> list:
    """The rows of each of the page's SQL queries of one section, with a view for each table."""
    for name, table in release.tables.items():
        table.createOrReplaceTempView(name)
    return [spark.sql(query).collect() for query in blocks(heading, "sql")]


def true_model(people) -> np.ndarray:
    asked = np.array([(stay or 0) >= 3 for *_, stay in people], dtype=float)
    X = np.array([(1, sex == "F", age) for age, sex, *_ in people], dtype=float)
    return np.linalg.lstsq(X, asked, rcond=None)[0]


SURE = 5
"""Standard errors within which an unbiased estimate lies; one in a million is further off."""


def test_every_block_of_the_page_is_run_by_a_test():
    sections = [
        blocks(heading, language)
        for heading in ("Buckets", "Perturbed records", "Boxes", "Two sensitive columns")
        for language in ("sql", "python")
    ]
    assert [len(found) for found in sections] == [2, 3, 2, 1, 2, 1, 3, 1]  # the last: `test_two_columns_in_boxes.py`
    assert len(re.findall(r"^```\w", PAGE, re.MULTILINE)) == 15


def test_the_analysts_sql_on_buckets(spark, made):
    release = made[1]["buckets"]
    (spread,), groups = answers(spark, "Buckets", release)
    known = release.count("sex = 'F' AND stay >= 3")
    assert (spread.low, spread.high) == (known.low, known.high)
    assert float(spread.spread) == pytest.approx(known.flattened)
    flattened = {(row.sex, row.stay): row.flattened for row in release.distribution(["sex"]).collect()}
    assert {(row.sex, row.stay): float(row.spread) for row in groups} == pytest.approx(flattened)


def test_the_analysts_python_on_buckets_and_perturbed_records(made):
    people, releases = made
    names = run_python({}, "Buckets", releases["buckets"])
    asked = [(age, sex) for age, sex, _, stay in people if (stay or 0) >= 3]
    women = pd.Series([str(stay) if stay else "missing" for _, sex, _, stay in people if sex == "F"]).value_counts()
    off = (names["women"]["count"] - women) / names["women"]["error"]
    assert off.abs().max() < SURE
    for (estimate, error), true in (
        (names["count"], sum(sex == "F" for _, sex in asked)),
        (names["mean_age"], np.mean([age for age, _ in asked])),
    ):
        assert abs(estimate - true) < SURE * error
    known = releases["buckets"].count("sex = 'F' AND stay >= 3")  # kinds by kinds instead of bucket by bucket
    assert 0.6 < names["count"][1] / known.standard_error < 1.6
    names = run_python(names, "Perturbed records", releases["perturbed"])
    for model in (names["bucket_model"], names["perturbed_model"]):
        assert (abs(model["coefficient"] - true_model(people)) < SURE * model["error"]).all()
        assert model["error"]["woman"] < 0.5


def test_the_analysts_sql_on_perturbed_records(spark, made):
    people, releases = made
    release = releases["perturbed"]
    (count,), groups = answers(spark, "Perturbed records", release)
    true = sum(sex == "F" and (stay or 0) >= 3 for _, sex, _, stay in people)
    assert abs(float(count.estimate) - true) < SURE * float(count.error)
    by_sex = {row.sex: row for row in groups}
    assert float(by_sex["F"].estimate) == pytest.approx(float(count.estimate))
    assert by_sex["M"].mean_age is not None
    names = run_python(run_python({}, "Buckets", releases["buckets"]), "Perturbed records", release)
    by_hand = names["asked_for"].groupby(names["joined"]["sex"]).sum()
    ages = (names["asked_for"] * names["joined"]["age"]).groupby(names["joined"]["sex"]).sum() / by_hand
    assert {sex: float(row.estimate) for sex, row in by_sex.items()} == pytest.approx(by_hand.to_dict())
    assert {sex: float(row.mean_age) for sex, row in by_sex.items()} == pytest.approx(ages.to_dict())


def test_the_analysts_page_on_boxes(spark, made):
    people, releases = made
    release = releases["boxes"]
    (count,), groups = answers(spark, "Boxes", release)
    known = release.count("sex = 'F' AND age BETWEEN 25 AND 34 AND stay >= 3")
    assert (count.low, count.high) == (known.low, known.high)
    assert min(max(float(count.estimate), count.low), count.high) == pytest.approx(known.estimate)
    for row in groups:
        ages = [age for age, sex, *_ in people if sex == row.sex]
        assert row.youngest < np.mean(ages) < row.oldest
        stays = [stay for _, sex, _, stay in people if sex == row.sex and stay]
        assert float(row.mean_stay) == pytest.approx(np.mean(stays), rel=0.2)
    model = run_python(run_python({}, "Buckets", releases["buckets"]), "Boxes", release)["box_model"]
    assert abs(model["woman"]) < abs(true_model(people)[1])
