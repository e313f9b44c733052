"""Count queries: the Spark plan against an obvious twin, and the estimate against every possible assignment."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from anonlib.errors import SpecError
from anonlib.queries.bucketized import hypergeometric
from anonlib.release.bucketized_count import count
from tests.planted import people, planted

pytestmark = pytest.mark.spark

VALUES = {"flu": 40, "asthma": 30, "HIV": 6, "gout": 24, "cold": 20}


@pytest.fixture(scope="module")
def release(spark):
    return planted(spark, people(120, VALUES), 12, {"theta": "1", "offset": "0.1"})


@pytest.fixture(scope="module")
def with_fakes(spark):
    return planted(spark, people(24, dict.fromkeys("abcdefgh", 3)), 8, {"l": 3}, fake_values=2)


def twin(release, visible, meets):
    """The estimate, its variance and its bounds, bucket by bucket in plain Python."""
    st = release.st.collect()
    found = [0.0, 0.0, 0, 0]
    for bucket in sorted({r.bucket_id for r in st}):
        k = sum(1 for i, r in enumerate(release.records) if release.bucket_of[i] == bucket and visible(r))
        K = sum(r["count"] for r in st if r.bucket_id == bucket and meets(r.illness))
        N = sum(r["count"] for r in st if r.bucket_id == bucket)
        found[0] += k * K / N
        found[1] += k * K * (N - K) * (N - k) / (N * N * (N - 1))
        found[2] += max(0, k + K - N)
        found[3] += min(k, K)
    return found[0], math.sqrt(found[1]), found[2], found[3]


CASES = {
    "age BETWEEN 30 AND 50 AND illness IN ('flu', 'HIV')": (
        lambda r: 30 <= r["age"] <= 50,
        lambda v: v in ("flu", "HIV"),
    ),
    "country = 'Peru'": (lambda r: r["country"] == "Peru", lambda v: True),
    "country <> 'Peru' AND illness <> 'cold'": (lambda r: r["country"] not in ("Peru", None), lambda v: v != "cold"),
    "NOT (country = '中国' OR age < 40)": (
        lambda r: r["country"] not in ("中国", None) and r["age"] >= 40,
        lambda v: True,
    ),
    "country IS NULL AND illness = 'gout'": (lambda r: r["country"] is None, lambda v: v == "gout"),
    "joined >= DATE '2005-01-01' AND big > 9007199254740992": (
        lambda r: r["joined"].year >= 2005 and r["big"] is not None,
        lambda v: True,
    ),
    "illness = 'flu'": (lambda r: True, lambda v: v == "flu"),
    "tags IS NOT NULL": (lambda r: r["tags"] is not None, lambda v: True),
    "age > 1000 AND illness = 'flu'": (lambda r: False, lambda v: v == "flu"),
    "TRUE": (lambda r: True, lambda v: True),
}


@pytest.mark.parametrize("predicate", CASES)
def test_the_plan_against_its_twin(release, predicate):
    found = count(release.tables, release.manifest, predicate)
    estimate, error, low, high = twin(release, *CASES[predicate])
    assert found.estimate == pytest.approx(estimate)
    assert found.standard_error == pytest.approx(error)
    assert (found.low, found.high) == (low, high)


@pytest.mark.parametrize("predicate", list(CASES)[:2])
def test_without_a_sensitive_part_the_count_is_exact(release, predicate):
    visible = predicate.split(" AND illness")[0]
    found = count(release.tables, release.manifest, visible)
    exact = release.original.where(visible).count()
    assert (found.estimate, found.standard_error, found.low, found.high) == (pytest.approx(exact), 0, exact, exact)


def test_fake_values_are_taken_out_of_the_expectation(with_fakes):
    found = count(with_fakes.tables, with_fakes.manifest, "illness IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h')")
    assert found.estimate == pytest.approx(24)
    estimate, error, low, high = twin(with_fakes, lambda r: r["age"] < 50, lambda v: v == "a")
    found = count(with_fakes.tables, with_fakes.manifest, "age < 50 AND illness = 'a'")
    assert (found.estimate, found.standard_error) == (pytest.approx(estimate), pytest.approx(error))
    assert (found.low, found.high) == (low, high)


def test_bad_predicates_name_the_columns_that_exist(release):
    with pytest.raises(SpecError, match="its columns are age, country, joined, tags, big, illness"):
        count(release.tables, release.manifest, "bucket_id = 1")


def test_the_true_count_lies_within_the_bounds_and_near_the_estimate(release):
    for predicate in CASES:
        found = count(release.tables, release.manifest, predicate)
        true = release.original.where(predicate).count()
        assert found.low <= true <= found.high


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(k=some.integers(0, 5), K=some.integers(0, 6), N=some.integers(1, 6))
def test_mean_variance_and_bounds_over_every_assignment(k, K, N):
    """All ways to hand N values (K of them meeting) to N places, k of which are asked for."""
    k, K = min(k, N), min(K, N)
    outcomes = [sum(v < K for v in deal[:k]) for deal in itertools.permutations(range(N))]
    mean = sum(outcomes) / len(outcomes)
    variance = sum((o - mean) ** 2 for o in outcomes) / len(outcomes)
    found = [float(a) for a in hypergeometric(k, K, N)]
    assert found == pytest.approx([mean, variance, min(outcomes), max(outcomes)])
