"""What a ledger costs: seconds of a release with and without one, and the driver's memory, as the ledger grows.

    python -m benchmarks.ledger [--persons 5000000] [--new 500000] [--master local[2]] [--repeat 1]

A table of --persons persons is published and entered first. Then a table of half as many of these and --new others is published with the
ledger (--new of its persons are new), and a table of the --new alone without one, by the same method: the same release, with nothing to
find out. Rows are generated on the cluster; the key stands in the program, which is for benchmarks only.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import anonlib
from anonlib import workflow
from anonlib.engine.session import SparkSession, session
from anonlib.spec.load import parse_spec
from benchmarks import machine

KEY = "ANONLIB_BENCHMARK_LEDGER_KEY", "9811d7763645e585c34b5f6f27a33181210af0a49e043a325ec21c1d67abcfaa"


def persons(spark: SparkSession, folder: Path, first: int, last: int) -> Path:
    """Persons number `first` to `last`: age, sex, region, one of 40 diagnoses, none of them frequent."""
    path = folder / f"persons-{first}-{last}"
    frame = spark.range(first, last, numPartitions=8).selectExpr(
        "concat('person ', id) AS patient",
        "CAST(18 + pmod(xxhash64(id, 1), 70) AS INT) AS age",
        "IF(pmod(xxhash64(id, 2), 2) = 0, 'F', 'M') AS sex",
        "concat('region ', pmod(xxhash64(id, 3), 16)) AS region",
        "concat('diagnosis ', pmod(xxhash64(id, 4), 40)) AS disease",
    )
    frame.write.parquet(str(path))
    return path


def publish(
    spark: SparkSession, source: Path, output: Path, ledger: Path | None
) -> tuple[float, dict[str, float], Any]:
    """(seconds of the release, seconds of each step, its manifest)."""
    given: dict[str, Any] = {
        "input": {"path": str(source)},
        "output": {"path": str(output)},
        "columns": {
            "quasi_identifiers": [{"name": "age", "type": "numeric"}, "sex", "region"],
            "sensitive": "disease",
            "person": "patient",
        },
        "method": {"bucketize": {"privacy": {"l": "10"}, "solver": "two_size"}},
    }
    if ledger is None:
        given["columns"] = {**given["columns"], "person": [], "identifiers": ["patient"]}
    else:
        given["ledger"] = {"path": str(ledger), "key": f"env:{KEY[0]}"}
    steps: list[tuple[str, float]] = []
    started = time.perf_counter()
    release = workflow.run(parse_spec(given), spark, say=lambda doing: steps.append((doing, time.perf_counter())))
    ended = time.perf_counter()
    ends = [at for _, at in steps[1:]] + [ended]
    profile = {f"{doing[:70]}": end - at for (doing, at), end in zip(steps, ends, strict=True)}
    return ended - started, {"before the first step": steps[0][1] - started, **profile}, release.manifest


def shown(words: str, seconds: float, profile: dict[str, float], memory: machine.PeakMemory) -> None:
    print(f"\n{words}: {seconds:.1f} s; Python on the driver {memory.python:,.0f} MB, driver JVM {memory.jvm:,.0f} MB")
    for doing, part in profile.items():
        if part >= 0.05:
            print(f"  {part:8.2f} s  {doing}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--persons", type=int, default=5_000_000)
    parser.add_argument("--new", type=int, default=500_000)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    os.environ[KEY[0]] = KEY[1]
    print(machine.facts())
    spark = session(master=given.master)
    print(f"Spark {spark.version}, {given.master}")
    with tempfile.TemporaryDirectory(prefix="anonlib-") as scratch:
        home = Path(scratch)
        warm = persons(spark, home, 10**9, 10**9 + 20_000)
        publish(spark, warm, home / "warm", None)
        new = persons(spark, home, given.persons, given.persons + given.new)
        for k in range(given.repeat):
            ledger = home / f"ledger-{k}"
            anonlib.new_ledger(str(ledger), f"env:{KEY[0]}")
            first = persons(spark, home / f"first-{k}", 0, given.persons)
            with machine.PeakMemory() as memory:
                seconds, profile, _ = publish(spark, first, home / f"first-release-{k}", ledger)
            shown(f"{given.persons:,} persons entered in a new ledger", seconds, profile, memory)
            half = persons(spark, home / f"half-{k}", given.persons // 2, given.persons + given.new)
            with machine.PeakMemory() as memory:
                seconds, profile, manifest = publish(spark, half, home / f"with-{k}", ledger)
            assert manifest.ledger.persons == given.new
            shown(
                f"{given.new:,} new of {manifest.persons.persons:,} persons, {given.persons:,} in the ledger",
                seconds,
                profile,
                memory,
            )
            with machine.PeakMemory() as memory:
                seconds, profile, _ = publish(spark, new, home / f"without-{k}", None)
            shown(f"the {given.new:,} new ones alone, without a ledger", seconds, profile, memory)


if __name__ == "__main__":
    main()
