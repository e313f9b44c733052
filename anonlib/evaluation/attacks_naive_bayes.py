"""Naive Bayes as an attack on generalized records (heterogeneous generalization, section 6): learn from the release, guess the original.

The adversary knows everybody's quasi-identifiers. From the release he takes, for every sensitive value v, how many records have it and how
they are spread over each attribute, boxes counting evenly for what they hold; he then guesses, for a person with x, the v with the largest

    p(v) prod_i p(x_i | v)        p(x_i | v) = n(x_i, v) / n(v), or with Laplace's correction (n(x_i, v) + 1) / (n(v) + |A_i|)

Two passes, whatever the number of records: the tables n(x_i, v) are the cells of a data cube at level 1. No promise bounds this accuracy
strictly: a learner profits from what holds for many; what is promised about one person stands beside it for comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from anonlib.arrays import Float32Array, Float64Array, Int64Array
from anonlib.evaluation.attacks import Attack
from anonlib.evaluation.attacks_registry_words import BY_MANY
from anonlib.queries.boxes import Attribute, column
from anonlib.queries.cells import Cells

NAMES = (
    "naive Bayes",
    "naive Bayes, Laplace",
    "naive Bayes, boxes count 1",
    "naive Bayes, boxes count 1, Laplace",
)
"""A box spread evenly over the values it holds, or counted once for each of them (the study's way)."""


@dataclass(frozen=True)
class NaiveBayes:
    """What was learnt: logarithms, ready to be added up. prior : (m,) of p(v); given : per attribute (cells, m) of p(x | v)."""

    cells: tuple[Cells, ...]
    prior: Float64Array
    given: tuple[Float64Array, ...]

    @staticmethod
    def learn(
        cells: Sequence[Cells], tables: Sequence[Float64Array], laplace: bool, of_value: Float64Array | None = None
    ) -> NaiveBayes:
        """The classifier that tables of counts make, with Laplace's correction or without.

        tables   : per attribute (cells, m), how many records with each sensitive value lie in each cell
        of_value : (m,) records with each value; the sum of a table's cells when not given (boxes may count in several cells)
        """
        of_value = tables[0].sum(axis=0) if of_value is None else of_value
        extra = 1.0 if laplace else 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            prior = np.log(of_value / of_value.sum())
            # what boxes of single precision leave of a cell that no box touches is nothing
            counts = [np.where(t > 1e-9, t, 0.0) for t in tables]
            logs = [np.log((t + extra) / (np.maximum(of_value, 1e-300) + extra * len(t))) for t in counts]
        return NaiveBayes(tuple(cells), prior, tuple(logs))

    def guesses(self, codes: Sequence[npt.NDArray[Any]]) -> Int64Array:
        """(n,) the guessed sensitive code of records with these codes. Where nothing is possible, the most frequent value."""
        score = np.broadcast_to(self.prior, (len(codes[0]), len(self.prior))).copy()
        for cells, logs, column_ in zip(self.cells, self.given, codes, strict=True):
            score += logs[cells.index(column_)]
        lost = ~np.isfinite(score).any(axis=1)
        score[lost] = self.prior
        return np.asarray(score.argmax(axis=1), dtype=np.int64)


@dataclass(frozen=True)
class CountedOnce(Cells):
    """Cells in which a box counts 1 for each value it holds (heterogeneous generalization, section 6), however many they are."""

    @staticmethod
    def like(cells: Cells) -> CountedOnce:
        """The same cells, counted once."""
        return CountedOnce(cells.low, cells.high)

    def shares(self, attribute: Attribute) -> Float32Array:
        """(n, number): 1 for each cell that a box reaches into, else 0."""
        return np.asarray(super().shares(attribute) > 0, dtype=np.float32)


@dataclass(frozen=True)
class Guesses:
    """Kernel over records as codes (q0, q1, ..., and s0): how many each of the classifiers guesses right, then how many records."""

    learnt: tuple[NaiveBayes, ...]

    @property
    def length(self) -> int:
        """How long the kernel's vector is: a place for each classifier, and one for the records."""
        return len(self.learnt) + 1

    def __call__(self, batches: Iterable[Any]) -> Float64Array:
        total = np.zeros(self.length, dtype=np.float64)
        for batch in batches:
            step = max(1, (1 << 22) // max(1, len(self.learnt[0].prior)))
            for start in range(0, batch.num_rows, step):
                part = batch.slice(start, step)
                truth = column(part, "s0").to_numpy()
                codes = [column(part, f"q{i}").to_numpy() for i in range(len(self.learnt[0].cells))]
                right = [float((classifier.guesses(codes) == truth).sum()) for classifier in self.learnt]
                total += np.array([*right, part.num_rows])
        return total


def attacks_of(total: Float64Array, prior: float, allowed: float | None) -> list[Attack]:
    """The attacks from the sums of `Guesses` over the classifiers of `NAMES`, in order.

    allowed : what the release's promise allows to be believed of one person, to be compared with; it is no bound on a learner.
    """
    detail = {} if allowed is None else {"allowed of one person": allowed}
    persons = round(float(total[-1]))
    return [
        Attack(name, float(total[k] / max(1.0, total[-1])), prior, None, detail, persons=persons, words=BY_MANY)
        for k, name in enumerate(NAMES[: len(total) - 1])
    ]
