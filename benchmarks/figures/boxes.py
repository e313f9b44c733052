"""What boxes answer without Spark: range queries, cells of a data cube, naive Bayes. NumPy on codes in memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from anonlib.arrays import Codes, Float64Array, Int64Array
from anonlib.domains import Domain, NumericDomain
from anonlib.engine.domains import QuasiIdentifier, QuasiIdentifiers
from anonlib.evaluation.evaluation import RelativeErrors
from anonlib.evaluation.range_workload import range_workload
from anonlib.kernels import boxes as kernels
from anonlib.queries.box_batch import RangeQueries
from anonlib.queries.boxes import Attribute, Intervals, Sets
from anonlib.queries.cells import Cells, divergence

ROWS = 512


@dataclass(frozen=True, eq=False)
class Boxes:
    """N boxes: one `Attribute` a quasi-identifier, and how many records of each value are published with each box, (N, m)."""

    attributes: list[Attribute]
    held: Float64Array

    @staticmethod
    def of_points(columns: Sequence[Codes], domains: Sequence[Domain], sensitive: Int64Array, m: int) -> Boxes:
        """The records themselves."""
        starts = np.arange(len(sensitive) + 1, dtype=np.int64)
        attributes: list[Attribute] = [
            Intervals(column, column) if isinstance(domain, NumericDomain) else Sets(column, starts, domain.size)
            for column, domain in zip(columns, domains, strict=True)
        ]
        return Boxes(attributes, np.eye(m)[sensitive])

    @staticmethod
    def of_classes(
        columns: Sequence[Codes], domains: Sequence[Domain], sensitive: Int64Array, m: int, classes: Int64Array
    ) -> Boxes:
        """A box a class."""
        number = int(classes.max()) + 1
        held = np.bincount(classes * m + sensitive, minlength=number * m).reshape(number, m).astype(np.float64)
        return Boxes(_attributes(kernels.boxes_of_classes(columns, domains, classes), domains), held)

    @staticmethod
    def of_records(parts: Iterable[tuple[list[kernels.Box], Int64Array]], domains: Sequence[Domain], m: int) -> Boxes:
        """A box a record, with the value that it shows, in several parts."""
        every = [Boxes(_attributes(own, domains), np.eye(m)[shown]) for own, shown in parts]
        attributes = [_joined(list(same)) for same in zip(*(one.attributes for one in every), strict=True)]
        return Boxes(attributes, np.concatenate([one.held for one in every]))

    def counts(self, queries: RangeQueries) -> Float64Array:
        """(Q,) estimates, records spread evenly over their boxes."""
        accepted = queries.accepted(self.held.shape[1])[:, :-1]
        total = np.zeros(queries.number)
        for start in range(0, len(self.held), ROWS):
            met = accepted @ self.held[start : start + ROWS].T
            for i, attribute in enumerate(self.attributes):
                if len(queries.asked[i]):
                    met[queries.asked[i]] *= queries.shares(i, _part(attribute, start, start + ROWS))
            total += met.sum(axis=1)
        return total

    def cube(self, cells: Sequence[Cells], level: int) -> list[Float64Array]:
        """The cells of each group-by over `level` attributes, (cells, m)."""
        shares = [each.shares(attribute) for each, attribute in zip(cells, self.attributes, strict=True)]
        found = []
        for group in itertools.combinations(range(len(cells)), level):
            size = int(np.prod([cells[i].number for i in group]))
            total = np.zeros((size, self.held.shape[1]))
            for start in range(0, len(self.held), ROWS):
                product = np.ones((len(self.held[start : start + ROWS]), 1), dtype=np.float32)
                for i in group:
                    own = shares[i][start : start + ROWS]
                    product = (product[:, :, None] * own[:, None, :]).reshape(len(product), -1)
                total += product.T @ self.held[start : start + ROWS]
            found.append(total)
        return found

    def around(self, cells: Sequence[Cells]) -> list[Float64Array]:
        """Of each attribute (cells, m): how many published records with a value may have that of the cell."""
        touched = (each.shares(a) > 0 for each, a in zip(cells, self.attributes, strict=True))
        return [own.T.astype(np.float64) @ self.held for own in touched]


def _attributes(own: Sequence[kernels.Box], domains: Sequence[Domain]) -> list[Attribute]:
    found: list[Attribute] = []
    for box, domain in zip(own, domains, strict=True):
        if isinstance(box, kernels.Interval):
            found.append(Intervals(box.low, box.high))
        else:
            assert not isinstance(domain, NumericDomain)
            found.append(Sets(box.values.astype(np.int64), box.bounds, domain.size))
    return found


def _joined(same: list[Attribute]) -> Attribute:
    if isinstance(same[0], Intervals):
        return Intervals(*(np.concatenate([getattr(one, end) for one in same]) for end in ("low", "high")))
    sets = [one for one in same if isinstance(one, Sets)]
    sizes = np.concatenate([one.counts for one in sets])
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Sets(np.concatenate([one.codes for one in sets]), starts, sets[0].size)


def _part(attribute: Attribute, start: int, stop: int) -> Attribute:
    if isinstance(attribute, Intervals):
        return Intervals(attribute.low[start:stop], attribute.high[start:stop])
    starts = attribute.starts[start : stop + 1]
    return Sets(attribute.codes[starts[0] : starts[-1]], starts - starts[0], attribute.size)


def ends(columns: Sequence[Codes], domains: Sequence[Domain]) -> list[tuple[int, int] | None]:
    """The exact ends of numeric domains, in codes."""
    return [
        (int(domain.low), int(domain.high)) if isinstance(domain, NumericDomain) else None
        for _, domain in zip(columns, domains, strict=True)
    ]


def range_queries(
    domains: Sequence[Domain], m: int, queries: int, selectivity: float, dimensions: int, seed: int = 0
) -> RangeQueries:
    """The workload `range` of the product, on codes."""
    columns = tuple(
        QuasiIdentifier(d.name, "int", d, int(d.low), int(d.high))
        if isinstance(d, NumericDomain)
        else QuasiIdentifier(d.name, "string", d)
        for d in domains
    )
    values = tuple(map(str, range(m)))
    drawn = range_workload(
        QuasiIdentifiers(columns), "the sensitive one", values, queries, selectivity, seed, dimensions
    )
    return drawn.batch()


def median_error(points: Boxes, published: Boxes, queries: RangeQueries) -> float:
    """Of the queries that are met by some record, in %."""
    actual = np.rint(points.counts(queries))
    return 100 * RelativeErrors.of(actual, published.counts(queries)).median


def cube_divergence(points: Boxes, published: Boxes, cells: Sequence[Cells], level: int) -> float:
    """KL divergence of the cells, in nats, averaged over the group-bys of a level."""
    pairs = zip(points.cube(cells, level), published.cube(cells, level), strict=True)
    return float(np.mean([divergence(actual, estimated) for actual, estimated in pairs]))


def naive_bayes(points: Boxes, published: Boxes, cells: Sequence[Cells], laplace: bool) -> float:
    """How many of the original records naive Bayes guesses right, in %, that counts each published record which may have a value."""
    held = published.held.sum(axis=0)
    alpha = 1.0 if laplace else 0.0
    scores = np.broadcast_to(np.log(np.maximum(held, 1e-300)), (len(points.held), len(held))).copy()
    for each, counted, attribute in zip(cells, published.around(cells), points.attributes, strict=True):
        with np.errstate(divide="ignore"):
            learnt = np.log((counted + alpha) / np.maximum(held + alpha * each.number, 1e-300))
        codes = attribute.low if isinstance(attribute, Intervals) else attribute.codes
        scores += learnt[each.index(codes)]
    return 100 * float((scores.argmax(axis=1) == points.held.argmax(axis=1)).mean())
