"""The loops that Numba compiles do what NumPy and SciPy do, to the bit: a release is the same with and without Numba."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from anonlib.kernels.matching import compiled, loops
from anonlib.kernels.matching.matching_costs import GrowingBoxes
from anonlib.kernels.matching.matching_deal import deal
from anonlib.kernels.matching.matching_graph import matching_graph
from anonlib.keyed import Stream
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.solvers.matching.beta_buckets import beta_buckets
from tests.pure.test_matching import DOMAINS, KEY, records
from tests.thorough import trials

PLAIN = SimpleNamespace(
    **{
        name: getattr(of, "py_func", of)
        for name, of in vars(loops).items()
        if name in ("least_assignments", "add_intervals", "add_sets")
    }
)
"""As Python runs them, slowly."""
HAVE_NUMBA = importlib.util.find_spec("numba") is not None


def by(way: str) -> Any:
    if way == "plain":
        return PLAIN
    if not HAVE_NUMBA:
        pytest.skip("Numba is not installed")
    assert compiled.loops(compiled.WORTH) is loops
    return loops


def with_ties(random: np.random.Generator, batch: int, c: int) -> np.ndarray:
    """Costs as boxes have them, sums of a few shares; among whole numbers below 3 nearly all are tied."""
    kind = int(random.integers(4))
    if kind == 0:
        return random.random((batch, c, c)).astype(np.float32)
    if kind == 1:
        return random.integers(0, 3, (batch, c, c)).astype(np.float32)
    shares = [np.float32(1) / np.float32(k) for k in (1, 3, 7, 82)]
    return sum(random.integers(0, 3, (batch, c, c)).astype(np.float32) * share for share in shares[:kind])


@pytest.mark.parametrize(
    ("way", "largest", "number"), [("plain", 9, trials(400, 60)), ("compiled", 150, trials(200, 60))]
)
def test_of_several_least_assignments_scipy_s_is_taken(way: str, largest: int, number: int) -> None:
    random, fast = np.random.default_rng(1), by(way)
    for _ in range(number):
        cost = with_ties(random, 3, int(random.integers(1, largest)))
        taken = np.full(cost.shape[:2], -7)
        fast.least_assignments(cost, taken)
        for b in range(3):
            assert taken[b].tolist() == linear_sum_assignment(cost[b].astype(np.float64))[1].tolist()


@pytest.mark.parametrize(("way", "size"), [("plain", 7), ("compiled", 7), ("compiled", 130)])
def test_costs_are_numpy_s_to_the_bit(way: str, size: int) -> None:
    random, mu = np.random.default_rng(2), 5
    columns = records(random, mu * size)
    slow, fast = GrowingBoxes(columns, DOMAINS, mu, size), GrowingBoxes(columns, DOMAINS, mu, size, by(way))
    for turn in range(1, mu):
        others = (np.arange(mu) + turn) % mu
        for first, stop in ((0, mu), (2, 3)):
            costs = fast.costs(first, stop, others[first:stop])
            assert costs.tobytes() == slow.costs(first, stop, others[first:stop]).tobytes()
        partner = others[:, None] * size + random.permutation(size)
        slow.widen(partner)
        fast.widen(partner)


@pytest.mark.parametrize(("way", "n"), [("plain", 60), ("compiled", 600)])
def test_a_graph_does_not_depend_on_who_adds_up(way: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random, fast = np.random.default_rng(3), by(way)
    sensitive = random.integers(0, 8, n)
    counts = np.bincount(sensitive)
    buckets = beta_buckets(counts, BetaLikeness(1, counts))
    assert buckets is not None
    assert min(buckets.mu, buckets.size) > 2
    dealt = deal(sensitive, buckets, Stream(KEY, "test", 0))
    columns = [column[dealt.source] for column in records(random, n)]
    graphs = []
    for each in (None, fast):
        monkeypatch.setattr("anonlib.kernels.matching.matching_graph.loops", lambda _, each=each: each)
        graphs.append(matching_graph(columns, DOMAINS, dealt, False, "hungarian"))
    assert (graphs[0] == graphs[1]).all()


def test_small_graphs_do_without() -> None:
    assert compiled.loops(1_000_000) is None
    assert (compiled.loops(10_000**2) is not None) == HAVE_NUMBA


@pytest.mark.parametrize("problem", [ImportError("Numba needs NumPy 2.2 or less"), OSError("cannot load LLVM")])
def test_a_numba_that_cannot_be_imported_is_none(problem: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the loops would run as Python runs them, for hours."""

    def refused(name: str) -> Any:
        if name == "numba":
            raise problem
        return importlib.import_module(name)

    monkeypatch.setattr(compiled, "importlib", SimpleNamespace(import_module=refused, util=importlib.util))
    compiled._compiled.cache_clear()
    try:
        assert compiled.loops(compiled.WORTH) is None
    finally:
        compiled._compiled.cache_clear()
