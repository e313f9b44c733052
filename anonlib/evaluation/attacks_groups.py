"""Persons who cannot be told apart, and the sensitive values listed with them: a bucket, a class, the rows whose boxes hold a person.

Homogeneity and skewness (Machanavajjhala et al., ICDE 2006; Li, Li, Venkatasubramanian, ICDE 2007) and the bound itself are read off
such groups. Pure; a kernel over batches of groups tells sums and maxima, which add up on the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Float64Array, Int64Array
from anonlib.queries.boxes import column

PERSONS, LIKELIEST, GROWN, ABOVE, CERTAIN, VALUES = range(6)
"""Places of a tally: persons; expected right guesses of homogeneity and of skewness; persons above the bound; persons of whom one value
is certain; then the sensitive values, one place each."""


@dataclass(frozen=True)
class Groups:
    """G groups of persons who cannot be told apart, with the values listed for each.

    lengths : (G,) distinct values of each; code, count : of all groups one after another; persons : (G,) how many persons each has
    """

    lengths: Int64Array
    code: Int64Array
    count: Int64Array
    persons: Float64Array

    @staticmethod
    def of_matrix(counts: npt.NDArray[Any], persons: Float64Array) -> Groups:
        """The groups with rows of a (G, m) table of counts; those without any value are left out. persons : (G,)."""
        held = np.asarray(counts).sum(axis=1) > 0
        row, code = np.nonzero(counts[held])
        lengths = np.bincount(row, minlength=int(held.sum()))
        return Groups(lengths, code, np.rint(counts[held][row, code]).astype(np.int64), persons[held])


@dataclass(frozen=True)
class Tally:
    """Kernel over batches with the lists `codes` and `counts`, a group per row: {"at", "total", "most"} by place.

    shares : (m,) of the values in the table; bounds : the largest belief allowed for each value, exact, or None where nothing is promised
    fakes  : listed values of each group that belong to nobody
    """

    shares: tuple[float, ...]
    bounds: tuple[Fraction | None, ...]
    fakes: int = 0

    @property
    def length(self) -> int:
        """How many places a tally has: `VALUES`, and one for each sensitive value."""
        return VALUES + len(self.shares)

    def __call__(self, batches: Iterable[Any]) -> dict[str, Any]:
        total, most = np.zeros(self.length), np.zeros(self.length)
        for batch in batches:
            lists = column(batch, "codes")
            lengths = lists.value_lengths().to_numpy().astype(np.int64)
            code, count = (column(batch, n).flatten().to_numpy().astype(np.int64) for n in ("codes", "counts"))
            starts = np.cumsum(lengths) - lengths
            size = np.add.reduceat(count, starts) if len(lengths) else lengths
            more, largest = self.tally(Groups(lengths, code, count, (size - self.fakes).astype(np.float64)))
            total, most = total + more, np.maximum(most, largest)
        at = np.flatnonzero((total != 0) | (most != 0))
        return {"at": at, "total": total[at], "most": most[at]}

    def tally(self, groups: Groups) -> tuple[Float64Array, Float64Array]:
        """(sums, maxima) over the groups, both (length,) float64, by place. O(listed values)."""
        total, most = np.zeros(self.length), np.zeros(self.length)
        if not len(groups.lengths):
            return total, most
        starts = np.cumsum(groups.lengths) - groups.lengths
        of = np.repeat(np.arange(len(starts)), groups.lengths)
        size = np.add.reduceat(groups.count, starts)
        belief = groups.count / size[of]
        lift = belief / np.array(self.shares)[groups.code]
        best = np.maximum.reduceat(belief, starts)
        grown = lift >= np.maximum.reduceat(lift, starts)[of] * (1 - 1e-12)
        guess = np.add.reduceat(np.where(grown, belief, 0.0), starts) / np.add.reduceat(grown.astype(float), starts)
        over = groups.count > self._capacity(size)[of, groups.code]
        broken = np.logical_or.reduceat(over, starts)
        for place, per_group in (
            (PERSONS, np.ones(len(starts))),
            (LIKELIEST, best),
            (GROWN, guess),
            (ABOVE, broken.astype(float)),
            (CERTAIN, (groups.lengths == 1).astype(float)),
        ):
            total[place] = (groups.persons * per_group).sum()
        np.maximum.at(most, VALUES + groups.code, belief)
        return total, most

    def _capacity(self, size: Int64Array) -> Int64Array:
        """(G, m): the largest count that keeps each bound in a group of each size, exactly: floor(bound * size)."""
        sizes, number = np.unique(size, return_inverse=True)
        floors = [
            [int(s) if b is None else min(int(s), b.numerator * int(s) // b.denominator) for b in self.bounds]
            for s in sizes
        ]
        return np.asarray(np.array(floors, dtype=np.int64)[number.reshape(-1)])


def added(places: Sequence[Mapping[str, Any]], length: int) -> tuple[Float64Array, Float64Array]:
    """(sums, maxima), both (length,) float64, from rows of `at`, `total` and `most`, at most one for each place."""
    total, most = np.zeros(length), np.zeros(length)
    for row in places:
        total[row["at"]], most[row["at"]] = row["total"], row["most"]
    return total, most
