"""Counts by group and sensitive value on a bucketized release: a kernel over the flattened estimates of each group. Pure.

Each number is the one that `anonlib.queries.bucketized.answer` gives for the question of that group and value alone; `together` is left
out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import BoolArray, Float64Array, Int64Array
from anonlib.queries.bucketized import REFUTED, z_of
from anonlib.queries.flattening import Flattening

ESTIMATORS = ("exact", "unbiased", "shrunk", "flattened")
"""`estimator` in the kernel's answer is a place in this list."""
ADDED = ("estimate", "estimator", "unbiased", "standard_error", "interval_low", "interval_high")
GROUPS = 256
"""Groups handled at a time: some m x GROUPS doubles."""


@dataclass(frozen=True)
class Part:
    """What one column of a group tells of its values. ratios : text of the column's value -> (m,) `Flattening.ratio`; None : nothing."""

    ratios: Mapping[str | None, Float64Array] | None


@dataclass(frozen=True)
class GroupCounts:
    """The kernel.

    system : of the release, None where none holds; values : (m,) texts of its values
    columns : a part for each column that groups are made by; common : (m,) product of the ratios of the conditions that all groups share,
        of which there are `conditions`

    Takes lists, one a group: `values` texts, `flat` float64, `low` and `high` int64, all aligned; and (groups,) texts of each column.
    Returns, for all items of the lists one after the other, float64 arrays by `ADDED`, NaN where there is none.
    """

    system: Flattening | None
    values: tuple[str | None, ...]
    columns: tuple[Part, ...]
    common: Float64Array
    conditions: int

    def __call__(self, values: Any, flat: Any, low: Any, high: Any, texts: Sequence[Any]) -> dict[str, Float64Array]:
        starts = _starts(values)
        place = {value: i for i, value in enumerate(self.values)}
        code = np.array([place.get(v, -1) for v in values.flatten().to_pylist()], dtype=np.int64)
        numbers = [_numbers(column) for column in (flat, low, high)]
        groups = len(starts) - 1
        group = np.repeat(np.arange(groups), np.diff(starts))
        if self.system is None:
            return without(*numbers)
        answers = {name: np.full(len(code), np.nan) for name in ADDED}
        labels = [column.to_pylist() for column in texts]
        for first in range(0, groups, GROUPS):
            at = slice(int(starts[first]), int(starts[min(first + GROUPS, groups)]))
            own = [column[first : first + GROUPS] for column in labels]
            part = self._answers(self.system, code[at], group[at] - first, own, [n[at] for n in numbers])
            for name, found in part.items():
                answers[name][at] = found
        return answers

    def _answers(
        self,
        system: Flattening,
        code: Int64Array,
        group: Int64Array,
        texts: Sequence[Sequence[str | None]],
        numbers: Sequence[Float64Array],
    ) -> dict[str, Float64Array]:
        flat, low, high = numbers
        matrix = np.zeros((len(self.values), int(group.max(initial=-1)) + 1))
        matrix[code, group] = flat
        counts = self.shrunk(system, matrix, texts)
        unbiased = system.unbiased_each(matrix)[code, group]
        error = np.sqrt(system.variance_each(system.shares(counts)))[code, group]
        return answered(counts[code, group], unbiased, error, ~system.untold()[code], low, high)

    def shrunk(self, system: Flattening, flat: Float64Array, texts: Sequence[Sequence[str | None]]) -> Float64Array:
        """(m, groups): the shrunk estimates from the flattened ones. texts : of each column, a text for each group"""
        return system.shrunk(flat, system.prior_of(self._product(texts, flat.shape), flat.sum(axis=0)))

    def _product(self, texts: Sequence[Sequence[str | None]], shape: tuple[int, ...]) -> Float64Array:
        """(m, groups): the product of the ratios of all conditions of a group; 1 where it has one condition only."""
        product: Float64Array = np.ones(shape)
        if self.conditions + len(self.columns) < 2:
            return product
        product *= self.common[:, None]
        for column, part in zip(texts, self.columns, strict=True):
            for g, text in enumerate(column):
                if part.ratios is not None and text in part.ratios:
                    product[:, g] *= part.ratios[text]
        return product


def answered(
    shrunk: Float64Array,
    unbiased: Float64Array,
    error: Float64Array,
    told: BoolArray,
    low: Float64Array,
    high: Float64Array,
) -> dict[str, Float64Array]:
    """The answers by `ADDED`, of numbers that are all (items,). told : whether buckets tell it."""
    shrunk = np.clip(shrunk, low, high)
    refuted = told & (np.abs(shrunk - unbiased) > REFUTED * error)
    half = z_of(0.95) * error
    found = {
        "estimate": np.where(refuted, np.clip(unbiased, low, high), shrunk),
        "estimator": np.where(refuted, ESTIMATORS.index("unbiased"), ESTIMATORS.index("shrunk")).astype(float),
        "unbiased": np.where(told, unbiased, np.nan),
        "standard_error": np.where(told, error, np.nan),
        "interval_low": np.where(told, np.clip(unbiased - half, low, high), low),
        "interval_high": np.where(told, np.clip(unbiased + half, low, high), high),
    }
    return _exact(found, low, high)


def without(flat: Float64Array, low: Float64Array, high: Float64Array) -> dict[str, Float64Array]:
    """Flattened estimates, where nothing else is to be had."""
    nothing = np.full(len(flat), np.nan)
    found = {
        "estimate": np.clip(flat, low, high),
        "estimator": np.full(len(flat), float(ESTIMATORS.index("flattened"))),
        "unbiased": nothing,
        "standard_error": nothing,
        "interval_low": low,
        "interval_high": high,
    }
    return _exact(found, low, high)


def _exact(found: dict[str, Float64Array], low: Float64Array, high: Float64Array) -> dict[str, Float64Array]:
    """The same, with what the bounds settle."""
    settled: BoolArray = low == high
    exact = {"estimator": 0.0, "standard_error": 0.0}
    return {name: np.where(settled, exact.get(name, low), numbers) for name, numbers in found.items()}


def _starts(lists: Any) -> Int64Array:
    """(groups + 1,): where each group's items start, and the end."""
    sizes = lists.value_lengths().to_numpy(zero_copy_only=False)
    starts: Int64Array = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return starts


def _numbers(lists: Any) -> Float64Array:
    return np.asarray(pc.cast(lists.flatten(), pa.float64()).to_numpy(zero_copy_only=False))
