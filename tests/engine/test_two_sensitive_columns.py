"""Buckets of two sensitive columns through the public door: published, explained, asked, audited alone and with the original, refused."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import permutations, product

import pyarrow as pa
import pytest

import anonlib
from anonlib.audit.bucketized.audit import audit
from anonlib.audit.promised import taken_apart
from anonlib.release.answers import ESTIMATES
from tests.door import people
from tests.engine.test_groups import blocks
from tests.thorough import THOROUGH, trials

pytestmark = pytest.mark.spark

ILLNESSES = ("flu", "gout", "HIV", "mumps|measles", None)
DRUGS = (1, 2, 3, 4)
SENSITIVE = ("illness", "drug")
PRIVACY = {"default": "1/2", "columns": {"drug": {"theta": "1.5", "offset": "0.1", "thresholds": {"4": "2/5"}}}}
METHOD = {"bucketize": {"privacy": PRIVACY, "max_bucket_size": 12, "time_limit": 10}}


def patients(n: int = 60) -> pa.Table:
    """Drugs follow illnesses but for every fifth person: buckets by combination alone could hold one illness only."""
    ill = [ILLNESSES[i % 5] for i in range(n)]
    drug = [DRUGS[(i % 5 + (i % 25 == 7) + 2 * (i % 15 == 4)) % 4] for i in range(n)]
    return people(n).set_column(3, "illness", pa.array(ill)).append_column("drug", pa.array(drug, pa.int32()))


def columns(door) -> dict:
    return door.spec("-")["columns"] | {"sensitive": list(SENSITIVE)}


def test_a_release_keeps_the_thresholds_of_both_columns(door):
    table = patients()
    source = door.input(table)
    outcome = door.run(source, method=METHOD, columns=columns(door), missing={"sensitive": "keep"})
    outcome.published()
    guarantee = outcome.manifest.guarantee
    records = table.to_pylist()

    st = outcome.table("st")
    assert list(st[0]) == ["bucket_id", "illness", "drug", "count"]
    pairs = Counter((r["illness"], r["drug"]) for r in records)
    listed: Counter = Counter()
    held: dict = defaultdict(lambda: defaultdict(Counter))
    for row in st:
        listed[row["illness"], row["drug"]] += row["count"]
        for name in SENSITIVE:
            held[row["bucket_id"]][name][row[name]] += row["count"]
    assert listed == pairs
    for part in guarantee.also:
        for value in part.values:
            own = value.value if part.sensitive == "illness" else int(value.value)
            shares = [Fraction(b[part.sensitive][own], b[part.sensitive].total()) for b in held.values()]
            assert max(shares) == Fraction(value.achieved) <= Fraction(value.threshold)
    asked = {v.value: v.threshold for v in guarantee.also[1].values}
    drugs = Counter(r["drug"] for r in records)
    assert asked == {
        str(d): "0.4" if d == 4 else str(float(Fraction(3, 2) * drugs[d] / 60 + Fraction(1, 10))) for d in DRUGS
    }
    assert guarantee.sensitive == "illness and drug"
    assert "Nor can a value of illness together with one of drug" in guarantee.words

    code, checks = door.audit(outcome.output, source)
    assert code == 0, [check for check in checks if not check["passed"]]
    names = {check["name"] for check in checks}
    assert {
        "F'-privacy of each sensitive column",
        "values of each sensitive column",
        "original: values in their buckets",
    } <= names

    opened = anonlib.open_release(str(outcome.output), door.spark)
    whole = opened.count("illness = 'flu' AND drug >= 2")
    assert (whole.low, whole.high) == (2 * (sum(n for (i, d), n in pairs.items() if i == "flu" and d >= 2),))
    asked_of_records = {
        "country = 'Peru' AND illness IS NULL AND drug IN (1, 2)": lambda r: (
            r["country"] == "Peru" and r["illness"] is None and r["drug"] in (1, 2)
        ),
        "age < 40 AND illness = 'flu'": lambda r: r["age"] < 40 and r["illness"] == "flu",
        "age < 40 AND drug = 3": lambda r: r["age"] < 40 and r["drug"] == 3,
    }
    for where, meets in list(asked_of_records.items())[: trials(3, 1)]:
        found = opened.count(where)
        assert found.low <= sum(map(meets, records)) <= found.high
    groups = opened.group_rows("country", *SENSITIVE)
    of_groups = {(r["country"], r["illness"], r["drug"]): (r["low"], r["high"]) for r in groups}
    for key, n in Counter((r["country"], r["illness"], r["drug"]) for r in records).items():
        assert of_groups[key][0] <= n <= of_groups[key][1]
    young = opened.mean("drug", where="age < 40 AND (illness = 'flu' OR drug = 1)")
    assert min(DRUGS) <= young.estimate <= max(DRUGS)
    assert young.estimator in ("shrunk", "unbiased")
    _tampered(door, outcome, st)
    if THOROUGH:
        _grouped_by_one(opened, records)
        _averaged(opened, records)
        _without_anonlib(door.spark, opened)
        _the_other_verbs(door, outcome, opened, source)


def _grouped_by_one(opened, records) -> None:
    """By a quasi-identifier and one sensitive column, among records with some values of the other: as counts of each row alone."""
    ill = "illness IN ('flu', 'HIV')"
    frame = opened.group_by("Drug", "country", where=f"age < 50 AND {ill}")
    assert frame.columns == ["country", "drug", *ESTIMATES, "flattened"]
    rows = frame.collect()
    met = Counter((r["country"], r["drug"]) for r in records if r["age"] < 50 and r["illness"] in ("flu", "HIV"))
    assert {(row.country, row.drug) for row in rows} >= set(met)
    for row in rows:
        assert row.low <= met[row.country, row.drug] <= row.high
    for row in sorted(rows)[: trials(len(rows), 1)]:
        alone = opened.count(f"country = '{row.country}' AND drug = {row.drug} AND age < 50 AND {ill}")
        assert (row.low, row.high, row.estimator) == (alone.low, alone.high, alone.estimator)
        assert row.estimate == pytest.approx(alone.estimate)
        assert (row.standard_error is None) == (alone.standard_error is None)
        assert row.standard_error is None or row.standard_error == pytest.approx(alone.standard_error)


def _averaged(opened, records) -> None:
    """Means of the numeric one: of all, and by the other column, exact."""
    assert opened.mean("drug").estimate == pytest.approx(sum(r["drug"] for r in records) / len(records))
    flu = [r["drug"] for r in records if r["illness"] == "flu"]
    found = opened.mean("DRUG", where="illness = 'flu'")
    assert (found.estimate, found.estimator, found.standard_error) == (pytest.approx(sum(flu) / len(flu)), "exact", 0)
    with pytest.raises(anonlib.SpecError, match="asks for sensitive values"):
        opened.mean("age", where="illness = 'flu'")


def _without_anonlib(spark, opened) -> None:
    """The SQL of docs/analyst.md, its columns found here under other names."""
    opened.tables["qit"].selectExpr("bucket_id", "IF(age < 40, 'F', 'M') AS sex").createOrReplaceTempView("qit")
    st = opened.tables["st"].selectExpr(
        "bucket_id", "drug AS stay", "IF(illness = 'HIV', 'zidovudine', illness) AS drug", "`count`"
    )
    st.createOrReplaceTempView("st")
    row = spark.sql(blocks("Two sensitive columns", "sql")[-1]).first()
    assert float(row.spread) == pytest.approx(opened.count("age < 40 AND illness = 'HIV' AND drug >= 3").flattened)
    assert min(DRUGS) <= float(row.mean_stay) <= max(DRUGS)


def _the_other_verbs(door, outcome, opened, source) -> None:
    manifest = outcome.manifest
    ages = [r["age"] for r in patients().to_pylist()]
    assert opened.mean("age").estimate == pytest.approx(sum(ages) / 60)
    explained = json.loads(door.call("explain", str(door.home / "spec-1.yaml"), "--json").out)
    assert explained["setting"] == [s.model_dump() for s in manifest.solver.setting]
    assert [v["threshold"] for v in explained["columns"]["drug"]] == [
        v.threshold for v in manifest.guarantee.also[1].values
    ]

    attacked = door.call("evaluate", str(outcome.output), "--original", str(source), "--attacks", "--json")
    assert attacked.code == 0, attacked.err
    attacks = json.loads(attacked.out)["attacks"]
    for name in ("homogeneity", "skewness", "deFinetti"):
        for part in manifest.guarantee.also:
            one = attacks[f"{name}, {part.sensitive}"]
            assert one["persons"] == 60
            assert one["prior"] == pytest.approx(max(v.count for v in part.values) / 60)
    for part in manifest.guarantee.also:
        assert attacks[f"homogeneity, {part.sensitive}"]["above"] == 0
    assert attacks["re-identification"]["persons"] == 60
    assert set(attacks["posterior"]) == {"words"}
    assert door.call("report", str(outcome.output), "-o", str(door.home / "report.html")).code == 0
    assert "illness and drug" in (door.home / "report.html").read_text(encoding="utf-8")


def _tampered(door, outcome, st) -> None:
    """A release that keeps its promise of every combination, and not that of each column."""
    kind, manifest = "bucket_id bigint, illness string, drug int, count bigint", outcome.manifest
    qit = door.spark.read.parquet(str(outcome.output / "qit"))
    values = [(taken_apart(v.value, 2), Fraction(v.threshold)) for v in manifest.guarantee.values]
    told = exchanged(st, {(illness, int(drug)): threshold for (illness, drug), threshold in values})
    changed = door.spark.createDataFrame(told, kind)
    failed = {check.name for check in audit({"qit": qit, "st": changed}, manifest).failures}
    assert {
        "F'-privacy of each sensitive column",
        "achieved is within asked",
        "achieved shares of each sensitive column",
    } <= failed
    assert "F'-privacy" not in failed


def exchanged(st, thresholds):
    """Two buckets exchange single records, so that a value of one column is above its threshold and no combination above its own."""
    buckets: dict = defaultdict(Counter)
    for row in st:
        buckets[row["bucket_id"]][row["illness"], row["drug"]] += row["count"]
    for one, other in permutations(buckets, 2):
        for mine, theirs in product(buckets[one], buckets[other]):
            moved = {b: Counter(held) for b, held in buckets.items()}
            for bucket, gives, takes in ((one, mine, theirs), (other, theirs, mine)):
                moved[bucket][gives] -= 1
                moved[bucket][takes] += 1
            if crowded(moved[one]) and all(below(moved[b], thresholds) for b in (one, other)):
                return [(b, i, d, n) for b, held in moved.items() for (i, d), n in held.items() if n]
    raise AssertionError("no exchange breaks a threshold of one column alone")


def crowded(bucket) -> bool:
    """Whether an illness is more than half of the bucket."""
    ill: Counter = Counter()
    for (illness, _), n in bucket.items():
        ill[illness] += n
    return 2 * max(ill.values()) > ill.total()


def below(bucket, thresholds) -> bool:
    """Whether every combination is within its threshold."""
    return all(Fraction(n, bucket.total()) <= thresholds[pair] for pair, n in bucket.items())


REFUSED = {
    "thresholds of nobody's": ({"privacy": {"default": "1/2", "thresholds": {"flu": "1/3"}}}, "privacy.thresholds"),
    "a threshold of nobody's null": ({"privacy": {"default": "1/2", "missing": "1/3"}}, "privacy.missing"),
    "no column": ({"privacy": {"default": "1/2", "columns": {"drugs": {"l": 2}}}}, "did you mean drug"),
    "nothing of one": ({"privacy": {"columns": {"drug": {"l": 2}}}}, "nothing is promised of 'illness'"),
    "more than is asked of any": (
        {"privacy": {"theta": 8, "columns": {"illness": {"l": 2}, "drug": {"l": 2}}}},
        "this would be asked of neither",
    ),
    "fakes": ({"privacy": {"l": 2}, "fake_values": 1}, "no fakes are listed"),
    "two sizes": ({"privacy": {"l": 2}, "solver": "two_size"}, "the solver is optimal"),
    "bands": ({"privacy": {"l": 2}, "mix_companions": True}, "kinds of buckets vary as it is"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_says_nothing_of_two_columns_is_refused(door, case):
    parameters, words = REFUSED[case]
    spec = door.spec("nowhere", method={"bucketize": parameters}, columns=columns(door))
    door.run_spec(spec).refused(2, words)


def test_three_columns_a_hierarchy_and_columns_of_one_are_refused(door):
    three = columns(door) | {"sensitive": ["illness", "drug", "dose"]}
    door.run_spec(door.spec("nowhere", columns=three)).refused(2, "bucketize protects 2 sensitive columns")
    tree = door.home / "tree.csv"
    tree.write_text("flu,ill,any\n")
    above = columns(door) | {"sensitive": [{"name": "illness", "hierarchy": str(tree)}, "drug"]}
    method = {"bucketize": {"privacy": {"l": 2}}}
    door.run_spec(door.spec("nowhere", columns=above, method=method)).refused(2, "makes no use of a hierarchy")
    of_one = {"bucketize": {"privacy": {"columns": {"illness": {"l": 2}}}}}
    door.run_spec(door.spec("nowhere", method=of_one)).refused(2, "there is one sensitive column")
