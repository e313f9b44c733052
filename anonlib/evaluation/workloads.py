"""Workloads of count queries: drawn from a seed, saved beside the results, the same again from the same seed and domains.

`in` (Anatomy, VLDB 2006, section 6; used by generalized bucketization): each query is a conjunction of A IN (b values) over d
random quasi-identifiers and the sensitive attribute, with b = ceil(|A| s^(1/(d+1))), so that a query meets a share s of the
records if attributes are uniform and independent. The study reports one d at a time; here d is drawn uniformly from
1 .. number of quasi-identifiers for each query, and results are reported over all and by d. The ceiling makes queries on
small domains wider than s.

No privacy rests on these draws, so a plain seeded generator serves.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.engine.relational import DataFrame, aggregate, rows, select
from anonlib.errors import SpecError
from anonlib.sql import quoted

MAX_DOMAIN = 100_000


@dataclass(frozen=True)
class Query:
    """`accepted[A]` are the codes (places in the domain of A) of the values that a record may have; sorted."""

    accepted: dict[str, tuple[int, ...]]

    def dimensions(self, sensitive: str) -> int:
        """d, the number of quasi-identifiers it asks about."""
        return len(self.accepted) - (sensitive in self.accepted)


@dataclass(frozen=True)
class Workload:
    """Queries with what they were drawn from. `domains[A]` are the values of A as text, sorted, without null."""

    kind: str
    seed: int
    selectivity: float
    sensitive: str
    domains: dict[str, tuple[str, ...]]
    queries: tuple[Query, ...]

    def predicate(self, number: int) -> str:
        """Query `number` for people: `A` IN ('x', 'y') AND ..."""
        return " AND ".join(
            f"{quoted(a)} IN ({', '.join(repr(self.domains[a][c]) for c in codes)})"
            for a, codes in self.queries[number].accepted.items()
        )

    def to_json(self) -> str:
        """The workload as one JSON object: how it was drawn, the domains and the queries. `from_json` reads it back."""
        return json.dumps(
            {
                "kind": self.kind,
                "seed": self.seed,
                "selectivity": self.selectivity,
                "sensitive": self.sensitive,
                "domains": self.domains,
                "queries": [query.accepted for query in self.queries],
            },
            ensure_ascii=False,
        )

    @staticmethod
    def from_json(text: str) -> Workload:
        """The workload that `to_json` wrote. Raises KeyError for a JSON object that is none."""
        fields: dict[str, Any] = json.loads(text)
        return Workload(
            fields["kind"],
            fields["seed"],
            fields["selectivity"],
            fields["sensitive"],
            {a: tuple(values) for a, values in fields["domains"].items()},
            tuple(Query({a: tuple(codes) for a, codes in query.items()}) for query in fields["queries"]),
        )


def domains(original: DataFrame, attributes: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Distinct values of each attribute as text (Spark's cast), sorted, nulls left out. One job per attribute.

    Raises SpecError for an attribute with more than MAX_DOMAIN values: it would not fit the driver, and a query on b random
    ones of so many values says nothing.
    """
    values_of = {}
    for attribute in attributes:
        values = aggregate(select(original, {"v": f"CAST({quoted(attribute)} AS STRING)"}), ["v"], {"n": "count(1)"})
        distinct = rows(values.where("v IS NOT NULL").select("v").limit(MAX_DOMAIN + 1), MAX_DOMAIN + 1)
        if len(distinct) > MAX_DOMAIN:
            raise SpecError(
                f"column {attribute!r} has more than {MAX_DOMAIN:,} distinct values; a workload of IN queries needs a bounded "
                "domain, so leave the column out of the workload's attributes"
            )
        values_of[attribute] = tuple(sorted(row["v"] for row in distinct))
    return values_of


def in_width(size: int, selectivity: Fraction, d: int) -> int:
    """b = ceil(|A| s^(1/(d+1))), exactly: the least b with (b / |A|)^(d+1) >= s. (In doubles, 1000 * 0.001^(1/3) is above 100.)"""
    b: int = max(1, min(size, math.ceil(size * float(selectivity) ** (1 / (d + 1))) + 1))
    while b > 1 and Fraction(b - 1, size) ** (d + 1) >= selectivity:
        b -= 1
    return b


def in_workload(
    domains: Mapping[str, Sequence[str]],
    sensitive: str,
    queries: int = 5_000,
    selectivity: float = 0.01,
    seed: int = 0,
    dimensions: int | None = None,
) -> Workload:
    """`queries` random queries of kind `in`; all with d = `dimensions` when given. Needs no Spark.

    Raises SpecError when there is no quasi-identifier with a value, or a parameter is out of range.
    """
    attributes = sorted(a for a in domains if a != sensitive and len(domains[a]) > 0)
    if not attributes or not domains.get(sensitive):
        raise SpecError("a workload needs at least one quasi-identifier and a sensitive column that have values")
    if not 0 < selectivity <= 1:
        raise SpecError(f"selectivity {selectivity} is not a share: it lies above 0 and is at most 1")
    if queries < 1:
        raise SpecError(f"a workload of {queries} queries is empty; ask for at least 1")
    if dimensions is not None and not 1 <= dimensions <= len(attributes):
        raise SpecError(
            f"dimensions {dimensions}: there are {len(attributes)} quasi-identifiers, so 1 to {len(attributes)}"
        )
    draw, exact_share = np.random.default_rng(seed), Fraction(str(selectivity))
    drawn = []
    for _ in range(queries):
        d = dimensions or int(draw.integers(1, len(attributes) + 1))
        chosen = [attributes[i] for i in sorted(draw.choice(len(attributes), size=d, replace=False))]
        accepted = {}
        for attribute in [*chosen, sensitive]:
            size = len(domains[attribute])
            b = in_width(size, exact_share, d)
            accepted[attribute] = tuple(sorted(int(c) for c in draw.choice(size, size=b, replace=False)))
        drawn.append(Query(accepted))
    kept = {a: tuple(domains[a]) for a in [*attributes, sensitive]}
    return Workload("in", seed, selectivity, sensitive, kept, tuple(drawn))
