"""What a release is worth, over theta: mean squared bucket size and the error of count queries, as in the paper's Fig. 4 and 5.

    python -m benchmarks.utility [--theta 2 4 8 16 32] [--queries 5000] [--selectivity 0.01] [--data FOLDER] [--master local[2]]

OCC is the census table `census_occ_100k` with `occupation` sensitive, EDU the same with `education` sensitive and `occupation` among the
quasi-identifiers; f'_i = min(1, theta f_i + 0.02), buckets of at most 50 records. The folder that holds the table is --data, else
ANONLIB_DATA, else `../shared/data` beside the checkout. Without it the benchmark says so and ends.

For each table and theta: MSBS of TwoSize, MultiSize, Optimal and Anatomy (sizes l and l + 1, l = ceil(1 / min f'_i), whether or not
the table is eligible for l: from sizes alone, as in the paper), and the average relative error of one pool of `in` queries on the three
releases. Queries with a true answer of 0 have no relative error and are left out. The pool is the same for every release of a table.

"Margins" is what one would say without any bucket: the exact count of the quasi-identifiers' part, times the share of the sensitive part in
the whole table. What a release is better than that is all it tells of how the sensitive value goes with the rest.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import tempfile
import time
from pathlib import Path

import numpy as np

import anonlib
from anonlib.engine.session import session
from anonlib.evaluation.bucketized import estimates, true_counts
from anonlib.evaluation.evaluation import RelativeErrors
from anonlib.evaluation.workloads import domains, in_workload
from anonlib.exact import ceil_over, exact
from anonlib.privacy.buckets import BucketSetting
from anonlib.privacy.f_privacy import FPrivacy
from benchmarks import machine
from benchmarks.missing import missing

TABLE = "census_occ_100k"
SENSITIVE = {"OCC": "occupation", "EDU": "education"}
SOLVERS = {"TwoSize": "two_size", "MultiSize": "multi_size", "Optimal": "optimal"}
OFFSET, LARGEST = "0.02", 50
NOMINAL = ("occupation",)


def anatomy_setting(n: int, smallest_threshold) -> BucketSetting:
    """n records in buckets of l or l + 1, as few of l + 1 as possible."""
    size = ceil_over(1, smallest_threshold)
    buckets, over = divmod(n, size)
    if over > buckets:
        raise ValueError(f"{n} records do not go into buckets of {size} and {size + 1}")
    return BucketSetting.of([(size, buckets - over), (size + 1, over)])


def without_buckets(original, workload, records: int):
    """(Q,) estimates as if the sensitive value had nothing to do with the quasi-identifiers."""
    sensitive = workload.sensitive
    visible = {a: d for a, d in workload.domains.items() if a != sensitive}
    matching = true_counts(original, dataclasses.replace(workload, domains=visible), records)
    counts = {str(row[sensitive]): row["count"] for row in original.groupBy(sensitive).count().collect()}
    values = [counts[text] for text in workload.domains[sensitive]]
    shares = [sum(values[code] for code in query.accepted[sensitive]) / records for query in workload.queries]
    return matching * np.array(shares)


def measure(spark, path: Path, name: str, arguments: argparse.Namespace, scratch: Path) -> float:
    """Print the table of one sensitive attribute; the largest average error."""
    original = spark.read.parquet(str(path))
    sensitive = SENSITIVE[name]
    visible = [column for column in original.columns if column != sensitive]
    workload = in_workload(
        domains(original, [*visible, sensitive]), sensitive, arguments.queries, arguments.selectivity, arguments.seed
    )
    started = time.perf_counter()
    records = original.count()
    actual = true_counts(original, workload, records)
    margins = RelativeErrors.of(actual, without_buckets(original, workload, records))
    print(
        f"\n{name}: {sensitive} sensitive, {records:,} records; {margins.queries:,} queries, {margins.dropped:,} with a true answer of 0"
    )
    print(f"true answers in {time.perf_counter() - started:.1f} s; mean selectivity {actual.mean() / records:.2%}")
    print(f"{'':>6} | {'mean squared bucket size':^44} | {'average relative error (median)':^47} |")
    print(
        f"{'theta':>6} |"
        + "".join(f"{s:>11}" for s in (*SOLVERS, "Anatomy"))
        + " |"
        + "".join(f"{s:>16}" for s in SOLVERS)
        + " | seconds to publish, to answer"
    )
    worst = 0.0
    print(f"{'':>6} |{'':44} | Margins, for any theta: {margins.average:.2%} ({margins.median:.2%})")
    for theta in arguments.theta:
        sizes, errors, seconds = [], [], []
        for solver in SOLVERS.values():
            started = time.perf_counter()
            release = anonlib.bucketize(
                original,
                quasi_identifiers=[{"name": c, "type": "categorical" if c in NOMINAL else "numeric"} for c in visible],
                sensitive=sensitive,
                privacy=FPrivacy.linear(theta, OFFSET),
                solver=solver,
                max_bucket_size=LARGEST,
                output=str(scratch / f"{name}-{theta}-{solver}"),
            )
            published = time.perf_counter()
            error = RelativeErrors.of(actual, estimates(release.tables, workload, release.manifest))
            seconds.append((published - started, time.perf_counter() - published))
            sizes.append(release.manifest.utility["msbs"])
            errors.append(error)
            worst = max(worst, error.average)
        thresholds = [exact(value.threshold) for value in release.manifest.guarantee.values]
        sizes.append(anatomy_setting(records, min(thresholds)).msbs)
        print(
            f"{theta:>6} |"
            + "".join(f"{size:>11.2f}" for size in sizes)
            + " |"
            + "".join(f"{f'{e.average:.2%} ({e.median:.2%})':>16}" for e in errors)
            + " | "
            + ", ".join(f"{publish:.0f}+{answer:.0f}" for publish, answer in seconds),
            flush=True,
        )
    return worst


def main() -> None:
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--theta", type=int, nargs="+", default=[2, 4, 8, 16, 32])
    parser.add_argument("--tables", nargs="+", default=list(SENSITIVE), choices=list(SENSITIVE))
    parser.add_argument("--queries", type=int, default=5_000)
    parser.add_argument("--selectivity", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ANONLIB_DATA", beside)))
    arguments = parser.parse_args()
    path = arguments.data / f"{TABLE}.parquet"
    if not path.exists():
        raise missing(f"needs {TABLE}.parquet in {arguments.data}; name its folder by --data or ANONLIB_DATA")
    print(machine.facts())
    spark = session(master=arguments.master)
    print(f"Spark {spark.version}, {arguments.master}; selectivity {arguments.selectivity}, seed {arguments.seed}")
    with tempfile.TemporaryDirectory(prefix="anonlib-") as scratch:
        worst = [measure(spark, path, name, arguments, Path(scratch)) for name in arguments.tables]
    print(f"\nlargest average relative error: {max(worst):.2%}")


if __name__ == "__main__":
    main()
