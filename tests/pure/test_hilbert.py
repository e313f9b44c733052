"""The Hilbert curve: a known picture, a bijection, and neighbours that are neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from anonlib.domains import CategoricalDomain, NumericDomain
from anonlib.kernels.hilbert import bits_for, hilbert_index, hilbert_positions


def grid(d: int, bits: int) -> np.ndarray:
    return np.stack([axis.ravel() for axis in np.meshgrid(*[np.arange(1 << bits)] * d, indexing="ij")])


def test_the_curve_of_order_2_in_the_plane_is_hilberts() -> None:
    cells = grid(2, 2)
    order = np.argsort(hilbert_index(cells, 2))
    walk = [tuple(cells[:, i].tolist()) for i in order]
    known = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 3), (1, 3), (1, 2)]
    known += [(2, 2), (2, 3), (3, 3), (3, 2), (3, 1), (2, 1), (2, 0), (3, 0)]
    assert walk in (known, [(y, x) for x, y in known])


@pytest.mark.parametrize(("d", "bits"), [(1, 6), (2, 1), (2, 5), (3, 4), (4, 3), (5, 2), (7, 2), (10, 1)])
def test_every_cell_is_visited_once_and_each_step_goes_to_a_neighbour(d: int, bits: int) -> None:
    cells = grid(d, bits)
    index = hilbert_index(cells, bits)
    order = np.argsort(index)
    assert index[order].tolist() == list(range(1 << (d * bits)))
    assert (np.abs(np.diff(cells[:, order], axis=1)).sum(axis=0) == 1).all()


@pytest.mark.parametrize("d", range(1, 11))
def test_all_numbers_of_dimensions_fit_into_62_bits(d: int) -> None:
    bits = bits_for(d)
    ends = np.array([[0, (1 << bits) - 1]] * d)
    index = hilbert_index(ends, bits)
    assert d * bits <= 62
    assert (index >= 0).all()
    assert (index < 1 << (d * bits)).all()
    assert index[0] == 0


def test_records_near_along_the_curve_are_near_in_space() -> None:
    random = np.random.default_rng(1)
    domains = [
        NumericDomain("x", 10.0, 90.0),
        CategoricalDomain("c", tuple("abcdefghij")),
        NumericDomain("t", -1e15, 1e15),
    ]
    columns = [random.uniform(10, 90, 4000), random.integers(0, 10, 4000), random.integers(-(10**15), 10**15, 4000)]
    order = np.argsort(hilbert_positions(columns, domains))
    shares = np.stack([(columns[0] - 10) / 80, columns[1] / 9, (columns[2] / 1e15 + 1) / 2])
    near = np.abs(np.diff(shares[:, order], axis=1)).sum(axis=0).mean()
    far = np.abs(np.diff(shares, axis=1)).sum(axis=0).mean()
    assert near < far / 4


def test_a_domain_of_one_value_and_the_ends_of_domains_are_cells() -> None:
    one = [CategoricalDomain("c", ("a",)), NumericDomain("x", 3.0, 3.0)]
    assert hilbert_positions([np.zeros(2, dtype=np.int64), np.array([3, 3])], one).tolist() == [0, 0]
    assert len(set(hilbert_positions([np.array([0, 5, 9])], [NumericDomain("x", 0.0, 9.0)]).tolist())) == 3


def test_dimensions_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="62"):
        bits_for(63)
    with pytest.raises(ValueError, match="do not fit"):
        hilbert_index(np.zeros((10, 1), dtype=np.int64), 7)
