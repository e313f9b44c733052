"""`evaluate` end to end: against counting by hand, and the error it must find on a release that lies."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from anonlib.engine.batches import partial_sums
from anonlib.errors import SpecError
from anonlib.evaluation.attacks import corruption
from anonlib.evaluation.attacks_coding import Coding
from anonlib.evaluation.attacks_on_bucketized import listed
from anonlib.evaluation.attacks_unmixing_tables import flattened as flattened_by_code
from anonlib.evaluation.attacks_unmixing_tables import tables_of, unmixed
from anonlib.evaluation.bucketized import estimates, evaluate, flattened, msbs, true_counts
from anonlib.evaluation.evaluation import RelativeErrors
from anonlib.evaluation.workloads import domains, in_workload
from anonlib.queries.flattening import Flattening
from anonlib.release.bucketized_count import count
from anonlib.release.bucketized_kinds import kinds_of
from tests.planted import QIS, people, planted
from tests.thorough import nightly

VALUES = {"flu": 40, "asthma": 30, "HIV": 6, "gout": 24, "cold": 20}


@pytest.fixture(scope="module")
def release(spark):
    return planted(spark, people(120, VALUES), 12, {"theta": "1", "offset": "0.1"})


@pytest.mark.spark
def test_all_queries_at_once_against_one_at_a_time_and_by_hand(release):
    workload = in_workload(domains(release.original, [*QIS, "illness"]), "illness", queries=60, selectivity=0.1, seed=1)
    actual = true_counts(release.original, workload, 120)
    estimated = estimates(release.tables, workload, release.manifest)
    even = flattened(release.tables, workload, 120)
    st = release.st.collect()
    for number, query in enumerate(workload.queries):
        accepted = {a: {workload.domains[a][c] for c in codes} for a, codes in query.accepted.items()}

        def meets(record, accepted=accepted):
            return all(record[a] is not None and str(record[a]) in v for a, v in accepted.items() if a != "illness")

        assert actual[number] == sum(meets(r) and r["illness"] in accepted["illness"] for r in release.records)
        by_hand = 0.0
        for b in range(12):
            k = sum(meets(r) for i, r in enumerate(release.records) if release.bucket_of[i] == b)
            by_hand += k * sum(r["count"] for r in st if r.bucket_id == b and r.illness in accepted["illness"]) / 10
        assert even[number] == pytest.approx(by_hand)
    for number in (7, 8, 9):
        one = count(release.tables, release.manifest, workload.predicate(number))
        assert min(max(estimated[number], one.low), one.high) == pytest.approx(one.estimate)


@pytest.mark.spark
def test_evaluate_reports_what_was_measured(release):
    found = evaluate(release.tables, release.manifest, release.original, queries=200, selectivity=0.05, seed=3)
    assert found.measures["msbs"] == pytest.approx(12 * 81 / 119)
    expected = RelativeErrors.of(found.actual, found.estimated)
    assert found.errors == expected
    assert found.errors.queries == 200 == sum(e.queries for e in found.by_group.values())
    assert set(found.by_group) == {1, 2, 3}
    report = json.loads(json.dumps(found.to_dict()))
    assert report["workload"] == {"kind": "in", "seed": 3, "selectivity": 0.05, "queries": 200}
    assert report["relative_error"]["average"] == pytest.approx(found.errors.average)
    again = evaluate(release.tables, release.manifest, release.original, queries=200, selectivity=0.05, seed=3)
    assert again.workload == found.workload
    assert again.estimated == pytest.approx(found.estimated)


@pytest.mark.spark
@nightly
def test_the_attacks_on_a_release_are_those_on_its_table_in_memory(release):
    found = evaluate(release.tables, release.manifest, release.original, queries=5, seed=3, attacks=True).attacks
    code = {v.value: i for i, v in enumerate(release.manifest.guarantee.values)}  # values are listed in this order
    rows = sorted((r["bucket_id"], code[r["illness"]], r["count"]) for r in release.st.collect())
    bucket, _, count = np.array(rows).T
    values = [v.count for v in release.manifest.guarantee.values]
    prior, most = (
        max(values) / sum(values),
        max(float(Fraction(v.threshold)) for v in release.manifest.guarantee.values),
    )
    for q, name in [(1, "corruption, 1 known"), (4, "corruption, 4 known")]:
        by_hand = corruption(bucket, count, 0, q, prior, most, seed=3)
        assert found[name] == pytest.approx(by_hand.to_dict())
    by_hand = corruption(bucket, count, 0, 0, prior, most)
    assert found["homogeneity"]["accuracy"] == pytest.approx(by_hand.accuracy)
    assert found["homogeneity"]["accuracy"] <= found["homogeneity"]["guarantee"] == most
    assert (found["homogeneity"]["persons"], found["homogeneity"]["above"]) == (120, 0)
    assert found["corruption, 4 known"]["accuracy"] > found["homogeneity"]["accuracy"]
    assert all(one["words"] for one in found.values())
    assert found["unmixing"]["persons"] == found["deFinetti"]["persons"] == 120
    assert "guarantee" not in found["unmixing"]


@pytest.mark.spark
def test_what_all_buckets_tell_of_a_quasi_identifier_is_what_a_loop_over_them_adds_up(release):
    """Of a text, of a number with a code for each value but one that no sample had, and of one in stretches."""
    part = release.manifest.guarantee
    code = {v.value: i for i, v in enumerate(part.values)}
    ages = [r["age"] for r in release.records]
    passed_over = str(ages[0])
    codings = (
        Coding.of([r["country"] for r in release.records]),
        Coding.of([str(age) for age in ages if str(age) != passed_over]),
        Coding(edges=np.array([30.0, 41.0, 70.5])),
    )
    named = list(zip(("country", "age", "age"), codings, strict=True))
    found = tables_of(
        flattened_by_code(release.qit, listed(release.st, part), named).collect(), [c.number for c in codings], 5
    )
    by_hand = [np.zeros((coding.number, 5)) for coding in codings]
    held = {(r["bucket_id"], code[r["illness"]]): r["count"] for r in release.st.collect()}
    for i, record in enumerate(release.records):
        for coding, table, value in zip(
            codings, by_hand, [record["country"], str(record["age"]), str(record["age"])], strict=True
        ):
            if coding is codings[1] and value == passed_over:
                continue
            for (b, v), count_ in held.items():
                table[coding([value])[0], v] += count_ / 10 * (b == release.bucket_of[i])
    for table, wanted in zip(found, by_hand, strict=True):
        assert table == pytest.approx(wanted)
    learnt = unmixed(release.qit, listed(release.st, part), release.manifest, ["country", "age"], codings[:2])
    assert (learnt.of, learnt.unread) == ([0, 1], ())
    kinds, values = kinds_of(release.st, release.manifest)
    for ratios, table in zip(learnt.ratios, by_hand, strict=False):
        order = [code[v] for v in values]
        assert np.exp(ratios[:, order]) == pytest.approx(Flattening(kinds).ratio(table[:, order].T).T)


@nightly  # four evaluations; at every change estimates are held against counting by hand
@pytest.mark.spark
def test_one_bucket_per_record_has_no_error_and_a_shuffled_release_has_much(spark, release):
    perfect = planted(spark, people(40, {"flu": 20, "cold": 20}), 40, {"theta": "2"})
    assert evaluate(perfect.tables, perfect.manifest, perfect.original, queries=50, seed=1).errors.average < 1e-12
    wrong = {
        "qit": release.qit,
        "st": release.st.selectExpr("bucket_id", "IF(illness = 'flu', 'HIV', illness) AS illness", "count"),
    }
    good = evaluate(release.tables, release.manifest, release.original, queries=200, selectivity=0.2, seed=3)
    bad = evaluate(wrong, release.manifest, release.original, queries=200, selectivity=0.2, seed=3)
    assert bad.errors.average > 1.3 * good.errors.average


@pytest.mark.spark
def test_the_wrong_original_is_refused(release):
    with pytest.raises(SpecError, match="no column 'age'"):
        evaluate(release.tables, release.manifest, release.original.drop("age"))


@pytest.mark.spark
def test_unbounded_domains_are_refused(spark):
    wide = spark.range(100_001).selectExpr("id", "'x' AS illness")
    with pytest.raises(SpecError, match="'id' has more than 100,000 distinct values"):
        domains(wide, ["id"])


@pytest.mark.spark
def test_msbs_of_a_huge_bucket_does_not_overflow(spark):
    sizes = spark.range(3).selectExpr("id AS bucket_id")
    assert msbs(sizes) == 0
    assert msbs(spark.sql("SELECT 1L AS bucket_id FROM range(50000)")) == pytest.approx(49_999)
    assert msbs(sizes.limit(0)) == 0


@pytest.mark.spark
def test_partial_sums_over_empty_and_uneven_partitions(spark):
    def histogram(batches):
        total = np.zeros(7)
        for batch in batches:
            total += np.bincount(batch.column(0).to_numpy() % 7, minlength=7)
        return total

    frame = spark.range(1000).repartition(3).union(spark.range(0)).union(spark.range(1))
    assert partial_sums(frame, histogram, 7).tolist() == np.bincount([*(np.arange(1000) % 7), 0]).tolist()
    assert partial_sums(frame.limit(0), histogram, 7).tolist() == [0] * 7
    with pytest.raises(Exception, match="the kernel returned shape"):
        partial_sums(frame, histogram, 8)


def test_relative_errors_drop_queries_without_an_answer():
    found = RelativeErrors.of(np.array([10.0, 0.0, 4.0]), np.array([11.0, 5.0, 1.0]))
    assert found == RelativeErrors(3, 1, pytest.approx((0.1 + 0.75) / 2), pytest.approx((0.1 + 0.75) / 2))
    assert math.isnan(RelativeErrors.of(np.array([0.0]), np.array([1.0])).average)
