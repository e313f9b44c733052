"""Counts on bucketized releases: how far they are off, and whether what is said of their error holds, before and after.

    python -m benchmarks.estimates [--tables OCC EDU SAL DIAG] [--workloads in range point] [--queries 1000] [--keys 2] [--theta 8]
    [--data FOLDER]

OCC and EDU are the census table `census_occ_100k` with `occupation` and `education` sensitive, SAL is `census_sal_500k` with
`salary_class`, DIAG `diabetes_130us` with `diag_1` (717 codes) and nine quasi-identifiers. f'_i = min(1, theta f_i + 0.02), buckets of at
most 50, solver optimal. The folder that holds the tables is --data, else ANONLIB_DATA, else `../shared/data` beside the checkout; tables
that are not there are left out.

Records are dealt by the product's own kernel, without Spark, under several keys; every query is answered by the product's own estimator.

before : the flattened estimate, and the standard error that goes with it if a bucket's values are anybody's
after  : the same release, the estimate that answers, and the 95 % interval
mixed  : the same of a release with `mix_companions`

Loss and thresholds are those of one and the same solution. Queries with a true count of 0 have no relative error; they count for coverage.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import scipy.sparse as sp

from anonlib.evaluation.point_workload import point_workload
from anonlib.evaluation.workloads import in_width, in_workload
from anonlib.kernels.ranked.round_robin import Deal, RoundRobin, composition
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy
from anonlib.queries.batch import Masks
from anonlib.queries.bucketized import Seen, answer
from anonlib.queries.flattening import Flattening, Kinds
from anonlib.solvers.buckets import choose
from benchmarks import machine
from benchmarks.missing import missing

STAYS = ("race", "gender", "age", "admission_type_id", "discharge_disposition_id", "admission_source_id")
TABLES = {
    "OCC": ("census_occ_100k", "occupation", None),
    "EDU": ("census_occ_100k", "education", None),
    "SAL": ("census_sal_500k", "salary_class", None),
    "DIAG": ("diabetes_130us", "diag_1", (*STAYS, "time_in_hospital", "medical_specialty", "payer_code", "diag_1")),
}
CLASSES = ((0, 30), (30, 100), (100, 300), (300, 1000), (1000, 10**9))
AT_A_TIME = 128


@dataclass(frozen=True)
class Table:
    """codes : attribute -> (n,) codes in the sorted domain; rank : (n,) of a record within its sensitive value."""

    sensitive: str
    domains: dict[str, tuple[str, ...]]
    codes: dict[str, np.ndarray]
    rank: np.ndarray

    @staticmethod
    def read(path: Path, sensitive: str, columns) -> Table:
        frame = pq.read_table(path, columns=list(columns) if columns else None).to_pandas()
        domains, codes = {}, {}
        for name in frame.columns:
            text = frame[name].astype(str).to_numpy()
            values, codes[name] = np.unique(text, return_inverse=True)
            number = frame[name].dtype.kind in "if"
            order = np.argsort(values.astype(float)) if number else np.arange(len(values))
            place = np.empty(len(values), dtype=np.int64)
            place[order] = np.arange(len(values))
            domains[name], codes[name] = tuple(values[order]), place[codes[name]]
        counts = np.bincount(codes[sensitive])
        order = np.argsort(codes[sensitive], kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        return Table(sensitive, domains, codes, rank)


def range_queries(table: Table, queries: int, seed: int):
    """Three quasi-identifiers and the sensitive attribute, an interval of codes each, 10 % of the table if all were uniform."""
    draw, asked = np.random.default_rng(seed), []
    attributes = sorted(a for a in table.domains if a != table.sensitive)
    for _ in range(queries):
        query = {}
        for a in [*draw.choice(attributes, 3, replace=False), table.sensitive]:
            width = in_width(len(table.domains[a]), Fraction(1, 10), 3)
            start = int(draw.integers(0, len(table.domains[a]) - width + 1))
            query[str(a)] = tuple(range(start, start + width))
        asked.append(query)
    return asked


def workload(table: Table, kind: str, queries: int, seed: int):
    """A list of {attribute: accepted codes}."""
    if kind == "range":
        return range_queries(table, queries, seed)
    if kind == "in":
        return [q.accepted for q in in_workload(table.domains, table.sensitive, queries, 0.01, seed).queries]
    m = len(table.domains[table.sensitive])
    crossed = [
        q.accepted for q in point_workload(table.domains, table.sensitive, -(-3 * queries // m), 0.01, seed).queries
    ]
    return [crossed[i] for i in sorted(np.random.default_rng(seed).choice(len(crossed), queries, replace=False))]


@dataclass
class Dealt:
    """A deal under a key. kind : (buckets,) of each bucket; order : records by bucket; starts : of each bucket in it."""

    kinds: Kinds
    kind: np.ndarray
    order: np.ndarray
    starts: np.ndarray
    parts: dict[str, np.ndarray]
    seconds: float

    @staticmethod
    def of(table: Table, deal: Deal, key: bytes) -> Dealt:
        number: dict[tuple, int] = {}
        kind = np.empty(deal.buckets, dtype=np.int64)
        for s in composition(deal):
            kind[s.start : s.stop] = number.setdefault((s.codes, s.counts), len(number))
        held = sp.lil_matrix((len(number), len(deal.partition)), dtype=np.int64)
        for (codes, counts), i in number.items():
            held[i, list(codes)] = counts
        started = time.process_time()
        bucket = RoundRobin(deal, key)(table.codes[table.sensitive], table.rank)
        seconds = time.process_time() - started
        size = np.bincount(bucket, minlength=deal.buckets)
        parts = {}
        for a, codes in table.codes.items():
            width = len(table.domains[a])
            parts[a] = np.bincount(kind[bucket] * width + codes, minlength=len(number) * width).reshape(-1, width)
        kinds = Kinds(np.bincount(kind), sp.csr_matrix(held))
        return Dealt(kinds, kind, np.argsort(bucket, kind="stable"), np.cumsum(size) - size, parts, seconds)

    def seen(self, table: Table, queries):
        """(true count, what is seen) of each query."""
        largest = int(self.kinds.held.sum(axis=1).max())
        for first in range(0, len(queries), AT_A_TIME):
            own = queries[first : first + AT_A_TIME]
            masks = Masks.of(table.domains, own)
            visible = masks.meeting({a: c[self.order] for a, c in table.codes.items() if a != table.sensitive})
            secret = masks.meeting({table.sensitive: table.codes[table.sensitive][self.order]})
            true = (visible & secret).sum(axis=0, dtype=np.int64)
            matching = np.add.reduceat(visible, self.starts, axis=0, dtype=np.int64)
            for i, query in enumerate(own):
                place = np.bincount(self.kind * (largest + 1) + matching[:, i])
                at = np.flatnonzero(place)
                asked = [a for a in query if a != table.sensitive]
                parts = [self.parts[a][:, list(query[a])].sum(axis=1) for a in asked]
                by_kind = np.array(parts, dtype=float).reshape(len(parts), len(self.kinds.buckets)).T
                yield int(true[i]), Seen(at // (largest + 1), at % (largest + 1), place[at], by_kind)


def before(dealt: Dealt, accepted: np.ndarray, seen: Seen) -> tuple[float, float]:
    """(the flattened estimate, its hypergeometric standard error)."""
    K = np.asarray(dealt.kinds.held @ accepted.astype(np.int64)).ravel()[seen.kind].astype(float)
    N = np.asarray(dealt.kinds.held.sum(axis=1)).ravel()[seen.kind].astype(float)
    k = seen.matching
    mean = k * K / N
    variance = mean * (N - K) / N * (N - k) / np.maximum(N - 1, 1)
    return float(seen.buckets @ mean), float(seen.buckets @ variance) ** 0.5


def learner(table: Table, dealt: Dealt) -> tuple[float, float]:
    """(accuracy of guesses by the bucket alone, by the bucket and what kinds tell of every quasi-identifier).

    The second one reads each record as naive Bayes would, with the shrunk shares of its own values: what these estimates give to somebody
    who wants to know about one person. No promise bounds a learner.
    """
    system, truth = Flattening(dealt.kinds), table.codes[table.sensitive]
    bucket = np.empty(len(truth), dtype=np.int64)
    bucket[dealt.order] = np.searchsorted(dealt.starts, np.arange(len(truth)), side="right") - 1
    of_kind = dealt.kinds.held.toarray().astype(float)
    of_kind /= of_kind.sum(axis=1, keepdims=True)
    visible = [a for a in table.domains if a != table.sensitive]
    logs = {a: np.log(system.ratio(dealt.kinds.flattened(dealt.parts[a].astype(float)))).T for a in visible}
    right = 0
    for first in range(0, len(truth), 20_000):
        part = slice(first, first + 20_000)
        with np.errstate(divide="ignore"):
            score = np.log(of_kind[dealt.kind[bucket[part]]])
        for a in visible:
            score += logs[a][table.codes[a][part]]
        right += int((score.argmax(axis=1) == truth[part]).sum())
    return float(of_kind.max(axis=1)[dealt.kind[bucket]].mean()), right / len(truth)


def answered(dealt: Dealt, system: Flattening, accepted, values, seen: Seen) -> tuple[float, ...]:
    """(estimate, the ends of its interval, whether an unbiased one is to be had, whether it answers)."""
    found = answer(dealt.kinds, values, accepted, seen, system)
    return found.estimate, *found.interval, found.unbiased is not None, found.estimator == "unbiased"


def measure(table: Table, deal: Deal, kinds_of_queries: dict, keys: int, name: str) -> None:
    figures: dict[str, list[list[float]]] = {kind: [] for kind in kinds_of_queries}
    seconds, guesses = np.zeros(2), np.zeros((2, 2))
    values = list(table.domains[table.sensitive])
    for number in range(keys):
        key = bytes([number + 1]) * 32
        plain, mixed = Dealt.of(table, deal, key), Dealt.of(table, deal.mixed(), key)
        seconds += plain.seconds, mixed.seconds
        guesses += learner(table, plain), learner(table, mixed)
        systems = Flattening(plain.kinds), Flattening(mixed.kinds)
        if number == 0:
            untold = [int(system.untold().sum()) for system in systems]
            print(
                f"kinds of buckets: {len(plain.kinds.buckets):,}, mixed {len(mixed.kinds.buckets):,}; of {len(values)} values "
                f"{untold[0]}, mixed {untold[1]}, are not told by themselves"
            )
        for kind, queries in kinds_of_queries.items():
            pairs = zip(plain.seen(table, queries), mixed.seen(table, queries), strict=True)
            for query, ((true, old), (_, new)) in zip(queries, pairs, strict=True):
                accepted = np.isin(np.arange(len(values)), query[table.sensitive])
                own = (
                    answered(plain, systems[0], accepted, values, old),
                    answered(mixed, systems[1], accepted, values, new),
                )
                figures[kind].append([true, *before(plain, accepted, old), *own[0], *own[1]])
    seconds, guesses = seconds / keys, guesses / keys
    print(f"CPU seconds of the record kernel, {len(table.rank):,} records: {seconds[0]:.2f}, mixed {seconds[1]:.2f}")
    print(
        f"right guesses of persons by the bucket alone {guesses[0, 0]:.1%}, mixed {guesses[1, 0]:.1%}; by naive Bayes with these estimates "
        f"{guesses[0, 1]:.1%}, mixed {guesses[1, 1]:.1%}"
    )
    for kind, rows in figures.items():
        show(f"{name}, {kind}", np.array(rows, dtype=float))


def show(title: str, rows: np.ndarray) -> None:
    """The errors and coverages of one workload, by the true count."""
    true, flat, error = rows.T[:3]
    after, mixed = rows.T[3:8], rows.T[8:13]
    held = (np.abs(true - flat) <= 1.96 * error + 1e-9).astype(float)
    print(
        f"\n{title}: {len(rows):,} answers; with an unbiased estimate {after[3].mean():.0%}, mixed {mixed[3].mean():.0%}, which answers in "
        f"{after[4].mean():.2%}, mixed {mixed[4].mean():.2%}"
    )
    print(f"{'':24} | average relative error (median) {'':14} | true count within the interval | half the interval")
    print(
        f"{'true count':>15} {'answers':>8} | {'before':>15} {'after':>15} {'mixed':>15} | {'before':>8} {'after':>8} {'mixed':>8}     | "
        f"{'after':>8} {'mixed':>8}"
    )
    for first, stop in ((0, 10**9), *CLASSES):
        kept = (true >= first) & (true < stop)
        if not kept.any():
            continue
        some = kept & (true > 0)

        def relative(found, some=some):
            errors = np.abs(found[some] - true[some]) / true[some]
            return f"{errors.mean():.1%} ({np.median(errors):.1%})" if some.any() else "-"

        def covered(of, kept=kept):
            return ((of[1] - 1e-6 <= true) & (true <= of[2] + 1e-6))[kept].mean()

        def half(of, some=some):
            return f"{np.median((of[2] - of[1])[some] / 2 / true[some]):.0%}" if some.any() else "-"

        words = (
            "all" if stop - first == 10**9 else f"{first:,} to {stop - 1:,}" if stop < 10**9 else f"{first:,} and more"
        )
        print(
            f"{words:>15} {int(kept.sum()):>8,} | {relative(flat):>15} {relative(after[0]):>15} {relative(mixed[0]):>15} | "
            f"{held[kept].mean():>8.1%} {covered(after):>8.1%} {covered(mixed):>8.1%}     | {half(after):>8} {half(mixed):>8}",
            flush=True,
        )


def main() -> None:
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--workloads", nargs="+", default=["in", "range", "point"], choices=["in", "range", "point"])
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--keys", type=int, default=2)
    parser.add_argument("--theta", default="8")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=30.0, help="of the solver")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ANONLIB_DATA", beside)))
    arguments = parser.parse_args()
    there = [t for t in arguments.tables if (arguments.data / f"{TABLES[t][0]}.parquet").exists()]
    if not there:
        raise missing(f"needs one of the tables in {arguments.data}; name its folder by --data or ANONLIB_DATA")
    print(machine.facts())
    for name in there:
        file, sensitive, columns = TABLES[name]
        table = Table.read(arguments.data / f"{file}.parquet", sensitive, columns)
        counts = SensitiveCounts(table.domains[sensitive], np.bincount(table.codes[sensitive]))
        thresholds = FPrivacy.linear(arguments.theta, "0.02").thresholds(counts)
        solution = choose.solve(counts, thresholds, "optimal", 50, arguments.seconds)
        print(
            f"\n{name}: {counts.n:,} records, {counts.m} values of {sensitive}; loss {solution.loss:,}, MSBS {solution.setting.msbs:.2f}"
        )
        asked = {kind: workload(table, kind, arguments.queries, arguments.seed) for kind in arguments.workloads}
        measure(table, Deal.of(solution.setting, solution.partition), asked, arguments.keys, name)


if __name__ == "__main__":
    main()
