"""Bucket solvers: what the prunings save, growth with |T| and |SA|, and how far the optimum is proven.

    python -m benchmarks.solvers [--seconds 60] [--data FOLDER]

Counts are those of the census table `census_occ_100k` where the folder has it (default: ANONLIB_DATA), else generated with a like
skew. Scaled to n records; |SA| is scaled as in the paper (section 7.3.2): each record of a value goes to one of gamma new values at random.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy
from anonlib.solvers.buckets import choose, two_size
from anonlib.solvers.buckets.sensitive_table import SensitiveTable
from benchmarks import machine

THETA, OFFSET, LARGEST = 8, "0.02", 50
PRUNINGS = ("none", "loss", "full")


def shape(folder: Path | None, column: str) -> np.ndarray:
    """Shares of the sensitive values: the census table's, or a generated skew."""
    path = None if folder is None else folder / "census_occ_100k.parquet"
    if path is not None and path.exists():
        import pyarrow.parquet as pq

        _, counts = np.unique(pq.read_table(path, columns=[column])[column].to_numpy(), return_counts=True)
        return counts / counts.sum()
    weights = 1 / np.arange(2, 52 if column == "occupation" else 16) ** 0.9
    return weights / weights.sum()


def counts_of(shares: np.ndarray, n: int) -> SensitiveCounts:
    """Counts with these shares that sum to n exactly."""
    counts = np.maximum(1, np.floor(shares * n)).astype(np.int64)
    counts[np.argmax(counts)] += n - int(counts.sum())
    return SensitiveCounts(tuple(f"x{i}" for i in range(len(counts))), counts)


def scaled(counts: SensitiveCounts, gamma: int, seed: int = 0) -> SensitiveCounts:
    """Each record of a value goes to one of gamma new values, uniformly."""
    rng = np.random.default_rng(seed)
    split = np.concatenate([rng.multinomial(o, np.full(gamma, 1 / gamma)) for o in counts.counts.tolist()])
    split = split[split > 0]
    return SensitiveCounts(tuple(f"x{i}" for i in range(len(split))), split.astype(np.int64))


def seen(counts: SensitiveCounts) -> SensitiveTable:
    return SensitiveTable.of(counts, FPrivacy.linear(THETA, OFFSET).thresholds(counts), LARGEST)


def timed(table: SensitiveTable, pruning: str) -> tuple[float, int]:
    """(seconds, loss), best of two."""
    best = float("inf")
    for _ in range(2):
        started = time.perf_counter()
        setting = two_size.solve(table, pruning)
        best = min(best, time.perf_counter() - started)
    assert setting is not None
    return best, setting.loss


def prunings(shares: np.ndarray) -> None:
    print("\nTwoSize, seconds: no pruning : loss pruning : full pruning (ratio to full)")
    for n in (100_000, 200_000, 300_000, 400_000, 500_000):
        table = seen(counts_of(shares, n))
        found = [timed(table, pruning) for pruning in PRUNINGS]
        assert len({loss for _, loss in found}) == 1, "prunings disagree"
        none, loss, full = (seconds for seconds, _ in found)
        print(
            f"  n = {n:>9,}   {none:8.3f} : {loss:8.3f} : {full:8.3f}    ({none / full:7.1f} : {loss / full:5.1f} : 1)"
        )


def growth(shares: np.ndarray) -> None:
    print("\nTwoSize, full pruning: growth with |T|")
    for n in (10**5, 10**7, 10**10):
        print(f"  n = {n:>14,}   {timed(seen(counts_of(shares, n)), 'full')[0]:8.3f} s")
    print("\nTwoSize, growth with |SA| at n = 500,000 (no : loss : full)")
    base = counts_of(shares, 500_000)
    for gamma in (1, 2, 4, 8, 16, 32, 64):
        counts = scaled(base, gamma) if gamma > 1 else base
        table = seen(counts)
        figures = " : ".join(f"{timed(table, pruning)[0]:8.3f}" for pruning in PRUNINGS)
        print(f"  m = {counts.m:>6,} (x {gamma:2})   {figures} s")


def optimum(shares: np.ndarray, seconds: float) -> None:
    print(f"\nOptimal within {seconds:g} s, n = 500,000: seconds, proven gap, loss of TwoSize and MultiSize over it")
    base = counts_of(shares, 500_000)
    for gamma in (1, 4, 16, 64):
        counts = scaled(base, gamma) if gamma > 1 else base
        thresholds = FPrivacy.linear(THETA, OFFSET).thresholds(counts)
        best = choose.solve(counts, thresholds, "optimal", LARGEST, seconds)
        two = choose.solve(counts, thresholds, "two_size", LARGEST)
        multi = choose.solve(counts, thresholds, "multi_size", LARGEST)
        print(
            f"  m = {counts.m:>6,} (x {gamma:2})   {best.seconds:6.1f} s   gap {best.gap:.1e} ({best.status})   loss {best.loss:>12,}"
            f"   two {two.loss / best.loss:5.2f} ({two.seconds:.1f} s)   multi {multi.loss / best.loss:5.2f} ({multi.seconds:.1f} s)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--data", type=Path, default=os.environ.get("ANONLIB_DATA"))
    arguments = parser.parse_args()
    folder = None if arguments.data is None else Path(arguments.data)
    print(machine.facts())
    for column in ("occupation", "education"):
        shares = shape(folder, column)
        print(f"\n{'=' * 20} {column}: {len(shares)} values, f' = min(1, {THETA} f + {OFFSET}), M' = {LARGEST}")
        prunings(shares)
        growth(shares)
        optimum(shares, arguments.seconds)


if __name__ == "__main__":
    main()
