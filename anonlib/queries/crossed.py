"""Many conditions crossed with all sensitive values: kernels that answer the C x m queries of the workload `point` in one pass.

A condition accepts values of quasi-identifiers (`batch.Masks`, one bit per condition); a query is a condition and one sensitive value.
Records are grouped by value within blocks, so a record costs C bytes per pass, whatever m is. Kernels return the C x m answers row by
row as one vector. Pure: record batches in, a vector out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Float64Array, Int64Array, UInt8Array
from anonlib.queries.batch import ROWS, Masks, codes_in, lists
from anonlib.queries.boxes import column
from anonlib.queries.reconstruction import Operators, terms, variance


def _blocks(batches: Iterable[Any], conditions: Masks) -> Iterable[tuple[Any, UInt8Array]]:
    """(part of a batch, (rows, C) of 0 and 1: which of its records meet which condition)."""
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS):
            part = batch.slice(start, ROWS)
            codes = {a: conditions.codes(a, column(part, a)) for a in conditions.domains}
            yield part, conditions.meeting(codes)


def _add(total: Float64Array, meeting: Any, key: npt.NDArray[Any]) -> None:
    """total[:, key of a row] += its `meeting`, over all rows."""
    if len(key) == 0:
        return
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(key[order]) != 0]))
    sums = np.add.reduceat(meeting[order], starts, axis=0, dtype=np.float64)
    total[:, key[order][starts]] += sums.T


def _summed(entries: Float64Array, key: npt.NDArray[Any], keys: int) -> Float64Array:
    """(C, E) numbers summed over the entries of one key: (C, keys)."""
    total: Float64Array = np.zeros((len(entries), keys), dtype=np.float64)
    _add(total, entries.T, key)
    return total


@dataclass(frozen=True)
class CrossedCounts:
    """Kernel over batches of the original: how many records meet each condition and have each value, (C m,) float64.

    Columns are text, named like the attributes; the sensitive one is `sensitive`, its values `values`.
    """

    conditions: Masks
    sensitive: str
    values: Sequence[str]

    def __call__(self, batches: Iterable[Any]) -> Float64Array:
        total: Float64Array = np.zeros((self.conditions.queries, len(self.values) + 1), dtype=np.float64)
        for part, meeting in _blocks(batches, self.conditions):
            _add(total, meeting, codes_in(column(part, self.sensitive), self.values))
        return total[:, :-1].ravel()


@dataclass(frozen=True)
class Domains:
    """The domains of k sub-tables as one list of E entries, of m values in all.

    operators : of the sub-tables; sizes : (k,) |T_i|
    subtable, value : (E,) of each entry, all different; value m stands for whatever nobody asks for (a null)
    true      : (E,) how many records of the sub-table truly have the value
    """

    operators: Operators
    sizes: Int64Array
    subtable: Int64Array
    value: Int64Array
    true: Int64Array


@dataclass(frozen=True)
class CrossedPerturbed:
    """Kernel over batches of perturbed microdata: how many records meet each condition and were published with each entry of the domains.

    Beside the text columns, `subtable` names an int column of 0 .. k - 1. The vector holds E counts for each condition and, last, for no
    condition at all.
    """

    conditions: Masks
    sensitive: str
    values: Sequence[str]
    subtable: str
    domains: Domains

    @property
    def length(self) -> int:
        """(C + 1) E, how long the vector is."""
        return (self.conditions.queries + 1) * len(self.domains.value)

    def __call__(self, batches: Iterable[Any]) -> Float64Array:
        C, E, m = self.conditions.queries, len(self.domains.value), len(self.values)
        entry = np.full((len(self.domains.sizes), m + 1), E, dtype=np.int64)  # E: no value of the sub-table's domain
        entry[self.domains.subtable, self.domains.value] = np.arange(E)
        total: Float64Array = np.zeros((C + 1, E + 1), dtype=np.float64)
        for part, meeting in _blocks(batches, self.conditions):
            subtable = column(part, self.subtable).to_numpy(zero_copy_only=False)
            key = entry[subtable, codes_in(column(part, self.sensitive), self.values)]
            _add(total[:-1], meeting, key)
            total[-1] += np.bincount(key, minlength=E + 1)
        counts: Float64Array = total[:, :-1].ravel()
        return counts

    def reconstructed(self, counts: Float64Array) -> tuple[Float64Array, Float64Array]:
        """((C, m) estimates, (C, m) raw estimates) from the vector, summed over all batches: both as `reconstruction.reconstruct` gives
        them for one query."""
        d = self.domains
        E, m, k = len(d.value), len(self.values), len(d.sizes)
        every = counts.reshape(-1, E)
        observed, in_all = every[:-1], every[-1]
        own = Operators(d.operators.domain_sizes[d.subtable], d.operators.gammas[d.subtable])
        n, N = _summed(observed, d.subtable, k)[:, d.subtable], d.sizes[d.subtable]
        raw = terms(own, n, 1, observed)[0]
        least, most = np.maximum(0, n + d.true - N), np.minimum(n, d.true)
        of_whole = variance(own, N, 1, d.true)
        spread = variance(own, n, 1, np.clip(raw, least, most))
        share = np.divide(spread, of_whole, out=np.zeros_like(spread), where=of_whole > 0).clip(0, 1)
        calibrated = raw - share * (terms(own, N, 1, in_all)[0] - d.true)
        best, low, high, plain = (_summed(part, d.value, m + 1)[:, :m] for part in (calibrated, least, most, raw))
        return np.clip(best, low, high), plain


@dataclass(frozen=True)
class CrossedBuckets:
    """Kernel over batches of buckets, one row each: the estimates sum over g of c(g, P) c_st(g, x) / N_g, (C m,) float64.

    Columns as for `batch.BucketEstimates`: lists of text per attribute, a list of values and one of `counts`. With `missing` values that
    are not among `values` are counted last, as one: (C (m + 1),).
    """

    conditions: Masks
    sensitive: str
    values: Sequence[str]
    counts: str
    missing: bool = False

    def __call__(self, batches: Iterable[Any]) -> Float64Array:
        total: Float64Array = np.zeros((self.conditions.queries, len(self.values) + 1), dtype=np.float64)
        for batch in batches:
            for start in range(0, batch.num_rows, ROWS // 8):
                total += self._block(batch.slice(start, ROWS // 8))
        return (total if self.missing else total[:, :-1]).ravel()

    def _block(self, batch: Any) -> Float64Array:
        """(C, m + 1) float64: the estimates over the buckets of one block."""
        starts, values = lists(batch, self.sensitive)
        counts = lists(batch, self.counts)[1].to_numpy(zero_copy_only=False).astype(np.float64)
        value_counts = np.zeros((batch.num_rows, len(self.values) + 1), dtype=np.float64)
        bucket = np.repeat(np.arange(batch.num_rows), np.diff(starts))
        np.add.at(value_counts, (bucket, codes_in(values, self.values)), counts)
        columns = {a: lists(batch, a) for a in self.conditions.domains}
        starts = next(iter(columns.values()))[0]
        meeting = self.conditions.meeting({a: self.conditions.codes(a, items) for a, (_, items) in columns.items()})
        matching = np.add.reduceat(meeting, starts[:-1], axis=0, dtype=np.float64)
        estimates: Float64Array = matching.T @ (value_counts / value_counts.sum(axis=1, keepdims=True))
        return estimates
