"""Unmixing: naive Bayes learnt from what counts by kind of bucket tell, and each person read within the values of the person's bucket.

The adversary does what an analyst does (`anonlib.queries.flattening`): for every value x of every quasi-identifier he counts the records
with x in each kind of bucket, and solves for how much likelier than overall a record of each sensitive value v has x, shrunk towards
"not at all". Of a person with quasi-identifiers x in bucket g he believes v in proportion to

    c(g, v) prod over quasi-identifiers i of  p(x_i | v) / p(x_i)

that is, naive Bayes over the values that the bucket lists, the bucket's own shares as the prior. The quasi-identifiers of the others in
the bucket are not looked at, as the deFinetti attack does: what is shared out there twice is not noticed here.

Where buckets list fakes he takes the values that a bucket lists for its kind and, for c(g, v), the records that a listing of v stands
for on average, o_v of all the times that v is listed. Which listings are fake does not hang on who is in the bucket, so the same system
holds on average; it is noisier. (Fakes that are chosen against associations do hang on it, and the system is off by that much.)

No promise bounds a learner.

Pure. Cost: O(m^3) once for m sensitive values, O(m^2) for each value of a quasi-identifier; O(m A) a person for A quasi-identifiers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonlib.arrays import BoolArray, Float64Array, Int64Array
from anonlib.evaluation.attacks import Attack, Listed
from anonlib.evaluation.attacks_definetti import SURE
from anonlib.evaluation.attacks_registry_words import BY_MANY
from anonlib.queries.flattening import Flattening, Kinds

Ratios = tuple[Float64Array, ...]
"""Per quasi-identifier (its codes, m): the logarithm of how much likelier than overall a record of each sensitive value has a code."""


def likelier(kinds: Kinds, flattened: Sequence[Float64Array]) -> Ratios:
    """What the release tells of each quasi-identifier.

    kinds     : of the release's buckets, over m sensitive values
    flattened : per quasi-identifier (its codes, m), the flattened estimates of how many records have a code and a sensitive value
    """
    system = Flattening(kinds)
    return tuple(np.log(system.ratio(counts.T)).T for counts in flattened)


@dataclass(frozen=True)
class Learnt:
    """What was learnt. of : places of the quasi-identifiers that were learnt from; ratios : of these, in this order; unread : the names of
    the others, which have too many values; real : (m,) how many records a listing of a value stands for on average, None without fakes."""

    of: list[int]
    ratios: Ratios
    unread: tuple[str, ...] = ()
    real: Float64Array | None = None


@dataclass(frozen=True)
class Beliefs:
    """What is believed of n persons: E entries, those of a person one after the other.

    start  : (n,) where a person's entries begin; code : (E,) the values that the person's bucket lists
    belief : (E,) of the person's having the value, adding up to 1 by person
    """

    start: Int64Array
    code: Int64Array
    belief: Float64Array

    @staticmethod
    def of(
        bucket: Int64Array, known: Int64Array, listed: Listed, ratios: Ratios, real: Float64Array | None = None
    ) -> Beliefs:
        """The beliefs of somebody who multiplies `ratios` of all quasi-identifiers; of none, who takes the bucket alone.

        bucket : (n,) of each person, n > 0; known : (n, A) codes; listed : the values of these buckets; real : as in `Learnt`. Memory O(E).
        """
        order = np.argsort(listed.bucket, kind="stable")
        ids, first, rows = np.unique(np.asarray(listed.bucket)[order], return_index=True, return_counts=True)
        at = np.searchsorted(ids, bucket)
        held = rows[at]
        start = np.cumsum(held) - held
        person = np.repeat(np.arange(len(bucket)), held)
        row = order[first[at][person] + np.arange(len(person)) - start[person]]
        code = np.asarray(listed.code)[row].astype(np.int64)
        score = np.log(np.asarray(listed.count)[row].astype(np.float64))
        if real is not None:
            score += np.log(real[code])
        for attribute, logs in enumerate(ratios):
            score += logs[known[person, attribute], code]
        weight = np.exp(score - np.maximum.reduceat(score, start)[person])
        return Beliefs(start, code, weight / np.add.reduceat(weight, start)[person])

    @property
    def person(self) -> Int64Array:
        """(E,): whose entry it is."""
        return np.repeat(np.arange(len(self.start)), np.diff(np.append(self.start, len(self.code))))

    def most(self) -> Float64Array:
        """(n,): the largest belief about each person."""
        return np.asarray(np.maximum.reduceat(self.belief, self.start))

    def right(self, truth: Int64Array) -> Float64Array:
        """(n,): the chance that guessing a value believed most is right, one of several at random. truth : (n,) codes."""
        best: BoolArray = self.belief >= self.most()[self.person] * (1 - 1e-12)
        hit = best & (self.code == truth[self.person])
        return np.asarray(
            np.add.reduceat(hit.astype(np.float64), self.start) / np.add.reduceat(best, self.start, dtype=np.int64)
        )


def unmixing(
    beliefs: Beliefs, truth: Int64Array, without: float, prior: float, allowed: float | None, unread: Sequence[str] = ()
) -> Attack:
    """The attack's figures.

    truth   : (n,); without : the accuracy of who takes the buckets one by one
    allowed : what the promise allows to be believed of one person, for comparison; it is no bound here
    unread  : quasi-identifiers with too many values, which were not learnt from

    detail: how many persons are believed at `SURE` or more to have a value, and how often that is right.
    """
    right, sure = beliefs.right(truth), beliefs.most() >= SURE
    detail: dict[str, float | str] = {"without learning": without, "sure": float(sure.sum())}
    detail |= {"right when sure": float(right[sure].mean())} if sure.any() else {}
    detail |= {"not learnt from": ", ".join(unread)} if unread else {}
    detail |= {} if allowed is None else {"allowed of one person": allowed}
    words = f"{BY_MANY} (a sample of {len(truth):,})"
    return Attack("unmixing", float(right.mean()), prior, None, detail, persons=len(truth), words=words)


def readable(numbers: Sequence[int], most: int) -> list[int]:
    """Which quasi-identifiers are learnt from: those with the fewest codes, together at most `most`; in their own order."""
    chosen, together = [], 0
    for place in sorted(range(len(numbers)), key=lambda i: (numbers[i], i)):
        together += numbers[place]
        if together > most:
            break
        chosen.append(place)
    return sorted(chosen)
