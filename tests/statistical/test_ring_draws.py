"""Ring generalization: each of a record's l matches carries its sensitive value equally often over keys.

False-alarm rate: a chi-square test per record, 1e-6 for all of them together. A matching that is not drawn fails it at once (the
planted fault).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from anonlib.domains import NumericDomain
from anonlib.privacy.class_requirements import frequency_diversity
from tests.thorough import trials

FALSE_ALARM = 1e-6
KEYS, L = trials(2_000, 800), 3


def edge_counts(draw: bool) -> np.ndarray:
    """(14, L): how often the record i places ahead gave its sensitive value, over KEYS keys, or KEYS times under one."""
    pytest.importorskip("pyspark")
    from anonlib.methods.baselines.ring_generalization import Dealing

    sensitive = np.array([0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 4, 4, 3])
    age = np.arange(14)
    found = np.zeros((14, L), dtype=np.int64)
    for number, times in ((k, 1) for k in range(KEYS)) if draw else [(0, KEYS)]:
        key = number.to_bytes(32, "little")
        dealing = Dealing((NumericDomain("age", 0, 13),), 5, L, frequency_diversity(L, 5), True, key)
        made = dealing([age], sensitive, 0)
        matches, assigned = np.stack(made["matches"].listed()), made["assigned"]
        found += times * (matches == assigned[:, None])
        assert (np.sort(assigned) == np.arange(14)).all()
    return found


def surprise(counts: np.ndarray) -> float:
    """Chi-square against 1/L each, as a p-value, of the first record."""
    statistic = ((counts[0] - KEYS / L) ** 2 / (KEYS / L)).sum()
    return float(chi2.sf(statistic, L - 1))


@pytest.mark.long
def test_every_edge_is_drawn_equally_often():
    counts = edge_counts(draw=True)
    assert (counts.sum(axis=1) == KEYS).all()
    assert min(surprise(np.roll(counts, -i, axis=0)) for i in range(14)) > FALSE_ALARM / 14


@pytest.mark.long
def test_the_test_would_notice_a_matching_that_is_not_drawn():
    assert surprise(edge_counts(draw=False)) < FALSE_ALARM
