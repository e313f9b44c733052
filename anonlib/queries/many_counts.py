"""Many count queries on a bucketized release at once, from flattened estimates by query and sensitive value (`anonlib.queries.flattening`).

The answers are those of `anonlib.queries.bucketized.answer` but for certain bounds, which need every bucket of every query. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anonlib.arrays import Float64Array, Int64Array
from anonlib.queries.bucketized import REFUTED
from anonlib.queries.flattening import Flattening

Condition = Mapping[str, Sequence[int]]
"""Attribute -> the codes that it accepts; an attribute that is absent accepts everything."""
MAX_SINGLES = 1_000
"""Attributes of up to so many values have a condition for each, of which priors are made; others tell nothing to priors."""
_QUERIES = 500
"""Queries answered at a time."""


@dataclass(frozen=True)
class Asked:
    """C conditions: those of Q queries, and then those on one attribute that their priors are made of.

    conditions : (C,) the first Q are the queries; the others are on one of the attributes `alone` each
    parts      : for each attribute, (queries that ask about it; for each of these the numbers of conditions that add up to its own)
    """

    conditions: list[Condition]
    queries: int
    parts: list[tuple[Int64Array, list[Int64Array]]]
    alone: list[str]

    @staticmethod
    def of(queries: Sequence[Condition], sizes: Mapping[str, int]) -> Asked:
        """queries : the visible part of each; sizes : attribute -> how many values it has."""
        conditions: list[Condition] = list(queries)
        parts = []
        alone = [attribute for attribute, size in sizes.items() if size <= MAX_SINGLES]
        for attribute in alone:
            of = [q for q, query in enumerate(queries) if attribute in query and len(query) > 1]
            first = len(conditions)
            conditions += [{attribute: (code,)} for code in range(sizes[attribute])]
            places = [first + np.array(queries[q][attribute], dtype=np.int64) for q in of]
            parts.append((np.array(of, dtype=np.int64), places))
        return Asked(conditions, len(queries), parts, alone)


def answers(system: Flattening, flat: Float64Array, asked: Asked, accepted: Float64Array) -> Float64Array:
    """(Q,) estimates. flat : (m, C) flattened estimates of each condition; accepted : (m, Q), 1 where a query accepts a value.

    O(m^2 C) and, for 500 queries at a time, 5 m doubles each.
    """
    products = np.ones((len(accepted), asked.queries))
    for queries, places in asked.parts:
        for start in range(0, len(queries), _QUERIES):
            chosen = slice(start, start + _QUERIES)
            own = [flat[:, place].sum(axis=1) for place in places[chosen]]
            products[:, queries[chosen]] *= system.ratio(np.stack(own, axis=1))
    estimates = [
        _answers(system, flat[:, q : q + _QUERIES], products[:, q : q + _QUERIES], accepted[:, q : q + _QUERIES])
        for q in _starts(asked.queries)
    ]
    return np.concatenate([np.zeros(0), *estimates])


def _starts(queries: int) -> range:
    return range(0, queries, _QUERIES)


def _answers(system: Flattening, flat: Float64Array, products: Float64Array, accepted: Float64Array) -> Float64Array:
    """The same of some queries, all arrays (m, Q). products : of the ratios of a query's conditions."""
    flat, o = flat[:, : accepted.shape[1]], system.kinds.by_value
    counts = system.shrunk(flat, system.prior_of(products, flat.sum(axis=0)))
    shrunk = (counts * accepted).sum(axis=0)
    unbiased = system.unbiased(flat, accepted)
    error = np.sqrt(system.variance(accepted, system.shares(counts)))
    told = ~(accepted.astype(bool) & system.untold()[:, None]).any(axis=0)
    refuted = told & (np.abs(shrunk - unbiased) > REFUTED * error)
    most = np.minimum(flat.sum(axis=0), o @ accepted)
    return np.asarray(np.clip(np.where(refuted, unbiased, shrunk), 0, most))
