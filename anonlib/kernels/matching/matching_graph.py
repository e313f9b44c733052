"""The mu-regular graph of matches: every record gets one match from every bucket, as near as the assignment finds them.

Source: heterogeneous generalization, Algorithm 2 and section 3.4. In round r bucket b is matched to bucket b + r; so each round is a
perfect matching of all records, each record is matched by one record of every bucket, and no two rounds share an edge.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonlib.arrays import BoolArray, Codes, Int32Array, Int64Array
from anonlib.domains import Domain
from anonlib.kernels.matching.compiled import loops
from anonlib.kernels.matching.matching_assign import assignment
from anonlib.kernels.matching.matching_costs import BLOCK, GrowingBoxes
from anonlib.kernels.matching.matching_deal import DealtRecords


def matching_graph(
    columns: Sequence[Codes],
    domains: Sequence[Domain],
    dealt: DealtRecords,
    distinct: bool,
    matching: str,
    pairs: int = 0,
) -> Int32Array:
    """(N, mu) int32: the records that each record matches, itself first, one of every bucket.

    columns  : d code columns of the N dealt records, bucket after bucket
    distinct : the matches of a record must carry different sensitive values; the buckets must be those of Algorithm 1
    matching : "hungarian", "sort_greedy" or "greedy"
    pairs    : of records that are compared in all graphs of a release, as far as it is known: whether to compile, the graph is the same

    Cost: N^2 d for costs, mu^2 assignments of c = N / mu records; memory O(N (mu + d + sum |A| / 8)) and some c^2.
    """
    mu, size = dealt.mu, dealt.size
    compiled = loops(max(pairs, (mu * size) ** 2))
    assign = assignment(matching, compiled)
    boxes = GrowingBoxes(columns, domains, mu, size, compiled)
    shared_values = _SharedValues(dealt) if distinct else None
    matches = np.empty((mu * size, mu), dtype=np.int32)
    matches[:, 0] = np.arange(mu * size)
    batch = max(1, BLOCK // (size * size))
    for turn in range(1, mu):
        partner = np.empty((mu, size), dtype=np.int64)
        for first in range(0, mu, batch):
            stop = min(mu, first + batch)
            others = (np.arange(first, stop) + turn) % mu
            cost = boxes.costs(first, stop, others)
            forbidden = shared_values.forbidden(first, stop, others) if shared_values is not None else None
            partner[first:stop] = others[:, None] * size + assign(cost, forbidden)
        boxes.widen(partner)
        if shared_values is not None:
            shared_values.add(partner)
        matches[:, turn] = partner.ravel()
    return matches


class _SharedValues:
    """Which of the sensitive values that several buckets share each record already has among its matches."""

    def __init__(self, dealt: DealtRecords) -> None:
        bucket = np.repeat(np.arange(dealt.mu), dealt.size)
        pairs = np.unique(dealt.sensitive * dealt.mu + bucket) // dealt.mu
        shared = np.unique(pairs[1:][pairs[1:] == pairs[:-1]])
        self._number = np.searchsorted(shared, dealt.sensitive)
        other = (
            shared[np.minimum(self._number, len(shared) - 1)] != dealt.sensitive
            if len(shared)
            else np.ones(len(bucket), bool)
        )
        self._number[other] = len(shared)
        self._number = self._number.reshape(dealt.mu, dealt.size)
        self._values = len(shared)
        self._has = np.zeros((dealt.mu, dealt.size, len(shared) + 1), dtype=bool)
        self.add(np.arange(len(bucket)).reshape(dealt.mu, dealt.size))

    def forbidden(self, first: int, stop: int, partners: Int64Array) -> BoolArray | None:
        """(stop - first, c, c) bool: edges to a value that the record has already; None when there are none.

        As `GrowingBoxes.costs`: of bucket `first` + k with bucket `partners[k]`.
        """
        wanted = self._number[partners]
        if (wanted == self._values).all():
            return None
        barred = np.stack([self._has[first + k].take(wanted[k], axis=1) for k in range(stop - first)])
        return barred if barred.any() else None

    def add(self, partner: Int64Array) -> None:
        number = self._number.reshape(-1)[partner].ravel()
        self._has.reshape(len(number), -1)[np.arange(len(number)), number] = True
        self._has[:, :, self._values] = False
