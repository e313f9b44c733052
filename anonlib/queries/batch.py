"""Many count queries in one pass: which queries a record meets, as bits, and what all of them count.

A query is a conjunction of A IN (values) over some attributes, of which the sensitive one may be one. For every attribute a table
of bits says which queries each of its values meets; the queries a record meets are its values' rows, joined by AND: 1/8 byte per
record, attribute and query. Values are known by 64-bit hashes, so that records of any type reach the kernels as plain numbers.

Kernels take a batch of named NumPy arrays and return one vector of sums, to be added up over batches in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from anonlib.errors import SpecError
from anonlib.privacy.counts import Int64Array

Bits = npt.NDArray[np.uint8]
Vector = npt.NDArray[np.float64]
Batch = Mapping[str, npt.NDArray[Any]]

CELLS = 20_000_000
"""Records times queries that are worked on at once: some 200 MB in a worker."""
MAX_TABLE_BYTES = 128 * 2**20
"""All bit tables together; they travel to every worker."""


@dataclass(frozen=True)
class Domain:
    """The values of one attribute: `texts[i]` is known by `hashes[i]`, all different, any order; nulls are not among them."""

    name: str
    texts: tuple[str, ...]
    hashes: Int64Array

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class ValueMasks:
    """Which queries each value of one attribute meets.

    hashes : (m,) int64, ascending
    bits   : (m + 1, ceil(Q / 8)) uint8; row i for `hashes[i]`, the last row for nulls and for values outside the domain: it meets
             just the queries that do not ask for this attribute
    """

    hashes: Int64Array
    bits: Bits

    @staticmethod
    def of(domain: Domain, asked: Sequence[Sequence[int] | npt.NDArray[np.integer[Any]] | None]) -> ValueMasks:
        """asked : for each query the indices into the domain that it accepts, or None where it does not ask for the attribute."""
        order = np.argsort(domain.hashes)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        width = -(-len(asked) // 8)
        bits = np.zeros((len(domain) + 1, width), dtype=np.uint8)
        for q, codes in enumerate(asked):
            bit = np.uint8(128 >> (q % 8))
            if codes is None:
                bits[:, q // 8] |= bit
            else:
                bits[place[np.asarray(codes, dtype=np.int64)], q // 8] |= bit
        return ValueMasks(domain.hashes[order], bits)

    def rows(self, hashed: Int64Array) -> Int64Array:
        """(N,) int64: the row of `bits` of each hash."""
        if not len(self.hashes):
            return np.zeros(len(hashed), dtype=np.int64)
        place = np.searchsorted(self.hashes, hashed)
        place[place == len(self.hashes)] = 0
        return cast(Int64Array, np.where(self.hashes[place] == hashed, place, len(self.hashes)))

    def unpacked(self, queries: int) -> Vector:
        """(m + 1, Q) float64 of zeros and ones."""
        return np.unpackbits(self.bits, axis=1, count=queries).astype(np.float64)


def check_tables(domains: Mapping[str, int], queries: int) -> None:
    """Raises SpecError when the bit tables of `queries` queries over domains of these sizes would be too large to send around."""
    needed = sum(m + 1 for m in domains.values()) * -(-queries // 8)
    if needed > MAX_TABLE_BYTES:
        most = MAX_TABLE_BYTES // sum(m + 1 for m in domains.values()) * 8
        raise SpecError(
            f"{queries:,} queries over attributes with {sum(domains.values()):,} distinct values in all are too many to answer at once; "
            f"ask at most {most:,}"
        )


def column(k: int) -> str:
    """The name under which the k-th attribute reaches a kernel."""
    return f"a{k}"


RECORDS, VALUES, VALUE, COUNT = "records", "values", "value", "count"
"""How `BucketEstimates` finds its arrays: `records` and `values` are the lengths of the two lists of each bucket."""


@dataclass(frozen=True)
class TrueCounts:
    """How many records meet each query: batches of records with their hashes a0, a1, ... -> (Q + 1,) float64.

    The last entry counts the records themselves. Exact up to 2^53.
    """

    attributes: tuple[ValueMasks, ...]
    queries: int

    @property
    def length(self) -> int:
        return self.queries + 1

    def __call__(self, batch: Batch) -> Vector:
        rows = [masks.rows(batch[column(k)]) for k, masks in enumerate(self.attributes)]
        n = len(rows[0])
        total = np.zeros(self.queries, dtype=np.int64)
        step = max(1, CELLS // self.queries)
        for start in range(0, n, step):
            bits = _meeting(self.attributes, [row[start : start + step] for row in rows])
            total += np.unpackbits(bits, axis=1, count=self.queries).sum(axis=0, dtype=np.int64)
        return np.append(total, n).astype(np.float64)


@dataclass(frozen=True)
class BucketEstimates:
    """The estimate of each query from a bucketized release: batches of buckets -> (Q + 3,) float64.

    est_q = sum over buckets g of k_q(g) K_q(g) / N(g), as for a single query: k_q the records of g that meet the visible part, K_q
    the counts in `st` that meet the sensitive part, N the sum of these counts. The last three entries: the sum of (|g| - 1)^2, the
    records, and the buckets.

    A batch has, for B buckets: `records` (B,) and `values` (B,), how long the bucket's lists are; a0, a1, ... the records' hashes,
    `value` and `count` the hashes and counts of `st`, each the lists one after the other. Cost per record and query: a bit per
    attribute to look at, some 1.3 ns in all.
    """

    visible: tuple[ValueMasks, ...]
    sensitive: ValueMasks
    queries: int

    @property
    def length(self) -> int:
        return self.queries + 3

    def __call__(self, batch: Batch) -> Vector:
        size, held = batch[RECORDS].astype(np.int64), batch[VALUES].astype(np.int64)
        if not len(size):
            return np.zeros(self.length)
        record_end, value_end = np.cumsum(size), np.cumsum(held)
        rows = [masks.rows(batch[column(k)]) for k, masks in enumerate(self.visible)]
        share = self._shares(batch, held, value_end)
        accepts = self.sensitive.unpacked(self.queries)
        total = np.zeros(self.queries)
        for first, last in _runs(record_end, max(1, CELLS // self.queries)):
            start, stop = int(record_end[first] - size[first]), int(record_end[last - 1])
            bits = _meeting(self.visible, [row[start:stop] for row in rows])
            met = np.unpackbits(bits, axis=1, count=self.queries).astype(np.float32)
            ends = np.concatenate([[0], record_end[first:last] - start])
            members = csr_matrix(
                (np.ones(stop - start, dtype=np.float32), np.arange(stop - start), ends),
                shape=(last - first, stop - start),
            )
            total += np.einsum("gq,gq->q", (members @ met).astype(np.float64), share[first:last] @ accepts)
        return np.append(total, [float(((size - 1) ** 2).sum()), float(size.sum()), float(len(size))])

    def _shares(self, batch: Batch, held: Int64Array, value_end: Int64Array) -> Any:
        """(B, m + 1) sparse: c(g, x) / N(g)."""
        count = batch[COUNT].astype(np.float64)
        bucket = np.repeat(np.arange(len(held)), held)
        whole = np.bincount(bucket, weights=count, minlength=len(held))
        return csr_matrix(
            (count / whole[bucket], self.sensitive.rows(batch[VALUE]), np.concatenate([[0], value_end])),
            shape=(len(held), len(self.sensitive.hashes) + 1),
        )


def _meeting(attributes: Sequence[ValueMasks], rows: Sequence[Int64Array]) -> Bits:
    """(N, ceil(Q / 8)) uint8: the queries that each record meets."""
    bits = attributes[0].bits[rows[0]]
    for masks, row in zip(attributes[1:], rows[1:], strict=True):
        bits &= masks.bits[row]
    return bits


def _runs(ends: Int64Array, most: int) -> Iterator[tuple[int, int]]:
    """Runs first..last-1 of buckets with at most `most` records each, or a single larger bucket."""
    first = 0
    while first < len(ends):
        done = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + most, side="right")))
        yield first, last
        first = last
