"""How often somebody who knows all records of a bucket but one names the last one's value, and what fakes cost in counts: without fakes,
with fakes drawn evenly and by frequency.

    python -m benchmarks.fakes [--data ../shared/data] [--rows 20000] [--l 10] [--fakes 2] [--tries 20000]

The guess is the remaining value with the highest odds of being real, from public counts and from what all buckets list. No Spark.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from anonlib.kernels.ranked.fake_deal import FakeDeal
from anonlib.kernels.ranked.fake_values import FakeValues
from anonlib.kernels.ranked.round_robin import Deal, RoundRobin, composition
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy, real_shares
from anonlib.solvers.buckets import choose
from anonlib.solvers.buckets.fake_values import plan

KEY = bytes(range(32))
TABLES = {"census_occ_100k": ("occupation", "age"), "diabetes_130us": ("diag_1", "num_medications")}
QUERIES = 2_000


def odds_of_being_real(lists: list[set[int]], counts: np.ndarray, rounds: int = 200) -> np.ndarray:
    """(m,) o_v / f_v as far as lists differ: the weights under which each value is a fake f_v times in the lists, on average, and each list
    has its fakes (iterative scaling)."""
    listed = np.zeros((len(lists), len(counts)))
    for bucket, codes in enumerate(lists):
        listed[bucket, sorted(codes)] = 1
    fakes = listed.sum(axis=0) - counts
    each = fakes.sum() / len(lists)
    if each == 0:
        return np.ones(len(counts))
    value, bucket = np.maximum(fakes, 1e-12) / counts, np.ones((len(lists), 1))
    for _ in range(rounds):
        fake = listed * value * bucket
        value *= np.maximum(fakes, 1e-12) / (fake / (1 + fake)).sum(axis=0)
        fake = listed * value * bucket
        bucket *= each / (fake / (1 + fake)).sum(axis=1, keepdims=True)
    return np.asarray(1 / value)


def guessed(real: list[set[int]], lists: list[set[int]], counts: np.ndarray, tries: int, seed: int = 0) -> float:
    """The share of tries in which the last record's value is named; ties are broken evenly."""
    rng, odds, right = np.random.default_rng(seed), odds_of_being_real(lists, counts), 0
    for bucket in rng.integers(0, len(lists), tries):
        last = rng.choice(sorted(real[bucket]))
        left = sorted((lists[bucket] - real[bucket]) | {last})
        best = odds[left].max() * (1 - 1e-9)
        right += rng.choice([c for c in left if odds[c] >= best]) == last
    return right / tries


def count_error(
    where: np.ndarray, code: np.ndarray, order: np.ndarray, lists: list[set[int]], m: int, seed: int = 0
) -> float:
    """Mean relative error of counts of a tenth of the records by `order` and a tenth of the values, estimated as `anonlib.queries` does.

    where, code, order : (n,) bucket, value code and quasi-identifier of the records; errors are relative to 0.1 % of the table at least
    """
    rng, n, errors = np.random.default_rng(seed), len(code), []
    size, listed = np.bincount(where, minlength=len(lists)), np.zeros((len(lists), m), dtype=bool)
    for bucket, codes in enumerate(lists):
        listed[bucket, sorted(codes)] = True
    rank = np.argsort(np.argsort(order, kind="stable"), kind="stable")
    for _ in range(QUERIES):
        low, asked = rng.integers(0, n - n // 10), rng.permutation(m) < max(1, m // 10)
        rows = (rank >= low) & (rank < low + n // 10)
        inside = np.bincount(where[rows], minlength=len(lists))
        estimate = (inside * (listed @ asked) / listed.sum(axis=1)).sum()
        truth = (rows & asked[code]).sum()
        errors.append(abs(estimate - truth) / max(truth, n / 1000))
    assert (size > 0).all()
    return float(np.mean(errors))


def read(name: str, arguments: argparse.Namespace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(counts, value code by record, quasi-identifier by record) of a sample; records in order of value code."""
    table = pq.read_table(arguments.data / f"{name}.parquet", columns=list(TABLES[name]))
    taken = table.take(np.random.default_rng(1).permutation(len(table))[: arguments.rows])
    values, order = (taken[c].combine_chunks() for c in TABLES[name])
    code = values.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
    kept = np.bincount(code)[code] >= arguments.least
    _, code, counts = np.unique(code[kept], return_inverse=True, return_counts=True)
    by_code = np.argsort(code, kind="stable")
    return counts.astype(np.int64), code[by_code], order.to_numpy(zero_copy_only=False)[kept][by_code]


def measure(name: str, arguments: argparse.Namespace) -> None:
    """Print one table's figures."""
    counts, code, order = read(name, arguments)
    known = SensitiveCounts(tuple(str(i) for i in range(len(counts))), counts)
    wanted = FPrivacy.l_diversity(arguments.l).thresholds(known)
    solution = choose.solve(known, wanted, "optimal", 2 * arguments.l - 1, 30)
    print(
        f"{name}.{TABLES[name][0]}: {known.n:,} records, {known.m} values of {counts.min():,} to {counts.max():,}, {solution.setting}"
    )
    deal = Deal.of(solution.setting, solution.partition)
    rank = np.arange(known.n) - np.repeat(np.cumsum(counts) - counts, counts)

    def told(where: np.ndarray, lists: list[set[int]]) -> str:
        real: list[set[int]] = [set() for _ in lists]
        for bucket, value in zip(where.tolist(), code.tolist(), strict=True):
            real[bucket].add(value)
        error = count_error(where, code, order, lists, known.m)
        return f"last record named {guessed(real, lists, counts, arguments.tries):.3f}, error of counts {error:.3f}"

    held = [set(s.codes) for s in composition(deal) for _ in range(s.start, s.stop)]
    where = RoundRobin(deal, KEY)(code, rank)
    print(f"  no fakes       {told(where, held)}")
    evenly: list[set[int]] = [set() for _ in held]
    started = time.perf_counter()
    for bucket, value in zip(
        *(x.tolist() for x in FakeValues(deal, known.m, arguments.fakes, KEY)(np.arange(deal.buckets))), strict=True
    ):
        evenly[bucket].add(value)
    print(f"  drawn evenly   {told(where, evenly)}; {time.perf_counter() - started:.2f} s")
    started = time.perf_counter()
    found = plan(counts, list(composition(deal)), arguments.fakes, KEY, arguments.pool)
    seconds = time.perf_counter() - started
    kernel = FakeDeal(counts, arguments.fakes, found.listed, found.real_start, found.real, KEY)
    started = time.perf_counter()
    where = kernel(code, rank)
    each = (time.perf_counter() - started) / known.n
    low, high, last = (float(x) for x in real_shares(known, found.fakes, arguments.fakes))
    print(
        f"  by frequency   {told(where, [set(g.codes) for g in found.listed for _ in range(g.start, g.stop)])}; stated at most {last:.3f}, "
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
    for name in TABLES:
        measure(name, arguments)


if __name__ == "__main__":
    main()
