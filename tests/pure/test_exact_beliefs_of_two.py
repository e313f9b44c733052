"""Whoever knows the graph of matches, the rows and the true counts of all combinations of two sensitive columns believes no value of either
column beyond 1/l, whatever partition the method makes; whoever knows a person's value of one column may learn the other.

As `test_exact_beliefs.py`: each table goes the method's own way, and every assignment of rows to persons is tried.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from anonlib.arrays import Lists
from anonlib.methods.heterogeneous_pair import PairMatching
from anonlib.solvers.matching.pair_pools import pair_pools
from tests.oracles.consistent_assignments import value_beliefs
from tests.pure.test_exact_beliefs import MOST
from tests.pure.test_matching import DOMAINS, KEY, records
from tests.thorough import trials


@dataclass(frozen=True)
class Told:
    """One published partition: its persons, those of whom a value of either column is believed beyond 1/l, those whose value of the second
    column is certain to whoever knows that of the first, and its pools."""

    persons: int
    above: int
    certain: int
    pools: int
    buckets_of_several: bool


def random_table(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two columns of up to a dozen persons, the second leaning on the first or not."""
    n, m = int(random.integers(4, 13)), int(random.integers(2, 6))
    first = random.integers(0, m, n)
    second = np.where(random.random(n) < random.random(), first, random.integers(0, m, n))
    return first.astype(np.int64), second.astype(np.int64)


def published(number: int) -> Told | None:
    """None where a table is too large to try everything, or cannot keep the promise by itself."""
    random = np.random.default_rng(number)
    first, second = random_table(random)
    l = int(random.integers(2, 4))  # noqa: E741
    pairs, counts = np.unique(np.stack([first, second]), axis=1, return_counts=True)
    pools = pair_pools(counts.astype(np.int64), pairs, l)
    if pools is None:
        return None
    if any(pool.mu * pool.size > MOST or pool.mu > (4 if pool.size > 1 else 7) for pool in pools):
        return None
    kernel = PairMatching(tuple(DOMAINS), (5, 5), l, ("hungarian", "greedy")[number % 2], KEY)
    columns = kernel(records(random, len(first)), [first, second], np.zeros(len(first), dtype=np.int64), number)
    told = {name: column.listed() if isinstance(column, Lists) else column for name, column in columns.items()}
    assert Counter(zip(told["own"], told["own1"], strict=True)) == Counter(zip(first, second, strict=True))
    assert Counter(zip(told["s0"], told["s1"], strict=True)) == Counter(zip(first, second, strict=True))
    persons = above = certain = 0
    places = np.unique(told["partition"]).tolist()
    for place in places:
        pool = {name: column[told["partition"] == place] for name, column in told.items()}
        for own, beliefs in zip(pool["own"].tolist(), beliefs_in(pool), strict=True):
            persons += 1
            of_columns: list[dict[int, Fraction]] = [defaultdict(Fraction), defaultdict(Fraction)]
            for pair, belief in beliefs.items():
                for column, value in zip(of_columns, divmod(pair, 5), strict=True):
                    column[value] += belief
            above += any(belief > Fraction(1, l) for column in of_columns for belief in column.values())
            certain += len([pair for pair, belief in beliefs.items() if belief and pair // 5 == own]) == 1
    return Told(persons, above, certain, len(places), any(pool.size > 1 for pool in pools))


def beliefs_in(pool: dict[str, np.ndarray]) -> list[dict[int, Fraction]]:
    """Of each person of a pool {combination: belief}."""
    matches = np.stack(pool["matches"].tolist())
    size = len(matches) // matches.shape[1]
    shown, own = (5 * pool[a].astype(np.int64) + pool[b] for a, b in (("s0", "s1"), ("own", "own1")))
    nobody = np.zeros(len(matches), dtype=bool)
    return value_beliefs(matches, pool["assigned"] // size, shown, nobody, np.bincount(own, minlength=25))


@pytest.mark.long
def test_nobody_is_believed_beyond_the_bound_in_either_column() -> None:
    found: list[Told] = []
    seed = 0
    while len(found) < trials(2200, 25):
        seed += 1
        told = published(seed)
        if told is not None:
            found.append(told)
    assert [told for told in found if told.above] == []
    assert sum(told.pools > 1 for told in found) > len(found) / 10
    assert sum(told.buckets_of_several for told in found) > len(found) / 10
    # why the guarantee promises nothing to whoever knows the other column
    assert sum(told.certain for told in found) > sum(told.persons for told in found) / 2
