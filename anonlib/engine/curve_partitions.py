"""Partitions of equal size along a curve through the quasi-identifiers; which records these are, no sensitive value has a say in.

Records at one place of the curve are told apart by a hash that only the release key knows. It covers how many equal rows came before, so
that even records that are alike in everything are spread as by chance: a place that holds more records than a partition is cut into
parts that differ in their sensitive values no more than a random split does.

Cost: two shuffles of the codes (equal rows are numbered; a range shuffle, staged) and one scan for a count per task on the driver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from anonlib.arrays import Int64Array
from anonlib.engine import curve_ranks
from anonlib.engine.cut_by_quasi_identifiers import CELL
from anonlib.engine.relational import with_columns

Positions = Callable[[list[Any]], Int64Array]
"""code columns -> the place of each record along the curve."""

SEATED = "seated"


def equal_partitions(
    coded: DataFrame,
    positions: Positions,
    n: int,
    number: int,
    salt: int,
    stage: Callable[[str, Any], Any],
    multiple_of: int = 1,
) -> DataFrame:
    """`coded` with `cell` 0 .. number - 1 in the order of the curve; every cell has n // number records or one more.

    n           : the records there are; AnonlibError when it turns out otherwise
    multiple_of : every cell but the last has a multiple of so many records, nearly equally many; number <= n / multiple_of
    """
    codes = ", ".join(coded.columns)
    numbered = with_columns(coded, {"twin": f"row_number() OVER (PARTITION BY {codes} ORDER BY q0)"})
    staged = stage(SEATED, curve_ranks.seated(curve_ranks.on_curve(numbered, _OneGroup(positions)), salt))
    cells = curve_ranks.by_rank(staged, np.array([n], dtype=np.int64), _Even(n, number, multiple_of))
    return cells.select(*coded.columns, CELL)


class _OneGroup:
    def __init__(self, positions: Positions) -> None:
        self._positions = positions

    def __call__(self, columns: list[Any], sensitive: Int64Array) -> tuple[Int64Array, Int64Array]:
        return np.zeros(len(sensitive), dtype=np.int64), self._positions(columns)


class _Even:
    """Rank r of n goes to one of `number` runs of nearly equally many units, without a product that could overflow."""

    def __init__(self, n: int, number: int, unit: int = 1) -> None:
        small, larger = divmod(n // unit, number)
        self._stops = unit * np.cumsum(np.full(number, small, dtype=np.int64) + (np.arange(number) < larger))
        self._stops[-1] = n

    def __call__(self, group: Int64Array, rank: Int64Array) -> tuple[Int64Array, Int64Array]:
        return np.searchsorted(self._stops, rank, side="right").astype(np.int64), np.zeros(len(rank), dtype=np.int64)
