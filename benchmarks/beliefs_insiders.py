"""What insiders learn of the others: `python -m benchmarks.beliefs --insiders`.

k persons of one partition, who know their own values and who matches whom, look at the rows. Draws on the same graphs:

    paper             one of mu disjoint matchings
    paper, code run   it is also known who shares a bucket with whom, as to somebody who ran the code
    rainbow           as it is drawn
    names alone       and it is also known who shares a bucket with whom, as to somebody who ran the code; or where no Kempe swaps are made
    classes           of l records with l values

k persons at random: how many others are on average believed beyond 1/(l - k), beyond a half, and certain (in brackets the most in any
try); of the certain, how many are so by elimination alone, which bounds them from below as walks do from above. Chosen: for targets at
random, the one person of the partition who tells most of the target: the share of targets then so believed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from anonlib.evaluation.attacks_insiders import (
    Gain,
    allowed_by_rows,
    gain,
    in_classes,
    known_buckets,
    labellings,
    proven,
    walk,
    worst_first,
)
from anonlib.kernels.matching.disjoint_matchings import random_matching
from anonlib.kernels.matching.matching_deal import deal, into_pools
from anonlib.kernels.matching.matching_graph import matching_graph
from anonlib.kernels.matching.rainbow_colouring import rainbow_matching
from anonlib.keyed import Stream
from anonlib.solvers.matching.match_partitions import Bucketing
from benchmarks.baselines import KEY, Table, census
from benchmarks.heterogeneous import partitions

KNOWN = (1, 2, 5)
DRAWS = ("paper", "names alone", "paper, code run", "rainbow", "classes")


@dataclass(frozen=True)
class Pool:
    """matches : (n, mu); bucket : (n,); allowed : {draw: (n, mu)}, see `allowed_by_rows`."""

    matches: np.ndarray
    bucket: np.ndarray
    allowed: dict[str, np.ndarray]


def largest_pools(table: Table, promised: Bucketing, size: int) -> Iterator[Pool]:
    """That of every partition."""
    for place, rows in enumerate(partitions(table, promised, size)):
        sensitive = table.sensitive[rows]
        pools = promised.pools(np.bincount(sensitive, minlength=table.m).astype(np.int64))
        assert pools is not None
        inside = into_pools(sensitive, pools, Stream(KEY, "insiders", place))[0]
        dealt = deal(sensitive[inside], pools[0], Stream(KEY, "insiders", place, 0))
        own = [column[rows][inside][dealt.source] for column in table.columns]
        matches = matching_graph(own, table.domains, dealt, pools[0].distinct, "hungarian")
        bucket = np.repeat(np.arange(dealt.mu), dealt.size)
        shown = {draw.__name__: bucket[draw(matches, KEY, place)] for draw in (random_matching, rainbow_matching)}
        allowed = {name: allowed_by_rows(matches, rows_show) for name, rows_show in shown.items()}
        yield Pool(matches, bucket, {"paper": allowed["random_matching"], "rainbow": allowed["rainbow_matching"]})


def by_draw(pool: Pool, draw: str, sets: list[list[int]], samples: int) -> tuple[np.ndarray, int | None]:
    """((R, n, values) beliefs, or (R, n) the largest, of each set of insiders; how many samples they rest on)"""
    mu = pool.matches.shape[1]
    size = len(pool.bucket) // mu
    if draw == "names alone":
        return np.stack([known_buckets(pool.bucket, who, mu) for who in sets]), None
    if draw == "paper, code run":
        return np.stack([known_buckets(pool.bucket, who, mu, pool.allowed["paper"]) for who in sets]), None
    if draw == "classes":
        return np.stack([in_classes(np.arange(len(pool.bucket)) % size, pool.bucket, who) for who in sets]), None
    samples = samples if draw == "rainbow" else max(1, samples // 4)  # hardly anything is left to walk over
    return walk(pool.matches, pool.bucket, pool.allowed[draw], sets, samples), samples


def at_random(pools: list[Pool], draw: str, k: int, given: argparse.Namespace) -> list[Gain]:
    found = []
    for number, pool in enumerate(pools):
        n, mu = pool.matches.shape
        random = np.random.default_rng([k, number])
        tries = max(2, given.sets // len(pools))
        sets = [random.choice(n, k, replace=False).tolist() for _ in range(tries)] if k else [[]]
        beliefs, samples = by_draw(pool, draw, sets, given.samples)
        largest = beliefs.max(axis=2) if beliefs.ndim == 3 else beliefs
        found += [gain(each, who, mu, samples) for each, who in zip(largest, sets, strict=True)]
    return found


def sure(pools: list[Pool], draw: str, k: int, given: argparse.Namespace) -> list[int]:
    """How many others of each try at random are proven certain, by elimination alone: a bound of "certain" from below."""
    found = []
    for number, pool in enumerate(pools):
        n = len(pool.bucket)
        random = np.random.default_rng([k, number])
        for _ in range(max(2, given.sets // len(pools))):
            who = random.choice(n, k, replace=False).tolist()
            left = proven(pool.matches, pool.bucket, pool.allowed[draw], who).sum(axis=1) == 1
            found.append(int(left.sum()) - k)
    return found


def chosen(pools: list[Pool], draw: str, k: int, given: argparse.Namespace, drawn: list[np.ndarray]) -> np.ndarray:
    """(T,) beliefs in the true bucket of targets, of the insiders chosen for them. drawn : (S, n) labellings of each pool to choose by."""
    found = []
    for number, pool in enumerate(pools):
        n, mu = pool.matches.shape
        random = np.random.default_rng([99, number])
        targets = random.choice(n, max(2, given.targets // len(pools)), replace=False).tolist()
        if draw in ("paper", "rainbow"):
            free = mu if draw == "rainbow" else None
            sets = [worst_first(drawn[number], pool.bucket, target, k, free) for target in targets]
        elif draw == "classes":
            size = n // mu
            sets = [[(t + i * size) % n for i in range(1, min(k, mu - 1) + 1)] for t in targets]
        else:
            sets = [np.setdiff1d(np.flatnonzero(pool.bucket == pool.bucket[t]), [t])[:k].tolist() for t in targets]
        beliefs, _ = by_draw(pool, draw, sets, given.samples)
        found += [
            each[target, pool.bucket[target]] if each.ndim == 2 else each[target]
            for each, target in zip(beliefs, targets, strict=True)
        ]
    return np.array(found)


def told(found: list[Gain]) -> str:
    parts = []
    for name in ("above", "half", "certain"):
        each = [getattr(one, name) for one in found]
        parts.append(f"{np.mean(each):6.1f} ({max(each):4})")
    return " ".join(parts) + f" of {np.mean([one.others for one in found]):5.0f}"


def lines(given: argparse.Namespace) -> Iterator[str]:
    yield "at random: others above 1/(l - k), a half, certain (the most); chosen: % of targets so believed, mean belief"
    for n in given.records:
        table = census(Path(given.data), "census_occ_100k", "occupation", np.arange(n))
        for l in given.ls:  # noqa: E741
            pools = list(largest_pools(table, Bucketing(l, None), given.size))
            for draw in DRAWS:
                drawn = [to_choose_by(pool, draw, given.samples) for pool in pools]
                for k in KNOWN if "paper" not in draw else (0, *KNOWN):
                    started = time.perf_counter()
                    random = at_random(pools, draw, k, given)
                    line = f"{n:6,} l = {l:2} k = {k} {draw:15}  {told(random)}"
                    if draw in ("paper", "rainbow"):
                        least = sure(pools, draw, k, given)
                        line += f"   proven {np.mean(least):6.1f} ({max(least):4})"
                    if k == 1 or (k and draw == "classes"):
                        beliefs = chosen(pools, draw, k, given, drawn)
                        over = [1 / (l - k) if k < l else 1.0, 0.5]
                        parts = [f"{100 * (beliefs > bound + 0.05).mean():5.1f}" for bound in over]
                        line += (
                            f"   chosen {' '.join(parts)} {100 * (beliefs >= 1).mean():5.1f} %, {beliefs.mean():.3f}"
                        )
                    yield f"{line}   {time.perf_counter() - started:.0f} s"


def to_choose_by(pool: Pool, draw: str, samples: int) -> np.ndarray:
    """(S, n) labellings without insiders, of ten walks; none where nothing is sampled."""
    if draw not in ("paper", "rainbow"):
        return np.zeros((0, len(pool.bucket)), dtype=np.int64)
    walks = labellings(pool.matches, pool.bucket, pool.allowed[draw], [[]] * 10, max(1, 2 * samples // 10))
    return np.concatenate([each.astype(np.int16) for each in walks])
