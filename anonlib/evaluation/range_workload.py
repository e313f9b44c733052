"""The workload `range` (SABRE, section 6.2; heterogeneous generalization, section 5): intervals on a few attributes and the sensitive one.

Each query draws lambda quasi-identifiers; on each of them, and on the sensitive attribute, it asks for a random interval of length
|A| theta^(1 / (lambda + 1)), so that it meets a share theta of the records if attributes are uniform and independent; on each of c
sensitive attributes where there are several, then of length |A| theta^(1 / (lambda + c)). Categorical
attributes are intervals of codes: leaf order of the hierarchy, else text order. Whole-number lengths are rounded up, exactly.

No privacy rests on these draws, so a plain seeded generator serves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.domains import CategoricalDomain
from anonlib.engine.domains import QuasiIdentifier, QuasiIdentifiers
from anonlib.errors import SpecError
from anonlib.evaluation.workloads import in_width
from anonlib.queries.box_batch import RangeQueries

DIMENSIONS = 3


@dataclass(frozen=True)
class RangeQuery:
    """`within[A]` are the first and last code that a record may have on A, both included."""

    within: dict[str, tuple[Any, Any]]

    def dimensions(self, *sensitive: str) -> int:
        """lambda, the number of quasi-identifiers it asks about. sensitive : the columns that are none."""
        return len(self.within) - sum(name in self.within for name in sensitive)


@dataclass(frozen=True)
class RangeWorkload:
    """Queries with what they were drawn from. `attributes` are the quasi-identifiers in the order of their columns, `values` the sensitive
    values in the order of their codes; `further` are those of further sensitive columns, {column: its values}."""

    kind: str
    seed: int
    selectivity: float
    sensitive: str
    attributes: tuple[str, ...]
    values: tuple[str | None, ...]
    queries: tuple[RangeQuery, ...]
    further: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)

    def predicate(self, number: int) -> str:
        """Query `number` for people, in codes (see `anonlib.engine.numeric_codes` and the manifest's domains)."""
        return " AND ".join(
            f"code({a}) BETWEEN {low} AND {high}" for a, (low, high) in self.queries[number].within.items()
        )

    def to_json(self) -> str:
        """The workload as one JSON object: how it was drawn, and its queries in codes."""
        return json.dumps(
            {
                "kind": self.kind,
                "seed": self.seed,
                "selectivity": self.selectivity,
                "sensitive": self.sensitive,
                "attributes": self.attributes,
                "values": self.values,
                "queries": [query.within for query in self.queries],
            }
            | ({"further": self.further} if self.further else {}),
            ensure_ascii=False,
        )

    def batch(self) -> RangeQueries:
        """All queries as arrays by quasi-identifier, the form that kernels take."""
        asked, low, high = [], [], []
        for attribute in self.attributes:
            numbers = [q for q, query in enumerate(self.queries) if attribute in query.within]
            ends = [self.queries[q].within[attribute] for q in numbers]
            kind = np.float64 if any(isinstance(end[0], float) for end in ends) else np.int64
            asked.append(np.array(numbers, dtype=np.int64))
            low.append(np.array([a for a, _ in ends], dtype=kind))
            high.append(np.array([b for _, b in ends], dtype=kind))
        first, *more = (self._ends(name) for name in (self.sensitive, *self.further))
        return RangeQueries(tuple(asked), tuple(low), tuple(high), *first, tuple(more))

    def _ends(self, sensitive: str) -> tuple[Int64Array, Int64Array]:
        """The ends of all queries in the codes of a sensitive column."""
        ends = np.array([query.within[sensitive] for query in self.queries], dtype=np.int64)
        return ends[:, 0], ends[:, 1]


def range_workload(
    quasi_identifiers: QuasiIdentifiers,
    sensitive: str,
    values: Sequence[str | None],
    queries: int = 10_000,
    selectivity: float = 0.1,
    seed: int = 0,
    dimensions: int | None = None,
    further: Mapping[str, Sequence[str | None]] | None = None,
) -> RangeWorkload:
    """`queries` random queries of kind `range`, each on `dimensions` quasi-identifiers (3, or all if there are fewer). Needs no Spark.

    further : {further sensitive column: its values in the order of their codes}; each query asks for an interval of each, too
    Raises SpecError for a parameter that is out of range.
    """
    columns = quasi_identifiers.columns
    wanted = min(DIMENSIONS, len(columns)) if dimensions is None else dimensions
    if not 1 <= wanted <= len(columns):
        raise SpecError(f"dimensions {wanted}: there are {len(columns)} quasi-identifiers, so 1 to {len(columns)}")
    if queries < 1:
        raise SpecError(f"a workload of {queries} queries is empty; ask for at least 1")
    if not 0 < selectivity <= 1:
        raise SpecError(f"selectivity {selectivity} is not a share: it lies above 0 and is at most 1")
    draw, share = np.random.default_rng(seed), Fraction(str(selectivity))
    drawn = []
    secret = {sensitive: tuple(values)} | {name: tuple(own) for name, own in (further or {}).items()}
    besides = wanted + len(secret) - 1
    for _ in range(queries):
        chosen = sorted(draw.choice(len(columns), size=wanted, replace=False))
        within = {columns[i].name: _interval(columns[i], share, besides, draw) for i in chosen}
        within |= {name: _whole(0, len(own) - 1, share, besides, draw) for name, own in secret.items()}
        drawn.append(RangeQuery(within))
    names = tuple(c.name for c in columns)
    return RangeWorkload("range", seed, selectivity, sensitive, names, secret.pop(sensitive), tuple(drawn), secret)


def _interval(column: QuasiIdentifier, share: Fraction, wanted: int, draw: np.random.Generator) -> tuple[Any, Any]:
    """A random interval of codes on a quasi-identifier, whose length is the share^(1 / (wanted + 1)) of its domain. wanted : how many
    others the query asks about."""
    if isinstance(column.domain, CategoricalDomain):
        return _whole(0, column.domain.size - 1, share, wanted, draw)
    low, high = column.low, column.high
    if isinstance(low, int) and isinstance(high, int):
        return _whole(low, high, share, wanted, draw)
    assert low is not None
    assert high is not None
    length = (high - low) * float(share) ** (1 / (wanted + 1))
    start = low + (high - low - length) * float(draw.random())
    return start, start + length


def _whole(low: int, high: int, share: Fraction, wanted: int, draw: np.random.Generator) -> tuple[int, int]:
    """The same of whole numbers from low to high, its length rounded up."""
    size = high - low + 1
    width = in_width(size, share, wanted)
    room = size - width
    start = low + (int(draw.integers(0, room + 1)) if room < 2**62 else int(draw.random() * room))
    return start, start + width - 1
