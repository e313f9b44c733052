"""What the standard error of a count covers: chance, and not association.

The release is simulated with the product's own deal, over many keys. Where the sensitive value has nothing to do with the condition
on the quasi-identifiers, the true count must fall around the estimate as the standard error says. Where it has, the estimate is
pulled towards independence, which no standard error of this kind can show; the bounds `low` and `high` must hold all the same.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from anonlib.kernels.ranked.fake_values import FakeValues
from anonlib.kernels.ranked.round_robin import Deal, RoundRobin, composition
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy
from anonlib.queries.bucketized import hypergeometric
from anonlib.solvers.buckets import choose

COUNTS = np.array([900, 600, 450, 300, 300, 150, 120, 90, 60, 30])
TRUTH = np.repeat(np.arange(len(COUNTS)), COUNTS)
RANK = np.concatenate([np.arange(count) for count in COUNTS])
REPEATS = 1_500


def deal_of(privacy: FPrivacy, largest: int, counts=COUNTS) -> Deal:
    table = SensitiveCounts(tuple(f"x{i}" for i in range(len(counts))), counts)
    solution = choose.solve(table, privacy.thresholds(table), "two_size", largest)
    return Deal.of(solution.setting, solution.partition)


DEAL = deal_of(FPrivacy.linear(2, "0.05"), 20)


def key(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest()


def counted(deal: Deal, bucket: np.ndarray, matching: np.ndarray, meeting: np.ndarray, truth: np.ndarray):
    """(true count, estimate, standard error, low, high)."""
    k = np.bincount(bucket, weights=matching, minlength=deal.buckets)
    K = np.bincount(bucket, weights=meeting[truth], minlength=deal.buckets)
    N = np.bincount(bucket, minlength=deal.buckets)
    mean, variance, low, high = (part.sum() for part in hypergeometric(k, K, N))
    return (matching & meeting[truth]).sum(), mean, variance**0.5, low, high


@pytest.mark.parametrize(("share", "values"), [(0.3, [0, 1]), (0.05, [3, 4, 5]), (0.7, [8, 9]), (0.5, range(5))])
def test_the_true_count_falls_around_the_estimate_as_the_standard_error_says(share, values):
    """Fresh key and fresh people each time. False alarms: coverage of +-1.96 standard errors strays from 95 % by 0.035, six of its
    own standard errors, once in 5e8; mean and mean square of the scores by six of theirs (0.155, 0.22) as rarely. Seeds are fixed."""
    meeting = np.isin(np.arange(len(COUNTS)), list(values))
    rng = np.random.default_rng(7)
    scores = []
    for number in range(REPEATS):
        matching = rng.random(len(TRUTH)) < share
        actual, estimate, error, low, high = counted(
            DEAL, RoundRobin(DEAL, key(number))(TRUTH, RANK), matching, meeting, TRUTH
        )
        assert low <= actual <= high
        scores.append((actual - estimate) / error)
    scores = np.array(scores)
    assert abs(scores.mean()) < 0.155
    assert abs((scores**2).mean() - 1) < 0.22
    assert abs((abs(scores) < 1.96).mean() - 0.95) < 0.035


def test_association_pulls_the_estimate_towards_independence_and_out_of_the_interval():
    """Of the values 0 and 1 60 % meet the condition, of the others 20 %: the estimate tells little of it, for any key."""
    meeting = np.arange(len(COUNTS)) < 2
    rng = np.random.default_rng(7)
    matching = rng.random(len(TRUTH)) < np.where(TRUTH < 2, 0.6, 0.2)
    independent = matching.sum() * meeting[TRUTH].mean()
    found = []
    for number in range(50):
        actual, estimate, error, low, high = counted(
            DEAL, RoundRobin(DEAL, key(number))(TRUTH, RANK), matching, meeting, TRUTH
        )
        assert low <= actual <= high
        assert estimate + 3 * error < actual
        found.append(estimate)
    assert independent < np.mean(found) < (independent + actual) / 2


def test_fake_values_make_rare_values_look_more_frequent():
    """Two fakes drawn evenly in buckets of 4 to 5 distinct values out of ten. Listed as often as it is, a rare value is over-estimated;
    the whole is not, and the bounds hold."""
    counts = np.array([300, 290, 250, 240, 230, 220, 200, 180, 60, 30])
    deal = deal_of(FPrivacy.l_diversity(4), 7, counts)
    truth = np.repeat(np.arange(10), counts)
    rank = np.concatenate([np.arange(count) for count in counts])
    bucket = RoundRobin(deal, key(0))(truth, rank)
    ids, codes = FakeValues(deal, 10, 2, key(0))(np.arange(deal.buckets))
    k = np.bincount(bucket, minlength=deal.buckets)
    N = np.bincount(ids, minlength=deal.buckets)
    assert (N - k == 2).all()
    assert sum((s.stop - s.start) * len(s.codes) for s in composition(deal)) == counts.sum()

    def estimate(values):
        K = np.bincount(ids, weights=np.isin(codes, values), minlength=deal.buckets)
        mean, _, low, high = (part.sum() for part in hypergeometric(k, K, N))
        assert low <= counts[values].sum() <= high
        return mean

    assert estimate([9]) > 2 * counts[9]
    assert estimate([0]) < counts[0]
    assert estimate(list(range(10))) == pytest.approx(counts.sum())
