"""Insiders: what somebody believes of the others who knows the graph of matches, the rows, and the sensitive values of k persons.

Source: heterogeneous generalization, section 2 (what the adversary knows); corruption (Tao, Xiao, Li, Zhang, ICDE 2008) is the same
attack on groups. Nothing is promised against it. The graph is not published, so this is measured on graphs as the method makes them, not
on a release: `python -m benchmarks.beliefs --insiders`.

A *labelling* says the bucket of every person of a pool so that the candidates of every record are of different buckets. A row shows the
bucket of its colour, so a labelling says whose row is whose: it is a world that the adversary must count with, and all are alike likely
(given who matches whom, and no more). An insider's value says their bucket. So beliefs are shares of the labellings that give the
insiders their own buckets; ways to count them, from exact to large:

    known_buckets    he also knows who shares a bucket with whom (he ran the code): only the names of the buckets are left, exactly
    all_labellings   every labelling, one by one: exact, for a few dozen persons
    walk             a random walk over labellings by Kempe swaps that leave the insiders alone (exchange two labels in one connected
                     component of the persons who carry them): every labelling that it reaches is alike likely. Those it does not reach
                     are not counted, so beliefs may come out too large, never too certain by noise alone.

    proven           what two rules of elimination leave, repeated: a bound from the other side, as who is left one bucket is certain

Pure. Draws are numpy's, seeded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from anonlib.arrays import BoolArray, Float64Array, IntegerArray

NOISE = 3
"""A sampled belief counts as above a bound when it is so by as many standard errors."""


@dataclass(frozen=True)
class Gain:
    """What insiders learn of the `others` in their pool: how many are believed to have some value `above` 1/(l - k), above a half, and
    with certainty; the largest belief."""

    others: int
    above: int
    half: int
    certain: int
    largest: float


def gain(belief: Float64Array, insiders: Sequence[int], matches: int, samples: int | None = None) -> Gain:
    """What insiders learn of the others in their pool.

    belief  : (n,) the largest in any one value, of every person; insiders : their numbers; matches : l
    samples : how many labellings a belief is a share of, None where exact

    With k >= l insiders nothing can be above 1/(l - k), and `above` is 0.
    """
    others = np.delete(belief, list(insiders))
    left = matches - len(set(insiders))

    def over(bound: Fraction) -> int:
        noise = 1e-9 if samples is None else NOISE * float(bound * (1 - bound) / samples) ** 0.5
        return int((others > float(bound) + noise).sum())

    return Gain(
        others=len(others),
        above=over(Fraction(1, left)) if left > 0 else 0,
        half=over(Fraction(1, 2)),
        certain=int((others >= 1).sum()),
        largest=float(others.max(initial=0.0)),
    )


def known_buckets(
    bucket: IntegerArray, insiders: Sequence[int], mu: int, allowed: BoolArray | None = None
) -> Float64Array:
    """(n,) the largest belief in a value, of somebody who knows who shares a bucket with whom, but none of their names.

    bucket : (n,) of every person, true; allowed : as `allowed_by_rows` gives it, None where it is every bucket (by a rainbow)
    A world is a way to name the buckets; O(mu) where all are allowed, O(mu^2 2^mu) else.
    """
    named = np.zeros(mu, dtype=bool)
    named[bucket[list(insiders)]] = True
    if allowed is None or allowed.all():
        left = mu - int(named.sum())
        return np.where(named[bucket] | (left == 1), 1.0, 1.0 / max(1, left))
    may = np.ones((mu, mu), dtype=bool)
    np.logical_and.at(may, bucket, allowed)
    may[named] = np.eye(mu, dtype=bool)[named]
    before, after = _ways(may), _ways(may[::-1])
    whole, every = before[mu][-1], (1 << mu) - 1
    belief = np.zeros((mu, mu))
    for b, name in zip(*np.nonzero(may), strict=True):
        sets = np.flatnonzero(before[b])
        sets = sets[sets >> name & 1 == 0]
        belief[b, name] = (before[b][sets] * after[mu - 1 - b][every ^ sets ^ (1 << int(name))]).sum() / whole
    return np.asarray(belief.max(axis=1)[bucket])


def _ways(may: BoolArray) -> list[Float64Array]:
    """For 0, 1, ... rows: how many ways to name them with just the names of each set (2^mu,)."""
    mu = len(may)
    ways = [np.zeros(1 << mu)]
    ways[0][0] = 1
    for row in may:
        then = np.zeros(1 << mu)
        sets = np.flatnonzero(ways[-1])
        for name in np.flatnonzero(row).tolist():
            free = sets[sets >> name & 1 == 0]
            then[free | 1 << name] += ways[-1][free]
        ways.append(then)
    return ways


def in_classes(group: IntegerArray, value: IntegerArray, insiders: Sequence[int]) -> Float64Array:
    """(n,) the largest belief in a value where persons are published in groups, from whose lists the insiders' values are struck."""
    out = np.zeros(len(group), dtype=bool)
    out[list(insiders)] = True
    pairs, held = np.unique(np.stack([group[~out], value[~out]], axis=1), axis=0, return_counts=True)
    most = np.zeros(int(group.max()) + 1)
    np.maximum.at(most, pairs[:, 0], held)
    return np.where(out, 1.0, most[group] / np.maximum(1, np.bincount(group[~out], minlength=len(most)))[group])


def allowed_by_rows(matches: IntegerArray, shown: IntegerArray) -> BoolArray:
    """(n, mu) which buckets each person may be of by the rows: those shown just once around the person.

    matches : (n, mu) the persons that each record may be of; shown : (n,) the bucket of the value each record shows
    By a rainbow colouring that is every bucket.
    """
    n, mu = matches.shape
    around = np.zeros((n, mu), dtype=np.int64)
    np.add.at(around, (matches.ravel(), np.repeat(shown, mu)), 1)
    return np.asarray(around == 1)


def proven(matches: IntegerArray, bucket: IntegerArray, allowed: BoolArray, insiders: Sequence[int]) -> BoolArray:
    """(n, mu) the buckets that are left to each person; never fewer than the labellings leave.

    Who is left one bucket takes it from everybody in the same records; a bucket for which a record has one candidate left is that one's.
    O(n mu^2) a round, until nothing changes.
    """
    mu = matches.shape[1]
    may = allowed.copy()
    may[list(insiders)] = np.eye(mu, dtype=bool)[bucket[list(insiders)]]
    before = -1
    while before != (before := int(may.sum())):
        held = may[matches]  # (records, candidates, buckets)
        lone, of = np.nonzero(held.sum(axis=1) == 1)
        may[matches[lone, held[lone, :, of].argmax(axis=1)]] &= np.eye(mu, dtype=bool)[of]
        held = may[matches]
        settled = held.sum(axis=2) == 1
        settled_buckets = (held & settled[:, :, None]).any(axis=1)  # (records, buckets)
        strike = np.zeros_like(may)
        np.logical_or.at(strike, matches, settled_buckets[:, None, :] & ~settled[:, :, None])
        may &= ~strike
    return may


def all_labellings(matches: IntegerArray, allowed: BoolArray) -> Iterator[tuple[int, ...]]:
    """Every labelling, as the bucket of each person; exponential in their number."""
    n, mu = matches.shape
    near: list[set[int]] = [set() for _ in range(n)]
    for row in matches.tolist():
        for person in row:
            near[person].update(row)
    label = [-1] * n

    def go(person: int) -> Iterator[tuple[int, ...]]:
        if person == n:
            yield tuple(label)
            return
        near_buckets = {label[other] for other in near[person] if other < person}
        for bucket in range(mu):
            if allowed[person, bucket] and bucket not in near_buckets:
                label[person] = bucket
                yield from go(person + 1)

    return go(0)


def believed(labellings: IntegerArray, truth: IntegerArray, insiders: Sequence[int], mu: int) -> Float64Array:
    """(n, mu) the share of the labellings, (S, n), that put each person in each bucket, of those that give the insiders their own."""
    who = list(insiders)
    kept = labellings[(labellings[:, who] == truth[who]).all(axis=1)]
    return np.stack([(kept == bucket).mean(axis=0) for bucket in range(mu)], axis=1)


def walk(
    matches: IntegerArray,
    bucket: IntegerArray,
    allowed: BoolArray,
    insiders: Sequence[Sequence[int]],
    samples: int,
    sweep: int | None = None,
    seed: int = 0,
) -> Float64Array:
    """(R, n, mu) beliefs of R sets of insiders, from `samples` labellings each, drawn as `labellings` does.

    Where every bucket is allowed, the names of buckets that no insider is of are interchangeable, and their beliefs are averaged.
    """
    n, mu = matches.shape
    times = np.zeros((len(insiders) * n, mu))
    for drawn in labellings(matches, bucket, allowed, insiders, samples, sweep, seed):
        times[np.arange(len(times)), drawn.ravel()] += 1
    share = (times / samples).reshape(len(insiders), n, mu)
    if allowed.all():
        for k, who in enumerate(insiders):
            free = np.setdiff1d(np.arange(mu), bucket[list(who)])
            if len(free):
                share[k][:, free] = share[k][:, free].mean(axis=1, keepdims=True)
    return np.asarray(share)


def labellings(
    matches: IntegerArray,
    bucket: IntegerArray,
    allowed: BoolArray,
    insiders: Sequence[Sequence[int]],
    samples: int,
    sweep: int | None = None,
    seed: int = 0,
) -> Iterator[IntegerArray]:
    """`samples` times (R, n): a labelling for each of R sets of insiders, which gives them their own buckets.

    matches : (n, mu); bucket : (n,) the true labelling, where all walks begin; allowed : (n, mu) as `allowed_by_rows` gives it
    sweep   : pairs of labels exchanged between samples, by default as many as there are labels
    Cost: O(R n) a pair; memory O(R n mu).
    """
    chains = _Chains(matches, bucket, allowed, insiders, np.random.default_rng(seed))
    pairs = chains.mu if sweep is None else sweep
    for _ in range(WARM * pairs):
        chains.swap()
    for _ in range(samples):
        for _ in range(pairs):
            chains.swap()
        yield chains.label.reshape(len(insiders), chains.n)


def worst_first(sampled: IntegerArray, truth: IntegerArray, target: int, most: int, mu: int | None) -> list[int]:
    """The `most` insiders, one by one, whose values tell most of the target's, as far as (S, n) labellings say.

    mu : the number of buckets where their names are interchangeable (a rainbow), None where rows tell the names
    A choice is judged by `FEWEST` labellings at least that it leaves; with fewer, nobody further is chosen. O(most S n).
    """
    names: dict[int, IntegerArray] = (
        {} if mu is not None else {int(b): np.full(len(sampled), b) for b in np.unique(truth)}
    )
    chosen: list[int] = []
    kept = np.arange(len(sampled))
    while len(chosen) < most:
        share, own = _beliefs_with_one_more(
            sampled[kept], truth, target, {b: label[kept] for b, label in names.items()}, mu
        )
        share[[target, *chosen]] = -1
        share[own.sum(axis=0) < FEWEST] = -1
        best = int(share.argmax())
        if share[best] < 0:
            break
        chosen.append(best)
        kept = kept[own[:, best]]
        names.setdefault(int(truth[best]), sampled[:, best])
    return chosen


def _beliefs_with_one_more(
    sampled: IntegerArray, truth: IntegerArray, target: int, names: dict[int, IntegerArray], mu: int | None
) -> tuple[Float64Array, BoolArray]:
    """(n,) the belief in the target's own bucket if each person is the next insider, and (S, n) the labellings that this leaves.

    names : {bucket: (S,) the label it has in each labelling} of those that insiders have named
    """
    own = np.empty(sampled.shape, dtype=bool)
    other = np.ones(sampled.shape, dtype=bool)
    for label in names.values():
        other &= sampled != label[:, None]
    for b in np.unique(truth).tolist():
        who = truth == b
        own[:, who] = sampled[:, who] == names[b][:, None] if b in names else other[:, who]
    hits = own & own[:, [target]]
    divided = np.ones(len(truth))
    if int(truth[target]) not in names:
        assert mu is not None
        like = truth == truth[target]
        same = sampled == sampled[:, [target]]
        hits = np.where(like, own & same, hits & ~same)
        new = np.array([b not in names for b in truth.tolist()])
        divided = np.where(like, 1, mu - len(names) - new)
    return hits.sum(axis=0) / np.maximum(1, own.sum(axis=0)) / divided, own


FEWEST = 100
"""Labellings that a choice of insiders must leave to be judged by."""
WARM = 20
"""Sweeps before the first sample."""


class _Chains:
    """R walks side by side, as one graph of R n persons."""

    def __init__(
        self,
        matches: IntegerArray,
        bucket: IntegerArray,
        allowed: BoolArray,
        insiders: Sequence[Sequence[int]],
        random: np.random.Generator,
    ) -> None:
        self.n, self.mu = matches.shape
        self.number = self.n * len(insiders)
        self.label = np.tile(np.asarray(bucket, dtype=np.int64), len(insiders))
        self._random = random
        self._allowed = np.tile(allowed, (len(insiders), 1))
        for k, who in enumerate(insiders):
            for person in who:
                self._allowed[k * self.n + person] = False
        start = np.repeat(np.arange(len(insiders)) * self.n, self.n)[:, None]
        persons = np.tile(np.asarray(matches, dtype=np.int64), (len(insiders), 1)) + start
        self._of = np.empty(
            (self.number, self.mu), dtype=np.int64
        )  # who of each record's candidates carries each label
        self._of[np.arange(self.number)[:, None], self.label[persons]] = persons
        self._around = (
            np.argsort(persons.ravel(), kind="stable").reshape(-1, self.mu) // self.mu
        )  # the records around each person
        self._place = np.empty(self.number, dtype=np.int64)

    def swap(self) -> None:
        """Two labels are drawn; in every walk, each component that may exchange them does so by a coin."""
        if self.mu < 2:
            return
        a = int(self._random.integers(self.mu))
        b = (a + 1 + int(self._random.integers(self.mu - 1))) % self.mu
        left, right = np.flatnonzero(self.label == a), np.flatnonzero(self.label == b)
        self._place[right] = np.arange(len(left), len(left) + len(right))
        met = self._place[self._of[self._around[left], b].ravel()]
        stops = np.minimum(np.arange(len(left) + len(right) + 1) * self.mu, len(met))
        links = csr_matrix((np.ones(len(met), dtype=np.int8), met, stops), shape=(len(stops) - 1, len(stops) - 1))
        components, of = connected_components(links, directed=False)
        heads = self._random.integers(0, 2, components, dtype=np.int8).astype(bool)
        heads[of[: len(left)][~self._allowed[left, b]]] = False
        heads[of[len(left) :][~self._allowed[right, a]]] = False
        left, right = left[heads[of[: len(left)]]], right[heads[of[len(left) :]]]
        rows = self._around[left].ravel()
        self._of[rows, a], self._of[rows, b] = self._of[rows, b], self._of[rows, a]
        self.label[left], self.label[right] = b, a
