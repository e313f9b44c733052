"""Whoever knows the graph of matches, the rows and the true counts believes nothing beyond the bound, whatever partition the method makes.

Each table goes the method's own way: what it is asked, its pools, its kernel. Then every assignment of rows to persons is tried that is
consistent with the graph. `ANONLIB_THOROUGH=1 python -m pytest tests/pure/test_exact_beliefs.py` tries 2,200 tables of each promise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from anonlib.arrays import Lists
from anonlib.hierarchy import parse_hierarchy
from anonlib.kernels.matching import neighbourhoods
from anonlib.methods.heterogeneous import Matching, bucketing, thresholds
from anonlib.privacy.counts import SensitiveCounts
from anonlib.spec.methods.heterogeneous import Heterogeneous
from tests.oracles.consistent_assignments import value_beliefs
from tests.pure.test_matching import DOMAINS, KEY, records
from tests.thorough import cases, nightly, trials

MOST = 12
"""Records of a pool at most, that every assignment may be tried."""
FEW = 2
"""Records of each bucket of a neighbourhood at least, where pools are cut into them."""

TREE = parse_hierarchy("0,a,c,any\n1,a,c,any\n2,b,c,any\n3,b,c,any\n4,e,d,any\n5,e,d,any\n")
"""Over the texts of the values."""


def random_thresholds(random: np.random.Generator, l: int | None) -> dict[str, str]:  # noqa: E741
    """Of some nodes and, where they are stricter than l, of some values."""
    shares = ("1/4", "1/3", "2/5", "1/2", "3/5", "2/3", "3/4")
    named = {node: shares[int(random.integers(1, 7))] for node in "abcd" if random.integers(2)}
    of_values = {str(v): shares[int(random.integers(0, 3))] for v in range(3) if not random.integers(3)}
    strict = {v: share for v, share in of_values.items() if l is None or Fraction(share) < Fraction(1, l)}
    return (named | strict) or {"c": "3/4"}


def random_table(number: int, promise: str) -> tuple[np.ndarray, np.ndarray, Heterogeneous]:
    """(counts of the whole table, those of the partition to publish, what is asked)."""
    random = np.random.default_rng(number)
    if promise.startswith("l"):
        part = random.integers(0, 5, int(random.integers(2, 6)))
        l = int(random.integers(2, 4))  # noqa: E741
        own = random_thresholds(random, l) if "nodes" in promise else {}
        return np.maximum(part, 1), part, Heterogeneous(l=l, thresholds=own)
    table = random.integers(1, 7, int(random.integers(2, 6)))
    part = table if random.integers(2) else random.binomial(table, 0.6)
    remainder = "dummy" if promise == "beta, made up" else None
    beta = f"{random.integers(1, 30) / 10}"
    own = random_thresholds(random, None) if "nodes" in promise else {}
    return table, part, Heterogeneous(beta=beta, remainder=remainder, thresholds=own)


@dataclass(frozen=True)
class Told:
    """One published partition: its persons, those of whom something is believed beyond the bound, made-up records, and its pools."""

    persons: int
    above: int
    made_up: int
    pools: int
    buckets_of_several: bool


def published(number: int, promise: str) -> Told | None:
    """None where a table is too large to try everything, cannot keep the promise by itself, or has no pool for neighbourhoods to be cut."""
    table, part, wanted = random_table(number, promise)
    m = len(table)
    whole = SensitiveCounts(tuple(map(str, range(m))), table)
    tree = TREE if wanted.thresholds else None
    promised = bucketing(whole, wanted, tree)
    pools = promised.pools(part) if part.sum() else None
    if pools is None or all(pool.mu == 1 for pool in pools):
        return None
    if any(pool.mu * pool.size > MOST or pool.mu > (4 if pool.size > 1 else 7) for pool in pools):
        return None
    if promise.endswith("near") and not any(pool.size >= 2 * FEW for pool in pools):
        return None
    random = np.random.default_rng(number)
    sensitive = random.permutation(np.repeat(np.arange(m), part))
    kernel = Matching(tuple(DOMAINS), m, promised, None, ("hungarian", "greedy")[number % 2], False, KEY)
    columns = kernel(records(random, len(sensitive)), sensitive, number)
    told = {name: column.listed() if isinstance(column, Lists) else column for name, column in columns.items()}
    assert sorted(told["own"][~told["dummy"]].tolist()) == sorted(sensitive.tolist())
    bounds, persons, above = thresholds(whole, promised), 0, 0
    told_nodes = [(limit, {int(v) for v in leaves_under(node)}) for node, limit in limits_on_nodes(wanted)]
    places = np.unique(told["partition"]).tolist()
    for place in places:
        pool = {name: column[told["partition"] == place] for name, column in told.items()}
        for i, beliefs in enumerate(beliefs_in(pool, m)):
            persons += not pool["dummy"][i]
            of_nodes = any(sum(beliefs.get(v, 0) for v in under) > limit for limit, under in told_nodes)
            of_values = any(belief > bounds[value] for value, belief in beliefs.items())
            above += not pool["dummy"][i] and (of_values or of_nodes)
    several = any(pool.size > 1 for pool in pools)
    return Told(persons, above, int(told["dummy"].sum()), len(places), several)


def limits_on_nodes(wanted: Heterogeneous) -> list[tuple[str, Fraction]]:
    return [(name, share) for name, share in wanted.thresholds.items() if not name.isdigit()]


def leaves_under(node: str) -> list[str]:
    return [row[0] for row in TREE.rows if node in row]


def beliefs_in(pool: dict[str, Any], m: int) -> list[dict[int, Fraction]]:
    matches = np.stack(pool["matches"].tolist())
    size = len(matches) // matches.shape[1]
    counts = np.bincount(pool["own"][~pool["dummy"]], minlength=m)
    return value_beliefs(matches, pool["assigned"] // size, pool["s0"], pool["dummy"], counts)


def tried(promise: str, number: int, only_made_up: bool = False) -> list[Told]:
    found: list[Told] = []
    seed = 0
    while len(found) < number:
        seed += 1
        told = published(seed, promise)
        if told is not None and (told.made_up or not only_made_up):
            found.append(told)
    return found


@pytest.mark.long
@pytest.mark.parametrize("promise", cases("l", "beta", "l, nodes", "beta, near", nightly=["beta, nodes"]))
def test_nobody_is_believed_beyond_the_bound(promise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if promise.endswith("near"):
        monkeypatch.setattr(neighbourhoods, "MATCHES", FEW)
        monkeypatch.setattr(neighbourhoods, "OF_A_BUCKET", FEW)
    found = tried(promise, trials(2200, 10 if "nodes" in promise else 50))
    assert [told for told in found if told.above or told.made_up] == []
    assert sum(told.pools > 1 for told in found) > len(found) / 10
    assert sum(told.buckets_of_several for told in found) > len(found) / 10


@nightly  # an attack on what is refused
def test_made_up_records_betray_persons_to_whoever_knows_the_true_counts() -> None:
    """Why nobody is made up: where made-up records are asked for, more than a third of such tables tell something beyond the bound."""
    found = tried("beta, made up", trials(300, 25), only_made_up=True)
    above = sum(told.above > 0 for told in found)
    assert above > len(found) / 3
