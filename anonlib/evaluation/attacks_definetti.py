"""The deFinetti attack: learn from all buckets together what goes with what, and read each bucket in that light.

Source: Kifer, *Attacks on privacy and deFinetti's theorem*, SIGMOD 2009, section 5. Who takes the buckets one by one believes every
assignment of a bucket's values to its records equally likely. Records are exchangeable, not independent: other buckets tell how values
go with quasi-identifiers. The attack starts from a random assignment in each bucket, learns naive Bayes from it as if it were the table,
and lets pairs of records of a bucket exchange their values with the odds

    p(x1 | v2) p(x2 | v1) : p(x1 | v1) p(x2 | v2)

learns again, and so on; after a while it counts which value each record holds how often (a Gibbs sampler over assignments, the tables
kept fixed within a sweep). Fake values stand with phantoms: records with nothing known, to which every value is equally likely.

Pure. Cost: O(sweeps N A) for N listed values and A quasi-identifiers; memory O(n m).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from anonlib.arrays import Float64Array, Int32Array, Int64Array
from anonlib.evaluation.attacks import Attack, Listed
from anonlib.evaluation.attacks_registry_words import BY_MANY

SURE = 0.9


@dataclass(frozen=True)
class Tables:
    """Naive Bayes as logarithms. value : (m,) of p(v); given : per quasi-identifier (its values, m) of p(x | v)."""

    value: Float64Array
    given: tuple[Float64Array, ...]

    @staticmethod
    def learn(known: Int64Array, values: Int64Array, sizes: tuple[int, ...], overall: Float64Array) -> Tables:
        """The tables of records, with Laplace's correction.

        known   : (n, A) codes; values : (n,) sensitive codes; sizes : how many values each quasi-identifier has
        overall : (m,) shares of the values, which are public
        """
        m = len(overall)
        held = np.bincount(values, minlength=m).astype(np.float64)
        logs = []
        for a, size in enumerate(sizes):
            counts = np.bincount(known[:, a] * m + values, minlength=size * m).reshape(size, m)
            logs.append(np.log((counts + 1) / (held + size)))
        return Tables(np.log(np.maximum(overall, 1e-300)), tuple(logs))

    def score(self, known: Int64Array, values: Int64Array) -> Float64Array:
        """(n,) log p(v) p(x | v); 0 for phantoms, whose codes are negative."""
        total = self.value[values].copy()
        for a, logs in enumerate(self.given):
            total += logs[known[:, a], values]
        return np.where(known[:, 0] < 0, 0.0, total)


@dataclass(frozen=True)
class DeFinetti:
    """sweeps : in all; burn_in : of them not counted; seed : of numpy's generator (nothing private rests on it)."""

    sweeps: int = 300
    burn_in: int = 100
    seed: int = 0

    def __call__(
        self,
        bucket: Int64Array,
        known: Int64Array,
        listed: Listed,
        overall: Float64Array,
        fixed: Tables | None = None,
    ) -> Int32Array:
        """(n, m): in how many of the counted sweeps each record held each value.

        bucket : (n,) of each record; known : (n, A) codes 0, 1, ...; listed : what the buckets list, at least as many values as
        records, the rest being fakes; overall : (m,); fixed : tables that are known and not learnt

        Raises ValueError where a bucket lists fewer values than it has records.
        """
        rng = np.random.default_rng(self.seed)
        ids, values, start = _slots(listed)
        at = np.searchsorted(np.unique(listed.bucket), bucket)
        order = np.argsort(at, kind="stable")
        place = np.arange(len(at)) - np.searchsorted(at[order], at[order])
        slot = start[at[order]] + place
        sizes = np.diff(np.append(start, len(values)))
        if (place >= sizes[at[order]]).any():
            raise ValueError("a bucket lists fewer values than it has records")
        record = np.full(len(values), -1, dtype=np.int64)
        record[slot] = order
        looks = np.full((len(values), known.shape[1]), -1, dtype=np.int64)
        looks[slot] = known[order]
        values = values[np.lexsort((rng.random(len(values)), ids))]
        widths = tuple(int(known[:, a].max()) + 1 for a in range(known.shape[1]))
        real = record >= 0
        held = np.zeros((len(bucket), len(overall)), dtype=np.int32)
        for sweep in range(self.sweeps):
            tables = fixed or Tables.learn(looks[real], values[real], widths, overall)
            one, other = _pairs(ids, start, rng)
            now = tables.score(looks[one], values[one]) + tables.score(looks[other], values[other])
            then = tables.score(looks[one], values[other]) + tables.score(looks[other], values[one])
            swap = rng.random(len(one)) < 1 / (1 + np.exp(np.clip(now - then, -700, 700)))
            values[one[swap]], values[other[swap]] = values[other[swap]], values[one[swap]]
            if sweep >= self.burn_in:
                held[record[real], values[real]] += 1
        return held


def _slots(listed: Listed) -> tuple[Int64Array, Int64Array, Int64Array]:
    """(bucket number of each listed value, the values, where each bucket starts), by bucket."""
    _, number = np.unique(listed.bucket, return_inverse=True)
    order = np.argsort(number.reshape(-1), kind="stable")
    times = np.asarray(listed.count)[order]
    ids = np.repeat(number.reshape(-1)[order], times)
    values = np.repeat(np.asarray(listed.code)[order], times).astype(np.int64)
    return ids, values, np.searchsorted(ids, np.arange(int(number.max()) + 1))


def _pairs(ids: Int64Array, start: Int64Array, rng: np.random.Generator) -> tuple[Int64Array, Int64Array]:
    """Random disjoint pairs of slots of the same bucket."""
    order = np.lexsort((rng.random(len(ids)), ids))
    first = np.flatnonzero(((np.arange(len(ids)) - start[ids]) % 2 == 0)[:-1] & (ids[:-1] == ids[1:]))
    return order[first], order[first + 1]


def definetti(held: Int32Array, truth: Int64Array, without: float, prior: float, allowed: float | None) -> Attack:
    """The attack's figures from the counts of its sweeps.

    held    : as `DeFinetti` gives it; truth : (n,); without : the accuracy of who takes the buckets one by one
    allowed : what the promise allows to be believed of one person, for comparison; it is no bound here

    detail: how many persons are believed at `SURE` or more to have a value, and how often that is right.
    """
    swept = max(1, int(held[0].sum())) if len(held) else 1
    guess, belief = held.argmax(axis=1), held.max(axis=1) / swept
    right, sure = guess == truth, belief >= SURE
    detail: dict[str, Any] = {"without learning": without, "sure": float(sure.sum())}
    detail |= {"right when sure": float(right[sure].mean())} if sure.any() else {}
    detail |= {} if allowed is None else {"allowed of one person": allowed}
    words = f"{BY_MANY} (a sample of {len(truth):,})"
    return Attack("deFinetti", float(right.mean()), prior, None, detail, persons=len(truth), words=words)
