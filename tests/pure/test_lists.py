"""Columns of lists as arrays: taken, joined and read as a list of lists is."""

from __future__ import annotations

import numpy as np

from anonlib.arrays import Lists


def of(lists: list[list[int]]) -> Lists:
    values = np.array([item for each in lists for item in each], dtype=np.int32)
    return Lists(values, np.cumsum([0, *map(len, lists)]))


def read(lists: Lists) -> list[list[int]]:
    assert lists.values.dtype == np.int32
    assert lists.bounds.dtype == np.int64
    return [each.tolist() for each in lists.listed()]


LISTS = [[3, 1], [], [7], [2, 2, 5], []]


def test_lists_are_taken_as_often_as_they_are_named() -> None:
    for rows in ([0, 1, 2, 3, 4], [3, 3, 0], [1], [], [4, 2, 3, 1]):
        assert read(of(LISTS).take(np.array(rows, dtype=np.int64))) == [LISTS[r] for r in rows]


def test_lists_are_joined() -> None:
    parts = [LISTS, [], [[], []], [[9]]]
    assert read(Lists.joined([of(part) for part in parts])) == [each for part in parts for each in part]
    assert len(Lists.joined([of(LISTS)])) == len(LISTS)


def test_rows_of_a_matrix_are_lists() -> None:
    matrix = np.arange(6, dtype=np.int32).reshape(2, 3)
    for each in (matrix, matrix.T):
        assert read(Lists.of_rows(each)) == each.tolist()
    assert read(Lists.of_rows(matrix[:, :0])) == [[], []]
