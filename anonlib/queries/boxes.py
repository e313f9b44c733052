"""Boxes as they come in Arrow batches: intervals and sets of codes, a column of each per quasi-identifier. Pure.

A batch of published records has the columns q0_lo, q0_hi for a numeric quasi-identifier and q1_set, a list of the values as text, for a
categorical one (see `anonlib.release.generalized.boxes`). Whoever counts, measures or checks boxes reads them here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import BoolArray, Int64Array
from anonlib.domains import CategoricalDomain, Domain, NumericDomain

CELLS = 1 << 24
"""Bytes of membership (rows x values of the widest domain) held at once."""


@dataclass(frozen=True)
class Intervals:
    """A numeric quasi-identifier of n boxes: [low, high], codes, both ends included; (n,) int64 or float64."""

    low: npt.NDArray[Any]
    high: npt.NDArray[Any]


@dataclass(frozen=True)
class Sets:
    """A categorical quasi-identifier of n boxes: row r may be codes[starts[r]:starts[r + 1]].

    A value outside the domain has the code `size`, the number of values of the domain.
    """

    codes: Int64Array
    starts: Int64Array
    size: int

    @property
    def counts(self) -> Int64Array:
        """(n,) int64: how many values each row may be."""
        return np.diff(self.starts)

    @property
    def rows(self) -> Int64Array:
        """(entries,) int64: the row that each entry of `codes` belongs to."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int64), self.counts)

    def members(self) -> BoolArray:
        """(n, size + 1) bool: may row r be value v? The last column stands for values outside the domain. n (size + 1) bytes."""
        members = np.zeros((len(self.starts) - 1, self.size + 1), dtype=bool)
        members[self.rows, self.codes] = True
        return members

    def ends(self) -> tuple[Int64Array, Int64Array]:
        """(smallest, largest) code of each row, both (n,) int64; no row may be empty."""
        if len(self.starts) == 1:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        return np.minimum.reduceat(self.codes, self.starts[:-1]), np.maximum.reduceat(self.codes, self.starts[:-1])


Attribute = Intervals | Sets


@dataclass(frozen=True)
class BoxReader:
    """Reads batches of boxes over `domains`; `sensitive` are the texts of sensitive values in the order of their codes."""

    domains: tuple[Domain, ...]
    sensitive: tuple[str | None, ...] = ()

    def blocks(self, batch: Any) -> Iterator[Any]:
        """The batch in slices for which a membership table of the widest domain stays within `CELLS` bytes."""
        widest = max((d.size + 1 for d in self.domains if isinstance(d, CategoricalDomain)), default=1)
        step = max(1, min(batch.num_rows, CELLS // widest)) if batch.num_rows else 1
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)

    def attribute(self, batch: Any, i: int) -> Attribute:
        """Quasi-identifier number i of every row. A null interval end reads as NaN; a null set as an empty one."""
        domain = self.domains[i]
        if isinstance(domain, NumericDomain):
            return Intervals(*(column(batch, f"q{i}_{end}").to_numpy(zero_copy_only=False) for end in ("lo", "hi")))
        sets = column(batch, f"q{i}_set")
        sizes = sets.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Sets(positions(sets.flatten(), domain.values), starts, domain.size)

    def attributes(self, batch: Any) -> list[Attribute]:
        """All quasi-identifiers of every row, in the order of `domains`."""
        return [self.attribute(batch, i) for i in range(len(self.domains))]

    def sensitive_codes(self, batch: Any, name: str = "s0") -> Int64Array:
        """(n,) codes of the sensitive text in the column `name`; len(sensitive) for a value that is not listed."""
        return positions(column(batch, name), self.sensitive)


def positions(texts: Any, values: Sequence[str | None]) -> Int64Array:
    """(n,) int64: the place in `values` of each text of an Arrow array, null among them; len(values) for one that is not there."""
    index = pc.index_in(texts, value_set=pa.array(values, pa.string()), skip_nulls=False)
    return np.asarray(index.fill_null(len(values)).to_numpy(zero_copy_only=False), dtype=np.int64)


def column(batch: Any, name: str) -> Any:
    """The column of an Arrow batch that has that name."""
    return batch.column(batch.schema.get_field_index(name))
