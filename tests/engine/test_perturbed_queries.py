"""Counts, distributions and evaluations of perturbed releases: the Spark plans against an obvious twin in plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from anonlib.errors import SpecError
from anonlib.evaluation import perturbed as evaluation
from anonlib.evaluation import point_workload as points
from anonlib.queries.reconstruction import Operators, reconstruct, terms
from anonlib.release.bucketized_count import count as count_buckets
from anonlib.release.perturbed_count import count, distribution
from tests.planted import people, planted
from tests.planted_perturbed import perturbed
from tests.thorough import cases, nightly

pytestmark = pytest.mark.spark

VALUES = {"flu": 400, "asthma": 300, "HIV": 60, "gout": 240, None: 200}
PARTS = [{"flu": 400, "asthma": 300, "gout": 140, None: 100}, {"HIV": 60, "gout": 100, None: 100}]


@pytest.fixture(scope="module")
def release(spark):
    """Sub-tables of 940 and 260 records; a kept null is one of the sensitive values."""
    return perturbed(spark, people(1200, VALUES), PARTS, "1/2", "3/4")


def operators(release) -> Operators:
    lines = sorted(release.operators.collect(), key=lambda r: r.subtable)
    return Operators(np.array([r.domain_size for r in lines]), np.array([r.gamma for r in lines]))


def twin(release, visible, meets):
    """The count, sub-table by sub-table from the rows."""
    rows = list(zip(release.published, release.subtable_of, strict=True))

    def per(condition):
        return [sum(1 for r, i in rows if i == k and condition(r)) for k in range(len(PARTS))]

    return reconstruct(
        operators(release),
        [sum(part.values()) for part in PARTS],
        per(visible),
        [sum(meets(v) for v in part) for part in PARTS],
        per(lambda r: visible(r) and meets(r["illness"])),
        per(lambda r: meets(r["illness"])),
        [sum(c for v, c in part.items() if meets(v)) for part in PARTS],
    )


CASES = {
    "age BETWEEN 30 AND 50 AND illness IN ('flu', 'HIV')": (
        lambda r: 30 <= r["age"] <= 50,
        lambda v: v in ("flu", "HIV"),
    ),
    "country = 'Peru'": (lambda r: r["country"] == "Peru", lambda v: True),
    "country IS NULL AND illness = 'gout'": (lambda r: r["country"] is None, lambda v: v == "gout"),
    "illness IS NULL AND age < 40": (lambda r: r["age"] < 40, lambda v: v is None),
    "illness <> 'flu' AND country <> 'Peru'": (
        lambda r: r["country"] not in ("Peru", None),
        lambda v: v not in ("flu", None),
    ),
    "age < 0 AND illness = 'nobody has it'": (lambda r: False, lambda v: False),
}


@pytest.mark.parametrize("predicate", CASES)
def test_a_count(release, predicate):
    found, wanted = count(release.tables, release.manifest, predicate), twin(release, *CASES[predicate])
    assert (found.low, found.high) == (wanted.low, wanted.high)
    for name in ("estimate", "standard_error", "raw", "raw_error"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), abs=1e-9)
    assert found.interval == pytest.approx(wanted.interval)


@pytest.mark.parametrize(
    ("predicate", "words"),
    [("subtable = 0", "no column 'subtable'"), ("age > 3 OR illness = 'flu'", "mixes the sensitive column")],
)
def test_a_count_that_cannot_be(release, predicate, words):
    with pytest.raises(SpecError, match=words):
        count(release.tables, release.manifest, predicate)


@pytest.mark.parametrize(
    ("by", "where"), cases((["country", "tags"], None), ([], "age >= 40"), nightly=[(["country"], "age >= 40")])
)
def test_a_distribution(release, by, where):
    frame = distribution(release.tables, release.manifest, by, where)
    assert frame.columns == [*by, "illness", "estimate", "standard_error", "low", "high", "raw"]
    rows = [
        (r, i) for r, i in zip(release.published, release.subtable_of, strict=True) if where is None or r["age"] >= 40
    ]
    n = Counter((repr([r[c] for c in by]), i) for r, i in rows)
    o = Counter((repr([r[c] for c in by]), i, r["illness"]) for r, i in rows)
    found = {(repr([r[c] for c in by]), r.illness): r for r in frame.collect()}
    groups = {g for g, _ in n}
    assert set(found) == {(g, v) for g, i in n for v in PARTS[i]}
    for (g, v), row in found.items():
        holds = [v in part for part in PARTS]
        per = [n[g, i] * holds[i] for i in range(2)]
        seen = [o[g, i, v] for i in range(2)]
        estimate, spread = (part.sum() for part in terms(operators(release), per, [1, 1], seen))
        sizes, true = [sum(part.values()) for part in PARTS], [part.get(v, 0) for part in PARTS]
        assert row.raw == pytest.approx(estimate)
        assert row.standard_error == pytest.approx(spread**0.5)
        assert row.low == sum(max(0, per[i] + true[i] - sizes[i]) for i in range(2))
        assert row.high == sum(min(per[i], true[i]) for i in range(2))
        assert row.estimate == pytest.approx(min(max(estimate, row.low), row.high))
    for g in groups:
        assert sum(r.raw for (h, _), r in found.items() if h == g) == pytest.approx(sum(n[g, i] for i in range(2)))


@pytest.mark.parametrize(
    ("by", "where", "words"),
    [
        ("country", None, "a list of columns"),
        (["county"], None, "no column 'county'"),
        (["illness"], None, "is sensitive"),
        (["age", "AGE"], None, "named twice"),
        ([], "illness = 'flu'", "tells all of them"),
    ],
)
def test_a_distribution_that_cannot_be(release, by, where, words):
    with pytest.raises(SpecError, match=words):
        distribution(release.tables, release.manifest, by, where)


def test_several_sensitive_columns_are_one(spark):
    schema = "age int, country string, joined date, tags array<string>, big bigint, illness string, stage int"
    values = [("flu", 1), ("flu", 2), ("HIV", 1)]
    drawn = people(300, {"a": 120, "b": 120, "c": 60})
    of = dict(zip("abc", values, strict=True))
    records = [r | {"illness": of[r["illness"]][0], "stage": of[r["illness"]][1]} for r in drawn]
    found = perturbed(
        spark, records, [{values[0]: 120, values[1]: 120, values[2]: 60}], "1/2", "3/4", schema, ("illness", "stage")
    )
    whole = count(found.tables, found.manifest, "illness = 'flu'")
    assert (whole.low, whole.high, whole.estimate) == (240, 240, pytest.approx(240))
    rows = distribution(found.tables, found.manifest).collect()
    assert {(r.illness, r.stage) for r in rows} == set(values)
    assert sum(r.raw for r in rows) == pytest.approx(300)


@nightly
def test_a_workload_of_points(spark, release):
    """True counts, perturbed and bucketized estimates of every query against the same question asked alone."""
    known = {k: v for k, v in VALUES.items() if k is not None}
    bucketized = planted(spark, people(1000, known), 100, {"theta": "1", "offset": "0.3"})
    texts = points.as_texts(release.original, ["age", "country"], ["illness"], "illness")
    domains = {
        "age": tuple(sorted({str(r["age"]) for r in release.records})),
        "country": tuple(sorted({r["country"] for r in release.records} - {None})),
        "illness": tuple(sorted(known)),
    }
    workload = points.point_workload(domains, "illness", conditions=6, seed=3)
    assert len(workload.queries) == 6 * len(known)
    actual = points.true_counts(texts, workload, 1200)
    estimated, raw = points.perturbed_estimates(release.tables, workload, ["illness"], 1200)
    for number, query in enumerate(workload.queries):
        wanted = {a: domains[a][codes[0]] for a, codes in query.accepted.items()}
        assert actual[number] == sum(all(str(r[a]) == v for a, v in wanted.items()) for r in release.records)
        sick = wanted.pop("illness")
        alone = twin(release, lambda r, w=wanted: all(str(r[a]) == v for a, v in w.items()), lambda v, s=sick: v == s)
        assert raw[number] == pytest.approx(alone.raw)
        assert estimated[number] == pytest.approx(alone.estimate)
    by_buckets = points.bucketized_estimates(bucketized.tables, workload, bucketized.manifest)
    for number in (0, 7, 13):
        wanted = {a: domains[a][codes[0]] for a, codes in workload.queries[number].accepted.items()}
        asked = " AND ".join(f"{a} = {v}" if a == "age" else f"{a} = '{v}'" for a, v in wanted.items())
        alone = count_buckets(bucketized.tables, bucketized.manifest, asked)
        assert min(max(by_buckets[number], alone.low), alone.high) == pytest.approx(alone.estimate)


def test_an_evaluation(release):
    found = evaluation.evaluate(
        release.tables, release.manifest, release.original, queries=60, selectivity=0.005, seed=1, attacks=True
    )
    belief = found.attacks["posterior"]
    assert (belief["persons"], belief["above"]) == (1200, 0)
    assert belief["largest"] <= belief["guarantee"]
    assert belief["accuracy"] == pytest.approx(
        belief["expected"], abs=0.08
    )  # 1,200 records: more than five standard errors
    assert found.attacks["corruption, all but one known"]["accuracy"] == 1.0
    assert all(one["words"] for one in found.attacks.values())
    assert found.measures["sub_tables"] == 2
    assert found.measures["mean_retention"] == pytest.approx(release.facts["utility"]["mean_retention"])
    assert len(found.workload.queries) == 60
    kept = found.actual > 0
    assert kept.any()
    assert (found.actual[kept] >= 6).all()
    assert found.errors.queries - found.errors.dropped == kept.sum()
    assert found.workload.kind == "point"
