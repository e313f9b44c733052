"""Heterogeneous generalization's loss and time beside NH, BuReL and Mondrian: kernels alone, NumPy on one core, no Spark.

    python -m benchmarks.heterogeneous [--data FOLDER] [--only l,beta,coil,size] [--rows 10000] [--matching hungarian,sort_greedy,greedy]
                                       [--sizes 1000] [--refine] [--ls 2,3,4,5,6,7,8,9,10] [--betas 1,2,3,4,5] [--plots FOLDER]

Tables, quasi-identifiers and GCP as in `benchmarks.baselines`; dummies count as the records they are published as. HG, SG, GR are the
three ways to match; NH runs along the Hilbert curve, or within Mondrian's classes. Partitions of `--sizes` records (or "all") are runs
of the curve, merged as the method does, and with `--refine` cut on into pools.

    l     the first --rows rows of OCC by l
    beta  the same by beta
    coil  coil2000 by l and beta
    size  wall time and GCP of l = 5 on the first --rows rows by partition size, 500 to 5,000
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from anonlib.domains import generalized_certainty_penalty, penalty_of_runs
from anonlib.kernels.boxes import Box
from anonlib.kernels.classes.mondrian import mondrian
from anonlib.kernels.hilbert import hilbert_positions
from anonlib.kernels.matching.match_boxes import match_boxes
from anonlib.kernels.matching.matching_deal import deal, into_pools
from anonlib.kernels.matching.matching_graph import matching_graph
from anonlib.kernels.matching.rainbow_colouring import rainbow_matching
from anonlib.kernels.matching.ring_generalization import rings, rings_within
from anonlib.keyed import Stream
from anonlib.methods.baselines.burel import Filling
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.class_requirements import beta_likeness, enhanced_beta_likeness, frequency_diversity
from anonlib.solvers.classes.burel import ROOM, value_buckets
from anonlib.solvers.matching.match_partitions import Bucketing, GoodPool, merged_runs
from benchmarks import machine
from benchmarks.baselines import COIL, KEY, Table, census, cut, gcp, gcp_of_matches, held, read

NAMES = {"hungarian": "HG", "sort_greedy": "SG", "greedy": "GR"}
Points = dict[str, list[tuple[float, float]]]
"""{curve: [(x, y)]}"""


def partitions(table: Table, promised: Bucketing, size: int | None) -> list[np.ndarray]:
    """Row numbers of each partition, as the method cuts and merges; None is the whole table."""
    number = 1 if size is None else max(1, table.n // size)
    if number == 1:
        return [np.arange(table.n)]
    whole = promised.of_whole(table.counts.counts)
    assert whole is not None
    fewest = promised.matches(whole)
    order = np.argsort(hilbert_positions(table.columns, table.domains), kind="stable")
    cell = np.empty(table.n, dtype=np.int64)
    unit = promised.l or 1  # under l every partition but the last has a multiple of l records
    cell[order] = np.minimum(np.arange(table.n) // unit * number // (table.n // unit), number - 1)
    counts = np.bincount(cell * table.m + table.sensitive, minlength=number * table.m).reshape(number, table.m)
    run = merged_runs(counts.astype(np.int64), lambda row: promised.good_enough(row, fewest))[cell]
    return [np.flatnonzero(run == k) for k in range(int(run.max()) + 1)]


def pools(table: Table, promised: Bucketing, rows: np.ndarray) -> list[np.ndarray]:
    """Row numbers of each pool of a partition."""
    whole = promised.of_whole(table.counts.counts)
    assert whole is not None
    columns, sensitive = [column[rows] for column in table.columns], table.sensitive[rows]
    pool = mondrian(columns, table.domains, sensitive, table.m, GoodPool(promised, promised.matches(whole)))
    return [rows[pool == k] for k in range(int(pool.max()) + 1)]


@dataclass(frozen=True)
class Graph:
    """One matched pool: code columns of its records, dummies included, what each may be, its box and the value it shows.

    cells : pools of the whole table; seconds : since the graph before
    """

    columns: list[np.ndarray]
    matches: np.ndarray
    boxes: list[Box]
    shown: np.ndarray
    cells: int
    seconds: float


def graphs(table: Table, promised: Bucketing, matching: str, size: int | None, refine: bool) -> Iterator[Graph]:
    """The whole way from codes to boxes, pool by pool."""
    start = time.perf_counter()
    cells = partitions(table, promised, size)
    if refine:
        cells = [pool for rows in cells for pool in pools(table, promised, rows)]
    for place, rows in enumerate(cells):
        sensitive = table.sensitive[rows]
        held = promised.pools(np.bincount(sensitive, minlength=table.m).astype(np.int64))
        assert held is not None
        members = into_pools(sensitive, held, Stream(KEY, "benchmark pools", place))
        for number, (buckets, inside) in enumerate(zip(held, members, strict=True)):
            dealt = deal(sensitive[inside], buckets, Stream(KEY, "benchmark", place, number))
            own = [column[rows][inside][dealt.source] for column in table.columns]
            matches = matching_graph(own, table.domains, dealt, buckets.distinct, matching)
            shown = dealt.sensitive[rainbow_matching(matches, KEY, place, number)]
            boxes = match_boxes(own, table.domains, matches)
            yield Graph(own, matches, boxes, shown, len(cells), time.perf_counter() - start)
            start = time.perf_counter()


def matched(
    table: Table, promised: Bucketing, matching: str, size: int | None, refine: bool
) -> tuple[float, float, int, float, int]:
    """(GCP, seconds, pools, mean number of matches, dummies) of the whole way from codes to boxes."""
    lost, records, edges, spent, cells = 0.0, 0, 0, 0.0, 0
    for graph in graphs(table, promised, matching, size, refine):
        matches = graph.matches
        bounds = np.arange(0, matches.size + 1, matches.shape[1], dtype=np.int64)
        each = [
            penalty_of_runs(d, c[matches.ravel()], bounds) for c, d in zip(graph.columns, table.domains, strict=True)
        ]
        lost += generalized_certainty_penalty(each) * len(matches)
        records, edges = records + len(matches), edges + matches.size
        spent, cells = spent + graph.seconds, graph.cells
    return lost / records, spent, cells, edges / records, records - table.n


def burel(table: Table, beta: Fraction, refine: bool) -> np.ndarray:
    """The classes of BuReL under enhanced beta-likeness, as published or refined."""
    enhanced = enhanced_beta_likeness(beta, table.counts)
    buckets = value_buckets(table.counts, enhanced, ROOM if refine else Fraction(1))
    filling = Filling(tuple(table.domains), table.m, buckets, enhanced, refine, KEY)
    classes = filling(table.columns, [table.sensitive], np.zeros(table.n, dtype=np.int64), 0)
    assert enhanced.holds(held(table, classes)).all()
    return classes


def by_l(table: Table, given: argparse.Namespace, curves: Points) -> Iterator[str]:
    curve = hilbert_positions(table.columns, table.domains)
    for l in given.ls:  # noqa: E741
        promised = Bucketing(l, None)
        if promised.buckets(table.counts.counts) is None:
            yield f"{l:3}  not possible: a value has more than one record in {l}"
            continue
        told = ""
        for size in given.sizes:
            for matching in given.matching:
                loss, seconds, number, _, dummies = matched(table, promised, matching, size, given.refine)
                curves[f"{NAMES[matching]}, p = {size or 'all'}"].append((l, loss))
                told += f"  {NAMES[matching]} {loss:.4f} {seconds:5.1f} s ({number}, {dummies})"
        bound = frequency_diversity(l, table.m)
        if bound.holds(table.counts.counts[None])[0]:
            classes = cut(table, bound)
            losses = {
                "NH": gcp_of_matches(table, rings(curve, table.sensitive, l).matches(l)),
                "NH in classes": gcp_of_matches(table, rings_within(curve, table.sensitive, l, classes).matches(l)),
                "Mondrian": gcp(table, classes),
            }
            for name, loss in losses.items():
                curves[name].append((l, loss))
                told += f"  {name} {loss:.4f}"
        yield f"{l:3}{told}"


def by_beta(table: Table, given: argparse.Namespace, curves: Points) -> Iterator[str]:
    for beta in given.betas:
        promised = Bucketing(None, BetaLikeness(beta, table.counts.counts))
        told = ""
        for size in given.sizes:
            for matching in given.matching:
                loss, seconds, number, mu, dummies = matched(table, promised, matching, size, given.refine)
                curves[f"{NAMES[matching]}, p = {size or 'all'}"].append((float(beta), loss))
                told += f"  {NAMES[matching]} {loss:.4f} {seconds:5.1f} s ({number}, {dummies}, mu {mu:.0f})"
        losses = {
            "Mondrian": gcp(table, cut(table, beta_likeness(beta, table.counts))),
            "BuReL": gcp(table, burel(table, beta, False)),
            "BuReL refined": gcp(table, burel(table, beta, True)),
        }
        for name, loss in losses.items():
            curves[name].append((float(beta), loss))
            told += f"  {name} {loss:.4f}"
        yield f"{float(beta):3g}{told}"


def by_size(table: Table, given: argparse.Namespace, curves: Points) -> Iterator[str]:
    for size in (500, 1000, 2000, 5000):
        told = ""
        for matching in given.matching:
            loss, seconds, number, _, dummies = matched(table, Bucketing(5, None), matching, size, given.refine)
            curves[NAMES[matching]].append((size, seconds))
            told += f"  {NAMES[matching]} {loss:.4f} {seconds:5.1f} s ({number}, {dummies})"
        yield f"{size:5}{told}"


def plot(curves: Points, title: str, x: str, y: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for name, points in curves.items():
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.set(title=title, xlabel=x, ylabel=y, ylim=(0, None))
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser()
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ANONLIB_DATA", str(beside))))
    parser.add_argument("--only", default="l,beta,coil,size")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--matching", type=lambda s: s.split(","), default=list(NAMES))
    parser.add_argument(
        "--sizes", type=lambda s: [None if p == "all" else int(p) for p in s.split(",")], default=[1000]
    )
    parser.add_argument("--ls", type=lambda s: [int(p) for p in s.split(",")], default=list(range(2, 11)))
    parser.add_argument(
        "--betas", type=lambda s: [Fraction(p) for p in s.split(",")], default=[Fraction(b) for b in range(1, 6)]
    )
    parser.add_argument("--refine", action="store_true", help="cut partitions on into pools")
    parser.add_argument("--plots", type=Path)
    given = parser.parse_args()
    asked = given.only.split(",")
    print(machine.facts())
    parts = []
    if {"l", "beta", "size"} & set(asked):
        occ, name = (
            census(given.data, "census_occ_100k", "occupation", np.arange(given.rows)),
            f"OCC {given.rows:,} rows",
        )
        parts += [
            ("l", f"{name}, GCP by l", "l", "GCP", occ, by_l),
            ("beta", f"{name}, GCP by beta", "beta", "GCP", occ, by_beta),
            ("size", f"{name}, l = 5, GCP and time by partition size", "records a partition", "seconds", occ, by_size),
        ]
    if "coil" in asked:
        coil = read(given.data / "coil2000.parquet", COIL, "mostype")
        parts += [
            ("coil", f"coil2000, {coil.n:,} rows, GCP by l", "l", "GCP", coil, by_l),
            ("coil", f"coil2000, {coil.n:,} rows, GCP by beta", "beta", "GCP", coil, by_beta),
        ]
    for part, title, x, y, table, lines in parts:
        if part not in asked:
            continue
        print(f"\n{title}; in brackets pools and dummies", flush=True)
        curves: Points = defaultdict(list)
        for line in lines(table, given, curves):
            print(line, flush=True)
        if given.plots is not None:
            given.plots.mkdir(parents=True, exist_ok=True)
            plot(curves, title, x, y, given.plots / f"heterogeneous_{part}_{lines.__name__}.png")


if __name__ == "__main__":
    main()
