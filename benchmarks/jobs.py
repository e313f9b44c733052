"""What Spark has to do for a small release: its jobs, its stages, its seconds, and with --calls which line asks for them.

    python -m benchmarks.jobs [METHOD ...] [--rows 60] [--rounds 3] [--calls] [--master local[2]] [--keep FOLDER]

Publishes one generated table under each method of `anonlib.spec.METHODS` in one session, with its audit. The first release of a method
compiles and is not counted; of the --rounds that follow, the median of the seconds is told. Jobs and stages are those that ran, as Spark's
own status store has them. The release key is fixed, so that what --keep leaves in FOLDER can be compared between two versions.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.java_gateway import JavaMember

from anonlib import workflow
from anonlib.engine.session import SparkSession, session
from anonlib.spec import METHODS, parse_spec
from benchmarks import machine

KEY = "RELEASE_KEY", "dd7eba842bcdb39ba7f51ffb8518900642d7903dd740ec557ed00549a0841a7b"
"""Name in the environment, and value: of a generated table, no secret."""
ILLNESSES = ("asthma", "cold", "flu", "gout", "HIV", "mumps")
COUNTRIES = ("Peru", "Österreich", "中国")
FILES = 2

PARAMETERS: dict[str, dict[str, Any]] = {
    "bucketize": {"privacy": {"l": 3}, "solver": "two_size", "max_bucket_size": 20},
    "anatomy": {"l": 3},
    "perturb": {"rho1": "1/5", "rho2": "1/2"},
    "heterogeneous": {"l": 3},
    "mondrian": {"k": 5},
    "nh": {"l": 3},
    "burel": {"beta": 3},
    "t_incognito": {"t": "0.4", "k": 3},
    "sabre": {"t": "0.4", "k": 3},
}
"""What is asked of each method."""


def person_table(folder: Path, rows: int) -> Path:
    """`rows` persons in two Parquet files: age, country, and one illness of six, each as often."""
    path = folder / "persons"
    path.mkdir(parents=True)
    table = pa.table(
        {
            "age": pa.array([20 + (7 * i) % 50 for i in range(rows)], pa.int32()),
            "country": [COUNTRIES[i % len(COUNTRIES)] for i in range(rows)],
            "illness": [ILLNESSES[i % len(ILLNESSES)] for i in range(rows)],
        }
    )
    for k in range(FILES):
        start, stop = rows * k // FILES, rows * (k + 1) // FILES
        pq.write_table(table.slice(start, stop - start), path / f"part-{k}.parquet")
    return path


def publish(spark: SparkSession, method: str, source: Path, output: Path) -> None:
    """One release, made and audited as `anonlib run` does."""
    given = {
        "input": {"path": str(source)},
        "output": {"path": str(output)},
        "columns": {
            "quasi_identifiers": [{"name": "age", "type": "numeric"}, "country"],
            "sensitive": "illness",
        },
        "method": {method: PARAMETERS[method]},
        "random": {"key": f"env:{KEY[0]}"},
    }
    workflow.run(parse_spec(given), spark)


@dataclass(frozen=True)
class Work:
    """What one release cost: Spark jobs, the stages of them that ran, seconds of the clock."""

    jobs: int
    stages: int
    seconds: float


@contextmanager
def worked(spark: Any, into: list[Work]) -> Iterator[None]:
    """Measure what the session did within the block."""
    context = spark.sparkContext._jsc.sc()
    first = context.dagScheduler().numTotalJobs()
    started = time.monotonic()
    yield
    seconds = time.monotonic() - started
    jobs = context.dagScheduler().numTotalJobs() - first
    context.listenerBus().waitUntilEmpty()
    held = context.statusStore().jobsList(None)
    ran = [held.apply(i) for i in range(held.size())]
    stages = sum(job.numCompletedStages() for job in ran if job.jobId() >= first)
    into.append(Work(jobs, stages, seconds))


@dataclass
class Calls:
    """Jobs, visits to the JVM and seconds spent there, by the lines of anonlib that asked (innermost first)."""

    jobs: Counter[str]
    visits: Counter[str]
    seconds: Counter[str]

    def shown(self, most: int) -> str:
        """The `most` lines that cost most seconds, and every one that ran a job."""
        order = [name for name, _ in self.seconds.most_common()]
        lines = [name for i, name in enumerate(order) if i < most or self.jobs[name]]
        return "\n".join(
            f"    {self.jobs[name]:3} jobs {self.visits[name]:5} visits {self.seconds[name]:6.3f} s  {name}"
            for name in lines
        )


@contextmanager
def calls_told(spark: Any) -> Iterator[Calls]:
    """Tell which line each job and each visit to the JVM comes from, while the block runs (which takes longer then)."""
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()
    calls, plain = Calls(Counter(), Counter(), Counter()), JavaMember.__call__

    def counted(self: Any, *given: Any) -> Any:
        if self.name == "numTotalJobs":
            return plain(self, *given)
        before, started = scheduler.numTotalJobs(), time.monotonic()
        try:
            return plain(self, *given)
        finally:
            seconds, where = time.monotonic() - started, _where()
            calls.jobs[where] += scheduler.numTotalJobs() - before
            calls.visits[where] += 1
            calls.seconds[where] += seconds

    JavaMember.__call__ = counted
    try:
        yield calls
    finally:
        JavaMember.__call__ = plain


def _where(most: int = 4) -> str:
    lines = []
    for frame in reversed(traceback.extract_stack(limit=60)):
        file = frame.filename.replace("\\", "/")
        if "/anonlib/" in file:
            lines.append(f"{file.rpartition('/anonlib/')[2].removesuffix('.py')}:{frame.lineno}")
    return " < ".join(lines[:most])


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.jobs")
    parser.add_argument(
        "methods", nargs="*", metavar="METHOD", help=f"out of {', '.join(METHODS)}; all when none is named"
    )
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--calls", action="store_true", help="tell which lines ask for the jobs, in one further release"
    )
    parser.add_argument("--most", type=int, default=25, help="lines told with --calls")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--keep", type=Path, help="keep a release of each method in this folder")
    given = parser.parse_args()
    methods = given.methods or list(METHODS)
    if unknown := set(methods) - set(PARAMETERS):
        raise SystemExit(f"no parameters for {', '.join(sorted(unknown))}; there are some for {', '.join(PARAMETERS)}")
    print(machine.facts())
    os.environ[KEY[0]] = KEY[1]
    folder = Path(tempfile.mkdtemp(prefix="anonlib-benchmark-"))
    try:
        spark = session(master=given.master)
        spark.sparkContext.setLogLevel("ERROR")
        source = person_table(folder, given.rows)
        print(f"{given.rows:,} rows, median of {given.rounds} warm releases with their audit")
        print("method           jobs  stages  seconds")
        for method in methods:
            work: list[Work] = []
            publish(spark, method, source, (given.keep or folder) / method)
            for k in range(given.rounds):
                with worked(spark, work):
                    publish(spark, method, source, folder / f"{method}-{k}")
            seconds = statistics.median(one.seconds for one in work)
            print(f"{method:14} {work[-1].jobs:6} {work[-1].stages:7} {seconds:8.2f}", flush=True)
            if given.calls:
                with calls_told(spark) as calls:
                    publish(spark, method, source, folder / f"{method}-calls")
                print(calls.shown(given.most), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
