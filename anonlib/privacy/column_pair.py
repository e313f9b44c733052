"""F'-privacy of two sensitive columns at once: a bound on every value of each column, and so on every combination of the two.

A record has a combination, a value of the first column with one of the second. In a bucket the combinations that hold a value add up to
that value's records, so a bound on each combination alone would leave the value unbounded: all records of a bucket may have one disease
and different drugs. The bounds are therefore on the values of each column; no combination can be more frequent than either of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.errors import Unsatisfiable
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy, Thresholds


@dataclass(frozen=True, eq=False)
class PairCounts:
    """How often the combinations of two columns' values occur, and the values of each column.

    combined : the m combinations that occur, by their texts
    columns  : the values of each column, counted over all combinations
    codes    : (2, m) int64, of each combination the number of its value in either column
    """

    combined: SensitiveCounts
    columns: tuple[SensitiveCounts, SensitiveCounts]
    codes: Int64Array

    @staticmethod
    def of(combined: SensitiveCounts, parts_of: Callable[[str], Sequence[str | None]]) -> PairCounts:
        """From counted combinations. parts_of : a combination's text -> its two values' texts, None for a null. O(m)."""
        parts = [tuple(parts_of(str(text))) for text in combined.values]
        coded = [_coded([part[k] for part in parts], combined.counts) for k in (0, 1)]
        return PairCounts(combined, (coded[0][0], coded[1][0]), np.stack([coded[0][1], coded[1][1]]))

    @property
    def n(self) -> int:
        """How many records there are."""
        return self.combined.n

    @property
    def m(self) -> int:
        """How many combinations occur."""
        return self.combined.m


@dataclass(frozen=True)
class PairThresholds:
    """The thresholds of the values of each of two columns, in the order of `PairCounts.columns`."""

    columns: tuple[Thresholds, Thresholds]

    def of_combinations(self, codes: Int64Array) -> tuple[Fraction, ...]:
        """What follows for each combination, the smaller threshold of its two values. codes : (2, m)."""
        first, second = (thresholds.fractions for thresholds in self.columns)
        return tuple(min(first[a], second[b]) for a, b in codes.T.tolist())


def pair_thresholds(counts: PairCounts, asked: Sequence[FPrivacy], names: Sequence[str]) -> PairThresholds:
    """Exact thresholds of the values of both columns. asked : what is asked of each; names : of the columns.

    Raises Unsatisfiable, naming the column, where a value is more frequent than its threshold allows in any bucket (Lemma 1), and SpecError
    as `FPrivacy.thresholds` does.
    """
    thresholds = []
    for column, model, name in zip(counts.columns, asked, names, strict=True):
        try:
            thresholds.append(model.thresholds(column))
        except Unsatisfiable as refusal:
            raise Unsatisfiable(f"of the sensitive column {name!r}: {refusal}") from None
    return PairThresholds((thresholds[0], thresholds[1]))


def _coded(texts: Sequence[str | None], counts: Int64Array) -> tuple[SensitiveCounts, Int64Array]:
    """(the distinct values with their records, the number of each text's value), a missing one last."""
    values = sorted(set(texts), key=lambda text: (text is None, text or ""))
    number = {value: i for i, value in enumerate(values)}
    codes = np.array([number[text] for text in texts], dtype=np.int64)
    records = np.zeros(len(values), dtype=np.int64)
    np.add.at(records, codes, counts)
    return SensitiveCounts(tuple(values), records), codes
