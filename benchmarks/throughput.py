"""Wall time of a whole job over two floors, in one session: "read + groupBy(sensitive).count() + write", and the same with rows dealt anew.

    python -m benchmarks.throughput [--rows 5000000 20000000] [--values 50] [--methods bucketize fakes perturb] [--master local[2]]
    python -m benchmarks.throughput --master cluster        a standalone cluster on this machine: two workers of one core
    python -m benchmarks.throughput --columns-only          without the same jobs by rows, in half the time

The job is what `anonlib run` does, audit included. A release must deal its rows to new files, or these would say which file of the input a
row comes from (docs/limitations.md): the second floor deals rows too, by a hash of their place, to as many files as the release has. All
are measured in turn, repeat by repeat; ratios are of the best of each and of the medians. The profile says what each step of a job took;
`python peak` is the driver's own memory. Where the second pass goes column by column (`anonlib.engine.columnar`),
the same job by rows is measured beside it. CPU seconds are those of all processes, Java and Python workers too: they hold on a busy
machine, but a worker that Java ends meanwhile takes its own with it, so that a long floor after a job may show too few. Of a cluster
they are the driver's alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

from anonlib import workflow
from anonlib.engine.columnar.listing import Listing
from anonlib.engine.columnar.rewriting import Rewriting
from anonlib.engine.order import files as number_of_files
from anonlib.engine.session import LARGE_PAGES, session
from anonlib.spec.load import parse_spec
from benchmarks import machine
from benchmarks.data import NUMERIC, SENSITIVE, TEXT, person_table
from tests.contract.cluster import standalone
from tests.cpu_time import of_process_tree

CLUSTER = "cluster"
EXECUTORS = {"spark.executor.memory": "3g", "spark.executor.cores": "1", "spark.executor.extraJavaOptions": LARGE_PAGES}
Spent = tuple[float, float]
"""Wall seconds, and CPU seconds of all processes."""
DATA = Path(tempfile.gettempdir()) / "anonlib-benchmarks"
METHODS = {
    "bucketize": {"bucketize": {"privacy": {"theta": "8", "offset": "0.02"}}},
    "fakes": {"bucketize": {"privacy": {"l": 4}, "max_bucket_size": 7, "fake_values": 1}},
    "perturb": {"perturb": {"rho2": "1/6"}},
}


class Clock:
    """Wall and CPU seconds since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), of_process_tree(os.getpid()) or 0.0

    def spent(self) -> Spent:
        return time.perf_counter() - self._wall, (of_process_tree(os.getpid()) or 0.0) - self._cpu


def floor(spark, table: Path, output: Path, dealt: int | None = None) -> Spent:
    """To read, count the sensitive values and write the table back, its rows `dealt` to so many files whatever they hold."""
    clock = Clock()
    frame = spark.read.parquet(str(table))
    frame.groupBy(SENSITIVE).count().collect()
    if dealt is not None:
        numbered = frame.selectExpr("*", "xxhash64(monotonically_increasing_id()) AS place")
        frame = numbered.repartition(dealt, "place").drop("place")
    frame.write.parquet(str(output))
    return clock.spent()


JOB, BY_ROWS = "job", "job, by rows"


def job(spark, table: Path, output: Path, method: str, solver: str, way: str = JOB) -> tuple[Spent, dict[str, float]]:
    """What the whole job spends, and seconds of each of its steps. way : `JOB`, or `BY_ROWS` for a second pass that goes by rows."""
    with ExitStack() as patched:
        for by_columns in (Rewriting, Listing) if way == BY_ROWS else ():  # the choice is the run's own, and no setting
            patched.enter_context(mock.patch.object(by_columns, "written", return_value=False))
        return _job(spark, table, output, method, solver)


def _job(spark, table: Path, output: Path, method: str, solver: str) -> tuple[Spent, dict[str, float]]:
    steps: list[tuple[str, float]] = []
    clock, started = Clock(), time.perf_counter()
    asked = spec(table, output, method, solver)
    workflow.run(asked, spark, say=lambda doing: steps.append((doing, time.perf_counter())))
    ends = [at for _, at in steps[1:]] + [time.perf_counter()]
    profile: dict[str, float] = {"reading": steps[0][1] - started}
    for (doing, at), end in zip(steps, ends, strict=True):
        name = doing.split(" for ")[0].split(":")[0]
        profile[name] = profile.get(name, 0) + end - at
    return clock.spent(), profile


def spec(table: Path, output: Path, method: str, solver: str):
    """The release of the benchmark."""
    asked = {name: dict(parameters) for name, parameters in METHODS[method].items()}
    if "bucketize" in asked:
        asked["bucketize"]["solver"] = solver
    return parse_spec(
        {
            "input": {"path": str(table)},
            "output": {"path": str(output)},
            "columns": {
                "quasi_identifiers": [
                    *({"name": n, "type": "numeric"} for n in NUMERIC),
                    *(n for n in TEXT if n != SENSITIVE),
                ],
                "sensitive": SENSITIVE,
            },
            "method": asked,
        }
    )


def measure(
    spark, table: Path, rows: int, scratch: Path, repeat: int, method: str, solver: str, ways: Sequence[str]
) -> None:
    """Print the figures of one table and method. ways : of `JOB` and `BY_ROWS`"""
    spent: dict[str, list[Spent]] = {"floor": [], "floor, rows dealt": [], **{way: [] for way in ways}}
    profiles: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    with machine.PeakMemory() as peak:
        for _ in range(repeat):
            shutil.rmtree(scratch / "floor", ignore_errors=True)
            spent["floor"].append(floor(spark, table, scratch / "floor"))
            shutil.rmtree(scratch / "floor")
            spent["floor, rows dealt"].append(floor(spark, table, scratch / "floor", number_of_files(rows)))
            for way in ways:
                shutil.rmtree(scratch / "release", ignore_errors=True)
                seconds, profile = job(spark, table, scratch / "release", method, solver, way)
                spent[way].append(seconds)
                profiles[way].append(profile)
    best = {name: [min(part) for part in zip(*all_, strict=True)] for name, all_ in spent.items()}
    middle = {name: [statistics.median(part) for part in zip(*all_, strict=True)] for name, all_ in spent.items()}
    print(f"  {'':20}{'best':>9} {'median':>9} {'CPU s':>9}   over the floor: best, median, CPU")
    for name in spent:
        ratios = [
            best[name][0] / best["floor"][0],
            middle[name][0] / middle["floor"][0],
            best[name][1] / best["floor"][1],
        ]
        times = [best[name][0], middle[name][0], best[name][1]]
        print(f"  {name:20}" + " ".join(f"{t:9.2f}" for t in times) + "   " + " ".join(f"{r:6.2f}" for r in ratios))
    dealt = "floor, rows dealt"
    for way in ways:
        wall, cpu = (best[way][k] / best[dealt][k] for k in range(2))
        print(f"  {way} over the floor with rows dealt: best {wall:.2f}, CPU {cpu:.2f}")
        fastest = min(range(repeat), key=lambda k: spent[way][k][0])
        for doing, seconds in profiles[way][fastest].items():
            if seconds >= 0.05:
                print(f"    {seconds:7.2f} s  {seconds / best['floor'][0]:5.2f} of the floor  {doing}")
    print(f"  python peak {peak.python:,.0f} MB, driver JVM peak {peak.jvm:,.0f} MB")


def _goes_by_rows(spark) -> bool:
    return not str(spark.conf.get("spark.master", "")).startswith("local")


def throughput(
    methods: Sequence[str],
    rows: Sequence[int],
    values: int,
    files: int,
    repeat: int,
    master: str,
    data: Path = DATA,
    solver: str = "optimal",
    by_rows: bool = True,
) -> None:
    """Print the figures of each method on a generated table of each number of rows, all in one session on `master`."""
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="anonlib-"))
        spark = session(master=_master(stack, Path(scratch), master), settings=EXECUTORS if master == CLUSTER else None)
        print(f"Spark {spark.version}, {master}")
        ways = [JOB] if _goes_by_rows(spark) or not by_rows else [JOB, BY_ROWS]
        warm = person_table(data, 200_000, 2)
        floor(spark, warm, Path(scratch) / "warm-floor")
        for method in methods:
            for way in ways:
                job(spark, warm, Path(scratch) / f"warm-{method}-{way}", method, "two_size", way)
        for number in rows:
            table = person_table(data, number, files, values)
            for method in methods:
                print(f"\n{method}, {number:,} rows, {values:,} sensitive values", flush=True)
                measure(spark, table, number, Path(scratch), repeat, method, solver, ways)


def _master(stack: ExitStack, scratch: Path, master: str) -> str:
    """The URL of the master; a cluster is started for the word `cluster`, and goes with the stack."""
    if master != CLUSTER:
        return master
    running = stack.enter_context(standalone(scratch, "4g"))
    os.environ.update(running.environment)
    return running.master


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000_000, 20_000_000])
    parser.add_argument("--values", type=int, default=50)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--solver", default="optimal", choices=["optimal", "multi_size", "two_size"])
    parser.add_argument(
        "--columns-only", action="store_true", help="leave out the job by rows, which takes twice as long"
    )
    parser.add_argument("--data", type=Path, default=DATA)
    arguments = parser.parse_args()
    print(machine.facts())
    throughput(
        arguments.methods,
        arguments.rows,
        arguments.values,
        arguments.files,
        arguments.repeat,
        arguments.master,
        arguments.data,
        arguments.solver,
        not arguments.columns_only,
    )


if __name__ == "__main__":
    main()
