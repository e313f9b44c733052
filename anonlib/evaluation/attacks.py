"""What an adversary gains, as plain functions on arrays: each tells his accuracy, the accuracy he had before, and the promise.

Nothing here promises privacy: draws are numpy's, seeded, so that a figure can be had again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anonlib.arrays import BoolArray, Float64Array, IntegerArray, UInt64Array


@dataclass(frozen=True)
class Attack:
    """What an adversary gains by one attack on a release.

    accuracy  : how often his guess of a person's sensitive value is right, over the persons attacked
    prior     : how often it was right without the release
    guarantee : what no belief may exceed by the release's promise (the largest over the values), or None where nothing is promised
    detail    : further figures by name
    persons   : how many were attacked; of a sample, its size
    above     : how many of them are believed to have a value with more than the promise allows for that value
    largest   : the largest belief in any of them, over the values that something is promised about
    words     : what was promised, or that nothing is
    """

    name: str
    accuracy: float
    prior: float
    guarantee: float | None
    detail: Mapping[str, float | str] = field(default_factory=dict)
    persons: int | None = None
    above: int | None = None
    largest: float | None = None
    words: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Its figures by name; what is not known, or not promised, has no entry."""
        named = {"guarantee": self.guarantee, "persons": self.persons, "above": self.above, "largest": self.largest}
        figures = {name: figure for name, figure in named.items() if figure is not None}
        return {"accuracy": self.accuracy, "prior": self.prior, **figures, **self.detail, "words": self.words}


@dataclass(frozen=True)
class Corruption:
    """The adversary knows the values of q records of each bucket, crosses them out, and guesses the most frequent of the rest.

    Source: inferential privacy, section 6. He never knows a whole bucket: of |g| records, min(q, |g| - 1), drawn at random. If n_v
    of the N - q values left in `st` are v, a remaining person has v with probability n_v / (N - q), fakes being as likely as real
    values to be any of the N listed, so the accuracy follows from `st` alone.

    A kernel: batches of buckets -> for each q in `known` the sum of accuracies over the persons left, then for each their number.
    A batch has `bucket` (B,) ids, `values` (B,) lengths, and `count`, the counts of each bucket one after the other. Records are
    drawn by hashes of (seed, bucket, place), so batches and retries do not matter; cost O(records log records) per batch and q.
    """

    known: tuple[int, ...]
    fake_values: int
    seed: int = 0

    @property
    def length(self) -> int:
        """How long the kernel's vector is: two numbers for each q."""
        return 2 * len(self.known)

    def __call__(self, batch: Mapping[str, IntegerArray]) -> Float64Array:
        ids, held, count = (np.asarray(batch[name], dtype=np.int64) for name in ("bucket", "values", "count"))
        if not len(ids):
            return np.zeros(self.length)
        row_start = np.cumsum(held) - held
        listed = np.add.reduceat(count, row_start)
        size = listed - self.fake_values
        start = np.cumsum(listed) - listed
        row = np.repeat(np.arange(len(count)), count)  # one entry for each value listed, as often as it is
        bucket = np.repeat(np.arange(len(ids)), listed)
        place = np.arange(len(row)) - start[bucket]
        order = np.lexsort((_hash(self.seed, ids[bucket], place), bucket))
        turn = np.empty(len(row), dtype=np.int64)
        turn[order] = place  # sorted by bucket, places run as before
        sums, persons = [], []
        for q in self.known:
            out = np.maximum(0, np.minimum(q, size - 1))
            left = count - np.bincount(row[turn < out[bucket]], minlength=len(count))
            best = np.maximum.reduceat(left, row_start)
            sums.append(float((best / (listed - out) * (size - out)).sum()))
            persons.append(float((size - out).sum()))
        return np.array([*sums, *persons])

    def attacks(self, sums: Float64Array, prior: float, threshold: float, sizes: Sequence[int]) -> list[Attack]:
        """The attacks, one for each q. threshold : the largest f'_i; sizes : of the buckets.

        With q = 0 the accuracy is at most the largest threshold. Known records are promised something only by fake values: the values
        that are left are a given person's with probability 1/(|g| - q + s) at most on average. A single value may be likelier
        (`anonlib.evaluation.attacks_last_record`).
        """
        half = len(self.known)
        attacks = []
        for k, q in enumerate(self.known):
            promised = threshold if q == 0 else None
            if self.fake_values:
                promised = max(1 / (size - min(q, size - 1) + self.fake_values) for size in sizes)
            name = "bucket" if q == 0 else f"corruption, {q} known"
            attacks.append(
                Attack(
                    name,
                    float(sums[k] / sums[half + k]),
                    prior,
                    promised,
                    {"known": q, "persons": float(sums[half + k])},
                    persons=round(float(sums[half + k])),
                    words=_corruption_words(q, self.fake_values),
                )
            )
        return attacks


def _corruption_words(q: int, fakes: int) -> str:
    """What is promised when q records are known, in words."""
    if fakes:
        return (
            f"on average over the values left, 1/(|g| - q + s) at most, s = {fakes} fakes; computed as if frequency told no fake from a "
            "real value (what it tells is played as the last record)"
        )
    return "the largest threshold" if q == 0 else "none promised without fake values"


def corruption(
    bucket: IntegerArray, count: IntegerArray, fake_values: int, q: int, prior: float, threshold: float, seed: int = 0
) -> Attack:
    """The corruption attack on a table in memory, as `Corruption` plays it.

    bucket, count : (rows,) of the rows of `st`; q : how many records of each bucket are known
    prior         : the most frequent value's share; threshold : the largest f'_i
    """
    order = np.argsort(bucket, kind="stable")
    ids, held = np.unique(bucket, return_counts=True)
    kernel = Corruption((q,), fake_values, seed)
    sizes = np.bincount(np.searchsorted(ids, bucket), weights=count).astype(np.int64) - fake_values
    sums = kernel({"bucket": ids, "values": held, "count": np.asarray(count)[order]})
    return kernel.attacks(sums, prior, threshold, np.unique(sizes).tolist())[0]


def _hash(seed: int, bucket: IntegerArray, place: IntegerArray) -> UInt64Array:
    """The finalizer of SplitMix64, twice: mixes well, and needs no state."""
    with np.errstate(over="ignore"):
        x = bucket.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed % 2**64)
        for word in (place.astype(np.uint64), np.uint64(0)):
            x = x + word + np.uint64(0x9E3779B97F4A7C15)
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            x = x ^ (x >> np.uint64(31))
    return x


@dataclass(frozen=True)
class Listed:
    """The rows of `st` in memory: bucket ids, value codes 0..m-1, counts, all (rows,)."""

    bucket: IntegerArray
    code: IntegerArray
    count: IntegerArray


def negative_rules(
    bucket: IntegerArray,
    known: IntegerArray,
    listed: Listed,
    m: int,
    fake_values: int = 0,
    significance: float = 3.0,
    half: float = 0.5,
) -> list[BoolArray]:
    """The negative associations "who has z does not have x" that the release itself teaches: for each attribute (Z, m) booleans.

    bucket : (n,) of each record; known : (n, A) codes of its quasi-identifiers.
    Source: inferential privacy, section 6, after [13] and [17]. c(g, x)/N summed over the records with z is what independence
    would give but for 1/|g| of the true deviation, with a standard error of about sqrt(c(z) f_x / |g|). A pair is a rule when it
    falls short by more than `significance` standard errors and the deviation, times |g|, eats more than `half` of c(z) f_x.
    """
    ids, at = np.unique(bucket, return_inverse=True)
    share = np.zeros((len(ids), m))
    np.add.at(share, (np.searchsorted(ids, listed.bucket), listed.code), listed.count)
    overall = share.sum(axis=0) / share.sum()
    share /= share.sum(axis=1, keepdims=True)
    size = len(bucket) / len(ids) + fake_values
    rules = []
    for column in np.asarray(known).T:
        support = np.bincount(column)
        estimate = np.zeros((len(support), m))
        np.add.at(estimate, column, share[at])
        expected = support[:, None] * overall
        short = expected - estimate
        rules.append((short > significance * np.sqrt(expected / size)) & (size * short > half * expected))
    return rules


def negative_association(
    bucket: IntegerArray,
    known: IntegerArray,
    truth: IntegerArray,
    listed: Listed,
    rules: Sequence[BoolArray],
    fake_values: int = 0,
) -> Attack:
    """The adversary strikes out of a person's bucket the values that a rule denies to one of the person's quasi-identifiers, and
    guesses the most frequent of the rest (one of the equally frequent at random; if nothing is left, he forgets the rules).

    truth : (n,) value codes of the records, which the evaluator knows. With fake values that no rule strikes out
    (`avoid_negative_associations`) a right value always stands beside s others, so 1/(1 + s) is promised as long as the rules
    strike out no right value; without fake values nothing is. Memory O(n m).
    """
    m = int(max(truth.max(), listed.code.max())) + 1
    ids, at = np.unique(bucket, return_inverse=True)
    counts = np.zeros((len(ids), m), dtype=np.int64)
    np.add.at(counts, (np.searchsorted(ids, listed.bucket), listed.code), listed.count)
    listed_counts = counts[at]
    denied = np.zeros((len(bucket), m), dtype=bool)
    for column, rule in zip(np.asarray(known).T, rules, strict=True):
        denied |= rule[column][:, :m]
    left = np.where(denied, 0, listed_counts)
    left[left.sum(axis=1) == 0] = listed_counts[left.sum(axis=1) == 0]
    right = _guess(left, truth)
    prior = float(np.bincount(truth).max() / len(truth))
    before = float(_guess(listed_counts, truth).mean())
    struck = denied[np.arange(len(truth)), truth]
    return Attack(
        "negative association",
        float(right.mean()),
        prior,
        1 / (1 + fake_values) if fake_values else None,
        {
            "without rules": before,
            "rules": float(sum(rule.sum() for rule in rules)),
            "wrongly struck out": float(struck.mean()),
        },
    )


def _guess(counts: IntegerArray, truth: IntegerArray) -> Float64Array:
    """(n,): the probability that guessing a most frequent value, ties at random, gives the truth."""
    best = counts == counts.max(axis=1, keepdims=True)
    return np.asarray(best[np.arange(len(truth)), truth] / best.sum(axis=1), dtype=np.float64)


def differential_inference(
    having: int, with_value: int, epsilon: float, overall: float, draws: int = 100_000, seed: int = 0
) -> Attack:
    """What noisy counts tell of one person: two epsilon-differentially private answers, X to "how many persons look like Alice" and
    Y to "how many of these have the value", with Laplace noise of scale b = 1/epsilon, and her chance of having it read off as Y/X.

    having, with_value : the true answers x and y; overall : the value's share of the table, known before.
    Source: inferential privacy, Theorem 2: E[Y/X] = (y/x)(1 + 2b^2/x^2), Var[Y/X] = (2b^2/x^2)(1 + (y/x)^2), up to higher powers of
    b/x (by expansion around x: the exact moments do not exist, as X may be nearly 0 with a chance of about e^(-x/b) / 2; the
    simulation leaves answers X < x/2 out and tells their share).

    The accuracy is of the guess "she has it" when Y/X > 1/2, else "she has not". Epsilon promises nothing about it.
    """
    rng = np.random.default_rng(seed)
    b, share = 1 / epsilon, with_value / having
    like_her = having + rng.laplace(0, b, draws)
    and_value = with_value + rng.laplace(0, b, draws)
    usable = like_her >= having / 2
    ratio = and_value[usable] / like_her[usable]
    says_yes = np.where(usable, and_value > like_her / 2, overall > 0.5)
    return Attack(
        "differential inference",
        float(np.where(says_yes, share, 1 - share).mean()),
        share if overall > 0.5 else 1 - share,
        None,
        {
            "share": share,
            "mean": float(ratio.mean()),
            "variance": float(ratio.var()),
            "expected mean": share * (1 + 2 * b**2 / having**2),
            "expected variance": 2 * b**2 / having**2 * (1 + share**2),
            "unusable": float(1 - usable.mean()),
        },
    )
