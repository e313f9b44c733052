"""Wall time of the whole bucketize job over the floor "read + groupBy(sensitive).count() + write", in one session.

    python -m benchmarks.throughput [--rows 5000000 20000000] [--values 50] [--master local[2]] [--repeat 3]

The job is what `anonlib run` does, audit included. Both are measured in turn, repeat by repeat; the ratio is of the best of each
and of the medians. The profile says what each step of the job took; `python peak` is the driver's own memory.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from anonlib import workflow
from anonlib.engine.session import session
from anonlib.spec.load import parse_spec
from benchmarks import machine
from benchmarks.data import NUMERIC, SENSITIVE, TEXT, person_table


def floor(spark, table: Path, output: Path) -> float:
    """Seconds to read, count the sensitive values and write the table back."""
    started = time.perf_counter()
    frame = spark.read.parquet(str(table))
    frame.groupBy(SENSITIVE).count().collect()
    frame.write.parquet(str(output))
    return time.perf_counter() - started


def job(spark, table: Path, output: Path, solver: str) -> tuple[float, dict[str, float]]:
    """Seconds of the whole job, and of each of its steps."""
    steps: list[tuple[str, float]] = []
    started = time.perf_counter()
    workflow.run(spec(table, output, solver), spark, say=lambda doing: steps.append((doing, time.perf_counter())))
    ended = time.perf_counter()
    ends = [at for _, at in steps[1:]] + [ended]
    return ended - started, {
        doing.split(" for ")[0].split(":")[0]: end - at for (doing, at), end in zip(steps, ends, strict=True)
    }


def spec(table: Path, output: Path, solver: str):
    """The release of the benchmark."""
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
            "method": {"bucketize": {"privacy": {"theta": "8", "offset": "0.02"}, "solver": solver}},
        }
    )


def measure(spark, table: Path, scratch: Path, repeat: int, solver: str) -> None:
    """Print the figures of one table."""
    floors, jobs, profiles = [], [], []
    with machine.PeakMemory() as peak:
        for _ in range(repeat):
            for name in ("floor", "release"):
                shutil.rmtree(scratch / name, ignore_errors=True)
            floors.append(floor(spark, table, scratch / "floor"))
            seconds, profile = job(spark, table, scratch / "release", solver)
            jobs.append(seconds)
            profiles.append(profile)
    print(f"  floor   best {min(floors):7.2f} s   median {statistics.median(floors):7.2f} s")
    print(f"  job     best {min(jobs):7.2f} s   median {statistics.median(jobs):7.2f} s")
    print(
        f"  ratio   best {min(jobs) / min(floors):7.2f}     median {statistics.median(jobs) / statistics.median(floors):7.2f}"
    )
    best = profiles[jobs.index(min(jobs))]
    for doing, seconds in best.items():
        if seconds >= 0.05:
            print(f"    {seconds:7.2f} s  {seconds / min(floors):5.2f} of the floor  {doing}")
    print(f"  python peak {peak.python:,.0f} MB, driver JVM peak {peak.jvm:,.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000_000, 20_000_000])
    parser.add_argument("--values", type=int, default=50)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--solver", default="optimal", choices=["optimal", "multi_size", "two_size"])
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "anonlib-benchmarks")
    arguments = parser.parse_args()
    print(machine.facts())
    spark = session(master=arguments.master)
    print(f"Spark {spark.version}, {arguments.master}")
    with tempfile.TemporaryDirectory(prefix="anonlib-") as scratch:
        warm = person_table(arguments.data, 200_000, 2)
        floor(spark, warm, Path(scratch) / "warm-floor")
        job(spark, warm, Path(scratch) / "warm-release", "two_size")
        for rows in arguments.rows:
            print(f"\n{rows:,} rows, {arguments.values:,} sensitive values")
            table = person_table(arguments.data, rows, arguments.files, arguments.values)
            measure(spark, table, Path(scratch), arguments.repeat, arguments.solver)


if __name__ == "__main__":
    main()
