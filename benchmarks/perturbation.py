"""Small domain randomization: what is retained, what the solver takes, and the whole job over the floor.

    python -m benchmarks.perturbation [--data FOLDER] [--chart retention.png] [--rows 5000000] [--values 15000] [--repeat 2] [--no-job]

The folder that holds the census and hospital tables is --data, else ANONLIB_DATA, else `../shared/data` beside the checkout; tables
that are not there are left out. First table 2 and 3 of the paper on OCC (its retention for 300,000 records beside ours for 100,000), then
the same figures for 700 diagnoses and for a generated table of 15,000 values, then the job on the generated table over the floors of
`benchmarks.throughput`, audit included.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from anonlib.evaluation.retention import retention_by_rho2, retention_chart
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.rho_privacy import RhoPrivacy
from anonlib.solvers.subtables.perturbation_partitioning import Partitioning, solve, solve_whole
from benchmarks import machine
from benchmarks.throughput import throughput

PAPER = {6: (2.9, 9.0), 5: (4.0, 12.3), 4: (5.9, 17.3), 3: (9.4, 25.7)}
"""L -> retention in % of uniform perturbation and of Perturbation Partitioning (table 2)."""


def counts_of(path: Path, column: str) -> SensitiveCounts:
    """The counts of a column of a Parquet table; a null is a value of its own."""
    found = [
        (row["values"], row["counts"])
        for row in pq.read_table(path, columns=[column])[column].value_counts().to_pylist()
    ]
    found.sort(key=lambda it: (it[0] is None, it[0]))
    return SensitiveCounts(tuple(value for value, _ in found), np.array([n for _, n in found]))


def show(name: str, found: Partitioning) -> None:
    """One line of figures: means over sub-tables as the paper has them, and retention over records."""
    parts = list(found.subtables)
    print(
        f"  {name:<11} {found.groups:5,} groups {len(parts):5,} sub-tables  m {np.mean([p.domain_size for p in parts]):8.1f}  "
        f"gamma {np.mean([float(p.gamma) for p in parts]):7.2f}  retention {100 * np.mean([float(p.retention) for p in parts]):6.2f} % "
        f"(of records {100 * found.subtables.mean_retention:6.2f} %)  bound {found.bound:9.5f}  count error {found.count_error:9.1f}  "
        f"{found.seconds:6.2f} s"
    )


def figures(title: str, counts: SensitiveCounts, levels: Sequence[int], rho1: Fraction | None = None) -> None:
    """Uniform perturbation, the paper's merging and the search, for rho2 = 1/L."""
    print(
        f"\n{title}: {counts.n:,} records, {counts.m:,} values, the most frequent {float(counts.counts.max() / counts.n):.2%}"
    )
    for level in levels:
        asked = RhoPrivacy(rho1, Fraction(1, level))
        paper = ""
        if level in PAPER and title.startswith("OCC"):
            paper = "; the paper has {} % and {} %".format(*PAPER[level])
        print(f" rho2 = 1/{level}{paper}")
        show("uniform", solve_whole(counts, asked))
        neighbours = solve(counts, asked, merging="neighbours")
        show("neighbours", neighbours)
        with machine.PeakMemory() as peak:
            found = solve(counts, asked)
        show("search", found)
        memory = f"; driver at {peak.python:,.0f} MB" if peak.python else ""
        print(
            f"  the search lowers the bound by {1 - found.bound / neighbours.bound:.2%} and the error of counts by "
            f"{1 - found.count_error / neighbours.count_error:.2%}{memory}"
        )


def generated(rows: int, values: int, seed: int = 0) -> SensitiveCounts:
    """Counts of `rows` draws of `values` Zipf-like values, each at least once."""
    weights = 1 / (np.arange(values) + 20.0)
    return SensitiveCounts(
        tuple(range(values)), np.maximum(1, np.random.default_rng(seed).multinomial(rows, weights / weights.sum()))
    )


def main() -> None:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ANONLIB_DATA", beside)))
    parser.add_argument(
        "--chart", type=Path, help="where to write the chart of retention by rho2 on OCC (PNG, SVG or PDF)"
    )
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--values", type=int, default=15_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--no-job", action="store_true", help="the solver's figures alone; Spark is not started")
    arguments = parser.parse_args()
    print(machine.facts())
    census, hospital = (arguments.data / f"{name}.parquet" for name in ("census_occ_100k", "diabetes_130us"))
    if census.exists():
        occupations = counts_of(census, "occupation")
        figures("OCC", occupations, list(PAPER), Fraction(1, 13))
        figures("EDU", counts_of(census, "education"), [10, 8, 6, 4], Fraction(1, 30))
        if arguments.chart:
            points = retention_by_rho2(occupations, [Fraction(1, l) for l in range(12, 2, -1)])  # noqa: E741
            retention_chart(points, str(arguments.chart), "100,000 census records, 50 occupations")
            print(f"  chart: {arguments.chart}")
    else:
        print(f"there is no {census}: the census figures are left out")
    if hospital.exists():
        figures("diag_1", counts_of(hospital, "diag_1"), [6, 3])
    figures("generated", generated(arguments.rows, arguments.values), [6])
    if not arguments.no_job:
        print()
        throughput(["perturb"], [arguments.rows], arguments.values, arguments.files, arguments.repeat, arguments.master)


if __name__ == "__main__":
    main()
