"""Group-by cells of boxes: a value of each attribute (or a stretch of a long numeric domain), and how much of a box lies in it. Pure.

From them come the cells of a data cube (SABRE, section 6.2: SELECT A_1, ..., A_mu, COUNT(*) WHERE SA = v GROUP BY A_1, ..., A_mu) and the
tables of naive Bayes: both ask how many records with a sensitive value have a value of an attribute, if records are spread evenly
over their boxes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Float32Array, Float64Array, Int64Array
from anonlib.domains import CategoricalDomain, Domain
from anonlib.queries.box_batch import shares_within
from anonlib.queries.boxes import Attribute, BoxReader, Sets, column

MAX_VALUES = 200
"""A numeric domain of more values is cut into `STRETCHES` of equal length."""
STRETCHES = 100
ROWS = 1024


@dataclass(frozen=True)
class Cells:
    """The cells of one attribute: each value of a categorical one; of a numeric one [low[c], high[c]], whose union is the domain."""

    low: npt.NDArray[Any]
    high: npt.NDArray[Any]

    @staticmethod
    def of(domain: Domain, ends: tuple[Any, Any] | None) -> Cells:
        """The cells of a domain. ends : the exact ends of a numeric domain, in codes: ints, or floats for a floating column.

        A numeric domain of more than `MAX_VALUES` whole numbers, or of floats, is cut into `STRETCHES` of equal length.
        """
        if isinstance(domain, CategoricalDomain):
            codes = np.arange(domain.size, dtype=np.int64)
            return Cells(codes, codes)
        assert ends is not None
        low, high = ends
        if isinstance(low, float):
            edges = np.linspace(low, high, STRETCHES + 1) if high > low else np.array([low, low])
            return Cells(edges[:-1], edges[1:])
        if high - low + 1 <= MAX_VALUES:
            codes = np.arange(low, high + 1, dtype=np.int64)
            return Cells(codes, codes)
        starts = [low + (high - low + 1) * c // STRETCHES for c in range(STRETCHES)]
        return Cells(np.array(starts, dtype=np.int64), np.array([*(s - 1 for s in starts[1:]), high], dtype=np.int64))

    @property
    def number(self) -> int:
        """How many cells the attribute has."""
        return len(self.low)

    def shares(self, attribute: Attribute) -> Float32Array:
        """(n, number) float32: the share of each of n boxes, on this attribute, that lies in each cell; a row sums to 1 or less."""
        if isinstance(attribute, Sets):
            held = attribute.members()[:, : self.number] / np.maximum(attribute.counts, 1)[:, None]
            return np.asarray(held, dtype=np.float32)
        shares = shares_within(attribute, self.low, self.high).T
        if not np.issubdtype(
            attribute.low.dtype, np.integer
        ):  # a point on an edge lies in two stretches of a floating column
            shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1)
        return shares

    def index(self, codes: npt.NDArray[Any]) -> Int64Array:
        """(n,) int64: the cell that each code of a record lies in."""
        return np.asarray(
            np.clip(np.searchsorted(self.low, codes, side="right") - 1, 0, self.number - 1), dtype=np.int64
        )


@dataclass(frozen=True)
class Cube:
    """All group-bys over exactly `level` attributes and the sensitive one.

    Its cells as one vector: the group-bys in the order of `groups`, in each the cells of its attributes in row-major order, the sensitive
    code last.
    """

    cells: tuple[Cells, ...]
    level: int
    m: int

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The group-bys, each as the numbers of its attributes, ascending."""
        return tuple(itertools.combinations(range(len(self.cells)), self.level))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each group-by has, in the order of `groups`."""
        return tuple(math.prod(self.cells[i].number for i in group) * self.m for group in self.groups)

    @property
    def length(self) -> int:
        """How many cells all group-bys have together: the length of the vector."""
        return sum(self.sizes)

    def parts(self, vector: Float64Array) -> list[Float64Array]:
        """The vector, (length,), cut into group-bys: views of shape (cells of its attributes, m)."""
        edges = np.cumsum([0, *self.sizes])
        return [vector[a:b].reshape(-1, self.m) for a, b in itertools.pairwise(edges)]


@dataclass(frozen=True)
class BoxCells:
    """Kernel over batches of boxes with `codes` and `counts` as `anonlib.queries.box_batch.BoxEstimates` reads them: the cube's cells.

    Cost per box: the number of cells of a group-by x its distinct sensitive values, as one product of matrices per value and block.
    """

    reader: BoxReader
    cube: Cube

    def __call__(self, batches: Iterable[Any]) -> Float64Array:
        total = np.zeros(self.cube.length, dtype=np.float64)
        parts = self.cube.parts(total)
        for batch in batches:
            for block in self.reader.blocks(batch):
                for start in range(0, block.num_rows, ROWS):
                    self._add(block.slice(start, ROWS), parts)
        return total

    def _add(self, block: Any, parts: Sequence[Float64Array]) -> None:
        sizes = column(block, "codes").value_lengths().to_numpy()
        row = np.repeat(np.arange(block.num_rows), sizes)
        codes = column(block, "codes").flatten().to_numpy()
        counts = column(block, "counts").flatten().to_numpy().astype(np.float32)
        shares = [
            cells.shares(attribute)
            for cells, attribute in zip(self.cube.cells, self.reader.attributes(block), strict=True)
        ]
        for code in np.unique(codes[codes < self.cube.m]):
            at = codes == code
            weights = counts[at][:, None]
            entry_shares = [share[row[at]] for share in shares]
            for group, part in zip(self.cube.groups, parts, strict=True):
                *first, last = group
                left = weights
                for i in first:
                    left = (left[:, :, None] * entry_shares[i][:, None, :]).reshape(len(left), -1)
                part[:, code] += (left.T @ entry_shares[last]).reshape(-1)


@dataclass(frozen=True)
class PointCells:
    """Kernel over batches of records as codes (q0, q1, ..., and s0): how many lie in each of the cube's cells, exactly."""

    cube: Cube

    def __call__(self, batches: Iterable[Any]) -> Float64Array:
        total = np.zeros(self.cube.length, dtype=np.float64)
        parts = self.cube.parts(total)
        for batch in batches:
            codes = column(batch, "s0").to_numpy()
            index = [cells.index(column(batch, f"q{i}").to_numpy()) for i, cells in enumerate(self.cube.cells)]
            for group, part in zip(self.cube.groups, parts, strict=True):
                place = np.zeros(batch.num_rows, dtype=np.int64)
                for i in group:
                    place = place * self.cube.cells[i].number + index[i]
                part += np.bincount(place * self.cube.m + codes, minlength=part.size).reshape(part.shape)
        return total


def divergence(actual: Float64Array, estimated: Float64Array) -> float:
    """KL(actual || estimated) = sum of a ln(a / b) over the cells of one group-by, as shares of all records, in nats.

    Infinite when a cell that has records is estimated at none.
    """
    a, b = actual / max(1.0, actual.sum()), estimated / max(1e-300, estimated.sum())
    held = a > 0
    with np.errstate(divide="ignore"):
        return float((a[held] * np.log(a[held] / b[held])).sum())
