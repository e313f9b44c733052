"""A stream on a standalone cluster whose executors are killed (-9), one in every batch: what is out is what a run alone shows.

Where a kill strikes is drawn, from when a batch begins until it would be done. `test_stream_kills.py` kills the driver (slow).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from tests.contract.cluster import Cluster
from tests.contract.test_stream_kills import (
    KILLS,
    ROOT,
    data_files,
    nothing_lies_about,
    same_stream,
    seconds_a_batch,
    started,
    sums,
    with_files,
)
from tests.door import KEY
from tests.engine.test_stream import Home

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SHARDED = {"shard": "ward", "window": 200, "advance": 100}
"""Three windows, so that both executors have one to play."""


def submitted(home: Home, cluster: Cluster, package: str, log: Path) -> subprocess.Popen[bytes]:
    conf = home.conf(files=1, **SHARDED)
    command = [*cluster.submit(package), str(ROOT / "jobs" / "stream.py"), "--conf", conf, "--once"]
    environment = cluster.environment | {"RELEASE_KEY": KEY}
    return subprocess.Popen(
        command, env=environment, cwd=home.path, stdout=log.open("ab"), stderr=subprocess.STDOUT, start_new_session=True
    )


def batches_begun(home: Home) -> set[str]:
    """The batches that are at work now, by the names of their folders."""
    return {path.name for path in (home.private / "work").glob("*")}


def killed_in_batches(home: Home, cluster: Cluster, job: subprocess.Popen[bytes], longest: float) -> list[float]:
    """Kill an executor in each of the first `KILLS` batches; how many seconds after it began, of those in which there was one to kill."""
    draw, seen, kills = np.random.default_rng(), set[str](), []
    while job.poll() is None and len(kills) < KILLS:
        if not batches_begun(home) - seen:
            time.sleep(0.02)
            continue
        seen |= batches_begun(home)
        seconds = float(draw.uniform(0.0, longest))
        time.sleep(seconds)
        if running := cluster.executors():
            os.kill(int(draw.choice(running)), signal.SIGKILL)
            kills.append(round(seconds, 2))
    return kills


def test_killed_executors_change_nothing(cluster, tmp_path):
    whole, log = with_files(tmp_path / "whole"), tmp_path / "log"
    assert started(whole, log, **SHARDED).wait(timeout=600) == 0, log.read_text()
    assert whole.rows()
    killed = with_files(tmp_path / "killed")
    same_stream(killed, whole)
    package = shutil.make_archive(str(tmp_path / "anonlib"), "zip", ROOT, "anonlib")
    said = tmp_path / "submitted"
    job = submitted(killed, cluster, package, said)
    try:
        longest = 0.8 * seconds_a_batch(whole)  # the end of a batch is the driver's alone
        kills = killed_in_batches(killed, cluster, job, longest)
        assert job.wait(timeout=600) == 0, (kills, said.read_text()[-5000:])
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
    assert len(kills) == KILLS, f"it came to its end before all kills: {kills}"
    missed = said.read_text().count("is now EXITED (Command exited with code 137)")
    assert missed == KILLS, f"of {KILLS} killed executors {missed} were missed"
    assert "ExecutorLostFailure" in said.read_text(), "no task was at work where a kill struck: nothing was tested"
    assert sums(killed) == sums(whole), kills
    assert sorted(map(repr, killed.rows())) == sorted(map(repr, whole.rows())), kills
    assert data_files(killed) == data_files(whole), kills
    assert nothing_lies_about(killed), kills
