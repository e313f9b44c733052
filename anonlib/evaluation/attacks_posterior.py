"""The posterior given a published value: who knows a person's row of a perturbed table turns the perturbation around.

In a sub-table of N records, n_v of them v, a record keeps its value or is replaced so that value w is published as u with odds gamma : 1
for u = w against any other u (small domain randomization, equations 1 and 9). Whoever sees u believes

    Pr(v | u) = n_v g(v, u) / (n_u gamma + N - n_u)        g(v, u) = gamma if v = u, else 1

which is largest, for each v, at u = v. Exact: gamma is a fraction, counts are whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.evaluation.attacks import Attack


@dataclass(frozen=True)
class SubTable:
    """One sub-table. gamma : exact; code : (m,) codes of its values in the whole domain; count : (m,) records that truly have each."""

    gamma: Fraction
    code: Int64Array
    count: Int64Array

    def when_shown(self) -> list[Fraction]:
        """(m,) the belief in each value when that value is published: the largest belief in it there is."""
        n = int(self.count.sum())
        return [c * self.gamma / (c * self.gamma + n - c) for c in map(int, self.count)]

    def guesses(self) -> Int64Array:
        """(m,) the code that is likeliest to be the true one, by published value in the order of `code`."""
        count = self.count.astype(object)
        first = int(np.argmax(self.count))
        kept = np.array([c * self.gamma >= int(self.count[first]) for c in count], dtype=bool)
        return np.asarray(np.where(kept, self.code, self.code[first]), dtype=np.int64)

    def expected(self) -> float:
        """How many of its records the guesses get right, on average over the key."""
        n, gamma = int(self.count.sum()), float(self.gamma)
        own = self.guesses() == self.code
        stay = self.count / (
            len(self.count) - 1 + gamma
        )  # of the records with a value, those published as any given other one
        return float(np.where(own, stay * gamma, 0.0).sum() + stay.max() * (~own).sum()) if n else 0.0


def posterior(
    subtables: Sequence[SubTable],
    shown: Sequence[Int64Array],
    right: float,
    prior: float,
    rho2: Fraction,
    protected: Sequence[bool],
    words: str,
) -> Attack:
    """The attack's figures.

    shown     : per sub-table (m,) how many rows publish each value, in the order of `code`
    right     : how many of all guesses were right, measured on the original
    protected : by code of the whole domain, whether the promise is about it

    detail: `expected`, the accuracy to expect over the keys.
    """
    persons = int(sum(int(s.sum()) for s in shown))
    above, largest = 0, Fraction(0)
    for table, rows in zip(subtables, shown, strict=True):
        for code, belief, n in zip(table.code, table.when_shown(), rows, strict=True):
            if protected[code] and n:
                largest = max(largest, belief)
                above += int(n) if belief > rho2 else 0
    return Attack(
        "posterior",
        right / max(1, persons),
        prior,
        float(rho2),
        {"expected": sum(table.expected() for table in subtables) / max(1, persons)},
        persons=persons,
        above=above,
        largest=float(largest),
        words=words,
    )
