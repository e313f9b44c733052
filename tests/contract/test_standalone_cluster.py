"""The jobs on a real cluster: a standalone master and two workers on loopback, one executor killed in mid-job.

Slow (two minutes a method): run by hand with `pytest -m slow tests/contract/test_standalone_cluster.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.contract.methods import asked, over, publishes_other

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
KEY = "9811d7763645e585c34b5f6f27a33181210af0a49e043a325ec21c1d67abcfaa"
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


@pytest.fixture
def cluster(tmp_path):
    """(master url, environment) of a master with two one-core workers, all on loopback."""
    pyspark = pytest.importorskip("pyspark")
    home = Path(pyspark.__file__).parent
    port, web, *webs = _free_ports(4)
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "workers"),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "ANONLIB_KEY": KEY,
    }
    run = str(home / "bin" / "spark-class")
    master = f"spark://127.0.0.1:{port}"
    daemons = [
        _daemon(
            [run, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", web],
            environment,
        )
    ]
    for worker_web in webs:
        options = ["--host", "127.0.0.1", "--cores", "1", "--memory", "2g", "--webui-port", worker_web]
        daemons.append(_daemon([run, "org.apache.spark.deploy.worker.Worker", *options, master], environment))
    try:
        _wait_for_workers(web, 2)
        yield master, environment
    finally:
        for daemon in daemons:
            os.killpg(daemon.pid, signal.SIGKILL)


@over("a killed executor")
def test_a_killed_executor_changes_no_row_and_loses_none(cluster, tmp_path, method):
    master, environment = cluster
    rows = ROWS.get(method, USUAL_ROWS)
    table = persons(tmp_path / "persons", rows)
    local = _spec(tmp_path, table, "local", method)
    command = [sys.executable, "-m", "anonlib.cli", "run", str(local), "--master", "local[2]"]
    subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True)

    package = shutil.make_archive(str(tmp_path / "anonlib"), "zip", ROOT, "anonlib")
    remote = _spec(tmp_path, table, "remote", method)
    submit = [
        f"{environment['SPARK_HOME']}/bin/spark-submit", "--master", master, "--executor-memory", "1g", "--executor-cores", "1",
        "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false",
        "--conf", f"spark.sql.files.maxPartitionBytes={SPLITS}", "--py-files", package,
        str(ROOT / "jobs" / "anonymize.py"), "--conf", str(remote), "--json",
    ]  # fmt: skip
    with (tmp_path / "submit.err").open("w") as log:
        job = subprocess.Popen(submit, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=log, text=True)
        killed = _kill_an_executor_while_it_writes(job, tmp_path)
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


def _kill_an_executor_while_it_writes(job: subprocess.Popen, folder: Path) -> bool:
    """Kill -9 one executor once files of the records begin to appear."""
    deadline = time.time() + 240
    while time.time() < deadline and job.poll() is None:
        if list(folder.glob(".remote.staging-*/*/_temporary/**/*.parquet")):
            found = subprocess.run(
                ["pgrep", "-f", "CoarseGrainedExecutorBackend.*--app-id"], capture_output=True, text=True
            ).stdout.split()
            java = [pid for pid in found if "java" in Path(f"/proc/{pid}/comm").read_text()]
            if java:
                os.kill(int(java[0]), signal.SIGKILL)
                return True
        time.sleep(0.05)
    return False


def _daemon(command: list[str], environment: dict[str, str]) -> subprocess.Popen:
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def _free_ports(count: int) -> list[str]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [str(s.getsockname()[1]) for s in sockets]
    finally:
        for s in sockets:
            s.close()


def _wait_for_workers(web_port: str, wanted: int) -> None:
    deadline = time.time() + 90
    while time.time() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{web_port}/json/", timeout=5) as answer:
                if json.load(answer)["aliveworkers"] == wanted:
                    return
        except OSError:
            pass
        time.sleep(0.5)
    pytest.fail("the workers did not register with the master within 90 s")
