"""The Hilbert curve through the space of quasi-identifiers: one number per record, such that neighbours in its order are near in space.

Source: Skilling, *Programming the Hilbert curve*, AIP Conf. Proc. 707 (2004), for any number of dimensions, here over whole columns.
It cuts tables into partitions (heterogeneous generalization) and finds near records (SABRE, section 4.3; BuReL; ring generalization).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Codes, Int64Array
from anonlib.domains import Domain

INDEX_BITS = 62
MOST_BITS = 31
"""Bits per dimension: more would tell apart nothing that a curve is asked for."""


def bits_for(dimensions: int) -> int:
    """How finely each of so many dimensions is cut: dimensions * bits stays within `INDEX_BITS`."""
    if not 1 <= dimensions <= INDEX_BITS:
        raise ValueError(f"a curve has 1 to {INDEX_BITS} dimensions, not {dimensions}")
    return min(MOST_BITS, INDEX_BITS // dimensions)


def normalised(columns: Sequence[Codes], domains: Sequence[Domain], bits: int) -> Int64Array:
    """(d, n) int64 in [0, 2^bits): each attribute's share of its domain, so that all weigh alike whatever their units.

    A categorical code counts as its place in leaf order (text order without a hierarchy).
    """
    top = (1 << bits) - 1
    cells = np.empty((len(columns), len(columns[0])), dtype=np.int64)
    for i, (column, domain) in enumerate(zip(columns, domains, strict=True)):
        cells[i] = np.clip(np.rint(domain.share(column) * top), 0, top)
    return cells


def hilbert_index(cells: npt.ArrayLike, bits: int) -> Int64Array:
    """(n,) int64: the place along the curve of each cell. A bijection of [0, 2^bits)^d onto [0, 2^(d bits)).

    cells : (d, n) integers in [0, 2^bits), d * bits <= 62. O(n d bits), vectorised over n.
    """
    x: Int64Array = np.array(cells, dtype=np.int64)
    d = len(x)
    if d * bits > INDEX_BITS:
        raise ValueError(f"{d} dimensions of {bits} bits do not fit into {INDEX_BITS} bits")
    if d == 1:
        return np.asarray(x[0])
    for level in range(bits - 1, 0, -1):  # undo the turns of the finer squares, coarse to fine
        low = np.int64((1 << level) - 1)
        for i in range(d):
            inside = (x[i] >> level) & 1 == 1
            swap = np.where(inside, 0, (x[0] ^ x[i]) & low)
            x[0] ^= np.where(inside, low, swap)
            if i:
                x[i] ^= swap
    for i in range(1, d):  # Gray code
        x[i] ^= x[i - 1]
    flips = np.zeros_like(x[0])
    for level in range(bits - 1, 0, -1):
        flips ^= np.where((x[d - 1] >> level) & 1 == 1, np.int64((1 << level) - 1), np.int64(0))
    x ^= flips
    index: Int64Array = np.zeros(x.shape[1], dtype=np.int64)
    for level in range(bits - 1, -1, -1):
        for i in range(d):
            index = (index << 1) | ((x[i] >> level) & 1)
    return index


def hilbert_positions(columns: Sequence[Codes], domains: Sequence[Domain]) -> Int64Array:
    """(n,) int64 in [0, 2^62): where each record lies along the curve through its normalised quasi-identifiers.

    columns : one or more code columns, see `anonlib.domains`; beyond 62 of them the rest do not steer the curve.
    Cost: O(n d bits) with bits = 62 / d, about 2 us a record.
    """
    columns, domains = columns[:INDEX_BITS], domains[:INDEX_BITS]
    bits = bits_for(len(columns))
    return hilbert_index(normalised(columns, domains, bits), bits)
