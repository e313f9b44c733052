"""Arrays by what they hold: one name a kind, for every signature of the library. Shapes stand in the docstrings of who takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
"""Counts, codes, record numbers: exact."""
Int32Array = npt.NDArray[np.int32]
Int8Array = npt.NDArray[np.int8]
UInt64Array = npt.NDArray[np.uint64]
"""Words of a cryptographic stream."""
UInt32Array = npt.NDArray[np.uint32]
UInt8Array = npt.NDArray[np.uint8]
"""Bytes, or bits packed into them."""
IntegerArray = npt.NDArray[np.integer[Any]]
"""Whole numbers of any width."""
Float64Array = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]
BoolArray = npt.NDArray[np.bool_]
ObjectArray = npt.NDArray[np.object_]
"""A list or a text in every place."""
Codes = npt.NDArray[Any]
"""One quasi-identifier of (n,) records as codes: int64, or float64 of a floating column (`anonlib.engine.numeric_codes`)."""


@dataclass(frozen=True)
class Lists:
    """A column of n lists of codes, one after the other: list r is values[bounds[r]:bounds[r + 1]].

    values : int32; bounds : (n + 1,) int64, from 0 on
    """

    values: Int32Array
    bounds: Int64Array

    @staticmethod
    def of_rows(matrix: Int32Array) -> Lists:
        """The (n, k) rows of a matrix as lists of k."""
        n, k = matrix.shape
        return Lists(np.ascontiguousarray(matrix).ravel(), np.arange(n + 1, dtype=np.int64) * k)

    @staticmethod
    def joined(parts: Sequence[Lists]) -> Lists:
        """The lists of all `parts`, one at least, in their order."""
        ends = np.cumsum([0, *(part.bounds[-1] for part in parts)])
        bounds = [part.bounds[:-1] + first for part, first in zip(parts, ends[:-1], strict=True)]
        return Lists(np.concatenate([part.values for part in parts]), np.concatenate([*bounds, ends[-1:]]))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def take(self, rows: Int64Array) -> Lists:
        """The lists of these rows, (k,) numbers below n, any of them as often as it is named."""
        sizes = (self.bounds[1:] - self.bounds[:-1])[rows]
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        at = np.arange(bounds[-1]) + np.repeat(self.bounds[rows] - bounds[:-1], sizes)
        return Lists(self.values[at], bounds)

    def listed(self) -> ObjectArray:
        """(n,) object, an int32 array for each list."""
        lists = np.empty(len(self), dtype=object)
        lists[:] = [
            self.values[first:last] for first, last in pairwise(self.bounds.tolist())
        ]  # np.split takes ten times as long
        return lists
