"""What somebody believes who knows the graph of matches and sees the records: by the paper's draw, and by a rainbow colouring.

    python -m benchmarks.beliefs                          census occupations, 2,000, 5,000 and 20,000 records
    python -m benchmarks.beliefs --records 2000 --ls 4    one setting
    python -m benchmarks.beliefs --insiders               what k = 1, 2, 5 persons learn of the others, 2,000 and 5,000 records
    python -m benchmarks.beliefs --rows-alone             what rows and quasi-identifiers tell without the graph

By the paper's draw a value that is shown twice among the records that may be a person's is struck out; what is left is believed alike.
Under beta nothing is struck out, and the share of a value among these records is compared with its bound. The paper fills its buckets up
with made-up records, of which nothing more is told here; persons who share a bucket with one are counted. Prints persons above the bound,
the largest belief beside it, the generalized certainty penalty and seconds of the partitions and kernels.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from anonlib.domains import generalized_certainty_penalty, penalty_of_runs
from anonlib.kernels.matching.disjoint_matchings import random_matching
from anonlib.kernels.matching.matching_deal import deal, into_pools
from anonlib.kernels.matching.matching_graph import matching_graph
from anonlib.kernels.matching.rainbow_colouring import rainbow_matching
from anonlib.keyed import Stream
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.match_buckets import MatchBuckets
from anonlib.solvers.matching.match_partitions import Bucketing
from benchmarks import beliefs_insiders, beliefs_rows, machine
from benchmarks.baselines import KEY, Table, census
from benchmarks.heterogeneous import partitions


@dataclass
class Told:
    """Persons, those above the bound, those in a bucket with a dummy, the largest belief over its bound, seconds, records with dummies and
    their summed penalty so far."""

    persons: int = 0
    above: int = 0
    exposed: int = 0
    worst: Fraction = field(default_factory=Fraction)
    seconds: float = 0.0
    records: int = 0
    lost: float = 0.0


def pools_of(promised: Bucketing, counts: np.ndarray, paper: bool) -> list[MatchBuckets]:
    """The paper's buckets of a partition, or ours."""
    if paper:
        whole = promised.buckets(counts)
        return [] if whole is None else [whole]
    return promised.pools(counts) or []


def believed(matches: np.ndarray, shown: np.ndarray, m: int, paper: bool) -> np.ndarray:
    """(N, m) how often each value is shown among the records around each person, and (N,) of how many, as a last column."""
    n, mu = matches.shape
    around = np.argsort(matches.ravel(), kind="stable").reshape(n, mu) // mu
    often = np.zeros((n, m + 1), dtype=np.int64)
    np.add.at(often, (np.arange(n)[:, None], shown[around]), 1)
    if paper:
        often[:, :m][often[:, :m] > 1] = 0
    often[:, m] = often[:, :m].sum(axis=1) if paper else mu
    return often


def played(table: Table, promised: Bucketing, size: int, paper: bool) -> Told:
    told = Told()
    bounds = (
        [Fraction(1, promised.l)] * table.m
        if promised.l is not None
        else [(1 + promised.likeness.beta) * Fraction(int(c), table.n) for c in table.counts.counts]
    )
    started = time.perf_counter()
    cells = partitions(table, promised, size)
    told.seconds = time.perf_counter() - started
    for place, rows in enumerate(cells):
        started = time.perf_counter()
        sensitive = table.sensitive[rows]
        pools = pools_of(promised, np.bincount(sensitive, minlength=table.m).astype(np.int64), paper)
        members = into_pools(sensitive, pools, Stream(KEY, "beliefs", place))
        for number, (buckets, inside) in enumerate(zip(pools, members, strict=True)):
            dealt = deal(sensitive[inside], buckets, Stream(KEY, "beliefs", place, number))
            own = [column[rows][inside][dealt.source] for column in table.columns]
            matches = matching_graph(own, table.domains, dealt, buckets.distinct, "hungarian")
            draw = random_matching if paper else rainbow_matching
            taken = draw(matches, KEY, place, number)
            told.seconds += time.perf_counter() - started
            often = believed(matches, dealt.sensitive[taken], table.m, paper and buckets.distinct)[~dealt.dummy]
            told.persons += len(often)
            beside = np.unique(buckets.bucket[buckets.dummies > 0])
            told.exposed += len(beside) * buckets.size - buckets.made_up
            runs = np.arange(0, matches.size + 1, matches.shape[1], dtype=np.int64)
            each = [penalty_of_runs(d, c[matches.ravel()], runs) for c, d in zip(own, table.domains, strict=True)]
            told.lost += generalized_certainty_penalty(each) * len(matches)
            told.records += len(matches)
            over = np.zeros(len(often), dtype=bool)
            for value, bound in enumerate(bounds):
                over |= often[:, value] * bound.denominator > bound.numerator * often[:, -1]
                seen = {*zip(often[:, value].tolist(), often[:, -1].tolist(), strict=True)}
                worst = max(Fraction(int(k), int(of)) for k, of in seen if of)
                told.worst = max(told.worst, worst / bound)
            told.above += int(over.sum())
            started = time.perf_counter()
    return told


def lines(given: argparse.Namespace) -> Iterator[str]:
    for n in given.records:
        table = census(Path(given.data), "census_occ_100k", "occupation", np.arange(n))
        asked = [(f"l = {l}", Bucketing(l, None)) for l in given.ls]  # noqa: E741
        asked += [(f"beta = {b}", Bucketing(None, BetaLikeness(Fraction(b), table.counts.counts))) for b in given.betas]
        for name, promised in asked:
            told = f"{n:6,} {name:9}"
            for paper in (True, False):
                found = played(table, replace(promised, dummies=True if paper else None), given.size, paper)
                told += (
                    f"  {'paper' if paper else 'rainbow'}: {found.above:5,} of {found.persons:6,} above, "
                    f"{found.exposed} beside a dummy, worst {float(found.worst):.2f} "
                    f"of the bound, GCP {found.lost / found.records:.4f}, {found.seconds:5.1f} s"
                )
            yield told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("ANONLIB_DATA", "../shared/data"))
    parser.add_argument("--records", type=int, nargs="*")
    parser.add_argument("--ls", type=int, nargs="*", default=[4, 5, 6, 10])
    parser.add_argument("--betas", type=int, nargs="*", default=[1, 3, 5])
    parser.add_argument("--size", type=int, default=1_000)
    parser.add_argument("--insiders", action="store_true")
    parser.add_argument("--samples", type=int, default=400, help="labellings for each set of insiders")
    parser.add_argument("--sets", type=int, default=20, help="sets of insiders at random, over all partitions")
    parser.add_argument(
        "--targets", type=int, default=20, help="persons for whom insiders are chosen, over all partitions"
    )
    parser.add_argument("--rows-alone", action="store_true")
    parser.add_argument("--pairs", type=int, default=40_000_000, help="pairs of person and box to keep for regularity")
    given = parser.parse_args()
    given.records = given.records or ([2_000, 5_000] if given.insiders else [2_000, 5_000, 20_000])
    print(machine.facts())
    asked = beliefs_insiders.lines if given.insiders else beliefs_rows.lines if given.rows_alone else lines
    for line in asked(given):
        print(line, flush=True)


if __name__ == "__main__":
    main()
