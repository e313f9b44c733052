"""Many count queries at once on boxes: how much of each box meets each query, if records are spread evenly over their boxes.

A query restricts some quasi-identifiers to an interval of codes each, and the sensitive attribute to an interval of its codes. With

    f_i(box, q)   the share of the box's interval (or set) on attribute i that lies within query q; 1 where q does not ask
    c(box, q)     how many sensitive values published with the box lie within q

the estimate is the sum over boxes of c f_1 ... f_d (SABRE, section 6.2; heterogeneous generalization, section 5). Whole-number codes are
counted one by one, so that a box that is a single value is either in or out; floating ones by length. A record of the original is
a box of single values, and the estimate on such boxes is the true count.

Cost per box: d Q multiplications and Q bytes x 4 of memory traffic each; `ROWS` boxes are handled at a time. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Float32Array, Float64Array, Int64Array
from anonlib.queries.boxes import Attribute, BoxReader, Intervals, Sets, column

ROWS = 512
"""Boxes handled at a time: a block of (Q, ROWS) float32 is 20 MB for 10,000 queries."""


@dataclass(frozen=True)
class RangeQueries:
    """Q conjunctions of intervals of codes, both ends included.

    asked     : per quasi-identifier the (k,) numbers of the queries that ask about it
    low, high : per quasi-identifier their ends, (k,)
    sensitive_low, sensitive_high : (Q,) ends in sensitive codes
    further   : the same of each further sensitive column, both at once
    """

    asked: tuple[Int64Array, ...]
    low: tuple[npt.NDArray[Any], ...]
    high: tuple[npt.NDArray[Any], ...]
    sensitive_low: Int64Array
    sensitive_high: Int64Array
    further: tuple[tuple[Int64Array, Int64Array], ...] = ()

    @property
    def number(self) -> int:
        """Q, how many queries there are."""
        return len(self.sensitive_low)

    def shares(self, i: int, attribute: Attribute) -> Float32Array:
        """(k, n) float32: the share of each of n boxes, on quasi-identifier i, that each query asking about it accepts."""
        return shares_within(attribute, self.low[i], self.high[i])

    def accepted(self, m: int, column: int = 0) -> Float32Array:
        """(Q, m + 1): 1 where a query accepts a code of a sensitive column; the last column, unknown values, is 0."""
        low, high = self.further[column - 1] if column else (self.sensitive_low, self.sensitive_high)
        codes = np.arange(m)
        inside = (codes >= low[:, None]) & (codes <= high[:, None])
        unknown = np.zeros((self.number, 1), dtype=bool)
        return np.asarray(np.concatenate([inside, unknown], axis=1), dtype=np.float32)

    def accepted_of(self, sizes: Sequence[int]) -> tuple[Float32Array, ...]:
        """`accepted` of each sensitive column. sizes : how many values each has."""
        return tuple(self.accepted(m, column) for column, m in enumerate(sizes))


def shares_within(attribute: Attribute, low: npt.NDArray[Any], high: npt.NDArray[Any]) -> Float32Array:
    """(k, n) float32 in [0, 1]: the share of each of n intervals or sets that lies in [low, high], for k pairs of ends, both included.

    low, high : (k,) codes. Whole-number codes are counted one by one, floating ones by length. O(k n), or O(n size + k n) for sets.
    """
    if isinstance(attribute, Sets):
        # how many codes of the set are at most x: cumulated membership, looked up at both ends
        below = np.zeros((len(attribute.starts) - 1, attribute.size + 1), dtype=np.int32)
        np.cumsum(attribute.members()[:, : attribute.size], axis=1, out=below[:, 1:])
        first, last = (
            np.clip(low, 0, attribute.size).astype(np.int64),
            np.clip(high + 1, 0, attribute.size).astype(np.int64),
        )
        held = below[:, np.maximum(first, last)] - below[:, first]
        return np.asarray((held / np.maximum(attribute.counts, 1)[:, None]).T, dtype=np.float32)
    # boxes repeat their intervals: each is computed once
    ends, interval_of = np.unique(np.stack([attribute.low, attribute.high]), axis=1, return_inverse=True)
    interval_of = interval_of.reshape(-1)  # its shape differs between NumPy versions
    whole = np.issubdtype(attribute.low.dtype, np.integer)
    return np.asarray(np.take(_of_intervals(ends[0], ends[1], low, high, whole), interval_of, axis=1), dtype=np.float32)


def _of_intervals(
    a: npt.NDArray[Any], b: npt.NDArray[Any], low: npt.NDArray[Any], high: npt.NDArray[Any], whole: bool
) -> Float32Array:
    """(k, n): the share of [a, b] within [low, high], by counting whole numbers or by length."""
    one = 1.0 if whole else 0.0
    with np.errstate(over="ignore"):
        first, last = np.maximum(a, low[:, None]), np.minimum(b, high[:, None])
        overlap = np.where(last >= first, last.astype(np.float64) - first.astype(np.float64) + one, 0.0)
        length = b.astype(np.float64) - a.astype(np.float64) + one
    point = length <= 0
    inside = (a >= low[:, None]) & (b <= high[:, None])
    return np.where(point, inside, overlap / np.where(point, 1.0, length)).astype(np.float32)


@dataclass(frozen=True)
class BoxEstimates:
    """Kernel over batches of boxes: the estimate of each query.

    further : how many values each further sensitive column has

    Columns of a batch: those of `reader`, one row per box, and the sensitive values published with it: `codes`, a list of codes as int, and
    `counts`, a list of how often each (len(reader.sensitive) stands for an unknown value); of further sensitive columns `codes1`, ...,
    lists as long: `counts` is then of combinations.
    """

    reader: BoxReader
    queries: RangeQueries
    further: tuple[int, ...] = ()

    def __call__(self, batches: Iterable[Any]) -> Float64Array:
        total = np.zeros(self.queries.number, dtype=np.float64)
        accepted = self.queries.accepted_of((len(self.reader.sensitive), *self.further))
        for batch in batches:
            for block in self.reader.blocks(batch):
                for start in range(0, block.num_rows, ROWS):
                    total += self._block(block.slice(start, ROWS), accepted)
        return total

    def _block(self, block: Any, accepted: Sequence[Float32Array]) -> Float64Array:
        lists = column(block, "codes")
        starts = np.concatenate([[0], np.cumsum(lists.value_lengths().to_numpy())]).astype(np.int64)
        codes = [column(block, codes_name(i)).flatten().to_numpy() for i in range(len(accepted))]
        counts = column(block, "counts").flatten().to_numpy().astype(np.float32)
        accepted_counts = np.add.reduceat(_meeting(accepted, codes) * counts, starts[:-1], axis=1)
        return _product_sum(accepted_counts, self.queries, self.reader.attributes(block))


@dataclass(frozen=True)
class PointCounts:
    """Kernel over batches of records as codes (q0, q1, ..., and s0 in [0, m)): how many meet each query, exactly, (Q,) float64.

    further : how many values s1, ... have, codes of further sensitive columns
    """

    queries: RangeQueries
    m: int
    further: tuple[int, ...] = ()

    def __call__(self, batches: Iterable[Any]) -> Float64Array:
        total = np.zeros(self.queries.number, dtype=np.float64)
        accepted = self.queries.accepted_of((self.m, *self.further))
        for batch in batches:
            for start in range(0, batch.num_rows, ROWS):
                block = batch.slice(start, ROWS)
                codes = [column(block, f"s{i}").to_numpy() for i in range(len(accepted))]
                points = [column(block, f"q{i}").to_numpy() for i in range(len(self.queries.asked))]
                total += _product_sum(_meeting(accepted, codes), self.queries, [Intervals(p, p) for p in points])
        return total


def codes_name(column: int) -> str:
    """What the list of a box's codes of a sensitive column is called: `codes` of the first, then `codes1`, ..."""
    return f"codes{column or ''}"


def _meeting(accepted: Sequence[Float32Array], codes: Sequence[npt.NDArray[Any]]) -> Float32Array:
    """(Q, n): 1 where a query accepts all sensitive codes of an entry. accepted, codes : of each column, (Q, m + 1) and (n,)."""
    first, *more = (np.take(of_column, own, axis=1) for of_column, own in zip(accepted, codes, strict=True))
    for other in more:
        first *= other
    return first


def _product_sum(weights: Float32Array, queries: RangeQueries, attributes: Sequence[Attribute]) -> Float64Array:
    """(Q,) float64: `weights`, (Q, n) and overwritten, times the shares of every attribute that a query asks about, summed over boxes."""
    for i, attribute in enumerate(attributes):
        asked = queries.asked[i]
        if len(asked):
            weights[asked] *= queries.shares(i, attribute)
    return np.asarray(weights.sum(axis=1, dtype=np.float64))
