"""Average relative error of count queries on perturbed and bucketized releases, as in the paper on small domain randomization (Fig. 2, 4).

    python -m benchmarks.point_workload [--table OCC EDU] [--levels 6 5 4 3] [--conditions 200] [--data FOLDER] [--master local[2]]

OCC is the census table `census_occ_100k` with `occupation` sensitive, every value protected with rho2 = 1/L. EDU is the same table with
`education` sensitive, protected with rho2 = 1/L where a value makes up at most 1/30 (L is 10, 8, 6, 4 unless given). The folder that holds
the table is --data, else ANONLIB_DATA, else `../shared/data` beside the checkout. Without it the benchmark says so and ends.

PP is small domain randomization, UP uniform perturbation of the whole table, Anatomy buckets of L distinct values; where the table is not
eligible for L, the most frequent values are first suppressed as far as it takes, as in the paper's section 6.3. One pool of queries for all
releases of a table: 200 random conditions on 1 to 3 quasi-identifiers, crossed with all sensitive values, kept where at least 0.1, 0.5, 1 %
of the records meet them. "raw" is equation (7) alone, as in the paper; the lines without it are what `Release.count` says, calibrated by
the published counts of the sub-tables and within what is certain. Keys are fresh in every run, so figures vary a little.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import anonlib
from anonlib.engine.session import session
from anonlib.evaluation import point_workload as points
from anonlib.evaluation.workloads import domains
from benchmarks.missing import missing

TABLE = "census_occ_100k"
SENSITIVE = {"OCC": "occupation", "EDU": "education"}
LEVELS = {"OCC": (6, 5, 4, 3), "EDU": (10, 8, 6, 4)}
RHO1 = {"OCC": None, "EDU": "1/30"}
SELECTIVITIES = (0.001, 0.005, 0.01)


def cap(counts: list[int], level: int) -> int:
    """The most records of one value, so that the largest share of what is left is at most 1/level; cut from the most frequent."""
    low, high = 0, max(counts)
    while low < high:
        middle = (low + high + 1) // 2
        if middle * level <= sum(min(c, middle) for c in counts):
            low = middle
        else:
            high = middle - 1
    return low


def eligible(frame, sensitive: str, level: int):
    """`frame` without the surplus records of its most frequent values (which ones, a hash of the record tells)."""
    counts = [row["count"] for row in frame.groupBy(sensitive).count().collect()]
    limit = cap(counts, level)
    if max(counts) <= limit:
        return frame
    view = frame.createOrReplaceTempView
    view("point_workload_input")
    columns = ", ".join(f"`{c}`" for c in frame.columns)
    ranked = (
        f"SELECT {columns}, row_number() OVER (PARTITION BY `{sensitive}` ORDER BY xxhash64({columns}, 7)) AS place "
        "FROM point_workload_input"
    )
    return frame.sparkSession.sql(f"SELECT {columns} FROM ({ranked}) WHERE place <= {limit}")


def releases(frame, sensitive: str, level: int, rho1: str | None, folder: str):
    """(name, release) of each method."""
    others = [c for c in frame.columns if c != sensitive]
    given = {"quasi_identifiers": others, "sensitive": sensitive}
    for name, partitioning in (("PP", "small_domain"), ("UP", "whole")):
        output = f"{folder}/{name}-{sensitive}-{level}"
        yield (
            name,
            anonlib.perturb(
                frame, **given, rho1=rho1, rho2=f"1/{level}", partitioning=partitioning, output=output, audit="off"
            ),
        )
    output = f"{folder}/anatomy-{sensitive}-{level}"
    yield "Anatomy", anonlib.anatomy(eligible(frame, sensitive, level), **given, l=level, output=output, audit="off")


def compare(frame, table: str, levels, conditions: int, folder: str) -> None:
    sensitive = SENSITIVE[table]
    attributes = [c for c in frame.columns if c != sensitive]
    texts = points.as_texts(frame, attributes, [sensitive], sensitive)
    workload = points.point_workload(domains(texts, [*attributes, sensitive]), sensitive, conditions)
    n = frame.count()
    actual = points.true_counts(texts, workload, n)
    kept = ", ".join(f"{int((actual >= s * n).sum()):,} at {s:.1%}" for s in SELECTIVITIES)
    print(f"\n{table}: {n:,} records, {len(workload.queries):,} queries, of which {kept}")
    print(
        f"{'L':>3}  {'':8}" + "".join(f"{s:>9.1%}" for s in SELECTIVITIES) + "   mean retention   seconds", flush=True
    )
    for level in levels:
        for method, release in releases(frame, sensitive, level, RHO1[table], folder):
            started = time.perf_counter()
            retention = " " * 16
            if release.manifest.layout == "perturbed":
                best, raw = points.perturbed_estimates(release.tables, workload, [sensitive], n)
                found = {method: best, f"{method} raw": raw}
                retention = f"{release.manifest.utility['mean_retention']:>16.2%}"
            else:
                found = {method: points.bucketized_estimates(release.tables, workload, release.manifest)}
            seconds = time.perf_counter() - started
            for name, estimated in found.items():
                errors = "".join(f"{points.errors(actual, estimated, n, s).average:>9.2%}" for s in SELECTIVITIES)
                print(f"{level:>3}  {name:8}{errors}{retention}{seconds:>10.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", nargs="+", choices=list(SENSITIVE), default=list(SENSITIVE))
    parser.add_argument("--levels", nargs="+", type=int)
    parser.add_argument("--conditions", type=int, default=200)
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ANONLIB_DATA", str(beside))))
    parser.add_argument("--master", default="local[2]")
    arguments = parser.parse_args()
    path = arguments.data / f"{TABLE}.parquet"
    if not path.exists():
        raise missing(
            f"needs the table {TABLE}.parquet in {arguments.data}; name its folder with --data or ANONLIB_DATA"
        )
    spark = session(master=arguments.master, settings={"spark.sql.shuffle.partitions": "8"})
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        for table in arguments.table:
            frame = spark.read.parquet(str(path))
            compare(frame, table, arguments.levels or LEVELS[table], arguments.conditions, folder)
    spark.stop()


if __name__ == "__main__":
    main()
