"""The penalty of tight boxes of runs of records, counted in a table or by a sort: one and the same."""

from itertools import pairwise

import numpy as np
import pytest

from anonlib import domains
from anonlib.domains import CategoricalDomain, NumericDomain, penalty_of_runs


@pytest.mark.parametrize("dense", [1 << 25, 0])
def test_each_run_is_penalized_by_its_definition(monkeypatch, dense):
    monkeypatch.setattr(domains, "DENSE", dense)
    rng = np.random.default_rng(1)
    town, age = CategoricalDomain("town", tuple("abcde")), NumericDomain("age", 0, 10)
    for _ in range(100):
        sizes = rng.integers(1, 6, int(rng.integers(1, 8)))
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        codes, years = rng.integers(0, 5, bounds[-1]), rng.integers(0, 11, bounds[-1])
        runs = [slice(a, b) for a, b in pairwise(bounds)]
        assert penalty_of_runs(town, codes, bounds).tolist() == [(len(set(codes[r].tolist())) - 1) / 4 for r in runs]
        assert penalty_of_runs(age, years, bounds).tolist() == [(years[r].max() - years[r].min()) / 10 for r in runs]
