"""Full-domain generalization: one level of detail per quasi-identifier for the whole table, the best that keeps the promise.

Source: Li, Li and Venkatasubramanian, ICDE 2007 (tIncognito, Incognito with t-closeness), as a baseline of SABRE (section 6). The choices
form a lattice. Every requirement that survives merging classes (all of ours do) is monotone on it: what keeps it at some levels keeps it at
all higher ones, what breaks it there breaks it at all lower ones. So chains of untried choices are searched by bisection, and each answer
settles a whole corner of the lattice. Of the lowest choices that keep the promise, the one with the smallest certainty penalty wins.

Everything runs on the driver, on the distinct combinations of quasi-identifiers: bounded by whoever gathers them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonlib.arrays import Codes, Int8Array, Int64Array
from anonlib.domains import Domain, NumericDomain, generalized_certainty_penalty, penalty_of_runs
from anonlib.errors import Unsatisfiable
from anonlib.privacy.class_requirements import Requirement

Choice = tuple[int, ...]
"""A node of the lattice: a level for each attribute."""

HALVINGS = 7
"""A numeric attribute's levels: its values, then 2^7, 2^6, ..., 1 intervals of equal width."""
MAX_NODES = 1 << 22
"""Choices that are searched, at most."""
CELLS = 1 << 22

BROKEN, OPEN, KEPT = -1, 0, 1


@dataclass(frozen=True)
class Combinations:
    """The distinct combinations of quasi-identifiers of a table, and the sensitive values of their records.

    columns : d code columns of c combinations
    of      : (cells,) int64, the combination of each cell
    value   : (cells,) int64, its sensitive value in [0, m); count : (cells,) int64, its records
    m       : sensitive values of the table
    """

    columns: tuple[Codes, ...]
    of: Int64Array
    value: Int64Array
    count: Int64Array
    m: int


@dataclass(frozen=True)
class Lattice:
    """Groups of values at every level: `groups[a][h]` holds the group of each combination's value of attribute a at level h.

    Groups are numbers without a hole; the lowest level tells all values apart, the highest has one group. `heights[a][h]` is what
    `grouped` knows the level as.
    """

    groups: tuple[tuple[Int64Array, ...], ...]
    heights: tuple[tuple[int, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many levels each attribute has: the shape of the lattice."""
        return tuple(len(levels) for levels in self.groups)

    def classes(self, choice: Choice) -> Int64Array:
        """(c,) int64: the class of each combination at the levels of `choice`, numbered without a hole. O(d c log c)."""
        key = np.zeros(len(self.groups[0][0]), dtype=np.int64)
        for levels, height in zip(self.groups, choice, strict=True):
            groups = levels[height]
            key = key * (int(groups.max()) + 1) + groups
            if int(groups.max()):
                key = np.unique(key, return_inverse=True)[1].astype(
                    np.int64
                )  # dense again, so that no product overflows
        return key


@dataclass(frozen=True)
class Recoding:
    """The chosen levels.

    heights : of each attribute, as `grouped` knows it; classes : (c,) int64, the class of each combination
    penalty : GCP of their tight boxes; checked, nodes : choices looked at, and choices there are
    """

    heights: tuple[int, ...]
    classes: Int64Array
    penalty: float
    checked: int
    nodes: int


def lattice(combinations: Combinations, domains: Sequence[Domain]) -> Lattice:
    """The levels of every attribute: a hierarchy's own; without one the values and "any"; halved intervals for a numeric attribute.

    Levels that tell no fewer values apart than the one below are left out. Raises Unsatisfiable above `MAX_NODES` choices.
    """
    levels = [_distinct_levels(column, domain) for column, domain in zip(combinations.columns, domains, strict=True)]
    choices = Lattice(
        tuple(tuple(groups for _, groups in of_attribute) for of_attribute in levels),
        tuple(tuple(height for height, _ in of_attribute) for of_attribute in levels),
    )
    nodes = int(np.prod([float(size) for size in choices.shape]))
    if nodes > MAX_NODES:
        raise Unsatisfiable(
            f"full-domain recoding has {nodes:,} choices of levels for {len(domains)} quasi-identifiers, and {MAX_NODES:,} can be "
            "searched; name fewer quasi-identifiers, or give hierarchies with fewer levels"
        )
    return choices


def search(combinations: Combinations, domains: Sequence[Domain], requirement: Requirement) -> Recoding:
    """The recoding with the smallest certainty penalty among the lowest that keep `requirement`.

    Raises Unsatisfiable when even one class of all records does not. Cost: about (lowest choices) x log(levels) checks, each a few
    sorts of c combinations and, where classes are large enough, a table of classes x m counts in pieces.
    """
    choices = lattice(combinations, domains)
    state = np.zeros(choices.shape, dtype=np.int8)
    top = tuple(size - 1 for size in choices.shape)
    checked = 0

    def keeps(choice: Choice) -> bool:
        nonlocal checked
        checked += 1
        good = _keeps(combinations, choices.classes(choice), requirement)
        corner = tuple(slice(h, None) if good else slice(None, h + 1) for h in choice)
        state[corner] = KEPT if good else BROKEN
        return good

    if not keeps(top):
        raise Unsatisfiable("full-domain recoding: not even one class of all records keeps the promise; ask for less")
    while (start := _lowest_open(state)) is not None:
        chain = _chain(state, start)
        low, high = 0, len(chain)  # chain[:low] is broken, chain[high:] kept
        while low < high:
            middle = (low + high) // 2
            if keeps(chain[middle]):
                high = middle
            else:
                low = middle + 1
    penalty, _, best = min(
        (_penalty(combinations, choices.classes(choice), domains), sum(choice), choice)
        for choice in _lowest_kept(state)
    )
    heights = tuple(levels[h] for levels, h in zip(choices.heights, best, strict=True))
    finder = ClassFinder.of(combinations.columns, domains, heights)
    return Recoding(heights, finder(combinations.columns), penalty, checked, state.size)


def grouped(column: Codes, domain: Domain, height: int) -> Codes:
    """The group of each code at a height of its domain: 0 tells all values apart, `top(domain)` none. A function of the code alone."""
    if height == 0:
        return column
    if isinstance(domain, NumericDomain):
        intervals = 2 ** (HALVINGS + 1 - height)
        return np.asarray(np.minimum((domain.share(column) * intervals).astype(np.int64), intervals - 1))
    codes = column.astype(np.int64)
    return np.zeros_like(codes) if domain.hierarchy is None else np.asarray(domain.hierarchy.ancestors[codes, height])


def top(domain: Domain) -> int:
    """The height of the domain at which everything is one group, as `grouped` counts heights."""
    if isinstance(domain, NumericDomain):
        return HALVINGS + 1
    return 1 if domain.hierarchy is None else domain.hierarchy.levels - 1


@dataclass(frozen=True)
class ClassFinder:
    """The class of any record of the table a recoding was chosen for: records -> numbers as `Recoding.classes` has them.

    Attribute by attribute, groups and then pairs (class so far, group) are looked up among those that occur: memory of d times the
    combinations, no key overflows.
    """

    domains: tuple[Domain, ...]
    heights: tuple[int, ...]
    groups: tuple[Codes, ...]
    pairs: tuple[Int64Array, ...]

    @staticmethod
    def of(columns: Sequence[Codes], domains: Sequence[Domain], heights: tuple[int, ...]) -> ClassFinder:
        """The finder of a table's classes.

        columns : d code columns of its distinct combinations; domains, heights : theirs. O(d c log c).
        """
        groups, pairs = [], []
        key = np.zeros(len(columns[0]), dtype=np.int64)
        for column, domain, height in zip(columns, domains, heights, strict=True):
            known, group = np.unique(grouped(column, domain, height), return_inverse=True)
            known_pairs, key = np.unique(key * len(known) + group, return_inverse=True)
            groups.append(known)
            pairs.append(known_pairs)
        return ClassFinder(tuple(domains), heights, tuple(groups), tuple(pairs))

    def __call__(self, columns: Sequence[Codes]) -> Int64Array:
        """(n,) int64: the class of each record of d code columns. Raises ValueError for a combination that the table does not have."""
        key = np.zeros(len(columns[0]), dtype=np.int64)
        for a, column in enumerate(columns):
            group = _looked_up(self.groups[a], grouped(column, self.domains[a], self.heights[a]))
            key = _looked_up(self.pairs[a], key * len(self.groups[a]) + group)
        return key


def _looked_up(known: Codes, wanted: Codes) -> Int64Array:
    """(n,) int64: the place of each of `wanted` in `known`, ascending. Raises ValueError when one is not there."""
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1).astype(np.int64)
    if (known[at] != wanted).any():
        raise ValueError("a combination of quasi-identifiers was not counted before: the table has changed")
    return at


def _distinct_levels(column: Codes, domain: Domain) -> list[tuple[int, Int64Array]]:
    """(height, group of each combination) of every level that tells fewer values apart than the one below it."""
    levels: list[tuple[int, Int64Array]] = []
    for height in range(top(domain) + 1):
        numbers = np.unique(grouped(column, domain, height), return_inverse=True)[1].astype(np.int64)
        if not levels or numbers.max() < levels[-1][1].max():
            levels.append((height, numbers))
    return levels


def _lowest_open(state: Int8Array) -> Choice | None:
    """An unsettled choice with nothing unsettled below it: the first in row-major order is one."""
    flat = np.flatnonzero(state.ravel() == OPEN)
    return tuple(int(h) for h in np.unravel_index(flat[0], state.shape)) if flat.size else None


def _chain(state: Int8Array, start: Choice) -> list[Choice]:
    """A climb from `start` through unsettled choices, one level of one attribute at a time, evenly over the attributes."""
    chain, choice = [start], list(start)
    while True:
        ups = [
            a
            for a in range(len(choice))
            if choice[a] + 1 < state.shape[a] and state[(*choice[:a], choice[a] + 1, *choice[a + 1 :])] == OPEN
        ]
        if not ups:
            return chain
        choice[min(ups, key=lambda a: (choice[a] / (state.shape[a] - 1), a))] += 1
        chain.append(tuple(choice))


def _lowest_kept(state: Int8Array) -> list[Choice]:
    """Choices that keep the promise while none a level below does."""
    lowest = state == KEPT
    for a in range(state.ndim):
        below = np.roll(state, 1, axis=a) == KEPT
        below[(slice(None),) * a + (0,)] = False
        lowest &= ~below
    return [tuple(int(h) for h in choice) for choice in np.argwhere(lowest)]


def _keeps(combinations: Combinations, classes: Int64Array, requirement: Requirement) -> bool:
    """Whether every class keeps the requirement. classes : (c,) int64, of the combinations."""
    number = classes[combinations.of]
    g, m = int(classes.max()) + 1, combinations.m
    sizes = np.bincount(number, combinations.count, minlength=g)
    if sizes.min() < requirement.smallest:
        return False
    order = np.argsort(number, kind="stable")
    number, value, count = number[order], combinations.value[order], combinations.count[order]
    step = max(1, CELLS // m)
    for begin in range(0, g, step):
        end = min(g, begin + step)
        part = slice(*np.searchsorted(number, [begin, end]))
        cells = (number[part] - begin) * m + value[part]
        counts = np.zeros((end - begin) * m, dtype=np.int64)
        np.add.at(counts, cells, count[part])
        if not requirement.holds(counts.reshape(-1, m)).all():
            return False
    return True


def _penalty(combinations: Combinations, classes: Int64Array, domains: Sequence[Domain]) -> float:
    """GCP of the classes' tight boxes, weighted by records."""
    order = np.argsort(classes, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(classes))]).astype(np.int64)
    records = np.bincount(classes[combinations.of], combinations.count)
    weights = records / records.sum() * len(records)
    return generalized_certainty_penalty(
        [
            penalty_of_runs(domain, column[order], bounds) * weights
            for column, domain in zip(combinations.columns, domains, strict=True)
        ]
    )
