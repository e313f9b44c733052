"""What rows and quasi-identifiers alone tell, without the graph: `python -m benchmarks.beliefs --rows-alone`.

By the paper's draw and buckets, and by the rainbow. The rows around persons in exactly as many boxes as they have matches are known; so are
those around persons to whom just so many are left by regularity, settled exactly (`anonlib.evaluation.attacks_rows_alone`). Of both: how
many are believed to have a value beyond its bound, once buckets that are shown twice around them are struck out, how many with
certainty, and the largest belief over its bound. Where there are more than `--pairs` pairs of person and box, regularity is not tried.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from anonlib.evaluation.attacks_rows_alone import left_values, possible
from anonlib.kernels.boxes import Box, Sets
from anonlib.kernels.matching.disjoint_matchings import random_matching
from anonlib.kernels.matching.match_boxes import match_boxes
from anonlib.kernels.matching.matching_deal import deal, into_pools
from anonlib.kernels.matching.matching_graph import matching_graph
from anonlib.kernels.matching.rainbow_colouring import rainbow_matching
from anonlib.keyed import Stream
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.match_buckets import MatchBuckets
from anonlib.solvers.matching.match_partitions import Bucketing
from benchmarks.baselines import KEY, Table, census
from benchmarks.heterogeneous import partitions

BLOCK = 1 << 24


@dataclass
class Release:
    """Rows in order of pools. boxes : of each pool; shown : (rows,) values; person, row : true matches, made-up persons left out; spare :
    (rows,) made-up matches; pool : (n,) of each person; buckets : of each pool"""

    boxes: list[list[Box]] = field(default_factory=list)
    shown: list[np.ndarray] = field(default_factory=list)
    person: list[np.ndarray] = field(default_factory=list)
    row: list[np.ndarray] = field(default_factory=list)
    spare: list[np.ndarray] = field(default_factory=list)
    members: list[np.ndarray] = field(default_factory=list)
    buckets: list[MatchBuckets] = field(default_factory=list)


def released(table: Table, promised: Bucketing, size: int, paper: bool) -> Release:
    from benchmarks.beliefs import pools_of

    found, first = Release(), 0
    for place, rows in enumerate(partitions(table, promised, size)):
        sensitive = table.sensitive[rows]
        pools = pools_of(promised, np.bincount(sensitive, minlength=table.m).astype(np.int64), paper)
        members = into_pools(sensitive, pools, Stream(KEY, "rows", place))
        for number, (buckets, inside) in enumerate(zip(pools, members, strict=True)):
            dealt = deal(sensitive[inside], buckets, Stream(KEY, "rows", place, number))
            own = [column[rows][inside][dealt.source] for column in table.columns]
            matches = matching_graph(own, table.domains, dealt, buckets.distinct, "hungarian")
            taken = (random_matching if paper else rainbow_matching)(matches, KEY, place, number)
            found.boxes.append(match_boxes(own, table.domains, matches))
            found.shown.append(dealt.sensitive[taken])
            real = ~dealt.dummy[matches]
            found.row.append(first + np.nonzero(real)[0])
            found.person.append(rows[inside][dealt.source[matches[real]]])
            found.spare.append((~real).sum(axis=1))
            found.members.append(rows[inside])
            found.buckets.append(buckets)
            first += len(matches)
    return found


def held(table: Table, boxes: list[Box]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(row, person) of whom the boxes of one pool hold, in blocks."""
    rows = len(boxes[0].bounds) - 1 if isinstance(boxes[0], Sets) else len(boxes[0].low)
    step = max(1, BLOCK // table.n)
    for start in range(0, rows, step):
        stop = min(rows, start + step)
        inside = np.ones((stop - start, table.n), dtype=bool)
        for box, codes in zip(boxes, table.columns, strict=True):
            if isinstance(box, Sets):
                low, high = box.bounds[start], box.bounds[stop]
                lengths = np.diff(box.bounds[start : stop + 1])
                member = np.zeros((stop - start, int(max(codes.max(), box.values.max())) + 1), dtype=bool)
                member[np.repeat(np.arange(stop - start), lengths), box.values[low:high]] = True
                inside &= member[:, codes]
            else:
                inside &= (box.low[start:stop, None] <= codes) & (codes <= box.high[start:stop, None])
        found = np.nonzero(inside)
        yield start + found[0], found[1]


@dataclass
class Told:
    persons: int = 0
    above: int = 0
    certain: int = 0
    worst: Fraction = field(default_factory=Fraction)

    def __str__(self) -> str:
        return f"{self.persons:6,}: {self.above:6,} above, {self.certain:5,} certain, {float(self.worst):5.2f} of the bound"


def judged(
    persons: np.ndarray, around: dict[int, list[int]], pool: np.ndarray, release: Release, bounds: list[Fraction]
) -> Told:
    """around : {person: the values of the rows around}"""
    alone = []
    for buckets in release.buckets:
        values, often = np.unique(buckets.value, return_counts=True)
        once = set(values[often == 1].tolist())
        alone.append({v: b for v, b in zip(buckets.value.tolist(), buckets.bucket.tolist(), strict=True) if v in once})
    told = Told(len(persons))
    for person in persons.tolist():
        left = left_values(around[person], alone[pool[person]])
        most = max(Fraction(left.count(v), len(left)) / bounds[v] for v in set(left))
        told.above += most > 1
        told.certain += len(set(left)) == 1
        told.worst = max(told.worst, most)
    return told


def attacked(table: Table, promised: Bucketing, size: int, paper: bool, pairs: int) -> str:
    bounds = (
        [Fraction(1, promised.l)] * table.m
        if promised.l is not None
        else [(1 + promised.likeness.beta) * Fraction(int(c), table.n) for c in table.counts.counts]
    )
    release = released(table, promised, size, paper)
    pool, mu = np.empty(table.n, dtype=np.int64), np.empty(table.n, dtype=np.int64)
    for number, members in enumerate(release.members):
        pool[members], mu[members] = number, release.buckets[number].mu
    shown, spare = np.concatenate(release.shown), np.concatenate(release.spare)
    person, row = np.concatenate(release.person), np.concatenate(release.row)
    boxes_around = np.zeros(table.n, dtype=np.int64)
    first, kept, total = 0, [], 0
    for boxes, values in zip(release.boxes, release.shown, strict=True):
        for there, who in held(table, boxes):
            boxes_around += np.bincount(who, minlength=table.n)
            total += len(who)
            if total <= pairs:
                kept.append(np.stack([who.astype(np.int32), (first + there).astype(np.int32)]))
        first += len(values)
    around: dict[int, list[int]] = {}
    for i, value in zip(person.tolist(), shown[row].tolist(), strict=True):
        around.setdefault(i, []).append(value)
    exactly = np.flatnonzero((boxes_around == mu) & (np.bincount(person, minlength=table.n) == mu))
    told = f"in exactly mu boxes {judged(exactly, around, pool, release, bounds)}"
    if total > pairs:
        return told + f"; regularity not tried, {total:,} pairs"
    who, there = np.concatenate(kept, axis=1).astype(np.int64)
    code = who * len(shown) + there
    matched = np.isin(code, person * len(shown) + row)
    left = np.bincount(who[possible(who, there, matched, spare)], minlength=table.n)
    settled = np.flatnonzero((left == mu) & (np.bincount(person, minlength=table.n) == mu))
    return (
        told + f"; by regularity {judged(settled, around, pool, release, bounds)}; {total / table.n:.0f} boxes a person"
    )


def lines(given: argparse.Namespace) -> Iterator[str]:
    for n in given.records:
        table = census(Path(given.data), "census_occ_100k", "occupation", np.arange(n))
        asked = [(f"l = {l}", Bucketing(l, None)) for l in given.ls]  # noqa: E741
        asked += [(f"beta = {b}", Bucketing(None, BetaLikeness(Fraction(b), table.counts.counts))) for b in given.betas]
        for name, promised in asked:
            for paper in (True, False):
                draw = "paper" if paper else "rainbow"
                made = replace(promised, dummies=True if paper else None)
                yield f"{n:6,} {name:9} {draw:8} {attacked(table, made, given.size, paper, given.pairs)}"
