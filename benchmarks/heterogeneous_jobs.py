"""Whole heterogeneous generalization jobs on Spark, audit included: by partition size and rows, and what the releases are worth by beta.

    python -m benchmarks.heterogeneous_jobs [--data FOLDER] [--only size peers worth coil]
                                            [--rows 100000,500000] [--sizes 500,1000,2000,5000]
                                            [--matching hungarian,sort_greedy,greedy] [--betas 1,2,3,4,5] [--queries 10000]
                                            [--master local[2]]

size   census_sal_500k (salary_class), l = 5: wall time, GCP, and the largest Python process of a task, by rows and partition size
peers  census_occ_100k (occupation) and census_sal_500k (salary_class) at l = 4 and beta = 3: GCP beside what ARX 3 reaches with local
       recoding; its l counts distinct values only
worth  the first 10,000 rows of census_occ_100k (occupation): median relative error of range queries on three attributes at a selectivity of
       10 %, and how many records naive Bayes guesses right, by beta, for HG, BuReL, Mondrian, and PrivBayes with epsilon = ln(1 + beta)
       (when `benchmarks.privbayes` finds its package)
coil   the same on coil2000 (mostype)

The folder that holds the tables is --data, else ANONLIB_DATA, else `../shared/data` beside the checkout.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

import anonlib
from anonlib.engine.batches import partial_sums
from anonlib.engine.codes import encode
from anonlib.engine.session import session
from anonlib.evaluation import generalized
from anonlib.evaluation.attacks_naive_bayes import Guesses, NaiveBayes, attacks_of
from anonlib.evaluation.evaluation import RelativeErrors
from anonlib.queries.cells import PointCells
from anonlib.release.generalized import MICRODATA
from benchmarks import machine
from benchmarks.baselines import COIL
from benchmarks.missing import missing
from benchmarks.privbayes import privbayes
from benchmarks.sabre_jobs import census_columns

HERE = Path(__file__).resolve().parents[1]
NAMES = {"hungarian": "HG", "sort_greedy": "SG", "greedy": "GR"}


def by_size(spark: Any, folder: Path, given: argparse.Namespace) -> None:
    """Each table is the first rows of one random order, of a fixed seed."""
    table = pd.read_parquet(given.data / "census_sal_500k.parquet").sample(frac=1, random_state=0)
    for rows in given.rows:
        path = folder / f"sal-{rows}.parquet"
        table.head(rows).to_parquet(path, index=False, row_group_size=max(1, rows // 8))
        df = spark.read.parquet(str(path))
        for size in given.sizes:
            for matching in given.matching:
                output = folder / f"{rows}-{size}-{matching}"
                started = time.monotonic()
                with machine.PeakMemory() as peak:
                    release = anonlib.heterogeneous(
                        df,
                        quasi_identifiers=census_columns(),
                        sensitive="salary_class",
                        l=5,
                        partition_size=size,
                        matching=matching,
                        output=str(output),
                    )
                seconds = time.monotonic() - started
                manifest = release.manifest
                shape = f"{manifest.solver.details['partitions']} partitions, {manifest.rows.dummy} dummies"
                print(
                    f"  {rows:9,} rows  p {size:6,}  {NAMES[matching]}  {seconds:6.1f} s, {seconds / rows * 1e3:.3f} s per 1,000  "
                    f"GCP {manifest.utility['gcp']:.4f}  {shape}  task {peak.task:.0f} MB, driver {peak.python:.0f} MB  "
                    f"audit {'passed' if manifest.audit.passed else 'failed'}",
                    flush=True,
                )
                shutil.rmtree(output)


ARX = {
    ("census_occ_100k", "l"): 0.107,
    ("census_occ_100k", "beta"): 0.401,
    ("census_sal_500k", "l"): 0.070,
    ("census_sal_500k", "beta"): 0.181,
}


def peers(spark: Any, folder: Path, given: argparse.Namespace) -> None:
    asked: tuple[tuple[str, Any], ...] = (("l", 4), ("beta", 3))
    for name, sensitive in (("census_occ_100k", "occupation"), ("census_sal_500k", "salary_class")):
        df = spark.read.parquet(str(given.data / f"{name}.parquet"))
        for parameter, number in asked:
            started = time.monotonic()
            release = anonlib.heterogeneous(
                df,
                quasi_identifiers=census_columns(),
                sensitive=sensitive,
                output=str(folder / f"{name}-{parameter}"),
                **{parameter: number},
            )
            manifest = release.manifest
            print(
                f"  {name}  {parameter} = {number}  {time.monotonic() - started:6.1f} s  GCP {manifest.utility['gcp']:.4f} beside ARX's "
                f"{ARX[name, parameter]:.3f}  {manifest.solver.details['matches']['mean']:.1f} matches  audit "
                f"{'passed' if manifest.audit.passed else 'failed'}",
                flush=True,
            )


def worth(spark: Any, folder: Path, given: argparse.Namespace) -> None:
    names = ["age", "gender", "education", "marital_status", "race", "work_class", "country", "occupation"]
    table = pd.read_parquet(given.data / "census_occ_100k.parquet", columns=names).head(10_000)
    compared(spark, folder, given, table, census_columns())


def coil(spark: Any, folder: Path, given: argparse.Namespace) -> None:
    table = pd.read_parquet(given.data / "coil2000.parquet", columns=[*COIL, "mostype"])
    compared(spark, folder, given, table, list(COIL))


def compared(
    spark: Any, folder: Path, given: argparse.Namespace, table: pd.DataFrame, quasi_identifiers: list[Any]
) -> None:
    """The sensitive column is the last."""
    path = folder / f"{table.columns[-1]}.parquet"
    table.to_parquet(path, index=False)
    df = spark.read.parquet(str(path))
    common = {"quasi_identifiers": quasi_identifiers, "sensitive": str(table.columns[-1])}
    ways: dict[str, Callable[[str], Any]] = {
        "HG": lambda beta: anonlib.heterogeneous(df, beta=beta, **common),
        "BuReL": lambda beta: anonlib.burel(df, beta=beta, refine=False, **common),
        "BuReL refined": lambda beta: anonlib.burel(df, beta=beta, **common),
        "Mondrian": lambda beta: anonlib.mondrian(df, beta=beta, **common),
    }
    for beta in given.betas:
        release: Any = None
        for name, publish in ways.items():
            release = publish(beta)
            found = generalized.evaluate(
                release.tables, release.manifest, df, queries=given.queries, selectivity=0.1, attacks=True
            )
            right = [found.attacks[attack] for attack in ("naive Bayes", "naive Bayes, Laplace")]
            _line(beta, name, found.errors, [one["accuracy"] for one in right], right[0]["prior"])
        _synthetic(
            spark, folder, beta, table, generalized.Prepared.of(release.tables[MICRODATA], release.manifest, df), found
        )


def _synthetic(spark: Any, folder: Path, beta: str, table: pd.DataFrame, prepared: Any, found: Any) -> None:
    """The same workload and attacks on what PrivBayes made: its records counted as they are."""
    try:
        made = privbayes(table, math.log(1 + float(beta)))
    except SystemExit:  # the package is not there, and that has been said
        return
    path = folder / f"synthetic-{beta}-{table.columns[-1]}.parquet"
    made.to_parquet(path, index=False)
    points = encode(
        spark.read.parquet(str(path)), prepared.quasi_identifiers, {str(table.columns[-1]): prepared.values}
    )
    synthetic = replace(prepared, points=points)
    cube = generalized.cube_of(prepared, 1)
    learnt = cube.parts(partial_sums(points, PointCells(cube), cube.length))
    kernel = Guesses(tuple(NaiveBayes.learn(cube.cells, learnt, laplace) for laplace in (False, True)))
    prior = max(table[table.columns[-1]].value_counts()) / len(table)
    right = attacks_of(partial_sums(prepared.points, kernel, kernel.length), prior, None)
    errors = RelativeErrors.of(found.actual, generalized.true_counts(synthetic, found.workload))
    _line(beta, "PrivBayes", errors, [one.accuracy for one in right], prior)


def _line(beta: str, name: str, errors: RelativeErrors, right: list[float], prior: float) -> None:
    print(
        f"  beta {beta:4} {name:14} median relative error {errors.median:.4f}, average {errors.average:.4f}; naive Bayes "
        f"{right[0]:.4f}, with Laplace's correction {right[1]:.4f}, prior {prior:.4f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.heterogeneous_jobs")
    default = os.environ.get("ANONLIB_DATA", str(HERE.parent / "shared" / "data"))
    parts = {"size": by_size, "peers": peers, "worth": worth, "coil": coil}
    numbers = {"type": lambda text: [int(part) for part in text.split(",")]}
    words = {"type": lambda text: text.split(",")}
    parser.add_argument("--data", type=Path, default=Path(default))
    parser.add_argument("--only", nargs="*", default=list(parts), choices=list(parts))
    parser.add_argument("--rows", default=[100_000, 500_000], **numbers)
    parser.add_argument("--sizes", default=[500, 1000, 2000, 5000], **numbers)
    parser.add_argument("--matching", default=list(NAMES), **words)
    parser.add_argument("--betas", default=["1", "2", "3", "4", "5"], **words)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    if not (given.data / "census_sal_500k.parquet").exists():
        raise missing(f"there are no tables in {given.data}; give --data or set ANONLIB_DATA")
    print(machine.facts())
    folder = Path(tempfile.mkdtemp(prefix="anonlib-benchmark-"))
    try:
        spark = session(master=given.master)
        for name in given.only:
            print(f"\n{name}")
            parts[name](spark, folder, given)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
