"""The jobs on a real cluster: a standalone master and two workers on loopback, one executor killed in mid-job.

Slow (two minutes a method): run by hand with `pytest -m slow tests/contract/test_standalone_cluster.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.contract.cluster import Cluster
from tests.contract.methods import asked, over, publishes_other

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
ROWS = {"bucketize": 3_000_000, "anatomy": 3_000_000, "perturb": 3_000_000, "heterogeneous": 60_000}
"""How many records keep a cluster busy for long enough to kill an executor, where it is not `USUAL_ROWS`."""
USUAL_ROWS = 400_000
PARTITION_SIZE = 50_000
SPLITS = "67108864"


def persons(folder: Path, rows: int) -> Path:
    """Persons in four files."""
    folder.mkdir()
    rng = np.random.default_rng(7)
    weights = 1.0 / np.arange(8, 48)  # none has a tenth of the records: the examples ask for ten values that differ
    for k in range(4):
        n = rows // 4
        codes = rng.choice(40, n, p=weights / weights.sum())
        columns = {
            "serial": pa.array(np.arange(k * n, (k + 1) * n) * 1000 + (1 << 60)),
            "age": pa.array(rng.integers(16, 94, n).astype(np.int32)),
            "town": pa.array([f"town {c}" for c in rng.integers(0, 500, n)]),
            "illness": pa.array([f"illness {c:02d}" for c in codes]),
        }
        pq.write_table(pa.table(columns), folder / f"part-{k}.parquet")
    return folder


@over("a killed executor")
def test_a_killed_executor_changes_no_row_and_loses_none(cluster, tmp_path, method):
    environment = cluster.environment
    rows = ROWS.get(method, USUAL_ROWS)
    table = persons(tmp_path / "persons", rows)
    local = _spec(tmp_path, table, "local", method)
    command = [sys.executable, "-m", "anonlib.cli", "run", str(local), "--master", "local[2]"]
    subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True)

    package = shutil.make_archive(str(tmp_path / "anonlib"), "zip", ROOT, "anonlib")
    remote = _spec(tmp_path, table, "remote", method)
    submit = [
        *cluster.submit(package, "--conf", f"spark.sql.files.maxPartitionBytes={SPLITS}"),
        str(ROOT / "jobs" / "anonymize.py"), "--conf", str(remote), "--json",
    ]  # fmt: skip
    with (tmp_path / "submit.err").open("w") as log:
        job = subprocess.Popen(submit, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=log, text=True)
        killed = _kill_an_executor_while_it_writes(cluster, job, tmp_path)
        printed, _ = job.communicate(timeout=300)
    said = (tmp_path / "submit.err").read_text()
    assert killed, said[-3000:]
    assert job.returncode == 0, said[-3000:]
    assert "exited with code 137" in said or "Lost executor" in said, (
        "the killed executor was not missed: nothing was tested"
    )
    manifest = json.loads(printed.splitlines()[-1])[
        "manifest"
    ]  # spark-submit puts both streams of the job on its standard output
    assert manifest["rows"]["published"] == rows
    assert manifest["audit"]["passed"]
    alone = json.loads((tmp_path / "local" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["tables"] == alone["tables"]  # rows and checksums, which do not depend on the order of rows
    if method == "bucketize":
        for name in ("qit", "st"):
            assert _sorted(tmp_path / "remote" / name).equals(_sorted(tmp_path / "local" / name))


def _spec(folder: Path, table: Path, name: str, method: str) -> Path:
    path = folder / f"{name}.yaml"
    parameters = asked(method, PARTITION_SIZE if method != "heterogeneous" else 1000)
    beside = "other" if publishes_other(method) else "identifiers"
    spec = {
        "input": {"path": str(table)},
        "output": {"path": str(folder / name)},
        "columns": {
            "quasi_identifiers": [{"name": "age", "type": "numeric"}, "town"],
            "sensitive": "illness",
            beside: ["serial"],
        },
        "method": parameters,
        "random": {"key": "env:ANONLIB_KEY"},
        "audit": "gate",
    }
    path.write_text(yaml.safe_dump(spec), encoding="utf-8")
    return path


def _sorted(folder: Path) -> pa.Table:
    table = pq.read_table(folder)
    return table.sort_by([(name, "ascending") for name in table.column_names])


def _kill_an_executor_while_it_writes(cluster: Cluster, job: subprocess.Popen, folder: Path) -> bool:
    """Kill -9 one executor once files of the records begin to appear."""
    deadline = time.time() + 240
    while time.time() < deadline and job.poll() is None:
        if list(folder.glob(".remote.staging-*/*/_temporary/**/*.parquet")) and (running := cluster.executors()):
            os.kill(running[0], signal.SIGKILL)
            return True
        time.sleep(0.05)
    return False
