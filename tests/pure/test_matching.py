"""Matching kernels: regular graphs, promises kept, tight matchings, and edges that carry the value with chance 1/mu."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.stats import chi2

from anonlib.domains import CategoricalDomain, NumericDomain
from anonlib.kernels.matching import disjoint_matchings as disjoint_module
from anonlib.kernels.matching.disjoint_matchings import disjoint_matchings, random_matching
from anonlib.kernels.matching.matching_assign import ASSIGNMENTS, greedy, hungarian, sort_greedy
from anonlib.kernels.matching.matching_costs import GrowingBoxes
from anonlib.kernels.matching.matching_deal import deal
from anonlib.kernels.matching.matching_graph import matching_graph
from anonlib.keyed import Stream
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.l_diversity import LDiversity
from anonlib.solvers.matching.beta_buckets import beta_buckets, packed
from anonlib.solvers.matching.l_buckets import l_buckets
from tests.thorough import trials

KEY = bytes(range(32))
MANY = trials(350, 50)
"""Random tables of a kind."""
DOMAINS = [
    NumericDomain("age", 0.0, 50.0),
    CategoricalDomain("c", tuple("abcdefghijkl")),
    NumericDomain("x", -1.0, 1.0),
    CategoricalDomain("one", ("only",)),
]


def records(random: np.random.Generator, n: int) -> list[np.ndarray]:
    return [random.integers(0, 51, n), random.integers(0, 12, n), random.uniform(-1, 1, n), np.zeros(n, dtype=np.int64)]


def check_regular(matches: np.ndarray) -> None:
    n, mu = matches.shape
    assert (matches[:, 0] == np.arange(n)).all()  # the identity is covered
    assert (np.bincount(matches.ravel(), minlength=n) == mu).all()
    ordered = np.sort(matches, axis=1)
    assert (ordered[:, 1:] != ordered[:, :-1]).all()


def check_disjoint(matches: np.ndarray, found: list[np.ndarray]) -> None:
    n, mu = matches.shape
    assert len(found) == mu
    for one in found:
        assert (np.sort(one) == np.arange(n)).all()
    assert (np.sort(np.stack(found, axis=1), axis=1) == np.sort(matches, axis=1)).all()


@pytest.mark.long
@pytest.mark.parametrize("matching", list(ASSIGNMENTS))
@pytest.mark.parametrize("dummies", [True, False])
def test_l_diverse_graphs_of_many_tables(matching: str, dummies: bool) -> None:
    tried = conflicts = 0
    random = np.random.default_rng(7)
    while tried < MANY:
        m, l = int(random.integers(2, 9)), int(random.integers(2, 6))  # noqa: E741
        counts = random.integers(0, 8, m)
        buckets = l_buckets(counts, l, dummies) if counts.sum() else None
        if buckets is None:
            continue
        tried += 1
        conflicts += int((buckets.held_by > 1).any())
        sensitive = np.repeat(np.arange(m), counts)
        dealt = deal(sensitive, buckets, Stream(KEY, "test", tried))
        kept = np.bincount(dealt.source[~dealt.dummy], minlength=len(sensitive))
        assert (kept <= 1).all()
        assert (kept == 0).sum() == buckets.left_out
        assert (dealt.sensitive[~dealt.dummy] == sensitive[dealt.source[~dealt.dummy]]).all()
        assert dealt.dummy.sum() == buckets.made_up < l
        columns = [column[dealt.source] for column in records(random, len(sensitive))]
        matches = matching_graph(columns, DOMAINS, dealt, True, matching)
        check_regular(matches)
        assert LDiversity(l).holds(dealt.sensitive[matches]).all()
        check_disjoint(matches, disjoint_matchings(matches, KEY, tried))
        assert (random_matching(matches, KEY, tried)[:, None] == matches).any(axis=1).all()
    assert conflicts > MANY / 4


@pytest.mark.long
@pytest.mark.parametrize("matching", list(ASSIGNMENTS))
@pytest.mark.parametrize("dummies", [True, False])
def test_beta_like_graphs_of_many_tables(matching: str, dummies: bool) -> None:
    tried = 0
    random = np.random.default_rng(8)
    while tried < MANY:
        table = random.integers(1, 12, int(random.integers(1, 7)))
        part = table if random.random() < 0.5 else random.binomial(table, 0.7)
        likeness = BetaLikeness(Fraction(int(random.integers(0, 30)), 10), table)
        buckets = beta_buckets(part, likeness, dummies) if part.sum() else None
        if buckets is None:
            continue
        tried += 1
        sensitive = np.repeat(np.arange(len(table)), part)
        dealt = deal(sensitive, buckets, Stream(KEY, "test", tried))
        columns = [column[dealt.source] for column in records(random, len(sensitive))]
        matches = matching_graph(columns, DOMAINS, dealt, buckets.distinct, matching)
        check_regular(matches)
        carried = np.stack([(dealt.sensitive[matches] == v).sum(axis=1) for v in range(len(table))], axis=1)
        bound = [(1 + likeness.beta) * Fraction(int(t), int(table.sum())) for t in table]
        for v in range(len(table)):
            assert Fraction(int(carried[:, v].max()), buckets.mu) <= bound[v]
        assert likeness.holds(carried).all()
        if tried % 5 == 0:
            check_disjoint(matches, disjoint_matchings(matches, KEY, tried))


def test_a_naive_third_assignment_that_does_not_exist_is_found() -> None:
    """Section 3: {a, a, b, b, c, d} is 3-eligible."""
    sensitive = np.array([0, 0, 1, 1, 2, 3])
    for trial in range(40):
        buckets = l_buckets(np.bincount(sensitive), 3)
        dealt = deal(sensitive, buckets, Stream(KEY, "test", trial))
        random = np.random.default_rng(trial)
        columns = [column[dealt.source] for column in records(random, 6)]
        for matching in ASSIGNMENTS:
            matches = matching_graph(columns, DOMAINS, dealt, True, matching)
            assert LDiversity(3).holds(dealt.sensitive[matches]).all()


def penalty(columns: list[np.ndarray], who: list[int]) -> float:
    age, c, x, _ = (column[who] for column in columns)
    return (age.max() - age.min()) / 50 + (len(set(c.tolist())) - 1) / 11 + (x.max() - x.min()) / 2


@pytest.mark.parametrize("size", [3, 60])
def test_costs_are_the_penalty_of_the_box_with_one_more(size: int) -> None:
    random = np.random.default_rng(5)
    mu = 4
    columns = records(random, mu * size)
    boxes = GrowingBoxes(columns, DOMAINS, mu, size)
    held: list[list[int]] = [[i] for i in range(mu * size)]
    for turn in range(1, mu):
        partner = np.stack([(b + turn) % mu * size + random.permutation(size) for b in range(mu)])
        for first, stop in ((0, mu), (1, 3)):
            others = (np.arange(first, stop) + turn) % mu
            costs = boxes.costs(first, stop, others)
            for _ in range(30):
                b, i, j = random.integers(0, [stop - first, size, size])
                own = held[(first + b) * size + i]
                assert costs[b, i, j] == pytest.approx(penalty(columns, [*own, int(others[b]) * size + j]), abs=1e-5)
        boxes.widen(partner)
        for i, other in enumerate(partner.ravel().tolist()):
            held[i].append(other)


def test_sort_greedy_takes_the_cheapest_edge_left() -> None:
    random = np.random.default_rng(2)
    cost = random.random((6, 25, 25)).astype(np.float32)
    found = sort_greedy(cost.copy(), None)
    for b in range(6):
        order = np.argsort(cost[b].ravel(), kind="stable")
        rows, columns, want = set(range(25)), set(range(25)), {}
        for edge in order.tolist():
            i, j = divmod(edge, 25)
            if i in rows and j in columns:
                want[i] = j
                rows.remove(i)
                columns.remove(j)
        assert found[b].tolist() == [want[i] for i in range(25)]
    assert (np.sort(sort_greedy(np.zeros((2, 300, 300), np.float32), None), axis=1) == np.arange(300)).all()


def test_greedy_lets_rows_choose_in_turn_and_hungarian_is_the_least() -> None:
    random = np.random.default_rng(3)
    cost = random.random((5, 12, 12)).astype(np.float32)
    greedily, best = greedy(cost.copy(), None), hungarian(cost.copy(), None)
    for b in range(5):
        left = list(range(12))
        for i in range(12):
            j = min(left, key=lambda j: cost[b, i, j])
            assert greedily[b, i] == j
            left.remove(j)
        total = cost[b][linear_sum_assignment(cost[b])].sum()
        assert cost[b][np.arange(12), best[b]].sum() == pytest.approx(total)


@pytest.mark.parametrize("name", list(ASSIGNMENTS))
def test_forbidden_edges_are_never_taken_and_blocked_records_get_a_partner(name: str) -> None:
    random = np.random.default_rng(4)
    for _ in range(100):
        c = int(random.integers(2, 14))
        allowed = random.random((3, c, c)) < 0.25
        for b in range(3):
            allowed[b, np.arange(c), random.permutation(c)] = True
        found = ASSIGNMENTS[name](random.random((3, c, c)).astype(np.float32), ~allowed)
        for b in range(3):
            assert sorted(found[b].tolist()) == list(range(c))
            assert allowed[b, np.arange(c), found[b]].all()


def test_greedy_is_worst_on_average() -> None:
    random = np.random.default_rng(11)
    gcp = dict.fromkeys(ASSIGNMENTS, 0.0)
    for trial in range(6):
        sensitive = random.integers(0, 9, 320)
        buckets = l_buckets(np.bincount(sensitive), 5)
        dealt = deal(sensitive, buckets, Stream(KEY, "test", trial))
        columns = [column[dealt.source] for column in records(random, 320)]
        for matching in ASSIGNMENTS:
            matches = matching_graph(columns, DOMAINS, dealt, True, matching)
            gcp[matching] += sum(penalty(columns, row) for row in matches.tolist())
    assert gcp["hungarian"] < gcp["greedy"]
    assert gcp["sort_greedy"] < gcp["greedy"]


KEYS = 2000
FALSE_ALARM = 1e-6
"""Chance that a correct draw fails either of the two tests below, over all keys there are; these keys are fixed."""


def drawn(matches: np.ndarray, draw=random_matching) -> np.ndarray:
    """(N, mu) how often each edge carried the value."""
    hits = np.zeros(matches.shape, dtype=np.int64)
    for k in range(KEYS):
        taken = draw(matches, k.to_bytes(32, "big"), 3)
        hits += matches == taken[:, None]
    return hits


def fails(hits: np.ndarray) -> bool:
    """Does any record's (mu,) row differ from 1/mu more than chance allows? Rows go together, so Bonferroni over them."""
    n, mu = hits.shape
    expected = hits.sum(axis=1, keepdims=True) / mu
    statistic = ((hits - expected) ** 2 / expected).sum(axis=1)
    return bool((chi2.sf(statistic, mu - 1) < FALSE_ALARM / 2 / n).any())


def graphs() -> dict[str, np.ndarray]:
    random = np.random.default_rng(13)
    sensitive = np.repeat(np.arange(6), [3, 3, 3, 2, 2, 2])
    buckets = l_buckets(np.bincount(sensitive), 5)
    dealt = deal(sensitive, buckets, Stream(KEY, "test"))
    l = matching_graph(  # noqa: E741
        [c[dealt.source] for c in records(random, 15)], DOMAINS, dealt, True, "greedy"
    )
    table = np.array([6, 7, 12])
    buckets = packed(table, BetaLikeness(Fraction(1), table), 4)
    assert (buckets.mu, buckets.made_up) == (7, 3)
    dealt = deal(np.repeat(np.arange(3), table), buckets, Stream(KEY, "test"))
    beta = matching_graph([c[dealt.source] for c in records(random, 25)], DOMAINS, dealt, buckets.distinct, "greedy")
    return {"l": l, "beta": beta}


@pytest.mark.long
@pytest.mark.parametrize("promise", ["l", "beta"])
def test_every_edge_carries_the_value_with_chance_1_over_mu(promise: str) -> None:
    matches = graphs()[promise]
    hits = drawn(matches)
    assert (hits.sum(axis=1) == KEYS).all()
    assert not fails(hits)


@pytest.mark.long
def test_a_random_perfect_matching_without_the_others_is_caught() -> None:
    """What the construction must not be: on this graph a uniform perfect matching takes some edges with chance 1/2, not 1/3."""
    sensitive = np.repeat(np.arange(3), 3)
    dealt = deal(sensitive, l_buckets(np.bincount(sensitive), 3), Stream(KEY, "t", 147))
    columns = [c[dealt.source] for c in records(np.random.default_rng(147), 9)]
    matches = matching_graph(columns, DOMAINS, dealt, True, "greedy")
    assert not fails(drawn(matches))
    every = [np.array(p) for p in perfect_matchings(matches)]
    random = np.random.default_rng(1)
    hits = drawn(matches, lambda m, key, place: every[int(random.integers(len(every)))])
    assert fails(hits)


def perfect_matchings(matches: np.ndarray) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []

    def go(row: int, taken: tuple[int, ...]) -> None:
        if row == len(matches):
            found.append(taken)
            return
        for j in matches[row].tolist():
            if j not in taken:
                go(row + 1, (*taken, j))

    go(0, ())
    return found


def test_the_rounds_that_built_the_graph_are_not_what_is_drawn() -> None:
    matches = graphs()["beta"]
    rounds = {tuple(matches[:, r].tolist()) for r in range(matches.shape[1])}
    drawn_ones = {tuple(random_matching(matches, k.to_bytes(32, "big")).tolist()) for k in range(200)}
    assert len(drawn_ones) > 195
    assert not rounds & drawn_ones


def test_draws_are_a_function_of_key_and_place() -> None:
    matches = graphs()["beta"]
    first = random_matching(matches, KEY, 4)
    assert (random_matching(matches, KEY, 4) == first).all()
    others = [random_matching(matches, KEY, 5), random_matching(matches, bytes(32), 4)]
    assert all((other != first).any() for other in others)
    whole = disjoint_matchings(matches, KEY, 4)
    assert any((one == first).all() for one in whole)


def test_splits_and_odd_steps_meet_every_degree() -> None:
    n = 17
    for mu in itertools.chain(range(1, 14), [17]):
        matches = (np.arange(n)[:, None] + np.arange(mu)) % n
        check_disjoint(matches, disjoint_matchings(matches, KEY, mu))
    with pytest.raises(ValueError, match="not regular"):
        disjoint_matchings(np.array([[0, 1, 2]] * 4), KEY)


def test_walks_to_a_perfect_matching_are_short(monkeypatch) -> None:
    """Some N log N turns (here 500 * 6.2), whatever the graph; a search that may back up needs exponentially many on some."""
    taken = 0
    turn = disjoint_module._Turns.next

    def counted(turns: disjoint_module._Turns) -> int:
        nonlocal taken
        taken += 1
        return turn(turns)

    monkeypatch.setattr(disjoint_module._Turns, "next", counted)
    random, n = np.random.default_rng(7), 500
    for number in range(100):
        mu = (3, 5, 7)[number % 3]
        shifts = random.choice(n, mu, replace=False)
        matches = random.permutation(n)[(random.permutation(n)[:, None] + shifts) % n]
        taken = 0
        found = disjoint_module._perfect_matching(matches, Stream(KEY, "test", number))
        assert sorted(found) == list(range(n))
        assert (matches == found[:, None]).any(axis=1).all()
        assert taken < 40 * n
