"""Which records lie in which of a few boxes: boxes on the driver, records in batches. Pure.

Cost: a few comparisons per record and box, the first attribute deciding most: some 100 microseconds for a box and 100,000 records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anonlib.arrays import BoolArray, Float64Array, Int64Array
from anonlib.domains import CategoricalDomain, Domain
from anonlib.queries.boxes import column

Side = tuple[Any, Any] | BoolArray
"""(low, high) of an interval, or for each code of the domain whether it is in the set."""


def sides(box: Mapping[str, Any], domains: Sequence[Domain]) -> tuple[Side, ...]:
    """The sides of one box, one per quasi-identifier, in the order of `domains`. A null end of an interval makes a side that holds nothing.

    box : a row with q0_lo, q0_hi (codes), q1_set (texts; unknown ones are left out), ...
    """
    box_sides: list[Side] = []
    for i, domain in enumerate(domains):
        if isinstance(domain, CategoricalDomain):
            held = set(box[f"q{i}_set"] or ())
            box_sides.append(np.array([value in held for value in domain.values], dtype=bool))
        else:
            low, high = box[f"q{i}_lo"], box[f"q{i}_hi"]
            box_sides.append((1, 0) if low is None or high is None else (low, high))
    return tuple(box_sides)


def inside(box: Sequence[Side], points: Sequence[npt.NDArray[Any]]) -> Int64Array:
    """(k,) int64, ascending: the rows of `points` that lie in the box.

    box : a side per attribute; points : a code column per attribute, (n,) each
    """
    rows: Int64Array | None = None
    for side, codes in zip(box, points, strict=True):
        left_codes = codes if rows is None else codes[rows]
        fits = (left_codes >= side[0]) & (left_codes <= side[1]) if isinstance(side, tuple) else side[left_codes]
        rows = np.flatnonzero(fits) if rows is None else rows[fits]
    assert rows is not None, "at least one attribute"
    return rows


@dataclass(frozen=True)
class MemberCounts:
    """Kernel over records as codes (q0, q1, ..., and s0): how many lie in each box, and how many of those have asked sensitive codes.

    boxes : B boxes; cells : per box the (place in the result, sensitive code or None for any) pairs to count; length : places
    """

    boxes: tuple[tuple[Side, ...], ...]
    cells: tuple[tuple[tuple[int, int | None], ...], ...]
    length: int

    def __call__(self, batches: Iterable[Any]) -> Float64Array:
        total = np.zeros(self.length, dtype=np.int64)
        for batch in batches:
            points, sensitive = _points(batch, len(self.boxes[0])), column(batch, "s0").to_numpy()
            for box, cells in zip(self.boxes, self.cells, strict=True):
                held = sensitive[inside(box, points)]
                for at, code in cells:
                    total[at] += len(held) if code is None else int((held == code).sum())
        return total.astype(np.float64)


@dataclass(frozen=True)
class Members:
    """Kernel over records as codes: {"box": number of the box, "s0": sensitive code, "q0": code as float, ...} of those in some box."""

    boxes: tuple[tuple[Side, ...], ...]

    def __call__(self, batches: Iterable[Any]) -> dict[str, Any]:
        attributes = len(self.boxes[0])
        columns: dict[str, list[Any]] = {name: [] for name in ("box", "s0", *(f"q{i}" for i in range(attributes)))}
        for batch in batches:
            points, sensitive = _points(batch, attributes), column(batch, "s0").to_numpy()
            for number, box in enumerate(self.boxes):
                rows = inside(box, points)
                columns["box"].append(np.full(len(rows), number, dtype=np.int64))
                columns["s0"].append(sensitive[rows].astype(np.int64))
                for i, codes in enumerate(points):
                    columns[f"q{i}"].append(codes[rows].astype(np.float64))
        return {name: np.concatenate(parts) if parts else [] for name, parts in columns.items()}


def _points(batch: Any, attributes: int) -> list[npt.NDArray[Any]]:
    """The code columns q0, q1, ... of a batch."""
    return [column(batch, f"q{i}").to_numpy(zero_copy_only=False) for i in range(attributes)]
