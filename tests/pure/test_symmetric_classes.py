"""Classes of the same of every block: renaming blocks changes nothing, and every class holds what it must."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonlib.domains import CategoricalDomain, NumericDomain
from anonlib.hierarchy import parse_hierarchy
from anonlib.kernels.classes.halving import Records, information_loss
from anonlib.kernels.classes.symmetric_classes import symmetric_classes
from tests.thorough import trials

TREE = parse_hierarchy("a,1,any\nb,1,any\nc,2,any\nd,2,any\ne,2,any\n")
DOMAINS = (
    NumericDomain("age", 0.0, 12.0),
    CategoricalDomain("place", TREE.labels[:5], TREE),
    CategoricalDomain("colour", ("blue", "green", "red")),
)


@st.composite
def people(draw):
    """(columns with many equal values, block of each record, noise, least)"""
    blocks, share = draw(st.integers(1, 6)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = blocks * share
    columns = [rng.integers(0, 13, n), rng.integers(0, 5, n), rng.integers(0, 3, n)]
    block = rng.permutation(np.repeat(np.arange(blocks), share))
    return columns, block, rng.permutation(n), draw(st.integers(1, share)), rng


def grouped(classes: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(classes == c).tolist()) for c in range(int(classes.max()) + 1)}


@settings(max_examples=trials(300, 100), deadline=None)
@given(people(), st.integers(0, 3), st.sampled_from([2, 4, 128]))
def test_renaming_the_blocks_changes_nothing(given_, sweeps, together):
    columns, block, noise, least, rng = given_
    classes = symmetric_classes(columns, DOMAINS, block, noise, least, together, sweeps)
    renamed = rng.permutation(int(block.max()) + 1)[block]
    assert classes.tolist() == symmetric_classes(columns, DOMAINS, renamed, noise, least, together, sweeps).tolist()


@settings(max_examples=100, deadline=None)
@given(people(), st.integers(0, 3), st.sampled_from([2, 4, 128]))
def test_the_order_of_the_records_changes_nothing(given_, sweeps, together):
    """Only the noise decides between equal records, never the place in which a record is handed over."""
    columns, block, noise, least, rng = given_
    classes = symmetric_classes(columns, DOMAINS, block, noise, least, together, sweeps)
    order = rng.permutation(len(block))
    moved = symmetric_classes([c[order] for c in columns], DOMAINS, block[order], noise[order], least, together, sweeps)
    back = np.empty(len(order), dtype=np.int64)
    back[order] = moved
    assert grouped(classes) == grouped(back)


@settings(max_examples=trials(200, 100), deadline=None)
@given(people(), st.integers(0, 3), st.sampled_from([2, 4, 128]))
def test_a_class_holds_the_same_number_of_every_block(given_, sweeps, together):
    columns, block, noise, least, _ = given_
    classes = symmetric_classes(columns, DOMAINS, block, noise, least, together, sweeps)
    number = int(classes.max()) + 1
    held = np.array([np.bincount(block[classes == c], minlength=int(block.max()) + 1) for c in range(number)])
    assert (held == held[:, :1]).all()
    assert least <= held.min() <= held.max() < 2 * least or number == 1


def test_an_exchange_lowers_loss():
    rng = np.random.default_rng(3)
    n, blocks = 6 * 200, 6
    columns = [rng.integers(0, 13, n), rng.integers(0, 5, n), rng.integers(0, 3, n)]
    block, noise = np.arange(n) % blocks, rng.permutation(n)
    of = Records(columns, DOMAINS, [], [], block, noise)
    before = np.inf
    for sweeps in (0, 1, 2, 3):
        classes = symmetric_classes(columns, DOMAINS, block, noise, 2, sweeps=sweeps)
        loss = information_loss(of, np.arange(n), classes, int(classes.max()) + 1) @ np.bincount(classes)
        assert loss < before
        before = loss


def test_blocks_of_different_sizes_are_refused():
    columns = [np.zeros(3, dtype=np.int64)] * 3
    with pytest.raises(ValueError, match="different sizes"):
        symmetric_classes(columns, DOMAINS, np.array([0, 0, 1]), np.arange(3))


@pytest.mark.parametrize(("blocks", "n"), [(2, 8), (3, 6)])
def test_by_enumeration_a_person_is_in_each_block_with_equal_probability(blocks, n):
    """All worlds of n persons (who is in which block), to somebody who knows the code, the noise and everybody's quasi-identifiers and
    sees the classes: in those that give the same classes everybody is in each block equally often."""
    rng = np.random.default_rng(blocks)
    columns = [rng.integers(0, 51, n), rng.integers(0, 4, n)]
    domains = [NumericDomain("age", 0.0, 50.0), CategoricalDomain("town", tuple("abcd"))]
    noise = rng.permutation(n)
    seen: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for world in {*permutations(np.repeat(np.arange(blocks), n // blocks).tolist())}:
        classes = symmetric_classes(columns, domains, np.array(world), noise)
        first: dict[int, int] = {}
        seen.setdefault(tuple(first.setdefault(c, len(first)) for c in classes.tolist()), []).append(world)
    assert len(seen) > 1
    for worlds in seen.values():
        for person in range(n):
            held = Counter(world[person] for world in worlds)
            assert set(held.values()) == {len(worlds) // blocks}
