"""The tight box of each record's matches.

Source: heterogeneous generalization, section 2: per numeric attribute the smallest and the largest value, per categorical one the set.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonlib.arrays import Codes, IntegerArray
from anonlib.domains import Domain, NumericDomain
from anonlib.kernels.boxes import Box, Interval, Sets

CELLS = 1 << 24


def match_boxes(columns: Sequence[Codes], domains: Sequence[Domain], matches: IntegerArray) -> list[Box]:
    """The tight boxes of N records' matches: one `Interval` or `Sets` per quasi-identifier, in the order of `columns`.

    columns : d code columns of the N records; matches : (N, mu) record numbers. O(N mu d); memory 16 MB for sets, N mu codes a column.
    """
    return [
        _interval(column, matches) if isinstance(domain, NumericDomain) else _sets(column, matches)
        for column, domain in zip(columns, domains, strict=True)
    ]


def _interval(column: Codes, matches: IntegerArray) -> Interval:
    low, high = column[matches[:, 0]], column[matches[:, 0]]
    for turn in range(1, matches.shape[1]):
        values = column[matches[:, turn]]
        low, high = np.minimum(low, values), np.maximum(high, values)
    return Interval(low, high)


def _sets(column: Codes, matches: IntegerArray) -> Sets:
    present, codes = np.unique(column, return_inverse=True)
    values, sizes = [], [np.zeros(1, dtype=np.int64)]
    step = max(1, CELLS // max(1, len(present)))
    for first in range(0, len(matches), step):
        block = matches[first : first + step]
        occurs = np.zeros((len(block), len(present)), dtype=bool)
        for turn in range(matches.shape[1]):
            occurs[np.arange(len(block)), codes[block[:, turn]]] = True
        values.append(present[np.nonzero(occurs)[1]].astype(np.int32))
        sizes.append(occurs.sum(axis=1).astype(np.int64))
    return Sets(np.concatenate(values) if values else np.zeros(0, np.int32), np.cumsum(np.concatenate(sizes)))
