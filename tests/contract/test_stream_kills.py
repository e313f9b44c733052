"""A stream that is killed (-9) wherever it stands and started again: what is out in the end is what an uninterrupted run shows.

The kills leave a driver, its JVM and its workers dead at once. Between micro-batches, in a task, while a batch is audited, between the move
of its files and its manifest: where a kill strikes is drawn, and said when the test fails. `tests/engine/test_stream.py` plays the two
narrow gaps around a manifest in every run; here are ten kills (slow).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from tests.door import of_its_own
from tests.engine.test_stream import Home, arrivals

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
FILES, OF_EACH, KILLS = 12, 150, 10
LONGEST = 25.0
"""Seconds into a run, at most, that a kill comes."""


def started(home: Home, log: Path) -> subprocess.Popen[bytes]:
    conf = home.path / "spec.yaml"
    conf.write_text(yaml.safe_dump(home.spec(files=1)), encoding="utf-8")
    command = [sys.executable, "-m", "anonlib.cli", "stream", str(conf), "--once", "--master", "local[1]"]
    return subprocess.Popen(
        command, cwd=ROOT, env=of_its_own(), stdout=log.open("ab"), stderr=subprocess.STDOUT, start_new_session=True
    )


def with_files(path: Path) -> Home:
    home, table = Home(path), arrivals(FILES * OF_EACH)
    for number in range(FILES):
        home.arrive(table.slice(number * OF_EACH, OF_EACH))
        os.utime(home.input / f"part-{number + 1:03d}.parquet", (1_700_000_000 + number, 1_700_000_000 + number))
    return home


def told(home: Home) -> list[Any]:
    return sorted((m["stream"]["batch"], m["stream"]["shown"], m["stream"]["arrived"]) for m in home.manifests())


def test_ten_kills_change_nothing(tmp_path):
    whole = with_files(tmp_path / "whole")
    log = tmp_path / "log"
    begun = time.monotonic()
    assert started(whole, log).wait(timeout=600) == 0, log.read_text()
    longest = min(LONGEST, time.monotonic() - begun)
    killed = with_files(tmp_path / "killed")
    killed.private.mkdir(mode=0o700)
    for folder in ("evidence", "ends"):
        (killed.private / folder).mkdir()
    settings = json.loads((whole.private / "stream.json").read_text())  # the same stream, so the same draws
    (killed.private / "stream.json").write_text(json.dumps(settings | {"output": str(killed.output)}))
    draw, at, done = np.random.default_rng(), [], 0
    while done < KILLS:
        seconds = float(draw.uniform(3.0, longest))
        process = started(killed, log)
        time.sleep(seconds)
        if process.poll() is None:
            done += 1
        os.killpg(process.pid, signal.SIGKILL) if process.poll() is None else None
        process.wait()
        at.append((round(seconds, 1), len(killed.manifests())))
        if len(killed.manifests()) == FILES:
            break  # it has come to its end between kills
    assert started(killed, log).wait(timeout=600) == 0, (at, log.read_text())
    assert done >= 3, f"it came to its end after {done} kills: {at}"
    assert told(killed) == told(whole), at
    assert sorted(map(repr, killed.rows())) == sorted(map(repr, whole.rows())), at
    lie_there = {p.name for p in (killed.output / "microdata").glob("*.parquet")}
    assert lie_there == {p.name for p in (whole.output / "microdata").glob("*.parquet")}, at
    assert sum(pq.read_metadata(p).num_rows for p in (killed.output / "microdata").glob("*.parquet")) == len(
        whole.rows()
    )
