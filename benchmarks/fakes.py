"""How often somebody who knows all records of a bucket but one names the last one's value, with fakes drawn evenly and by frequency.

    python -m benchmarks.fakes [--data ../shared/data] [--rows 20000] [--l 10] [--fakes 2] [--tries 20000]

The guess is the remaining value with the highest odds o_v / f_v of being real, from public counts. No Spark.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from anonlib.kernels.fake_deal import FakeDeal
from anonlib.kernels.fake_values import FakeValues
from anonlib.kernels.round_robin import Deal, composition
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy, told_by_counts
from anonlib.solvers import choose
from anonlib.solvers.fake_values import plan

KEY = bytes(range(32))
TABLES = {"census_occ_100k": "occupation", "diabetes_130us": "diag_1"}


def guessed(real: list[set[int]], lists: list[set[int]], counts: np.ndarray, tries: int, seed: int = 0) -> float:
    """The share of tries in which the last record's value is named; ties are broken evenly."""
    rng = np.random.default_rng(seed)
    listings = np.bincount([c for codes in lists for c in codes], minlength=len(counts))
    share, right = counts / listings, 0
    for bucket in rng.integers(0, len(lists), tries):
        last = rng.choice(sorted(real[bucket]))
        left = sorted((lists[bucket] - real[bucket]) | {last})
        best = share[left].max()
        right += rng.choice([c for c in left if share[c] == best]) == last
    return right / tries


def measure(name: str, column: str, arguments: argparse.Namespace) -> None:
    """Print one table's figures."""
    values = pq.read_table(arguments.data / f"{name}.parquet", columns=[column])[column].combine_chunks()
    rng = np.random.default_rng(1)
    taken = values.take(rng.permutation(len(values))[: arguments.rows]).dictionary_encode()
    counts = np.bincount(taken.indices.to_numpy(zero_copy_only=False).astype(np.int64))
    counts = counts[counts >= arguments.least]
    known = SensitiveCounts(tuple(str(i) for i in range(len(counts))), counts)
    solution = choose.solve(
        known, FPrivacy.l_diversity(arguments.l).thresholds(known), "optimal", 2 * arguments.l - 1, 30
    )
    print(
        f"{name}.{column}: {known.n:,} records, {known.m} values of {counts.min():,} to {counts.max():,}, {solution.setting}"
    )
    deal = Deal.of(solution.setting, solution.partition)
    before = [set(s.codes) for s in composition(deal) for _ in range(s.start, s.stop)]
    ids, codes = FakeValues(deal, known.m, arguments.fakes, KEY)(np.arange(deal.buckets))
    lists: list[set[int]] = [set() for _ in before]
    for bucket, code in zip(ids.tolist(), codes.tolist(), strict=True):
        lists[bucket].add(code)
    print(f"  drawn evenly   {guessed(before, lists, counts, arguments.tries):.3f}")
    started = time.perf_counter()
    found = plan(counts, list(composition(deal)), arguments.fakes, KEY, arguments.pool)
    seconds = time.perf_counter() - started
    kernel = FakeDeal(counts, arguments.fakes, found.listed, found.real_start, found.real, KEY)
    code = np.repeat(np.arange(known.m), counts)
    rank = np.arange(known.n) - np.repeat(np.cumsum(counts) - counts, counts)
    started = time.perf_counter()
    where = kernel(code, rank)
    each = (time.perf_counter() - started) / known.n
    real: list[set[int]] = [set() for _ in before]
    for bucket, value in zip(where.tolist(), code.tolist(), strict=True):
        real[bucket].add(value)
    lists = [set(g.codes) for g in found.listed for _ in range(g.start, g.stop)]
    low, high, last = (float(x) for x in told_by_counts(known, found.fakes, arguments.fakes))
    print(
        f"  by frequency   {guessed(real, lists, counts, arguments.tries):.3f}   stated at most {last:.3f}, "
        f"even {1 / (1 + arguments.fakes):.3f}; "
        f"listings real {low:.4f} to {high:.4f}; plan {seconds:.2f} s, {1e6 * each:.2f} us a record"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--least", type=int, default=1, help="leave out values of fewer records")
    parser.add_argument("--l", type=int, default=10)
    parser.add_argument("--fakes", type=int, default=2)
    parser.add_argument("--pool", type=int, default=20_000)
    parser.add_argument("--tries", type=int, default=20_000)
    arguments = parser.parse_args()
    for name, column in TABLES.items():
        measure(name, column, arguments)


if __name__ == "__main__":
    main()
