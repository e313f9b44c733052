"""Boxes beside two sensitive columns: asked, grouped, averaged, evaluated, attacked, reported, and read without anonlib.

The release is made by hand: no method takes part. Every record is that of one of three neighbours by age, who have different stays and
different drugs; a row has the stay and the drug of one of them.
"""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

import anonlib
from anonlib import workflow
from anonlib.errors import SpecError
from anonlib.release.answers import ESTIMATES
from anonlib.release.generalized import MICRODATA
from anonlib.release.manifest import (
    AuditPart,
    ColumnPart,
    GuaranteePart,
    Manifest,
    MethodPart,
    QuasiIdentifierPart,
    RowsPart,
    SolverPart,
    SplitsPart,
    TablePart,
    ValuePart,
)
from anonlib.release.opened import Release
from anonlib.screen import show_release
from tests.engine.test_groups import blocks
from tests.thorough import THOROUGH, nightly, trials

pytestmark = pytest.mark.spark
SCHEMA = "age int, sex string, place string, stay int, drug string"
PUBLISHED = "age_min int, age_max int, sex array<string>, place array<string>, stay int, drug string"
ROLES = ("quasi_identifier_min", "quasi_identifier_max", *["quasi_identifier_set"] * 2, *["sensitive"] * 2)
NAMES = ("age", "sex", "place", "stay", "drug")
PLACES = ("Ica", "Lima", None)
STAYS = (1, 2, 5, 8)
DRUGS = ("aspirin", "ibuprofen", "zidovudine", None)


def patients() -> list[tuple]:
    """48 persons by age; any three that follow one another from a third on have different stays and different drugs."""
    draw = random.Random(7)
    return [
        (20 + i // 2, draw.choice("FM"), draw.choice(PLACES), STAYS[i % 4], DRUGS[(i + i // 12) % 4]) for i in range(48)
    ]


def rows_of(people: list[tuple]) -> list[tuple]:
    """Each record under the box of the three that it may be, with the sensitive values of one of them."""
    rows = []
    for start in range(0, len(people), 3):
        three = people[start : start + 3]
        for i in range(3):
            whose = three[(i + start // 3) % 3]
            ages = [p[0] for p in three]
            sexes = sorted({p[1] for p in three})
            places = sorted({p[2] for p in three}, key=lambda place: (place is None, place or ""))
            rows.append((min(ages), max(ages), sexes, places, *whose[3:]))
    return rows


def promise(name: str, kind: str, held: list) -> GuaranteePart:
    values = [ValuePart(value=None if v is None else str(v), count=n) for v, n in Counter(held).items()]
    return GuaranteePart(
        model="l-diversity by matches",
        words=f"Of the persons that a row may be, no more than one in 2 has one value of {name}.",
        sensitive=name,
        sensitive_type=kind,
        values=values,
        asked={"l": "2"},
    )


def manifest_of(people: list[tuple]) -> Manifest:
    kinds = [tuple(column.split()) for column in PUBLISHED.split(", ")]
    columns = [ColumnPart(name=n, type=t, role=role) for (n, t), role in zip(kinds, ROLES, strict=True)]
    stay, drug = (
        promise(name, kind, [p[i] for p in people]) for name, kind, i in (("stay", "int", 3), ("drug", "string", 4))
    )
    return Manifest(
        anonlib_version="0",
        spark_version="0",
        layout="generalized",
        method=MethodPart(name="heterogeneous", parameters={"l": 2}),
        guarantee=stay.model_copy(update={"also": [drug]}),
        missing={"quasi_identifiers": "keep", "sensitive": "keep"},
        rows=RowsPart(input=len(people), published=len(people)),
        solver=SolverPart(name="-", status="heuristic", setting=[], unit="partitions", seconds=0.0),
        utility={},
        audit=AuditPart(mode="off", passed=None, checks=[]),
        tables={MICRODATA: TablePart(path=MICRODATA, format="parquet", rows=len(people), checksum="", columns=columns)},
        splits=SplitsPart(partitions=1, settings={}),
        quasi_identifiers=[
            QuasiIdentifierPart(name="age", kind="numeric", type="int", low="20", high="43"),
            QuasiIdentifierPart(name="sex", kind="categorical", type="string", values=["F", "M"]),
            QuasiIdentifierPart(name="place", kind="categorical", type="string", values=list(PLACES)),
        ],
    )


@pytest.fixture(scope="module")
def made(spark):
    """(the records, the release, which lies nowhere)"""
    people = patients()
    release = Release(spark, "nowhere", manifest_of(people))
    release.tables = {MICRODATA: spark.createDataFrame(rows_of(people), PUBLISHED).coalesce(1)}
    return people, release


@pytest.fixture(scope="module")
def written(made, tmp_path_factory):
    """The same release, opened from disk."""
    people, release = made
    home = tmp_path_factory.mktemp("pair") / "boxes"
    release.tables[MICRODATA].write.parquet(str(home / MICRODATA))
    (home / "manifest.json").write_text(manifest_of(people).to_json(), encoding="utf-8")
    return anonlib.open_release(str(home), release.spark)


def cells(release):
    """(age, sex, place, stay, drug), the share of a row that has it, of every row."""
    for low, high, sexes, places, stay, drug in rows_of(patients()):
        box = list(itertools.product(range(low, high + 1), sexes, places))
        for cell in box:
            yield dict(zip(NAMES, (*cell, stay, drug), strict=True)), 1 / len(box)


def true(people, meets) -> int:
    return sum(meets(dict(zip(NAMES, person, strict=True))) for person in people)


COUNTS = {
    "age < 30 AND (stay = 1 OR drug = 'zidovudine') AND stay < 5": lambda r: (
        r["age"] < 30 and (r["stay"] == 1 or r["drug"] == "zidovudine") and r["stay"] < 5
    ),
    "drug = 'aspirin'": lambda r: r["drug"] == "aspirin",
    "stay >= 5 AND drug IS NULL": lambda r: r["stay"] >= 5 and r["drug"] is None,
    "sex = 'F' AND place = 'Lima' AND stay < 5 AND NOT drug = 'aspirin'": lambda r: (
        r["sex"] == "F" and r["place"] == "Lima" and r["stay"] < 5 and r["drug"] not in ("aspirin", None)
    ),
}


def test_conditions_on_either_column_and_on_both(made):
    people, release = made
    for text, meets in list(COUNTS.items())[: trials(len(COUNTS), 1)]:
        found = release.count(text)
        assert found.estimate == pytest.approx(sum(share for cell, share in cells(release) if meets(cell))), text
        assert found.low <= true(people, meets) <= found.high
    with pytest.raises(SpecError, match="mixes age and drug"):
        release.count("age < 30 OR drug = 'aspirin'")


def grouped(release, by, meets=lambda cell: True) -> dict:
    found: dict = {}
    for cell, share in cells(release):
        if meets(cell):
            key = tuple(cell[name] for name in by)
            found[key] = found.get(key, 0) + share
    return found


@nightly
def test_groups_by_both_columns(made):
    release = made[1]
    both = release.distribution(["sex"], where="age < 35")
    assert both.columns == ["sex", "stay", "drug", *ESTIMATES]
    wanted = grouped(release, ("sex", "stay", "drug"), lambda cell: cell["age"] < 35)
    found = {(r.sex, r.stay, r.drug): r.estimate for r in both.collect() if r.estimate}
    assert found == pytest.approx(wanted)
    with pytest.raises(SpecError, match="named twice"):
        release.group_by("drug", "drug")


def test_groups_by_one_column_among_records_with_a_value_of_the_other(made):
    people, release = made
    one = release.group_by("DRUG", "sex", where="stay = 1 AND age < 35")
    assert one.columns == ["sex", "drug", *ESTIMATES]
    wanted = grouped(release, ("sex", "drug"), lambda cell: cell["age"] < 35 and cell["stay"] == 1)
    rows = [r for r in one.collect() if r.high]
    assert {(r.sex, r.drug): r.estimate for r in rows if r.estimate} == pytest.approx(wanted)
    for row in rows:
        met = sum((sex, drug, stay) == (row.sex, row.drug, 1) and age < 35 for age, sex, _, stay, drug in people)
        assert row.low <= met <= row.high
    with pytest.raises(SpecError, match="tells all of them"):
        release.group_by("drug", "sex", where="drug = 'aspirin'")


def test_means_among_records_with_a_value_of_the_other_column(made):
    people, release = made
    if THOROUGH:
        of_all = [p[3] for p in people if p[4] == "aspirin"]
        found = release.mean("stay", where="drug = 'aspirin'")
        assert (found.estimate, found.estimator) == (pytest.approx(sum(of_all) / len(of_all)), "exact")
    weights = grouped(release, ("stay",), lambda c: c["sex"] == "F" and c["drug"] == "aspirin")
    women = release.mean("stay", where="sex = 'F' AND drug = 'aspirin'")
    assert women.estimate == pytest.approx(sum(v * w for (v,), w in weights.items()) / sum(weights.values()))
    assert (women.estimator, women.interval, women.standard_error) == ("uniform", None, None)


ATTACKED = ("homogeneity", "skewness", "elimination", "naive Bayes", "deFinetti")


@nightly
def test_an_evaluation_asks_for_both_columns_and_attacks_each(spark, made):
    people, release = made
    original = spark.createDataFrame(people, SCHEMA)
    found = anonlib.evaluate(release, original, queries=60, selectivity=0.3, seed=3, attacks=True)
    stays, drugs = ([str(v) for v in STAYS], [v.value for v in release.manifest.guarantee.also[0].values])

    def meets(cell, within):
        codes = {"age": cell["age"], "stay": stays.index(str(cell["stay"])), "drug": drugs.index(cell["drug"])}
        codes |= {"sex": "FM".index(cell["sex"]), "place": PLACES.index(cell["place"])}
        return all(low <= codes[name] <= high for name, (low, high) in within.items())

    within = [query.within for query in found.workload.queries]
    assert all({"stay", "drug"} <= set(w) for w in within)
    assert found.actual.tolist() == [true(people, lambda r, w=w: meets(r, w)) for w in within]
    assert found.estimated == pytest.approx(
        [sum(s for c, s in cells(release) if meets(c, w)) for w in within], rel=1e-4
    )
    assert set(found.by_group) == {3}
    assert {"kl_2 of stay", "kl_2 of drug", "gcp"} <= set(found.measures)
    for name in ATTACKED:
        for column in ("stay", "drug"):
            assert "accuracy" in found.attacks[f"{name}, {column}"], name
    assert found.attacks["elimination, drug"]["guarantee"] == 0.5
    assert found.attacks["naive Bayes, stay"]["prior"] == 0.25
    assert "accuracy" in found.attacks["re-identification"]
    assert set(found.attacks["posterior"]) == {"words"}
    workload = json.loads(found.workload.to_json())
    assert workload["further"] == {"drug": drugs}


@nightly
def test_a_report_shows_both_columns(spark, made, written):
    pytest.importorskip("matplotlib")
    people = made[0]
    page = workflow.report(written, spark.createDataFrame(people, SCHEMA), checked=True).html
    for words in (
        "Shares of stay",
        "Shares of drug",
        "different values of drug",
        "stay and drug stand in each row as they are",
        "in the protected columns",
        "homogeneity, drug",
    ):
        assert words in page, words


@nightly
def test_on_the_command_line(written, door):
    release = written
    asked = json.loads(door.call("query", release.path, "stay = 1 AND drug = 'aspirin'", "--json").out)
    assert asked["low"] == asked["high"]
    groups = json.loads(door.call("query", release.path, "stay < 5", "--by", "sex", "--by", "drug", "--json").out)
    assert set(groups["groups"][0]) == {"sex", "drug", *ESTIMATES}
    mean = json.loads(door.call("query", release.path, "drug = 'aspirin'", "--mean", "stay", "--json").out)
    assert mean["estimator"] == "exact"


@nightly
def test_a_published_release_is_read_alike(spark, door, capsys):
    """240 persons, l = 3 in each of two columns: what is certain holds, and no attack is above its bound."""
    pytest.importorskip("matplotlib")
    draw = random.Random(3)
    people = [
        (draw.randrange(20, 44), draw.choice("FM"), draw.choice(PLACES), STAYS[i % 4], DRUGS[(i + i // 4 % 3) % 4])
        for i in range(240)
    ]
    frame = spark.createDataFrame(people, SCHEMA)
    release = anonlib.heterogeneous(
        frame,
        quasi_identifiers=[{"name": "age", "type": "numeric"}, "sex", "place"],
        sensitive=["stay", "drug"],
        missing={"sensitive": "keep"},
        l=3,
        partition_size=80,
        output=str(door.home / "release"),
        key="env:RELEASE_KEY",
    )
    for text, meets in COUNTS.items():
        found = release.count(text)
        assert found.low <= true(people, meets) <= found.high, text
    exact = release.count("drug = 'aspirin' OR stay = 1")
    assert exact.low == exact.high == sum(p[4] == "aspirin" or p[3] == 1 for p in people)
    took = [p[3] for p in people if p[4] == "aspirin"]
    assert release.mean("stay", where="drug = 'aspirin'").estimate == pytest.approx(sum(took) / len(took))
    for row in release.group_by("sex", "drug").collect():
        assert row.low <= sum(p[1] == row.sex and p[4] == row.drug for p in people) <= row.high
    found = anonlib.evaluate(release, frame, queries=100, seed=1, attacks=True)
    for column in ("stay", "drug"):
        eliminated = found.attacks[f"elimination, {column}"]
        assert (eliminated["above"], eliminated["guarantee"]) == (0, pytest.approx(1 / 3))
    page = workflow.report(release, frame)
    assert page.passed
    for part in (release.manifest.guarantee, *release.manifest.guarantee.also):
        assert f"Shares of {part.sensitive}" in page.html
        assert f"The promise about {part.sensitive}" in page.html
    show_release(release)
    shown = " ".join(capsys.readouterr().out.split())
    for part in (release.manifest.guarantee, *release.manifest.guarantee.also):
        assert " ".join(part.words.split()) in shown


# --- docs/analyst.md, "Two sensitive columns": without anonlib ------------------------------------------------------------------------

HEADING = "Two sensitive columns"


@nightly
def test_the_analysts_page_on_boxes_beside_two_columns(spark, written):
    release = written
    release.tables[MICRODATA].createOrReplaceTempView(MICRODATA)
    count, means = (spark.sql(query).collect() for query in blocks(HEADING, "sql")[:2])
    known = release.count("sex = 'F' AND stay >= 3 AND drug = 'zidovudine'")
    assert (count[0].low, count[0].high) == (known.low, known.high)
    assert float(count[0].estimate) == pytest.approx(known.estimate)
    for row in means:
        where = "drug IS NULL" if row.drug is None else f"drug = '{row.drug}'"
        assert float(row.mean_stay) == pytest.approx(
            release.mean("stay", where=f"sex = '{row.sex}' AND {where}").estimate
        )
    names: dict = {"pd": pd}
    for block in blocks(HEADING, "python"):
        exec(compile(block.replace("releases/boxes", str(Path(release.path))), "analyst.md", "exec"), names)
    wanted = grouped(release, ("sex", "stay", "drug"), lambda cell: cell["stay"] >= 3)
    table = names["by_sex_and_drug"]
    for (sex, drug), row in table.iterrows():
        own = {stay: w for (s, stay, d), w in wanted.items() if s == sex and d == (None if drug == "missing" else drug)}
        assert row["count"] == pytest.approx(sum(own.values()))
        assert row["mean_stay"] == pytest.approx(sum(stay * w for stay, w in own.items()) / sum(own.values()))
