"""The baselines' loss and time, kernels alone: NumPy on one core, no Spark.

    python -m benchmarks.baselines [--data FOLDER] [--only l,beta,k,coil,t,cut]

The folder that holds census_occ_100k, census_sal_500k and coil2000 is --data, else ANONLIB_DATA, else `../shared/data` beside the
checkout. Quasi-identifiers: age and education numeric, marital_status, work_class and country under the hierarchies of `conf/hierarchies`,
gender and race without. GCP as everywhere (`anonlib.domains`), AIL as SABRE has it. "conf." is the largest share of a sensitive value in
a class: what an adversary can be sure of.

    l      the first 10,000 rows of OCC, l = 2..10: frequency-l Mondrian, ring generalization (NH) both ways
    beta   the same rows, beta = 1..5: Mondrian with the basic and the enhanced bound, BuReL as published and refined
    k      OCC and SAL whole: k = 10 with 4 distinct values, and with no value in more than a quarter
    coil   coil2000, l = 2..10 and beta = 1..5
    t      SAL samples, t = 0.15..0.55, k = 6: tMondrian and tIncognito by ranks of salary; OCC with equally far occupations
    cut    what cutting a table for the cluster first costs
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from anonlib.arrays import Codes, Int64Array
from anonlib.domains import CategoricalDomain, Domain, NumericDomain, generalized_certainty_penalty, penalty_of_runs
from anonlib.engine.codes import numbered
from anonlib.hierarchy import read_hierarchy
from anonlib.kernels.classes.mondrian import mondrian
from anonlib.kernels.hilbert import hilbert_positions
from anonlib.kernels.matching.ring_generalization import Rings, rings, rings_within
from anonlib.methods.baselines.burel import Filling
from anonlib.privacy.class_requirements import (
    AllOf,
    DistinctDiversity,
    KAnonymity,
    Requirement,
    beta_likeness,
    enhanced_beta_likeness,
    frequency_diversity,
)
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.t_closeness import GroundDistance, TCloseness
from anonlib.solvers.classes.burel import ROOM, value_buckets
from anonlib.solvers.classes.full_domain_lattice import Combinations, search
from anonlib.solvers.classes.kd_cut import kd_tree
from benchmarks import machine

HIERARCHIES = Path(__file__).resolve().parents[1] / "conf" / "hierarchies"
CENSUS = ("age", "gender", "education", "marital_status", "race", "work_class", "country")
COIL = ("maanthui", "mgemomv", "mgemleef", "moshoofd")
KEY = bytes(range(32))


@dataclass(frozen=True)
class Table:
    """Code columns with their domains, and the sensitive codes of a table."""

    columns: list[Codes]
    domains: list[Domain]
    sensitive: Int64Array
    m: int

    @property
    def n(self) -> int:
        return len(self.sensitive)

    @property
    def counts(self) -> SensitiveCounts:
        return SensitiveCounts(tuple(map(str, range(self.m))), np.bincount(self.sensitive, minlength=self.m))


def read(
    path: Path,
    names: Sequence[str],
    sensitive: str,
    numeric: Sequence[str] = (),
    rows: Int64Array | None = None,
) -> Table:
    """A Parquet table as kernels see it. Domains are those of the rows that are read."""
    table = pq.read_table(path, columns=[*names, sensitive])
    table = table if rows is None else table.take(rows)
    columns: list[Codes] = []
    domains: list[Domain] = []
    for name in names:
        values = table[name].to_numpy()
        if name in numeric:
            columns.append(values.astype(np.int64))
            domains.append(NumericDomain(name, float(values.min()), float(values.max())))
            continue
        distinct, codes = np.unique(values, return_inverse=True)
        file = HIERARCHIES / f"census_{name}.csv"
        if file.exists():
            tree = read_hierarchy(file)
            leaf = tree.positions([str(value) for value in distinct])
            columns.append(leaf[codes])
            domains.append(CategoricalDomain(name, tree.labels[: tree.leaves], tree))
        else:
            columns.append(codes.astype(np.int64))
            domains.append(CategoricalDomain(name, tuple(str(value) for value in distinct)))
    values, codes = np.unique(table[sensitive].to_numpy(), return_inverse=True)
    return Table(columns, domains, codes.astype(np.int64), len(values))


def census(folder: Path, name: str, sensitive: str, rows: Int64Array | None = None) -> Table:
    return read(folder / f"{name}.parquet", CENSUS, sensitive, ("age", "education"), rows)


def runs(table: Table, classes: Int64Array) -> tuple[Int64Array, Int64Array]:
    sizes = np.bincount(classes)
    return np.argsort(classes, kind="stable"), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def gcp(table: Table, classes: Int64Array) -> float:
    """GCP of the tight boxes of classes."""
    order, bounds = runs(table, classes)
    weight = np.diff(bounds) / table.n * (len(bounds) - 1)
    return generalized_certainty_penalty(
        [penalty_of_runs(d, c[order], bounds) * weight for c, d in zip(table.columns, table.domains, strict=True)]
    )


def gcp_of_matches(table: Table, matches: Int64Array) -> float:
    """GCP of boxes around each record's matches, (n, l)."""
    bounds = np.arange(0, matches.size + 1, matches.shape[1], dtype=np.int64)
    return generalized_certainty_penalty(
        [penalty_of_runs(d, c[matches.ravel()], bounds) for c, d in zip(table.columns, table.domains, strict=True)]
    )


def ail(table: Table, classes: Int64Array) -> float:
    """SABRE's average information loss of the tight boxes of classes."""
    order, bounds = runs(table, classes)
    weight, found = np.diff(bounds) / table.n, 0.0
    for column, domain in zip(table.columns, table.domains, strict=True):
        loss = penalty_of_runs(domain, column[order], bounds)
        if isinstance(domain, CategoricalDomain):
            low, high = (f.reduceat(column[order], bounds[:-1]) for f in (np.minimum, np.maximum))
            loss = domain.information_loss(np.rint(loss * (domain.size - 1)).astype(np.int64) + 1, low, high)
        found += float((loss * weight).sum())
    return found / len(table.columns)


def held(table: Table, classes: Int64Array) -> Int64Array:
    cells = np.bincount(classes * table.m + table.sensitive, minlength=(int(classes.max()) + 1) * table.m)
    return cells.reshape(-1, table.m).astype(np.int64)


def cut(table: Table, requirement: Requirement, **more: Any) -> Int64Array:
    classes = mondrian(table.columns, table.domains, table.sensitive, table.m, requirement, **more)
    assert requirement.holds(held(table, classes)).all()
    return classes


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def by_l(table: Table) -> Iterator[str]:
    curve = hilbert_positions(table.columns, table.domains)
    yield "  l   Mondrian (frequency l)   NH (Hilbert runs)   NH (Mondrian classes)"
    for l in range(2, 11):  # noqa: E741
        bound = frequency_diversity(l, table.m)
        if not bound.holds(table.counts.counts[None])[0]:
            yield f"{l:3}   no value may have more than one record in {l}: not possible on this table"
            continue
        classes, cutting = timed(lambda bound=bound: cut(table, bound))

        def within(l: int = l, classes: Int64Array = classes) -> Rings:  # noqa: E741
            return rings_within(curve, table.sensitive, l, classes)

        def along(l: int = l) -> Rings:  # noqa: E741
            return rings(curve, table.sensitive, l)

        runs_only, dealing = timed(along)
        both, again = timed(within)
        first, second = (gcp_of_matches(table, found.matches(l)) for found in (runs_only, both))
        yield (
            f"{l:3}   {gcp(table, classes):.4f} {cutting:6.2f} s          {first:.4f} {dealing:6.2f} s     "
            f"{second:.4f} {cutting + again:6.2f} s"
        )


def by_beta(table: Table) -> Iterator[str]:
    yield "beta  Mondrian (basic)   Mondrian (enhanced)   BuReL: buckets, GCP     BuReL refined"
    for beta in range(1, 6):
        basic, enhanced = (f(Fraction(beta), table.counts) for f in (beta_likeness, enhanced_beta_likeness))
        line = f"{beta:3} "
        for bound in (basic, enhanced):
            classes, seconds = timed(lambda bound=bound: cut(table, bound))
            line += f"  {gcp(table, classes):.4f} {seconds:6.2f} s   "
        for refine in (False, True):
            buckets = value_buckets(table.counts, enhanced, ROOM if refine else Fraction(1))
            nodes = np.zeros(table.n, dtype=np.int64)
            filling = Filling(tuple(table.domains), table.m, buckets, enhanced, refine, KEY)
            classes, seconds = timed(
                lambda filling=filling, nodes=nodes: filling(table.columns, [table.sensitive], nodes, 0)
            )
            assert enhanced.holds(held(table, classes)).all()
            line += f"  {buckets.q:3}  {gcp(table, classes):.4f} {seconds:6.2f} s  "
        yield line


def by_k(name: str, table: Table) -> Iterator[str]:
    for what, bound in (
        ("k = 10, 4 distinct values", AllOf((KAnonymity(10), DistinctDiversity(4)))),
        ("k = 10, at most 1/4 each", AllOf((KAnonymity(10), frequency_diversity(4, table.m)))),
        ("beta = 3", beta_likeness(Fraction(3), table.counts)),
    ):
        for cuts in ("strict", "relaxed"):
            classes, seconds = timed(lambda bound=bound, cuts=cuts: cut(table, bound, strict=cuts == "strict"))
            cells = held(table, classes)
            sure = float((cells / cells.sum(axis=1, keepdims=True)).max())
            yield (
                f"  {name} {what:26} {cuts:8} GCP {gcp(table, classes):.4f}  conf. {sure:.3f}  "
                f"{classes.max() + 1:6,} classes  {seconds:6.2f} s"
            )


def combinations(table: Table) -> Combinations:
    number = numbered(table.columns)
    _, first = np.unique(number, return_index=True)
    cells, count = np.unique(number * table.m + table.sensitive, return_counts=True)
    columns = tuple(column[first] for column in table.columns)
    return Combinations(columns, cells // table.m, cells % table.m, count.astype(np.int64), table.m)


def by_t(name: str, table: Table, distance: GroundDistance, full_domain: bool = True) -> Iterator[str]:
    for t in ("0.15", "0.25", "0.35", "0.45", "0.55"):
        close = TCloseness(distance, table.counts.counts, Fraction(t))
        bound = AllOf((KAnonymity(6), close))
        classes, seconds = timed(lambda bound=bound: cut(table, bound))
        yield _closeness(name, t, "tMondrian", table, classes, close, seconds)
        if full_domain:
            found, seconds = timed(lambda bound=bound: search(combinations(table), table.domains, bound))
            yield _closeness(name, t, "tIncognito", table, found.classes[numbered(table.columns)], close, seconds)


def _closeness(
    name: str, t: str, method: str, table: Table, classes: Int64Array, close: TCloseness, seconds: float
) -> str:
    cells = held(table, classes)
    return (
        f"  {name} t = {t} {method:11} GCP {gcp(table, classes):.4f}  AIL {ail(table, classes):.4f}  real t "
        f"{float(close.farthest(cells)):.3f}  {len(cells):6,} classes  {seconds:6.2f} s"
    )


def by_cut(table: Table) -> Iterator[str]:
    number = numbered(table.columns)
    _, first, records = np.unique(number, return_index=True, return_counts=True)
    distinct = [column[first] for column in table.columns]
    bounds: dict[str, Requirement] = {
        "k = 10, 4 distinct": AllOf((KAnonymity(10), DistinctDiversity(4))),
        "at most 1/4 each": frequency_diversity(4, table.m),
        "beta = 3": beta_likeness(Fraction(3), table.counts),
    }
    for what, bound in bounds.items():
        for size in (table.n, 10_000, 1_000):
            tree = kd_tree(distinct, table.domains, records, size)
            leaf = tree.leaf_of(table.columns)
            partition = tree.merged(held(table, leaf), bound)[leaf]
            classes = cut(table, bound, begin=partition)
            yield f"  {what:20} partitions of {size:7,} or more: {partition.max() + 1:4}  GCP {gcp(table, classes):.4f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ANONLIB_DATA", str(beside))))
    parser.add_argument("--only", default="l,beta,k,coil,t,cut")
    given = parser.parse_args()
    asked = given.only.split(",")
    print(machine.facts())
    small = census(given.data, "census_occ_100k", "occupation", np.arange(10_000))
    parts: list[tuple[str, str, Callable[[], Iterator[str]]]] = [
        ("l", "OCC, first 10,000 rows: GCP by l", lambda: by_l(small)),
        ("beta", "OCC, first 10,000 rows: GCP by beta", lambda: by_beta(small)),
    ]
    if {"k", "t", "cut"} & set(asked):
        occ = census(given.data, "census_occ_100k", "occupation")
        sal = census(given.data, "census_sal_500k", "salary_class")
        some = np.random.default_rng(0).permutation(500_000)[:100_000]
        sample = census(given.data, "census_sal_500k", "salary_class", some)
        ranks, equal = GroundDistance.ordered(sal.counts.values), GroundDistance.flat(occ.m)
        parts += [
            ("k", "OCC, 100,000 rows", lambda: by_k("OCC", occ)),
            ("k", "SAL, 500,000 rows", lambda: by_k("SAL", sal)),
            ("t", "SAL, 100,000 random rows, k = 6", lambda: by_t("SAL 100k", sample, ranks)),
            ("t", "SAL, 500,000 rows, k = 6", lambda: by_t("SAL 500k", sal, ranks, full_domain=False)),
            ("t", "OCC, 100,000 rows, k = 6, occupations equally far", lambda: by_t("OCC", occ, equal)),
            ("cut", "OCC, 100,000 rows: what partitions cost", lambda: by_cut(occ)),
        ]
    if "coil" in asked:
        coil = read(given.data / "coil2000.parquet", COIL, "mostype")
        parts += [
            ("coil", f"coil2000, {coil.n:,} rows: GCP by l", lambda: by_l(coil)),
            ("coil", f"coil2000, {coil.n:,} rows: GCP by beta", lambda: by_beta(coil)),
        ]
    for name, title, lines in parts:
        if name in asked:
            print(f"\n{title}", flush=True)
            for line in lines():
                print(line, flush=True)


if __name__ == "__main__":
    main()
