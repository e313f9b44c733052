"""Means on buckets and on perturbed values over many keys: right on average, and with errors that hold.

The table and the question stay, the draws change. False alarms: means and coverages may stray by 4.5 of their own standard errors, once
in 150,000 tests each; variances by as many, which is a factor of 1 +- 0.142 for 2,000 nearly normal numbers.
"""

from __future__ import annotations

import numpy as np
import pytest

from anonlib.queries.bucketized import Seen
from anonlib.queries.means import PublishedNumbers, of_buckets, of_perturbed
from anonlib.queries.reconstruction import Operators
from tests.statistical.test_intervals import COUNTS, KEYS, X, simulated

NUMBERS = np.array([0.0, 10, 20, 5, 40, np.nan, 80, 15, 100, 30])
TRUE_MEAN = np.nansum(NUMBERS * X) / X[~np.isnan(NUMBERS)].sum()


def judge(found, true):
    """The z-test of the mean, the spread against the stated errors, and the coverage of 95 % intervals."""
    means, errors = np.array([f.unbiased for f in found]), np.array([f.standard_error for f in found])
    held = np.array([f.interval[0] <= true <= f.interval[1] for f in found])
    assert abs(means.mean() - true) < 4.5 * means.std() / np.sqrt(len(found))
    assert abs(means.var() / (errors**2).mean() - 1) < 0.142 * np.sqrt(2_000 / len(found))
    assert abs(held.mean() - 0.95) < 4.5 * np.sqrt(0.95 * 0.05 / len(found))


@pytest.mark.long
def test_the_mean_on_buckets():
    kinds, k, kind = simulated()
    buckets = np.bincount(kind)
    found = []
    for i in range(0, KEYS, 2):
        # matching records of a kind enter by their sum alone
        seen = Seen(
            np.arange(len(buckets)),
            k[:, i].astype(np.int64),
            np.ones(len(buckets), np.int64),
            np.zeros((len(buckets), 0)),
        )
        found.append(of_buckets(kinds, NUMBERS, seen))
    assert {f.estimator for f in found} <= {"shrunk", "unbiased"}
    judge(found, TRUE_MEAN)
    errors = [(f.estimate - TRUE_MEAN) ** 2 for f in found]
    assert np.mean(errors) < np.mean([(f.unbiased - TRUE_MEAN) ** 2 for f in found])


def test_nobody_and_values_that_are_not_told():
    kinds, k, _ = simulated()
    nobody = Seen(np.arange(len(k)), np.zeros(len(k), np.int64), np.ones(len(k), np.int64), np.zeros((len(k), 0)))
    assert np.isnan(of_buckets(kinds, NUMBERS, nobody).estimate)
    assert COUNTS.sum() == kinds.by_value.sum()


@pytest.mark.parametrize("missing", [False, True])
def test_the_mean_of_perturbed_values(missing):
    """Two sub-tables with domains of their own, gamma 9 and 4."""
    draw = np.random.default_rng(8)
    domains = [np.array([0.0, 10, 25, 60]), np.array([5.0, 100, np.nan if missing else 40])]
    gammas = np.array([9.0, 4.0])
    true = [np.repeat(np.arange(4), [300, 200, 120, 80]), np.repeat(np.arange(3), [150, 100, 90])]
    values = np.concatenate([domain[codes] for domain, codes in zip(domains, true, strict=True)])
    operators = Operators(np.array([4, 3]), gammas)
    found = []
    for _ in range(2_000):
        sums = []
        for i, (domain, codes) in enumerate(zip(domains, true, strict=True)):
            kept = draw.random(len(codes)) < operators.retention[i]
            y = domain[np.where(kept, codes, draw.integers(0, len(domain), len(codes)))]
            sums.append([len(y), np.nansum(y), np.nansum(y**2), (~np.isnan(y)).sum()])
        of_domains = [[np.nansum(d), np.nansum(d**2), (~np.isnan(d)).sum()] for d in domains]
        seen = PublishedNumbers(*np.array(sums, float).T, *np.array(of_domains, float).T)
        found.append(of_perturbed(operators, seen))
    judge(found, np.nanmean(values))
