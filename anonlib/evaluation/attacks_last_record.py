"""Corruption at its worst: all records of a bucket are known but one, and fake values stand beside the last one's.

Whoever compares the counts that the manifest tells with how often `st` lists each value knows how many times each is a fake: with o_v
records of v and f_v fakes, a listed v is real with the odds w_v = o_v / f_v. Of the values left he takes the one with the highest odds.
The number 1/(1 + s) is the accuracy of who does not compare.

Which values of a bucket are fakes is not published. Given the list, a set F of s values is all of its fakes with a probability in
proportion to the product of f_v / o_v over F, buckets taken one by one; such sets are drawn, and the accuracy is over these draws. Pure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from anonlib.arrays import BoolArray, Float64Array
from anonlib.evaluation.attacks import Attack, Listed

ROUNDS = 10_000
WORDS = "none promised by this number of fakes alone: 1/(1 + s) = {:.4f} is what is left where frequency tells no fake from a real value"


def last_record(listed: Listed, records: npt.NDArray[Any], fakes: int, prior: float, seed: int = 0) -> Attack:
    """Guessing the last record's value of buckets whose other records are all known.

    listed  : buckets of distinct values, `fakes` of each belonging to nobody
    records : (m,) how many records of these buckets have each value, by the counts that are told (of a sample of buckets, in proportion)

    Buckets whose list cannot hold `fakes` fakes by these counts are left out. detail: `if nothing told`, 1/(1 + s). Time and memory
    O(buckets x values of a bucket) a round; rounds until the s draws of every bucket are different values, at most `ROUNDS`.
    """
    m = len(records)
    held = np.bincount(listed.code, weights=listed.count, minlength=m)
    own = np.asarray(records, dtype=np.float64)
    fake = np.maximum(held - own, 0.0)
    odds = np.where(own > 0, fake / np.maximum(own, 1e-300), np.inf)
    ids, at = np.unique(listed.bucket, return_inverse=True)
    order = np.argsort(at.reshape(-1), kind="stable")
    at, code = at.reshape(-1)[order], np.asarray(listed.code)[order]
    place = np.arange(len(at)) - np.searchsorted(at, at)
    values = np.full((len(ids), int(place.max()) + 1), -1, dtype=np.int64)
    values[at, place] = code
    weight = np.where(values >= 0, np.minimum(odds, 1e12)[values], 0.0)
    usable = ((weight > 0).sum(axis=1) >= fakes) & ((values >= 0).sum(axis=1) > fakes)
    values, weight = values[usable], weight[usable]
    rng = np.random.default_rng(seed)
    drawn = _fakes(weight, fakes, rng)
    real = np.where((values >= 0) & ~drawn, rng.random(values.shape), -1.0)
    last = real.argmax(axis=1)
    left = drawn.copy()
    left[np.arange(len(values)), last] = True
    least = np.where(left, weight, np.inf)
    best = least == least.min(axis=1, keepdims=True)
    right = best[np.arange(len(values)), last] / np.maximum(best.sum(axis=1), 1)
    named = 1 / (1 + fakes)
    return Attack(
        "corruption, last record",
        float(right.mean()) if len(right) else 0.0,
        prior,
        None,
        {"if nothing told": named},
        persons=len(right),
        words=WORDS.format(named) if fakes else "none promised without fake values",
    )


def _fakes(weight: Float64Array, fakes: int, rng: np.random.Generator) -> BoolArray:
    """(B, N): for each row a set of `fakes` places, in proportion to the product of their weights: draws that repeat one are drawn anew."""
    chosen = np.zeros(weight.shape, dtype=bool)
    if not fakes:
        return chosen
    ends = np.cumsum(weight, axis=1)
    open_ = np.arange(len(weight))
    for _ in range(ROUNDS):
        if not len(open_):
            return chosen
        u = rng.random((len(open_), fakes)) * ends[open_, -1:]
        places = (ends[open_][:, None, :] <= u[:, :, None]).sum(axis=2)
        places = np.minimum(places, weight.shape[1] - 1)
        ordered = np.sort(places, axis=1)
        good = (np.diff(ordered, axis=1) > 0).all(axis=1)
        chosen[open_[good, None], places[good]] = True
        open_ = open_[~good]
    heaviest = np.argsort(-weight[open_], axis=1, kind="stable")[:, :fakes]
    chosen[open_[:, None], heaviest] = True  # one value outweighs all others by far: the likeliest set
    return chosen
