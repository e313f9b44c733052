"""Attacks against slow twins, against the truth over many keys, and against their bounds."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from anonlib.evaluation.attacks import (
    Corruption,
    Listed,
    corruption,
    differential_inference,
    negative_association,
    negative_rules,
)
from anonlib.kernels.ranked.fake_values import FakeValues
from anonlib.kernels.ranked.round_robin import Deal, RoundRobin
from anonlib.privacy.buckets import BucketSetting

KEY = bytes(range(32))


def exact_accuracy(counts: list[int], fakes: int, q: int) -> Fraction:
    """The adversary's accuracy in one bucket over every set of q known values out of those listed."""
    listed = [v for v, n in enumerate(counts) for _ in range(n)]
    q = min(q, len(listed) - fakes - 1)
    total = Fraction(0)
    sets = list(itertools.combinations(range(len(listed)), q))
    for known in sets:
        left = [v for i, v in enumerate(listed) if i not in known]
        total += Fraction(max(left.count(v) for v in set(left)), len(left))
    return total / len(sets)


@pytest.mark.parametrize(
    ("counts", "fakes"), [([3, 2, 1], 0), ([1, 1, 1, 1, 1], 2), ([4, 1], 0), ([1], 0), ([2, 2, 2], 0)]
)
@pytest.mark.parametrize("q", [0, 1, 2, 3, 99])
def test_corruption_against_every_set_of_known_records(counts, fakes, q):
    """20,000 buckets alike. An average of 20,000 draws between 0 and 1 strays by 6 standard errors (0.021) once in 5e8 runs."""
    many = 20_000
    found = corruption(np.repeat(np.arange(many), len(counts)), np.tile(counts, many), fakes, q, 0.1, 0.5)
    assert found.accuracy == pytest.approx(float(exact_accuracy(counts, fakes, q)), abs=6 * 0.5 / many**0.5)
    assert found.detail["persons"] == many * (sum(counts) - fakes - min(q, sum(counts) - fakes - 1))


def dealt(fakes: int, key: bytes, per_value: int = 200, m: int = 10, size: int = 5):
    """Truth, buckets and `st` of records with m equally frequent values in buckets of `size` distinct ones."""
    setting = BucketSetting.of([(size, m * per_value // size)])
    deal = Deal.of(setting, np.full((m, 1), per_value))
    truth = np.repeat(np.arange(m), per_value)
    bucket = RoundRobin(deal, key)(truth, np.tile(np.arange(per_value), m))
    ids, codes = FakeValues(deal, m, fakes, key)(np.arange(setting.buckets))
    return truth, bucket, Listed(ids, codes, np.ones(len(ids), dtype=np.int64))


@pytest.mark.long
@pytest.mark.parametrize(("q", "fakes"), [(0, 0), (2, 0), (4, 0), (0, 2), (2, 2), (4, 2)])
def test_what_is_told_from_st_alone_is_what_happens_in_truth(q, fakes):
    """The adversary plays on real records: he crosses out q of his bucket and names a listed value for one of the others."""
    truth, bucket, listed = dealt(fakes, KEY, per_value=2_000)
    told = corruption(listed.bucket, listed.count, fakes, q, 0.1, 0.2)
    rng = np.random.default_rng(1)
    order = np.lexsort((rng.random(len(truth)), bucket))
    records, lists = truth[order].reshape(-1, 5), listed.code.reshape(-1, 5 + fakes)
    right = 0
    for values, names in zip(records, lists, strict=True):
        left = np.setdiff1d(names, values[:q])
        right += values[4] == rng.choice(left)
    tried = len(records)
    assert right / tried == pytest.approx(
        told.accuracy, abs=5 * 0.5 / tried**0.5
    )  # 5 standard errors: once in 1.7e6 runs
    assert told.accuracy == pytest.approx(1 / (5 - q + fakes))
    assert told.guarantee == (pytest.approx(1 / (5 - q + fakes)) if fakes else (0.2 if q == 0 else None))


def test_corruption_does_not_depend_on_batches():
    rng = np.random.default_rng(0)
    held = rng.integers(1, 5, 40)
    count = rng.integers(1, 4, held.sum())
    ends = np.cumsum(held)
    kernel = Corruption((0, 1, 3), 0, 7)
    whole = kernel({"bucket": np.arange(40), "values": held, "count": count})
    parts = [slice(0, 13), slice(13, 14), slice(14, 40)]
    summed = sum(
        kernel({"bucket": np.arange(40)[p], "values": held[p], "count": count[ends[p][0] - held[p][0] : ends[p][-1]]})
        for p in parts
    )
    assert summed == pytest.approx(whole)
    assert kernel({name: np.zeros(0, dtype=np.int64) for name in ("bucket", "values", "count")}).tolist() == [0.0] * 6
    assert Corruption((1,), 0, 8)({"bucket": np.arange(40), "values": held, "count": count})[0] != whole[1]


def mixed(fakes: int, buckets: int = 6_000, m: int = 10, size: int = 5):
    """The same with every set of values as likely in a bucket (a deal of equally frequent values makes few sets)."""
    values = np.argsort(np.random.default_rng(11).random((buckets, m)), axis=1)[:, : size + fakes]
    ids = np.repeat(np.arange(buckets), size + fakes)
    listed = Listed(ids, values.ravel(), np.ones(len(ids), dtype=np.int64))
    return values[:, :size].ravel(), np.repeat(np.arange(buckets), size), listed


def test_a_negative_association_is_learnt_and_used_and_fakes_blunt_it():
    """Half of the people have z = 1 and never the values 0 to 3; nobody else differs."""
    rng = np.random.default_rng(3)
    truth, bucket, listed = mixed(0)
    z = np.where(truth < 4, 0, rng.integers(0, 2, len(truth)))[:, None]
    rules = negative_rules(bucket, z, listed, 10)
    assert rules[0][1].tolist() == [True] * 4 + [False] * 6
    assert not rules[0][0].any()
    found = negative_association(bucket, z, truth, listed, rules)
    assert found.prior == pytest.approx(0.1, abs=0.01)
    assert found.detail["without rules"] == pytest.approx(1 / 5)
    assert found.accuracy > 1.15 / 5
    assert found.guarantee is None
    assert found.detail["wrongly struck out"] == 0

    truth, bucket, listed = mixed(2)
    faked = negative_association(bucket, z, truth, listed, rules, 2)
    assert faked.accuracy < found.accuracy
    assert faked.accuracy <= faked.guarantee == pytest.approx(1 / 3)


def test_the_guess_after_rules_by_hand():
    """Two buckets: in the first the rule leaves one value of three, in the second it leaves none and is forgotten."""
    listed = Listed(np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 1]), np.array([1, 1, 1, 1, 1]))
    bucket, truth, z = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 1]), np.array([[0], [0], [1], [1], [1]])
    rules = [np.array([[False, False, False], [True, True, False]])]
    found = negative_association(bucket, z, truth, listed, rules)
    assert found.accuracy == pytest.approx((1 / 3 + 1 / 3 + 1 + 1 / 2 + 1 / 2) / 5)
    assert found.detail["without rules"] == pytest.approx((1 / 3 * 3 + 1 / 2 * 2) / 5)
    assert found.detail["wrongly struck out"] == pytest.approx(2 / 5)


def test_no_rule_is_learnt_where_there_is_no_association():
    """90 pairs, each a rule by chance with probability 0.00135 at 3 standard errors if tested once; the second condition is
    stricter here. Fixed seeds: no false alarms in repeated runs."""
    truth, bucket, listed = mixed(0)
    z = np.random.default_rng(5).integers(0, 9, (len(truth), 1))
    assert not negative_rules(bucket, z, listed, 10)[0].any()


@pytest.mark.parametrize(("x", "y", "epsilon"), [(100, 99, 0.1), (100, 99, 1.0), (500, 250, 0.05), (1000, 10, 0.1)])
def test_differential_inference_against_its_formulas(x, y, epsilon):
    """400,000 draws: the mean is known within 5 of its standard errors, the variance within a tenth (fourth powers of b/x are left
    out: at most 12 (b/x)^2 = 0.12 of it)."""
    found = differential_inference(x, y, epsilon, 0.01, draws=400_000)
    d = found.detail
    b = 1 / epsilon
    left_out = 30 * (b / x) ** 4
    assert d["mean"] == pytest.approx(d["expected mean"], abs=5 * (d["variance"] / 400_000) ** 0.5 + left_out)
    assert d["variance"] == pytest.approx(d["expected variance"], rel=0.03 + 15 * (b / x) ** 2)
    assert d["expected mean"] == pytest.approx(y / x * (1 + 2 * b * b / x / x))


def test_noise_does_not_hide_a_large_share_and_promises_nothing():
    found = differential_inference(100, 99, 0.1, 0.01)
    assert found.accuracy > 0.98
    assert found.prior == pytest.approx(0.01)
    assert found.guarantee is None
    assert differential_inference(100, 99, 0.1, 0.01) == found
    loud = differential_inference(10, 9, 0.01, 0.01)  # noise ten times the count
    assert loud.accuracy < 0.6
