"""The rows of a generalized release whose boxes hold a person, for a bounded sample of persons: what
somebody who knows a person's looks finds.

The sample is drawn in proportion (priority sampling: every person's chance to be drawn is known), so that averages over it, weighted by
the inverse chance, are without bias, and a person of whom there are many alike stands for them all. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anonlib.arrays import BoolArray, Float64Array, Int64Array
from anonlib.queries.boxes import Attribute, BoxReader, Sets, column

ROWS = 4096
"""Boxes handled at a time: a block of (ROWS, P) flags is 8 MB for 2,000 persons."""


@dataclass(frozen=True)
class Persons:
    """P persons. codes : per quasi-identifier (P,); sensitive : (P,) their true codes; weight : (P,) how many persons each stands for."""

    codes: tuple[npt.NDArray[Any], ...]
    sensitive: Int64Array
    weight: Float64Array

    @staticmethod
    def drawn(
        codes: Sequence[npt.NDArray[Any]], sensitive: Int64Array, alike: Int64Array, order: Float64Array, wanted: int
    ) -> Persons:
        """A sample of persons: the first `wanted` of (wanted + 1 or fewer) kinds of persons, ascending in `order` = -ln(u) / alike.

        codes : per quasi-identifier (k,); sensitive, alike, order : (k,); alike : how many persons are of each kind; u : uniform on (0, 1)

        A kind is among the first with the chance 1 - exp(-alike * order[wanted]); with no more than `wanted` kinds in the table, all are,
        and stand for themselves.
        """
        n = np.asarray(alike, dtype=np.float64)
        if len(n) <= wanted:
            return Persons(tuple(np.asarray(c) for c in codes), sensitive, n)
        weight = n[:wanted] / -np.expm1(-n[:wanted] * order[wanted])
        return Persons(tuple(np.asarray(c)[:wanted] for c in codes), sensitive[:wanted], weight)


def fits(attribute: Attribute, codes: npt.NDArray[Any]) -> BoolArray:
    """(n, P): whether each of n intervals or sets holds each of P codes."""
    if isinstance(attribute, Sets):
        return np.asarray(attribute.members()[:, codes])
    return np.asarray((attribute.low[:, None] <= codes[None, :]) & (codes[None, :] <= attribute.high[:, None]))


@dataclass(frozen=True)
class Around:
    """Kernel over batches of boxes with `codes` and `counts`: the (P, m) counts, row by row, of the sensitive values of
    the rows whose boxes hold each person. Cost per box: P comparisons for each quasi-identifier."""

    reader: BoxReader
    persons: Persons
    m: int

    @property
    def length(self) -> int:
        """P m, how long the kernel's vector is."""
        return len(self.persons.sensitive) * self.m

    def __call__(self, batches: Iterable[Any]) -> Float64Array:
        total = np.zeros((self.m + 1, len(self.persons.sensitive)))
        for batch in batches:
            for block in self.reader.blocks(batch):
                for start in range(0, block.num_rows, ROWS):
                    self._add(block.slice(start, ROWS), total)
        return np.ascontiguousarray(total[: self.m].T).reshape(-1)

    def _add(self, block: Any, total: Float64Array) -> None:
        held: BoolArray | None = None
        for i, codes in enumerate(self.persons.codes):
            one = fits(self.reader.attribute(block, i), codes)
            held = one if held is None else held & one
        assert held is not None, "at least one attribute"
        box, person = np.nonzero(held)
        lists = column(block, "codes")
        lengths = lists.value_lengths().to_numpy().astype(np.int64)
        code, count = (column(block, n).flatten().to_numpy() for n in ("codes", "counts"))
        starts = np.cumsum(lengths) - lengths
        times = lengths[box]
        entry = np.repeat(starts[box] - (np.cumsum(times) - times), times) + np.arange(int(times.sum()))
        np.add.at(total, (code[entry], np.repeat(person, times)), count[entry])
