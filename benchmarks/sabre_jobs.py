"""Whole SABRE jobs on Spark, audit included: beside tMondrian on the same engine, beside other tools, on large and hierarchical tables.

    python -m benchmarks.sabre_jobs [--data FOLDER] [--only peers sample whole diabetes military] [--queries 2000] [--master local[2]]

peers     census_occ_100k (occupation, flat) and census_sal_500k (salary_class, ordered and flat) at t = 0.35: GCP of the default, beside
          the 0.384 and 0.170 that ARX 3 reaches with local recoding (in 29 s and 85 s on two cores)
sample    a sample of 100,000 of census_sal_500k: SABRE-AK, SABRE-KNN, the default and tMondrian, k = 6, with the median relative error of
          range queries and the divergence of cube cells (as in Fig. 17 and 18)
whole     all of census_sal_500k: SABRE-AK, the default and tMondrian
diabetes  diagnoses of 101,766 hospital stays under ICD-9 categories and chapters
military  1,414,593 rows sorted by group, 259 combinations of quasi-identifiers, a rank held by nine persons; peak memory of the driver

The folder that holds the tables is --data, else ANONLIB_DATA, else `../shared/data` beside the checkout.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anonlib
import anonlib.exact
from anonlib.engine.session import session
from anonlib.evaluation import generalized
from benchmarks import machine
from benchmarks.icd9 import icd9
from benchmarks.missing import missing

HERE = Path(__file__).resolve().parents[1]
T = "0.35"
ARX = {"census_occ_100k": 0.384, "census_sal_500k": 0.170}


def census_columns() -> list[Any]:
    """The quasi-identifiers of the census tables."""
    trees = HERE / "conf" / "hierarchies"
    under = [
        {"name": name, "hierarchy": str(trees / f"census_{name}.csv")}
        for name in ("marital_status", "work_class", "country")
    ]
    return [
        {"name": "age", "type": "numeric"},
        "gender",
        {"name": "education", "type": "numeric"},
        under[0],
        "race",
        under[1],
        under[2],
    ]


class Runs:
    """Publishes below a folder of its own and prints a line a release."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark, self.folder, self.number = spark, folder, 0

    def publish(self, name: str, method: Callable[..., Any], df: Any, **given: Any) -> Any:
        self.number += 1
        started = time.monotonic()
        release = method(df, output=str(self.folder / str(self.number)), **given)
        seconds = time.monotonic() - started
        manifest = release.manifest
        print(
            f"  {name:<34} {manifest.rows.published:9,} records  {seconds:6.1f} s  AIL {manifest.utility['ail']:.4f}  "
            f"GCP {manifest.utility['gcp']:.4f}  closeness {float(anonlib.exact.exact(manifest.guarantee.achieved['t'])):.4f}  "
            f"audit {'passed' if manifest.audit.passed else 'failed'}",
            flush=True,
        )
        return release


def peers(runs: Runs, data: Path, queries: int) -> None:
    for name, sensitive, kinds in (
        ("census_occ_100k", "occupation", ["categorical"]),
        ("census_sal_500k", "salary_class", ["numeric", "categorical"]),
    ):
        df = runs.spark.read.parquet(str(data / f"{name}.parquet"))
        for kind in kinds:
            given = {"quasi_identifiers": census_columns(), "sensitive": {"name": sensitive, "type": kind}, "t": T}
            distance = "ordered" if kind == "numeric" else "flat"
            release = runs.publish(f"{name}, {distance}", anonlib.sabre, df, **given)
            print(f"      GCP {release.manifest.utility['gcp']:.3f} beside ARX's {ARX[name]:.3f}")


CENSUS = {"quasi_identifiers": census_columns(), "sensitive": {"name": "salary_class", "type": "numeric"}}
WAYS = (
    ("SABRE-AK", anonlib.sabre, {"neighbours": "approximate", "allow_minimality_leak": True}),
    ("SABRE-KNN", anonlib.sabre, {"neighbours": "exact", "allow_minimality_leak": True}),
    ("default", anonlib.sabre, {}),
    ("refined", anonlib.sabre, {"refine": True, "allow_minimality_leak": True}),
    ("tMondrian strict", anonlib.mondrian, {"cuts": "strict"}),
    ("tMondrian relaxed", anonlib.mondrian, {"cuts": "relaxed"}),
)


def sample(runs: Runs, data: Path, queries: int) -> None:
    path = str(runs.folder / "sample")
    whole_table = runs.spark.read.parquet(str(data / "census_sal_500k.parquet"))
    whole_table.sample(fraction=0.2, seed=1).coalesce(2).write.parquet(path)
    df = runs.spark.read.parquet(path)
    for name, method, more in WAYS:
        release = runs.publish(name, method, df, t=T, k=6, **CENSUS, **more)
        found = generalized.evaluate(release.tables, release.manifest, df, queries=queries, selectivity=0.1)
        print(
            f"      median relative error of {queries:,} range queries {found.errors.median:.4f}, "
            f"KL divergence of cube cells {found.measures.get('kl_2', float('nan')):.4f}",
            flush=True,
        )


def whole(runs: Runs, data: Path, queries: int) -> None:
    df = runs.spark.read.parquet(str(data / "census_sal_500k.parquet"))
    for name, method, more in WAYS:
        if name != "SABRE-KNN":
            runs.publish(name, method, df, t=T, k=6, **CENSUS, **more)


def diabetes(runs: Runs, data: Path, queries: int) -> None:
    df = runs.spark.read.parquet(str(data / "diabetes_130us.parquet")).select(
        "race", "gender", "age", "admission_type_id", "time_in_hospital", "diag_1"
    )
    codes = [row[0] for row in df.select("diag_1").distinct().collect()]
    given = {
        "quasi_identifiers": [
            "race", "gender", "age", "admission_type_id", {"name": "time_in_hospital", "type": "numeric"}
        ],
        "sensitive": {"name": "diag_1", "hierarchy": icd9(codes)},
    }  # fmt: skip
    for t in ("0.2", T):
        for name, more in (("SABRE-AK", {"neighbours": "approximate", "allow_minimality_leak": True}), ("default", {})):
            runs.publish(f"{len(codes)} diagnoses, t {t}, {name}", anonlib.sabre, df, t=t, k=6, **given, **more)


def military(runs: Runs, data: Path, queries: int) -> None:
    df = runs.spark.read.parquet(str(data / "us_military_2010.parquet"))
    given = {
        "quasi_identifiers": ["grade", "branch", "gender", "race", "hisp"],
        "sensitive": {"name": "rank", "type": "numeric"},
    }
    for t in ("0.2", T):
        for name, more in (("SABRE-AK", {"neighbours": "approximate", "allow_minimality_leak": True}), ("default", {})):
            with machine.PeakMemory() as peak:
                runs.publish(f"t {t}, {name}", anonlib.sabre, df, t=t, k=6, **given, **more)
            print(f"      peak memory of the driver {peak.python:.0f} MB, of the JVM {peak.jvm:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.sabre_jobs")
    default = os.environ.get("ANONLIB_DATA", str(HERE.parent / "shared" / "data"))
    parts = {"peers": peers, "sample": sample, "whole": whole, "diabetes": diabetes, "military": military}
    parser.add_argument("--data", type=Path, default=Path(default))
    parser.add_argument("--only", nargs="*", default=list(parts), choices=list(parts))
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--master", default="local[2]")
    asked = parser.parse_args()
    if not (asked.data / "census_sal_500k.parquet").exists():
        raise missing(f"there are no tables in {asked.data}; give --data or set ANONLIB_DATA")
    print(machine.facts())
    folder = Path(tempfile.mkdtemp(prefix="anonlib-benchmark-"))
    try:
        runs = Runs(session(master=asked.master), folder)
        for name in asked.only:
            print(f"\n{name}")
            parts[name](runs, asked.data, asked.queries)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
