"""What the perturbation kernel draws, over many keys, against equation (5) and the promise that rests on it.

Keys are fixed, so a test that passes keeps passing. Over random keys each would give a false alarm with a chance of at most 10^-6 for each
number looked at: p-values below 10^-6, |z| above 4.9. Every test has a planted fault beside it that it must catch.
"""

from __future__ import annotations

import hashlib
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from anonlib.kernels.ranked.perturb import Perturb, unpack
from anonlib.keyed import Draws
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.rho_privacy import RhoPrivacy
from anonlib.privacy.subtables import SubTable, SubTables
from anonlib.solvers.subtables.perturbation_partitioning import solve, solve_whole

ALARM = 1e-6
BOUND = 4.9
KEYS = 200
COUNTS = np.array([120, 80, 60, 50, 40, 30, 10, 10, 10, 10])
RHO2 = Fraction(2, 3)


def keys(number: int = KEYS):
    return [hashlib.sha256(b"perturbation %d" % i).digest() for i in range(number)]


def subtables() -> SubTables:
    """The paper's example, ten times as many records: 360 over x1..x6, 60 over x4, x6..x10."""
    table = SensitiveCounts(tuple(range(10)), COUNTS)
    return solve(table, RhoPrivacy(Fraction(1, 3), RHO2), merging="neighbours").subtables


CODE = np.repeat(np.arange(10), COUNTS)
RANK = np.concatenate([np.arange(c) for c in COUNTS])


def transitions(parts: SubTables, drawn_from: SubTables | None = None, kernel=Perturb) -> np.ndarray:
    """(k, 10, 10) how often value x of sub-table i was published as y, over all keys."""
    found = np.zeros((len(parts), 10, 10), dtype=np.int64)
    for key in keys():
        seen = unpack(kernel(drawn_from or parts, key)(CODE, RANK))
        np.add.at(found, (seen.subtable, CODE, seen.code), 1)
    return found


def operator(part: SubTable) -> np.ndarray:
    """(m_i, m_i) equation (5)."""
    q = 1 / (part.domain_size - 1 + float(part.gamma))
    return np.full((part.domain_size, part.domain_size), q) + np.eye(part.domain_size) * q * (float(part.gamma) - 1)


def chi_square(parts: SubTables, found: np.ndarray) -> list[float]:
    """p-value of Pearson's test for each sub-table: m_i (m_i - 1) degrees of freedom, as the rows' totals are given."""
    p_values = []
    for i, part in enumerate(parts):
        expected = operator(part) * KEYS * part.counts[:, None]
        seen = found[i][np.ix_(part.codes, part.codes)]
        statistic = float(((seen - expected) ** 2 / expected).sum())
        p_values.append(float(stats.chi2.sf(statistic, part.domain_size * (part.domain_size - 1))))
    return p_values


def test_every_key_gives_each_sub_table_its_records_and_no_foreign_value():
    parts = subtables()
    assert len(parts) == 2
    for key in keys(20):
        seen = unpack(Perturb(parts, key)(CODE, RANK))
        for i, part in enumerate(parts):
            mine = seen.subtable == i
            assert np.bincount(CODE[mine], minlength=10)[part.codes].tolist() == part.counts.tolist()
            assert int(mine.sum()) == part.size
            assert np.isin(seen.code[mine], part.codes).all()


def test_transition_frequencies_are_those_of_the_operator():
    parts = subtables()
    assert min(chi_square(parts, transitions(parts))) > ALARM


def test_the_same_test_catches_a_gamma_a_tenth_too_large():
    parts = subtables()
    wrong = SubTables(tuple(SubTable(p.codes, p.counts, p.rho1, p.gamma * Fraction(11, 10)) for p in parts))
    assert min(chi_square(parts, transitions(parts, drawn_from=wrong))) < ALARM


def posterior_excess(found: np.ndarray, parts: SubTables) -> list[float]:
    """z of each value's share among the records published with it, above rho2; one-sided."""
    excess = []
    for i, part in enumerate(parts):
        for x in part.codes:
            published, right = int(found[i, :, x].sum()), int(found[i, x, x])
            excess.append(float((right - RHO2 * published) / np.sqrt(float(RHO2 * (1 - RHO2)) * published)))
    return excess


def test_nobody_who_sees_a_value_is_right_more_often_than_rho2():
    parts = subtables()
    excess = posterior_excess(transitions(parts), parts)
    assert max(excess) < BOUND
    assert max(excess) > -BOUND  # and the bound is used up: the most frequent value reaches it


def test_the_same_test_catches_a_retention_that_is_too_high():
    parts = subtables()
    wrong = SubTables(tuple(SubTable(p.codes, p.counts, p.rho1, p.gamma * 2) for p in parts))
    assert max(posterior_excess(transitions(parts, drawn_from=wrong), parts)) > BOUND


def test_which_records_go_where_does_not_depend_on_their_place():
    """Of the 50 records of x4, 40 go to the first sub-table: each place equally often, and neighbours together no more than by chance."""
    parts = subtables()
    mine = CODE == 3
    first = np.array([unpack(Perturb(parts, key)(CODE, RANK)).subtable[mine] == 0 for key in keys()])
    assert (first.sum(axis=1) == 40).all()
    spread = KEYS * 0.8 * 0.2 * 50 / 49  # so that the sum over places is chi-square with 49 degrees
    statistic = float(((first.sum(axis=0) - KEYS * 0.8) ** 2 / spread).sum())
    assert stats.chi2.sf(statistic, 49) > ALARM
    neighbours = int((first[:, 1:] == first[:, :-1]).sum())
    chance = (40 * 39 + 10 * 9) / (50 * 49)
    n = KEYS * 49
    assert abs(neighbours - n * chance) / np.sqrt(n * chance * (1 - chance)) < BOUND


def test_the_same_test_catches_ranks_that_are_not_permuted():
    class Plain(Perturb):
        @property
        def _permutation(self):
            return lambda code, rank: rank

    parts = subtables()
    mine = CODE == 3
    first = np.array([unpack(Plain(parts, key)(CODE, RANK)).subtable[mine] == 0 for key in keys(20)])
    assert len({tuple(row) for row in first.tolist()}) == 1


def test_records_draw_independently():
    """Whether a record is changed says nothing of the next one, nor of the same record under the next key."""
    parts = subtables()
    changed = np.array([unpack(Perturb(parts, key)(CODE, RANK)).code != CODE for key in keys()])
    subtable = np.array([unpack(Perturb(parts, key)(CODE, RANK)).subtable for key in keys()])
    chance = np.array([1 - float(p.unchanged) for p in parts])[subtable]
    z = (changed - chance) / np.sqrt(chance * (1 - chance))
    for shift in (1, 2, 7):
        along = (z[:, shift:] * z[:, :-shift]).ravel()
        assert abs(along.sum()) / np.sqrt(len(along)) < BOUND
    across = (z[1:] * z[:-1]).ravel()
    assert abs(across.sum()) / np.sqrt(len(across)) < BOUND


def truth_where_two_releases_differ(kernel) -> float:
    """z of the share of true values in the second of two releases under one key, with rho2 of 1/2 and 2/3, among the records whose two
    published values differ; 0 is what two independent draws give."""
    table = SensitiveCounts(tuple(range(10)), COUNTS)
    parts = [solve_whole(table, RhoPrivacy.of(rho2)).subtables for rho2 in ("1/2", "2/3")]
    first, second = (float(found[0].unchanged) for found in parts)
    both_wrong = 9 * ((1 - first) / 9) * ((1 - second) / 9)  # and alike
    chance = second * (1 - first) / (1 - first * second - both_wrong)
    right = seen = 0
    for key in keys(50):
        one, other = (unpack(kernel(found, key)(CODE, RANK)).code for found in parts)
        right, seen = right + int((other == CODE)[one != other].sum()), seen + int((one != other).sum())
    return (right - seen * chance) / np.sqrt(seen * chance * (1 - chance))


def test_one_key_for_two_bounds_tells_no_more_than_two_keys():
    assert abs(truth_where_two_releases_differ(Perturb)) < BOUND


def test_the_same_test_catches_draws_that_both_bounds_share():
    """Where both draw the same words, a value that changes is one that the weaker bound alone keeps: the true one, for certain."""

    class Sharing(Perturb):
        @property
        def _own_key(self):
            return self.key

    assert truth_where_two_releases_differ(Sharing) > BOUND


def test_a_record_draws_the_same_in_any_batch_and_after_pickling():
    kernel = Perturb(subtables(), keys(1)[0])
    whole = kernel(CODE, RANK)
    order = np.random.default_rng(1).permutation(len(CODE))
    assert (pickle.loads(pickle.dumps(kernel))(CODE[order], RANK[order]) == whole[order]).all()
    pieces = [kernel(CODE[a : a + 7], RANK[a : a + 7]) for a in range(0, len(CODE), 7)]
    assert (np.concatenate(pieces) == whole).all()
    assert (Perturb(kernel.subtables, keys(2)[1])(CODE, RANK) != whole).any()
    assert kernel(CODE[:0], RANK[:0]).tolist() == []


def test_replacements_are_drawn_again_where_words_run_out(monkeypatch):
    """Words beyond the last whole cycle of 2^64 are refused, whichever records they hit."""
    kernel = Perturb(subtables(), keys(1)[0])
    plain = kernel(CODE, RANK)
    original, attempts = Draws.words, []

    def short(self, i, j, attempt=0):
        words = original(self, i, j, attempt).copy()
        attempts.append(attempt)
        if attempt == 0:
            words[::2, 1] = 2**64 - 1  # above the last whole cycle of 6: 2^64 = 4 (mod 6)
        return words

    monkeypatch.setattr(Draws, "words", short)
    again = kernel(CODE, RANK)
    assert max(attempts) >= 1
    same = again == plain
    assert same[1::2].all()
    assert not same[::2].all()
    assert np.isin(unpack(again).code, CODE).all()


def test_words_at_a_place_are_uniform_and_depend_on_each_coordinate():
    draws = Draws(bytes(32), "test")
    i, j = np.repeat(np.arange(100), 1000), np.tile(np.arange(1000), 100)
    words = draws.words(i, j)
    assert len(np.unique(words)) == 2 * len(i)
    for word in words.T:
        seen = np.bincount((word >> np.uint64(56)).astype(int), minlength=256)
        assert stats.chisquare(seen).pvalue > ALARM
    assert (draws.words(i, j, 1) != words).all()
    assert (draws.words(i[:5], j[:5]) == words[:5]).all()
    assert (Draws(bytes(32), "other").words(i, j) != words).all()


@pytest.mark.long
@pytest.mark.parametrize("m", [2, 3, 1000])
def test_one_sub_table_of_many_values(m):
    counts = np.full(m, 20)
    part = SubTable.of(np.arange(m), counts, np.ones(m, dtype=bool), Fraction(2, 3))
    code, rank = np.repeat(np.arange(m), 20), np.tile(np.arange(20), m)
    kept = seen = 0
    for key in keys(50):
        found = unpack(Perturb(SubTables((part,)), key)(code, rank))
        kept, seen = kept + int((found.code == code).sum()), seen + len(code)
    chance = float(part.unchanged)
    assert abs(kept - seen * chance) / np.sqrt(seen * chance * (1 - chance)) < BOUND
