"""Many count queries at once: masks over dictionary codes, and the two kernels that answer all of them in one pass.

A query asks for a set of values on some attributes. For each attribute a mask says which of its values each of the Q queries
accepts: one bit per (value, query), packed along the queries, with a last row of zeros for nulls and unknown values. The
records that meet a query's conditions are found by AND-ing one packed row per attribute: Q/8 bytes per record and attribute.

Cost per record: (attributes + 8) Q / 8 byte operations; per bucket one (m) x (m, Q) product. Memory of a kernel: masks, plus
about 2 x ROWS x Q bytes. Pure: record batches in, a (Q,) vector out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Float64Array, Int32Array, Int64Array, UInt8Array
from anonlib.errors import SpecError
from anonlib.queries.boxes import column

ROWS = 2048
"""Records handled at a time, so that a block of (ROWS, Q) bytes stays near the cache."""
MAX_MASK_BYTES = 64 << 20
"""Masks travel to the workers inside the kernel."""


@dataclass(frozen=True)
class Masks:
    """What Q queries accept.

    domains : attribute -> its distinct values as text, no null; their order gives the codes
    bits    : attribute -> (len(domain) + 1, ceil(Q / 8)) uint8, bit q of row v set when query q accepts value v; last row zero
    queries : Q
    """

    domains: Mapping[str, Sequence[str]]
    bits: Mapping[str, UInt8Array]
    queries: int

    @staticmethod
    def of(domains: Mapping[str, Sequence[str]], accepted: Sequence[Mapping[str, Sequence[int]]]) -> Masks:
        """`accepted[q]` maps an attribute to the codes that query q accepts; an attribute it lacks accepts everything,
        null included.

        Raises SpecError when the masks would be larger than MAX_MASK_BYTES.
        """
        Q = len(accepted)
        size = sum(len(d) + 1 for d in domains.values()) * -(-Q // 8)
        if size > MAX_MASK_BYTES:
            widest = max(domains, key=lambda a: len(domains[a]))
            raise SpecError(
                f"the workload's masks take {size >> 20:,} MB ({Q:,} queries, {len(domains[widest]):,} values of {widest!r}); "
                f"at most {MAX_MASK_BYTES >> 20} MB go to the workers: ask fewer queries or leave that attribute out"
            )
        bits = {}
        for attribute, domain in domains.items():
            mask = np.zeros((len(domain) + 1, Q), dtype=bool)
            for q, query in enumerate(accepted):
                mask[query[attribute] if attribute in query else slice(None), q] = True
            bits[attribute] = np.packbits(mask, axis=1)
        return Masks(dict(domains), bits, Q)

    def codes(self, attribute: str, values: Any) -> Int32Array:
        """(rows,) int32 codes of an Arrow column of text; len(domain) for null and for values outside the domain. O(rows)."""
        return codes_in(values, self.domains[attribute])

    def meeting(self, codes: Mapping[str, Int32Array]) -> UInt8Array:
        """(rows, Q) uint8, 1 where a row meets a query on all the attributes given. codes : attribute -> (rows,) int32."""
        packed: UInt8Array | None = None
        for attribute, own_codes in codes.items():
            bits = self.bits[attribute][own_codes]
            packed = bits if packed is None else packed & bits
        assert packed is not None, "at least one attribute"
        return np.unpackbits(packed, axis=1, count=self.queries)


@dataclass(frozen=True)
class TrueCounts:
    """Kernel over batches of the original: how many records meet each query, (Q,) float64, whole numbers.

    Columns of a batch are named like the attributes, as text.
    """

    masks: Masks

    def __call__(self, batches: Iterable[Any]) -> Float64Array:
        total = np.zeros(self.masks.queries, dtype=np.int64)
        for batch in batches:
            for start in range(0, batch.num_rows, ROWS):
                part = batch.slice(start, ROWS)
                codes = {a: self.masks.codes(a, column(part, a)) for a in self.masks.domains}
                total += self.masks.meeting(codes).sum(axis=0, dtype=np.int64)
        return total.astype(np.float64)


@dataclass(frozen=True)
class BucketEstimates:
    """Kernel over batches of buckets: the estimate of each query, sum over g of c(g, P) c_st(g, Q) / N_g.

    visible   : masks of the attributes of `qit`; sensitive : masks of the sensitive attribute alone
    counts    : name of the column of counts

    Columns of a batch, one row per bucket: each attribute of `visible` a list of text, one item per record of the bucket; the
    sensitive attribute a list of text and `counts` a list of int64, one item per row of the bucket in `st`.
    """

    visible: Masks
    sensitive: Masks
    counts: str

    def __call__(self, batches: Iterable[Any]) -> Float64Array:
        total = np.zeros(self.visible.queries, dtype=np.float64)
        (attribute,) = self.sensitive.domains
        accepted = np.unpackbits(self.sensitive.bits[attribute], axis=1, count=self.sensitive.queries).astype(
            np.float64
        )
        for batch in batches:
            for first, last in _blocks(lists(batch, next(iter(self.visible.domains)))[0]):
                total += self._block(batch.slice(first, last - first), attribute, accepted)
        return total

    def _block(self, batch: Any, attribute: str, accepted: Float64Array) -> Float64Array:
        """(Q,) float64: the estimate over the buckets of one block. accepted : (m + 1, Q), 1 where a query accepts a sensitive value."""
        starts, values = lists(batch, attribute)
        counts = lists(batch, self.counts)[1].to_numpy(zero_copy_only=False).astype(np.float64)
        bucket = np.repeat(np.arange(batch.num_rows), np.diff(starts))
        value_counts = np.zeros((batch.num_rows, len(accepted)), dtype=np.float64)
        np.add.at(value_counts, (bucket, self.sensitive.codes(attribute, values)), counts)
        share = (value_counts / value_counts.sum(axis=1, keepdims=True)) @ accepted
        columns = {a: lists(batch, a) for a in self.visible.domains}
        starts = next(iter(columns.values()))[0]
        codes = {a: self.visible.codes(a, items) for a, (_, items) in columns.items()}
        meeting = self.visible.meeting(codes)
        # Bytes add up faster than what they would be cast to, and hold the count of any bucket of up to 255 records.
        dtype = np.uint8 if np.diff(starts).max(initial=0) < 256 else np.int32
        matching = np.add.reduceat(meeting, starts[:-1], axis=0, dtype=dtype)
        estimate: Float64Array = np.einsum("bq,bq->q", matching, share)
        return estimate


def _blocks(starts: Int64Array) -> Iterable[tuple[int, int]]:
    """Runs of whole buckets with about ROWS items each."""
    first, buckets = 0, len(starts) - 1
    while first < buckets:
        last = int(np.searchsorted(starts, starts[first] + ROWS, side="right")) - 1
        last = min(max(last, first + 1), buckets)
        yield first, last
        first = last


def codes_in(values: Any, domain: Sequence[str]) -> Int32Array:
    """(rows,) int32 codes of an Arrow column of text; len(domain) for null and for values outside the domain."""
    index = pc.index_in(values, value_set=pa.array(domain, type=pa.string()), skip_nulls=True)
    codes: Int32Array = index.fill_null(len(domain)).to_numpy(zero_copy_only=False)
    return codes


def lists(batch: Any, name: str) -> tuple[Int64Array, Any]:
    """(where each row's items start, and the end; all items) of a list column."""
    items = column(batch, name)
    sizes = items.value_lengths().to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), items.flatten()
