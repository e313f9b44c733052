"""The earth mover's distance between shares on a line or a tree, as a sum over runs of neighbours, in integers.

On a line, and on any tree whose leaves are listed depth first, moving earth costs, for each edge, its length times what must cross it:
the difference of the two distributions on one side of the edge. That side is a run of neighbouring places. With counts c of a group of s
records and N of a table of n, the difference on a run S is |c(S) n - N(S) s| / (s n), so the distance is an integer over unit s n.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Int64Array
from anonlib.exact import floor_times

CELLS = 4_000_000
"""Counts held at once while distances are computed: 32 MB."""
SAFE = 1 << 62
"""Sums below this stay in int64; larger ones are computed with Python's integers."""


@dataclass(frozen=True, eq=False)
class EarthMover:
    """EMD(P, Q) = sum of weight[r] |P(first[r]..last[r]) - Q(first[r]..last[r])| / unit, over the runs r of places; at most 1.

    first, last, weight : (runs,) int64, weight >= 0; unit : int
    """

    first: Int64Array
    last: Int64Array
    weight: Int64Array
    unit: int

    def on_runs(self, counts: Int64Array) -> Int64Array:
        """(G, runs) int64: how many records of each group stand on each run. counts : (G, places) int64."""
        total = np.zeros((counts.shape[0], counts.shape[1] + 1), dtype=np.int64)
        np.cumsum(counts, axis=1, out=total[:, 1:])
        return cast(Int64Array, total[:, self.last + 1] - total[:, self.first])

    def work(self, table: Int64Array, groups: Int64Array) -> npt.NDArray[Any]:
        """The distance of each group from the table, times unit * n * (the group's size): an integer.

        table : (places,) int64; groups : (G, places) int64. Returns (G,) int64, or Python integers where 64 bits might not do.
        O(G (places + runs)) time, O(places + runs) memory beyond `groups`.
        """
        step = max(1, CELLS // max(1, groups.shape[1] + len(self.first)))
        of_table = self.on_runs(table[None, :])[0]
        n = int(table.sum())
        parts = [self._work(of_table, n, groups[start : start + step]) for start in range(0, len(groups), step)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def _work(self, of_table: Int64Array, n: int, groups: Int64Array) -> npt.NDArray[Any]:
        held, sizes = self.on_runs(groups), groups.sum(axis=1)
        if self.unit * n * int(sizes.max(initial=0)) < SAFE:
            return cast("npt.NDArray[Any]", np.abs(held * n - of_table * sizes[:, None]) @ self.weight)
        exact = abs(held.astype(object) * n - of_table.astype(object) * sizes.astype(object)[:, None])
        return cast("npt.NDArray[Any]", (exact * self.weight.astype(object)).sum(axis=1))

    def allowed(self, t: Fraction, n: int, sizes: npt.ArrayLike) -> npt.NDArray[Any]:
        """The most `work` at which a group of each size is within t, (G,): floor(t * unit * n * size), exactly."""
        distinct, place = np.unique(np.asarray(sizes, dtype=np.int64), return_inverse=True)
        limits = [floor_times(t, self.unit * n * size) for size in distinct.tolist()]
        fits = max(limits, default=0) < SAFE
        return np.array(limits, dtype=np.int64 if fits else object)[place]
