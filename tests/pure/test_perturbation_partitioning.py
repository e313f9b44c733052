"""Perturbation Partitioning against its definitions, and its dynamic program against every way to merge neighbours."""

from __future__ import annotations

import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from anonlib.errors import SpecError, Unsatisfiable
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.rho_privacy import RhoPrivacy, below, confidence_factor, guarantee_words, posterior
from anonlib.solvers.subtables import merge_search
from anonlib.solvers.subtables.balancing import balance
from anonlib.solvers.subtables.groups import Groups, Objective
from anonlib.solvers.subtables.merging import merge_neighbours
from anonlib.solvers.subtables.perturbation_partitioning import solve, solve_whole
from anonlib.solvers.subtables.rearranging import rearrange
from tests.oracles.adjacent_merges import best_runs, cost
from tests.thorough import trials

TABLES = trials(2_000, 250)


def frequency_vectors(seed: int, tables: int, values: int = 40):
    """Flat, skewed, tied and nearly one-sided count vectors."""
    rng = np.random.default_rng(seed)
    for _ in range(tables):
        m = int(rng.integers(2, values))
        kind = rng.integers(4)
        if kind == 0:
            counts = rng.integers(1, 30, m)
        elif kind == 1:
            counts = np.maximum(1, (rng.integers(5, 400) / np.arange(1, m + 1) ** rng.uniform(0.2, 1.8)).astype(int))
        elif kind == 2:
            counts = rng.choice([1, 2, 7], m)
        else:
            counts = np.r_[rng.integers(1, 200), rng.integers(1, 4, m - 1)]
        yield rng, rng.permutation(counts).astype(np.int64)


def dense(groups: Groups, m: int) -> np.ndarray:
    table = np.zeros((len(groups), m), dtype=np.int64)
    np.add.at(table, (groups.row, groups.codes), groups.counts)
    return table


def asked_of(rng, counts: np.ndarray, all_protected: bool) -> RhoPrivacy:
    """A satisfiable wish: rho1 somewhere among the shares (or above all of them), rho2 above it, sometimes by a hair."""
    n = int(counts.sum())
    most = int(counts.max()) if all_protected else int(rng.choice(counts))
    rho1 = Fraction(most, n)
    rho2 = rho1 + (1 - rho1) * Fraction(int(rng.integers(10, 1000)), 1000) * rng.choice([1, Fraction(1, 10**3)])
    return RhoPrivacy(None if all_protected else rho1, rho2)


def test_initial_groups_are_balanced_and_conserve_records():
    for rng, counts in frequency_vectors(1, TABLES):
        m, n = len(counts), int(counts.sum())
        groups = dense(balance(counts, np.ones(m, dtype=bool)), m)
        factor = n // int(counts.max())
        assert (groups.sum(axis=0) == counts).all()
        assert (groups.max(axis=1) * factor <= groups.sum(axis=1)).all()  # lambda-balanced
        assert (groups.sum(axis=1) > 0).all()
        # appendix 10.7: values above a limit are spread over the groups of the others, in proportion
        protected = counts <= rng.choice(counts)
        spread = dense(balance(counts, protected), m)
        alone = dense(balance(counts[protected], np.ones(int(protected.sum()), dtype=bool)), int(protected.sum()))
        assert (spread.sum(axis=0) == counts).all()
        assert (spread[:, protected] == alone).all()
        others, size = int(counts[~protected].sum()), alone.sum(axis=1)
        quota = size * others // size.sum()
        assert (spread[:-1, ~protected].sum(axis=1) == quota[:-1]).all()


def test_each_group_takes_as_many_records_as_it_can():
    """Lemma 1 (iii): with one record more of each of its values the rest would not be balanced."""
    for _, counts in frequency_vectors(2, 300):
        m = len(counts)
        factor = int(counts.sum()) // int(counts.max())
        left = counts.copy()
        for row in dense(balance(counts, np.ones(m, dtype=bool)), m)[:-1]:
            taken = np.flatnonzero(row)
            if len(taken) != factor:
                continue  # h = 0: the rest
            assert len(set(row[taken])) == 1
            more = left.copy()
            more[taken] -= row[taken] + 1
            assert more.min() < 0 or more.max() * factor > more.sum()
            left -= row


@pytest.mark.long
def test_chosen_subtables_keep_the_promise():
    for k, (rng, counts) in enumerate(frequency_vectors(3, TABLES, values=25)):
        m = len(counts)
        table = SensitiveCounts(tuple(range(m)), counts)
        asked = asked_of(rng, counts, all_protected=bool(rng.integers(2)))
        protected = asked.protected(table)
        found = solve(table, asked, merging="neighbours" if k % 10 else "search")
        total = np.zeros(m, dtype=np.int64)
        for t in found.subtables:
            total[t.codes] += t.counts
            shares = [Fraction(int(c), t.size) for c, code in zip(t.counts, t.codes, strict=True) if protected[code]]
            assert t.rho1 == max(shares) < asked.rho2
            assert t.gamma > 1
            assert posterior(t.rho1, t.gamma) == asked.rho2
            assert all(posterior(share, t.gamma) <= asked.rho2 for share in shares)
            if protected.all() and asked.rho2 * found.balance > 1:  # theorem 3
                assert t.rho1 * found.balance <= 1
        assert (total == counts).all()
        assert found.bound <= found.neighbours <= found.whole * (1 + 1e-12)


def test_dynamic_program_is_as_good_as_every_cut():
    tried = merged = 0
    for rng, counts in frequency_vectors(4, 4 * TABLES, values=10):
        m = len(counts)
        asked = asked_of(rng, counts, all_protected=bool(rng.integers(2)))
        protected = asked.protected(SensitiveCounts(tuple(range(m)), counts))
        groups = balance(counts, protected)
        if len(groups) > 5:
            continue
        if tried == TABLES:
            break
        sequence = groups.permuted(rearrange(groups).tolist())
        label = merge_neighbours(sequence, Objective(protected, asked.rho2))
        assert (np.diff(label) >= 0).all()
        assert (np.diff(label) <= 1).all()
        assert label[0] == 0
        rows = dense(sequence, m)
        runs = [rows[label == k].sum(axis=0).tolist() for k in range(label[-1] + 1)]
        reached = math.fsum(cost(run, protected.tolist(), asked.rho2) for run in runs)
        assert reached == pytest.approx(best_runs(rows.tolist(), protected.tolist(), asked.rho2), rel=1e-9)
        tried += 1
        merged += len(runs) not in (1, len(sequence))
    assert tried == TABLES
    assert merged >= TABLES * 0.015  # neither "all" nor "none" is always the answer


def test_order_keeps_every_group_and_joins_what_shares_values():
    for _, counts in frequency_vectors(5, 200):
        groups = balance(counts, np.ones(len(counts), dtype=bool))
        assert sorted(rearrange(groups).tolist()) == list(range(len(groups)))
    # three chains of overlapping groups, dealt in turn: each chain comes out as a run, in its order
    chains = [[(np.arange(3) + 2 * i + 100 * c, np.ones(3, dtype=np.int64)) for i in range(5)] for c in range(3)]
    shuffled = Groups.of([chains[c][i] for i in (2, 0, 4, 1, 3) for c in range(3)])
    runs = np.split(shuffled.codes[shuffled.start[rearrange(shuffled)]], 3)
    for run in runs:
        assert len(set(run // 100)) == 1
        assert (np.diff(run) > 0).all() or (np.diff(run) < 0).all()


def test_the_order_is_that_of_a_walk_whose_ties_are_all_decided():
    """Reverse Cuthill-McKee over sets of values, one group at a time: the same on every machine."""
    for _, counts in frequency_vectors(7, 120):
        groups = balance(counts, np.ones(len(counts), dtype=bool))
        values = [set(groups[j][0].tolist()) for j in range(len(groups))]
        near = [[k for k, other in enumerate(values) if other & own] for own in values]
        line: list[int] = []
        for root in sorted(range(len(groups)), key=lambda j: (len(near[j]), j)):
            if root in line:
                continue
            done = len(line)
            line.append(root)
            while done < len(line):
                here = line[done]
                fresh = [k for k in near[here] if k not in line]
                line += sorted(fresh, key=lambda k: (len(near[k]), -len(values[here] & values[k]), k))
                done += 1
        graph = nx.Graph([(j, k) for j, some in enumerate(near) for k in some])
        parts = [[j for j in line[::-1] if j in part] for part in nx.connected_components(graph)]
        expected = [run if run[0] <= run[-1] else run[::-1] for run in sorted(parts, key=min)]
        assert rearrange(groups).tolist() == [j for run in expected for j in run]


def test_search_finds_what_neighbours_cannot():
    """Groups 0, 2, 4 share all values, and so do 1, 3: no cut of the sequence brings them together."""
    groups = Groups.of([(np.arange(6) + 6 * (j % 2), np.full(6, (6_000, 50)[j % 2])) for j in range(5)])
    objective = Objective(np.ones(12, dtype=bool), Fraction(1, 4))
    by_cuts = merge_neighbours(groups, objective)
    label = merge_search.search(groups, objective, by_cuts)
    assert label.tolist() == [0, 1, 0, 1, 0]
    assert objective.of(groups.merged(label)).sum() < objective.of(groups.merged(by_cuts)).sum()


@pytest.mark.long
def test_search_lowers_the_bound_and_never_the_accuracy_of_counts():
    """On skewed tables of many values it gains percents; on none does it lose."""
    gains = []
    for _, counts in frequency_vectors(8, 50, values=120):
        table = SensitiveCounts(tuple(range(len(counts))), counts)
        asked = RhoPrivacy(None, min(Fraction(9, 10), 2 * Fraction(int(counts.max()), table.n)))
        if counts.max() * 10 >= table.n * 9:
            continue
        paper, found = (solve(table, asked, merging=merging) for merging in ("neighbours", "search"))
        assert found.bound <= paper.bound
        assert found.count_error <= paper.count_error * (1 + 1e-9)
        assert found.neighbours == paper.bound
        gains.append(1 - found.bound / paper.bound)
    assert sum(gain > 0.02 for gain in gains) >= 5


def test_count_error_is_what_perturbation_does():
    """Against 400 draws of the paper's example: the reconstructed counts' mean squared error, within 5 standard errors of it."""
    counts = np.array([120, 80, 60, 50, 40, 30, 10, 10, 10, 10])
    found = solve(SensitiveCounts(tuple(range(10)), counts), RhoPrivacy.of("2/3", "1/3"), merging="neighbours")
    assert len(found.subtables) == 2
    rng = np.random.default_rng(9)
    errors = np.zeros((400, 10))
    for t in found.subtables:
        p, q = float(t.retention), (1 - float(t.retention)) / t.domain_size
        for draw in errors:
            seen = np.zeros(t.domain_size)
            for x, count in enumerate(t.counts):
                seen += rng.multinomial(count, np.full(t.domain_size, q) + p * np.eye(t.domain_size)[x])
            draw[t.codes] += (seen - q * t.size) / p - t.counts
    squares = (errors**2).mean(axis=1)
    assert abs(squares.mean() - found.count_error**2) < 5 * squares.std() / 20


def test_search_is_skipped_beyond_its_memory(monkeypatch):
    counts = next(counts for _, counts in frequency_vectors(6, 50) if len(counts) > 20)
    groups = balance(counts, np.ones(len(counts), dtype=bool))
    start = np.zeros(len(groups), dtype=np.int64)
    monkeypatch.setattr(merge_search, "MAX_CELLS", 0)
    assert (
        merge_search.search(groups, Objective(np.ones(len(counts), dtype=bool), Fraction(9, 10)), start) == start
    ).all()


@pytest.mark.long
def test_fifteen_thousand_values():
    rng = np.random.default_rng(7)
    weight = 1 / (np.arange(15_000) + 20)
    counts = np.maximum(1, rng.multinomial(5_000_000, weight / weight.sum()))
    found = solve(SensitiveCounts(tuple(range(15_000)), counts), RhoPrivacy.of("1/6"))
    assert sum(t.size for t in found.subtables) == counts.sum()
    assert found.bound <= found.neighbours < found.whole / 5


def test_counts_of_ten_billion_records():
    counts = np.array([4 * 10**9, 3 * 10**9, 2 * 10**9, 10**9, 1])
    found = solve(SensitiveCounts(tuple("abcde"), counts), RhoPrivacy.of("0.41"))
    assert found.subtables.records == counts.sum()
    assert all(t.rho1 < Fraction(41, 100) for t in found.subtables)


def test_exact_at_the_edge():
    counts = SensitiveCounts(("a", "b", "c"), np.array([10**9, 10**9 - 1, 10**9]))
    share = Fraction(10**9, counts.n)
    just_above = share + (1 - share) / 10**5
    assert solve(counts, RhoPrivacy(None, just_above)).subtables.mean_retention < 1e-4
    for merge in (solve, solve_whole):
        with pytest.raises(Unsatisfiable, match="nothing could be counted; raise rho2"):
            merge(counts, RhoPrivacy(None, share + Fraction(1, 10**30)))
    with pytest.raises(
        Unsatisfiable, match=rf"any rho2 above {share} \(0\.3334\) works .* a rho1 below {share} \(0\.3333\)"
    ):
        solve(counts, RhoPrivacy(None, share))
    assert below([1, 1], [3, 3], Fraction(1, 3)).tolist() == [False, False]
    assert below([10**18], [3 * 10**18 + 1], Fraction(1, 3)).tolist() == [True]


def test_refusals_name_the_weakest_setting_that_works():
    counts = SensitiveCounts(("flu", "HIV", "cold"), np.array([60, 10, 30]))
    with pytest.raises(
        Unsatisfiable, match=r"rho2: 0\.5 cannot be kept for 'flu' \(60\.00 %\).* any rho2 above 0\.6 works"
    ):
        solve(counts, RhoPrivacy.of("1/2"))
    with pytest.raises(Unsatisfiable, match=r"rho1: .* at most 0\.05 .* the rarest, 'HIV', has 0\.1"):
        solve(counts, RhoPrivacy.of("1/2", "0.05"))
    assert solve(counts, RhoPrivacy.of("0.61")).subtables.records == 100
    assert solve_whole(counts, RhoPrivacy.of("1/2", "0.3")).subtables[0].rho1 == Fraction(3, 10)
    with pytest.raises(SpecError, match=r"rho1: 0\.5 does not lie"):
        RhoPrivacy.of("1/3", "1/2")
    with pytest.raises(SpecError, match="rho2: 1 is no bound"):
        RhoPrivacy.of(1)


def test_words_of_the_guarantee():
    counts = SensitiveCounts(("flu", "HIV", "cold"), np.array([60, 10, 30]))
    every = RhoPrivacy.of("0.7")
    words = guarantee_words("diagnosis", every, counts, every.protected(counts))
    assert "can believe no value of diagnosis of that person with a probability above 0.7 (70.00 %)." in words
    some = RhoPrivacy.of("0.5", "0.3")
    words = guarantee_words("diagnosis", some, counts, some.protected(counts))
    assert "none of the 2 protected values" in words
    assert "Not protected is 'flu' (60.00 %), as each makes up more than 0.3 of the records." in words


def test_bound_is_the_mean_of_equation_11():
    counts = SensitiveCounts(tuple(range(6)), np.array([30, 20, 20, 10, 10, 10]))
    delta = Fraction(1, 100)
    found = solve(counts, RhoPrivacy.of("0.5"), delta)
    a = 2 * math.sqrt(math.log(2 / 0.01))
    assert confidence_factor(delta) == pytest.approx(a)
    parts = [
        t.size * a / math.sqrt(t.size) * float((t.domain_size - 1 + t.gamma) / (t.gamma - 1)) for t in found.subtables
    ]
    assert found.bound == pytest.approx(sum(parts) / 120 * 120 / counts.n)
