"""Pools of two columns: there are some exactly where no value of either has more than one record in l, and they hold what they must."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonlib.privacy.match_buckets import MatchBuckets
from anonlib.solvers.matching import diagonals as diagonals_solver
from anonlib.solvers.matching import pair_pools as solver
from anonlib.solvers.matching.beta_pool_shapes import loss, loss_of
from anonlib.solvers.matching.diagonals import Diagonals, _Column, even_diagonals
from anonlib.solvers.matching.match_partitions import Bucketing
from anonlib.solvers.matching.pair_pools import check, pair_pools
from tests.thorough import trials


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    """(records of each combination, codes, l), counts of 0 among them."""
    first, second = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    every = list(product(range(first), range(second)))
    pairs = draw(st.lists(st.sampled_from(every), min_size=1, max_size=20, unique=True))
    most = draw(st.sampled_from([1, 3, 12, 60]))
    counts = draw(st.lists(st.integers(0, most), min_size=len(pairs), max_size=len(pairs)).filter(any))
    return np.array(counts, dtype=np.int64), np.array(pairs, dtype=np.int64).T, draw(st.integers(2, 5))


def held(counts: np.ndarray, codes: np.ndarray, column: int) -> Counter[int]:
    found: Counter[int] = Counter()
    for value, records in zip(codes[column].tolist(), counts.tolist(), strict=True):
        found[value] += records
    return found


def kept_by(pools: list[MatchBuckets], counts: np.ndarray, codes: np.ndarray, l: int) -> bool:  # noqa: E741
    """By plain counting: every record once, l full buckets or more, no value of either column in two of a pool."""
    placed: Counter[int] = Counter()
    for pool in pools:
        buckets: dict[int, Counter[int]] = {b: Counter() for b in range(pool.mu)}
        for b, v, r in zip(pool.bucket.tolist(), pool.value.tolist(), pool.records.tolist(), strict=True):
            buckets[b][v] += r
            placed[v] += r
        if pool.mu < l or any(each.total() != pool.size for each in buckets.values()):
            return False
        for column in codes:
            sets = [{int(column[v]) for v in each} for each in buckets.values()]
            if sum(map(len, sets)) != len(set().union(*sets)):
                return False
    return placed == Counter({v: r for v, r in enumerate(counts.tolist()) if r})


@given(tables())
def test_pools_exist_exactly_where_no_value_is_too_frequent(table: tuple[np.ndarray, np.ndarray, int]) -> None:
    counts, codes, l = table  # noqa: E741
    n = int(counts.sum())
    may = all(most * l <= n for column in (0, 1) for most in held(counts, codes, column).values())
    pools = pair_pools(counts, codes, l)
    assert (pools is not None) == may
    if pools is not None:
        assert kept_by(pools, counts, codes, l)
        assert [p.mu * p.size for p in pools] == sorted((p.mu * p.size for p in pools), reverse=True)


def test_no_table_is_refused_for_larger_buckets_than_it_has() -> None:
    """Eight records all of whose buckets hold one, though l pools of l equal buckets would hold two in each."""
    counts, codes = np.array([2, 2, 2, 1, 1]), np.array([[1, 1, 2, 2, 2], [1, 2, 0, 1, 2]])
    pools = pair_pools(counts, codes, 2)
    assert pools is not None
    assert [(pool.mu, pool.size) for pool in pools] == [(2, 1)] * 4
    assert Bucketing(2, None, codes=codes).least_bucket(8) <= 1


def tight(number: int) -> tuple[np.ndarray, np.ndarray, int]:
    """A table in which some values have exactly one record in l, so that every bucket that is theirs is full of them."""
    random = np.random.default_rng(number)
    l = int(random.integers(2, 5))  # noqa: E741
    size = int(random.integers(1, 40))
    first = random.permutation(np.repeat(np.arange(l), size))
    second = np.concatenate([np.full(size, 0), random.integers(1, 3 * l, (l - 1) * size)])
    pairs, counts = np.unique(np.stack([first, random.permutation(second)]), axis=1, return_counts=True)
    return counts.astype(np.int64), pairs.astype(np.int64), l


def test_where_there_is_no_room_at_all() -> None:
    """Half of the tables are eligible, and none of these is refused."""
    found = 0
    for number in range(trials(1000, 25)):
        counts, codes, l = tight(number)  # noqa: E741
        pools = pair_pools(counts, codes, l)
        if pools is not None:
            found += 1
            assert kept_by(pools, counts, codes, l)
    assert found > trials(1000, 25) / 3


@pytest.mark.parametrize("l", [2, 3, 5])
def test_of_many_rare_values_few_records_are_left_over(l: int) -> None:  # noqa: E741
    """As diagnoses are: shares that fall like 1 / rank, the second column leaning on the first."""
    random = np.random.default_rng(l)
    shares = 1 / np.arange(8, 200)
    first = random.choice(len(shares), 900, p=shares / shares.sum())
    second = np.where(random.random(900) < 0.3, first, random.choice(len(shares), 900, p=shares / shares.sum()))
    pairs, counts = np.unique(np.stack([first, second]), axis=1, return_counts=True)
    pools = pair_pools(counts.astype(np.int64), pairs.astype(np.int64), l)
    assert pools is not None
    assert sum(pool.mu * pool.size for pool in pools[:l]) > 0.95 * 900
    ideal = l * float(loss(l, 900 / l / l))
    assert 0.99 * ideal < loss_of(pools) < 1.1 * ideal


def squares(counts: np.ndarray, codes: np.ndarray, both: Diagonals) -> int:
    """l times the sum over all cells of their squared distance from the mean of their diagonal."""
    l = both.l  # noqa: E741
    cells = np.zeros((l, l), dtype=np.int64)
    np.add.at(cells, (both.first[codes[0]], both.second[codes[1]]), counts)
    diagonals = [[int(cells[i, (i + p) % l]) for i in range(l)] for p in range(l)]
    return sum(l * sum(c * c for c in some) - sum(some) ** 2 for some in diagonals)


@pytest.mark.parametrize("l", [2, 3, 4, 7])
def test_a_move_brings_the_diagonals_as_near_as_any_move_does(l: int) -> None:  # noqa: E741
    """Against all moves of one value, each tried by itself; a descent ends where none of them helps."""
    random = np.random.default_rng(l)
    counts, codes = random.integers(1, 9, 40).astype(np.int64), random.integers(0, 9, (2, 40))
    for moves in range(12):
        now, then = (even_diagonals(counts, codes, l, moves=m) for m in (moves, moves + 1))
        best = squares(counts, codes, now)
        for column, value, goal in product((0, 1), range(9), range(l)):
            both = [now.first.copy(), now.second.copy()]
            both[column][value] = goal
            best = min(best, squares(counts, codes, Diagonals(l, both[0], both[1])))
        assert squares(counts, codes, then) == best


@pytest.mark.parametrize("l", [2, 3, 7])
def test_what_is_known_of_a_column_stays_true_as_values_move(l: int) -> None:  # noqa: E741
    """After a descent of either column's moves: as it is counted anew."""
    random = np.random.default_rng(l)
    counts, codes = random.integers(1, 9, 60).astype(np.int64), random.integers(0, 12, (2, 60))
    residues = [random.integers(0, l, 12) for _ in (0, 1)]
    columns = [_Column(counts, codes[k], residues[k], residues[1 - k][codes[1 - k]], l) for k in (0, 1)]
    for k, value, goal in zip(*(random.integers(0, most, 30).tolist() for most in (2, 12, l)), strict=True):
        left = int(residues[k][value])
        columns[k].move(value, goal)
        columns[1 - k].follow(np.flatnonzero(codes[k] == value), left, goal)
        for i, column in enumerate(columns):
            anew = _Column(counts, codes[i], residues[i], residues[1 - i][codes[1 - i]], l)
            for name in ("table", "squares", "turned"):
                assert np.array_equal(getattr(column, name), getattr(anew, name)), (name, k, value, goal)


def test_moves_that_would_cost_too_much_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of as many values as there are: with the moves of a table that may cost so much, and pools all the same."""
    random, l = np.random.default_rng(3), 3  # noqa: E741
    counts, codes = np.ones(90, dtype=np.int64), np.stack([np.arange(90), random.permutation(90)])
    whole = even_diagonals(counts, codes, l)
    for moves in (0, 2):
        monkeypatch.setattr(diagonals_solver, "MOST_WORK", (moves * 180 + 179) * l * l)
        cheaper, wanted = even_diagonals(counts, codes, l), even_diagonals(counts, codes, l, moves=moves)
        assert np.array_equal(cheaper.first, wanted.first)
        assert np.array_equal(cheaper.second, wanted.second)
        assert squares(counts, codes, cheaper) > squares(counts, codes, whole)
        pools = pair_pools(counts, codes, l)
        assert pools is not None
        assert kept_by(pools, counts, codes, l)


def test_what_a_check_refuses() -> None:
    counts, codes = np.array([2, 2, 2], dtype=np.int64), np.array([[0, 1, 2], [0, 1, 2]])
    pools = pair_pools(counts, codes, 3)
    assert pools is not None
    for wrong, sentence in (
        ((pools, counts + 1, codes, 3), "lose or invent"),
        ((pools, counts, codes, 4), "not full"),
        ((pools, counts, np.array([[0, 1, 2], [0, 0, 1]]), 3), "in two buckets"),
    ):
        with pytest.raises(AssertionError, match=sentence):
            check(*wrong)
    assert solver.pair_pools(counts, codes, 4) is None
