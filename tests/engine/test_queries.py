"""Count queries: the Spark plan against an obvious twin, and the same answers from the pure estimator."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
import scipy.sparse as sp

from anonlib.errors import SpecError
from anonlib.queries.bucketized import Seen, answer
from anonlib.queries.flattening import Kinds
from anonlib.queries.predicate import parse
from anonlib.release.bucketized_count import count, kinds_seen
from tests.planted import people, planted
from tests.thorough import trials

pytestmark = pytest.mark.spark

VALUES = {"flu": 40, "asthma": 30, "HIV": 6, "gout": 24, "cold": 20}


@pytest.fixture(scope="module")
def release(spark):
    return planted(spark, people(120, VALUES), 12, {"theta": "1", "offset": "0.1"})


@pytest.fixture(scope="module")
def with_fakes(spark):
    return planted(spark, people(24, dict.fromkeys("abcdefgh", 3)), 8, {"l": 3}, fake_values=2)


def twin(release, visible, meets):
    """The flattened estimate and its bounds, bucket by bucket in plain Python."""
    st = release.st.collect()
    found = [0.0, 0, 0]
    for bucket in sorted({r.bucket_id for r in st}):
        k = sum(1 for i, r in enumerate(release.records) if release.bucket_of[i] == bucket and visible(r))
        K = sum(r["count"] for r in st if r.bucket_id == bucket and meets(r.illness))
        N = sum(r["count"] for r in st if r.bucket_id == bucket)
        found[0] += k * K / N
        found[1] += max(0, k + K - N)
        found[2] += min(k, K)
    return tuple(found)


def by_hand(release, visible, meets):
    """The answer of the pure estimator, every bucket taken as it lies in plain Python."""
    compositions = defaultdict(list)
    for row in release.st.collect():
        compositions[row.bucket_id].append((row.illness, row["count"]))
    kinds = sorted({tuple(sorted(c)) for c in compositions.values()})
    values = sorted(VALUES)
    held = np.array([[dict(kind).get(v, 0) for v in values] for kind in kinds])
    kind_of = {b: kinds.index(tuple(sorted(c))) for b, c in compositions.items()}
    k = {b: sum(visible(r) for i, r in enumerate(release.records) if release.bucket_of[i] == b) for b in kind_of}
    number = np.bincount([kind_of[b] for b in kind_of], minlength=len(kinds))
    seen = Seen(
        np.array([kind_of[b] for b in kind_of]),
        np.array([k[b] for b in kind_of]),
        np.ones(len(kind_of), dtype=np.int64),
        np.zeros((len(kinds), 0)),
    )
    return answer(Kinds(number, sp.csr_matrix(held)), values, np.array([meets(v) for v in values]), seen)


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
    flattened, low, high = twin(release, *CASES[predicate])
    assert (found.low, found.high) == (low, high)
    assert low <= found.interval[0] <= found.estimate <= found.interval[1] <= high or found.estimator == "shrunk"
    if found.estimator == "exact":
        assert found.estimate == low == high
        return
    assert found.flattened == pytest.approx(flattened)
    assert found.estimator in ("shrunk", "unbiased")
    assert found.unbiased == pytest.approx(by_hand(release, *CASES[predicate]).unbiased)


def test_a_condition_on_one_column_is_answered_as_by_hand(release):
    found = count(release.tables, release.manifest, "age BETWEEN 30 AND 50 AND illness IN ('flu', 'HIV')")
    single = by_hand(release, *CASES["age BETWEEN 30 AND 50 AND illness IN ('flu', 'HIV')"])
    for name in ("estimate", "unbiased", "standard_error", "interval", "low", "high", "flattened"):
        assert getattr(found, name) == pytest.approx(getattr(single, name)), name


@pytest.mark.parametrize("predicate", list(CASES)[:2])
def test_without_a_sensitive_part_the_count_is_exact(release, predicate):
    visible = predicate.split(" AND illness")[0]
    found = count(release.tables, release.manifest, visible)
    exact = release.original.where(visible).count()
    assert (found.estimate, found.standard_error, found.low, found.high) == (exact, 0, exact, exact)
    assert (found.estimator, found.interval) == ("exact", (exact, exact))


def test_fake_values_are_taken_out_of_the_expectation_and_no_error_is_stated(with_fakes):
    found = count(with_fakes.tables, with_fakes.manifest, "illness IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h')")
    assert found.estimate == pytest.approx(24)
    estimate, low, high = twin(with_fakes, lambda r: r["age"] < 50, lambda v: v == "a")
    found = count(with_fakes.tables, with_fakes.manifest, "age < 50 AND illness = 'a'")
    assert (found.estimate, found.estimator) == (pytest.approx(estimate), "flattened")
    assert (found.low, found.high) == (low, high)
    assert (found.standard_error, found.unbiased, found.interval) == (None, None, (low, high))
    assert "no error is known" in str(found)


def test_conditions_on_several_columns_give_the_prior_of_their_product(release):
    """With the parts in their own columns of the plan: answered as the estimator answers that is given them."""
    text = "age < 50 AND country = 'Peru' AND illness = 'flu'"
    columns = {name: kind for name, kind in release.qit.dtypes if name != "bucket_id"} | {"illness": "string"}
    parsed = parse(text, columns, "illness")
    assert len(parsed.parts) == 2
    rows = kinds_seen(release.tables, "illness", parsed)
    for i, part in enumerate(parsed.parts):
        assert sum(row[f"part{i}"] for row in rows) == release.original.where(part).count()
    assert sum(pair["buckets"] for row in rows for pair in row["seen"]) == len(set(release.bucket_of))


def test_bad_predicates_name_the_columns_that_exist(release):
    with pytest.raises(SpecError, match="its columns are age, country, joined, tags, big, illness"):
        count(release.tables, release.manifest, "bucket_id = 1")


def test_the_true_count_lies_within_the_bounds_and_near_the_estimate(release):
    for predicate in list(CASES)[: trials(len(CASES), 4)]:
        found = count(release.tables, release.manifest, predicate)
        true = release.original.where(predicate).count()
        assert found.low <= true <= found.high
