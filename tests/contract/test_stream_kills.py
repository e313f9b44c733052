"""A stream that is killed (-9) wherever it stands and started again: what is out in the end is what an uninterrupted run shows.

The kills leave a driver, its JVM and its workers dead at once. Between micro-batches, in a task, while a batch is audited, between the move
of its files and its manifest: where a kill strikes is drawn, from when a run begins to work on a batch until it would be done with two, so
that none is spent on a start. `tests/engine/test_stream.py` plays the two narrow gaps around a manifest in every run; here are ten kills
(slow), and in `test_stream_executor_kills.py` those of executors.
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

from tests.door import of_its_own
from tests.engine.test_stream import Home, arrivals

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
FILES, OF_EACH, KILLS = 12, 150, 10


COMMAND, JOB = ("-m", "anonlib.cli", "stream"), ("jobs/stream.py",)


def started(
    home: Home, log: Path, how: tuple[str, ...] = COMMAND, options: tuple[str, ...] = ("--once",), **changes: Any
) -> subprocess.Popen[bytes]:
    conf = home.conf(files=1, trigger="1 second", **changes)
    command = [sys.executable, *how, "--conf", conf, *options, "--master", "local[1]"]
    return subprocess.Popen(
        command, cwd=ROOT, env=of_its_own(), stdout=log.open("ab"), stderr=subprocess.STDOUT, start_new_session=True
    )


def with_files(path: Path) -> Home:
    home, table = Home(path), arrivals(FILES * OF_EACH)
    for number in range(FILES):
        home.arrive(table.slice(number * OF_EACH, OF_EACH))
        os.utime(home.input / f"part-{number + 1:03d}.parquet", (1_700_000_000 + number, 1_700_000_000 + number))
    return home


def sums(home: Home) -> list[Any]:
    return sorted((m["stream"]["batch"], m["stream"]["shown"], m["stream"]["arrived"]) for m in home.manifests())


def data_files(home: Home) -> set[str]:
    return {path.name for path in (home.output / "microdata").glob("*.parquet")}


def seconds_a_batch(home: Home) -> float:
    times = sorted(path.stat().st_mtime for path in (home.output / "batches").glob("*.json"))
    return (times[-1] - times[0]) / (len(times) - 1)


def works_on(home: Home) -> set[tuple[str, float]]:
    """The working folders of batches, and when each was made."""
    folders = (home.private / "work").glob("*")
    return {(str(path), path.stat().st_ctime) for path in folders}


def killed_at_work(home: Home, log: Path, seconds: float) -> bool:
    """Start it, and kill it so many seconds after it began to work on a batch. False where it had come to its end by then."""
    before = works_on(home)
    process = started(home, log)
    while process.poll() is None and not works_on(home) - before:
        time.sleep(0.02)
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    assert process.returncode == 0, log.read_text()
    return False


def same_stream(home: Home, like: Home) -> None:
    """A checkpoint that begins the stream of another, so with the same draws."""
    for folder in (home.private, *(home.private / name for name in ("evidence", "ends"))):
        folder.mkdir(mode=0o700)
    settings = json.loads((like.private / "stream.json").read_text())
    (home.private / "stream.json").write_text(json.dumps(settings | {"output": str(home.output)}))


def test_ten_kills_change_nothing(tmp_path):
    whole, log = with_files(tmp_path / "whole"), tmp_path / "log"
    assert started(whole, log).wait(timeout=600) == 0, log.read_text()
    assert whole.rows()
    killed = with_files(tmp_path / "killed")
    same_stream(killed, whole)
    draw, longest, kills = np.random.default_rng(), 2 * seconds_a_batch(whole), []
    while len(kills) < KILLS:
        seconds = float(draw.uniform(0.0, longest))
        # the first of a run's batches takes longer than the others, so most kills strike in it and the stream advances slowly enough
        if not killed_at_work(killed, log, seconds):
            break
        kills.append((round(seconds, 2), len(killed.manifests())))
    assert started(killed, log).wait(timeout=600) == 0, (kills, log.read_text())
    assert len(kills) == KILLS, f"it came to its end before all kills: {kills}"
    assert sums(killed) == sums(whole), kills
    assert sorted(map(repr, killed.rows())) == sorted(map(repr, whole.rows())), kills
    assert data_files(killed) == data_files(whole), kills
    rows = sum(pq.read_metadata(path).num_rows for path in (killed.output / "microdata").glob("*.parquet"))
    assert rows == len(whole.rows())
    assert nothing_lies_about(killed), kills


def nothing_lies_about(home: Home) -> bool:
    return not [*home.private.glob("work/*"), *home.output.parent.glob(f".{home.output.name}.staging-stream/*")]


def test_a_running_stream_ends_in_order_when_it_is_asked_to(tmp_path):
    home, log = with_files(tmp_path / "asked"), tmp_path / "log"
    running = started(home, log, options=())
    while running.poll() is None and not home.manifests():
        time.sleep(0.1)
    second = started(home, tmp_path / "second")
    assert second.wait(timeout=300) == 2
    assert "another run of this stream is at work" in " ".join((tmp_path / "second").read_text().split())
    before, more = works_on(home), arrivals(FILES * OF_EACH + 300).slice(FILES * OF_EACH)
    home.arrive(more)
    while running.poll() is None and not works_on(home) - before:
        time.sleep(0.02)
    time.sleep(float(np.random.default_rng().uniform(0.0, 2.0)))
    running.send_signal(signal.SIGTERM)
    assert running.wait(timeout=120) == 0, log.read_text()
    assert "what was shown stays" in log.read_text()
    assert not [word for word in ("Traceback", "Exception", "\tat ") if word in log.read_text()]
    assert nothing_lies_about(home)
    assert started(home, log, JOB).wait(timeout=600) == 0, log.read_text()
    assert [batch for batch, _, _ in sums(home)] == list(range(FILES + 1))
    assert sum(arrived for _, _, arrived in sums(home)) == FILES * OF_EACH + len(more)
    assert data_files(home) == {f["name"] for m in home.manifests() for f in m["files"].get("microdata", [])}
    assert sum(shown for _, shown, _ in sums(home)) == len(home.rows())
