"""Counts by group and some of the sensitive values together on a bucketized release: sums over the values of a system, a kernel. Pure.

A sum is what counts of one of several sensitive columns are made of: all combinations that have its value. Each number is the one that
`anonlib.queries.bucketized.answer` gives for the question of that group and sum alone, but where buckets do not tell all of a sum's values
from others: then its interval is what is certain. `together` is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import BoolArray, Float64Array, Int64Array
from anonlib.queries.group_counts import ADDED, GROUPS, GroupCounts, answered, without

VALUE, SUM = 0, 1
"""What an item of a group's lists is: the flattened estimate of a value of the system, or a sum that is asked for."""


@dataclass(frozen=True)
class GroupSums:
    """The kernel.

    counts : of the values of the system, as they are counted by themselves
    labels : (L,) texts of the sums; sums : (m, L) float64, 1 where a value is in a sum

    Takes lists, one a group: `kinds` (`VALUE` or `SUM`), `texts` of values and labels, `flat` float64, `low` and `high` int64, all aligned;
    and (groups,) texts of each column. Returns, for all items, float64 arrays by `ADDED`, NaN where there is none, as of values.
    """

    counts: GroupCounts
    labels: tuple[str | None, ...]
    sums: Float64Array

    def __call__(
        self, kinds: Any, names: Any, flat: Any, low: Any, high: Any, texts: Sequence[Any]
    ) -> dict[str, Float64Array]:
        kind = kinds.flatten().to_numpy(zero_copy_only=False)
        numbers = [_numbers(column) for column in (flat, low, high)]
        if self.counts.system is None:
            return without(*numbers)
        code = self._codes(kind, names.flatten().to_pylist())
        group = np.repeat(np.arange(len(names)), names.value_lengths().to_numpy(zero_copy_only=False))
        answers = {name: np.full(len(code), np.nan) for name in ADDED}
        labels = [column.to_pylist() for column in texts]
        for first in range(0, len(names), GROUPS):
            inside = (group >= first) & (group < first + GROUPS)
            own = [column[first : first + GROUPS] for column in labels]
            at = np.flatnonzero(inside & (kind == SUM))
            if len(at):
                of_values = np.flatnonzero(inside & (kind == VALUE))
                matrix = np.zeros((len(self.counts.values), min(GROUPS, len(names) - first)))
                matrix[code[of_values], group[of_values] - first] = numbers[0][of_values]
                found = self._answers(matrix, own, code[at], group[at] - first, numbers[1][at], numbers[2][at])
                for name, values in found.items():
                    answers[name][at] = values
        return answers

    def _codes(self, kind: Int64Array, names: Sequence[str | None]) -> Int64Array:
        """(items,) the place of each item among values or labels."""
        places = [{name: i for i, name in enumerate(known)} for known in (self.counts.values, self.labels)]
        return np.array([places[k][name] for k, name in zip(kind.tolist(), names, strict=True)], dtype=np.int64)

    def _answers(
        self,
        flat: Float64Array,
        texts: Sequence[Sequence[str | None]],
        label: Int64Array,
        group: Int64Array,
        low: Float64Array,
        high: Float64Array,
    ) -> dict[str, Float64Array]:
        """The answers of some sums of some groups. flat : (m, groups)"""
        system = self.counts.system
        assert system is not None
        counts = self.counts.shrunk(system, flat, texts)
        unbiased = self.sums.T @ system.unbiased_each(flat)
        error = np.sqrt(system.variance_by(self._spread, system.shares(counts)))
        shrunk, at = self.sums.T @ counts, (label, group)
        return answered(shrunk[at], unbiased[at], error[at], self._told[label], low, high)

    @cached_property
    def _spread(self) -> Float64Array:
        assert self.counts.system is not None
        return self.counts.system.spread(self.sums)

    @cached_property
    def _told(self) -> BoolArray:
        assert self.counts.system is not None
        return self.counts.system.tells_each(self.sums)


def _numbers(lists: Any) -> Float64Array:
    return np.asarray(pc.cast(lists.flatten(), pa.float64()).to_numpy(zero_copy_only=False))
