"""Whole streams on Spark, audits included: records a second by shards, and what the state and the driver hold as records arrive.

    python -m benchmarks.stream_jobs [--data FOLDER] [--rows 1000000] [--shards 1,8] [--files 4] [--window 20000] [--advance 5000]
                                     [--master local[2]]

census_sal_500k arrives in files of 50,000 rows, --files of them a micro-batch; beyond its 500,000 rows they come again, in another order. A
shard of each record is drawn, and windows are of a shard. t = 0.35, k = 6. For each number of shards:

    records/s    rows over the seconds of the whole run: from the first look at the input to the last batch shown
    batches      seconds from one batch to the next and the state's bytes (of all shards together): the first ones, the middle, the last
    memory       peaks of the driver, of the JVM and of the largest Python task; and what Spark keeps of state on the disk in the end

The folder that holds the table is --data, else ANONLIB_DATA, else `../shared/data` beside the checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import anonlib
from anonlib.engine.session import session
from anonlib.spec import parse_spec
from benchmarks import machine
from benchmarks.missing import missing
from benchmarks.sabre_jobs import census_columns
from benchmarks.stream import rows_of

HERE = Path(__file__).resolve().parents[1]
OF_A_FILE = 50_000
PEOPLE = 500_000
LINES = 3
"""Batches told at the beginning, in the middle and at the end."""


def arrive(data: Path, folder: Path, rows: int, shards: int) -> pa.Table:
    """Write the files that arrive: the table's columns, `at` and `shard`. The table itself, once."""
    folder.mkdir(parents=True)
    table = pq.read_table(data / "census_sal_500k.parquet")
    order, draw = rows_of(PEOPLE, rows), np.random.default_rng(1)
    for number, start in enumerate(range(0, rows, OF_A_FILE)):
        part = table.take(pa.array(order[start : start + OF_A_FILE]))
        part = part.append_column("at", pa.array(np.arange(start, start + len(part))))
        drawn = pa.array([f"shard {i}" for i in draw.integers(0, shards, len(part))])
        path = folder / f"part-{number:05d}.parquet"
        pq.write_table(part.append_column("shard", drawn), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # files arrive by their times
    return table


def domains(table: pa.Table, shards: int) -> dict[str, Any]:
    """Of the table's columns that are under no hierarchy."""
    told: dict[str, Any] = {"shard": [f"shard {i}" for i in range(shards)]}
    for column in census_columns():
        name = column if isinstance(column, str) else column["name"]
        values = table.column(name).to_pylist()
        if isinstance(column, str):
            told[name] = sorted({str(value) for value in values})
        elif "hierarchy" not in column:
            told[name] = {"low": min(values), "high": max(values)}
    told["salary_class"] = sorted(str(value) for value in set(table.column("salary_class").to_pylist()))
    return told


def spec(folder: Path, table: pa.Table, shards: int, given: argparse.Namespace) -> dict[str, Any]:
    return {
        "input": {"path": str(folder / "in")},
        "output": {"path": str(folder / "out")},
        "columns": {
            "quasi_identifiers": [*census_columns(), "shard"],
            "sensitive": {"name": "salary_class", "type": "numeric"},
            "identifiers": ["at"],
        },
        "method": {"sabre": {"t": "0.35", "k": 6}},
        "stream": {
            "window": given.window,
            "advance": given.advance,
            "order": "at",
            "shard": "shard",
            "checkpoint": str(folder / "private"),
            "files": given.files,
            "domains": domains(table, shards),
        },
    }


def batches(folder: Path) -> list[tuple[float, int, int]]:
    """(when its manifest was written, records that had arrived by then, bytes of state) of each batch, as its evidence counts them."""
    told, arrived = [], 0
    for path in sorted((folder / "out" / "batches").glob("*.json")):
        counts = json.loads((folder / "private" / "evidence" / path.name).read_text())["counts"]
        arrived += counts["arrived"]
        told.append((path.stat().st_mtime, arrived, counts["bytes"]))
    return told


def some(lines: list[str]) -> list[str]:
    """The first ones, those in the middle, and the last."""
    if len(lines) <= 3 * LINES:
        return lines
    middle = len(lines) // 2
    return [*lines[:LINES], "      ...", *lines[middle : middle + LINES], "      ...", *lines[-LINES:]]


def size_of(folder: Path) -> float:
    """MB of all files below."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def measured(spark: Any, folder: Path, shards: int, given: argparse.Namespace) -> None:
    table = arrive(given.data, folder / "in", given.rows, shards)
    asked = parse_spec(spec(folder, table, shards, given))
    begun, cpu = time.time(), time.monotonic()
    with machine.PeakMemory() as peak:
        release = anonlib.stream(asked, spark=spark)
    seconds = time.monotonic() - cpu
    part, utility = release.manifest.stream, release.manifest.utility
    assert part is not None
    ail = f"{utility['ail']:.4f}" if part.shown else "of nothing"
    print(
        f"  {shards} shard{'s' if shards > 1 else ''}: {given.rows:,} records in {seconds:,.1f} s, {given.rows / seconds:,.0f} records/s; "
        f"{part.shown:,} shown, {part.waiting:,} wait, AIL {ail}, audit {release.manifest.audit.passed}"
    )
    times = batches(folder)
    lines = [
        f"      {arrived:10,} records  {when - before:6.1f} s  state {held / 1e6:7.3f} MB"
        for (when, arrived, held), before in zip(times, [begun, *(when for when, _, _ in times)], strict=False)
    ]
    print("\n".join(some(lines)))
    later = [held for _, _, held in times[len(times) // 2 :]]
    print(
        f"      state at most {max(held for *_, held in times) / 1e6:.3f} MB, in the second half {min(later) / 1e6:.3f} to "
        f"{max(later) / 1e6:.3f} MB; on the disk {size_of(folder / 'private' / 'spark' / 'state'):.1f} MB"
    )
    print(
        f"      peak memory of the driver {peak.python:.0f} MB, of the JVM {peak.jvm:.0f} MB, of a Python task {peak.task:.0f} MB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.stream_jobs")
    default = os.environ.get("ANONLIB_DATA", str(HERE.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=Path(default))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--shards", type=lambda s: [int(p) for p in s.split(",")], default=[1, 8])
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--window", type=int, default=20_000)
    parser.add_argument("--advance", type=int, default=5_000)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    if not (given.data / "census_sal_500k.parquet").exists():
        raise missing(f"there is no census_sal_500k in {given.data}; give --data or set ANONLIB_DATA")
    print(machine.facts())
    print(f"omega {given.window:,}, I {given.advance:,}, {given.files * OF_A_FILE:,} records a micro-batch", flush=True)
    spark = session(master=given.master)
    for shards in given.shards:
        folder = Path(tempfile.mkdtemp(prefix="anonlib-benchmark-"))
        try:
            measured(spark, folder, shards, given)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
