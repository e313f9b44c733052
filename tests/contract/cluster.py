"""A standalone cluster on loopback: a master and two workers of one core, each a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.door import OTHER_KEY


@dataclass(frozen=True)
class Cluster:
    """master : its URL; environment : for what is submitted to it; workers : process ids"""

    master: str
    environment: dict[str, str]
    workers: tuple[int, ...]

    def executors(self) -> list[int]:
        """Process ids of the executors that run now; a worker starts other programs too, which soon end."""
        return sorted(pid for pid, parent in _processes() if parent in self.workers and _is_executor(pid))

    def submit(self, package: Path | str, *options: str) -> list[str]:
        """The command that submits a job to it; the job and its arguments follow. package : a zip of anonlib."""
        return [
            f"{self.environment['SPARK_HOME']}/bin/spark-submit", "--master", self.master, "--executor-memory", "1g",
            "--executor-cores", "1", "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.ui.enabled=false", *options,
            "--py-files", str(package),
        ]  # fmt: skip


def _processes() -> Iterator[tuple[int, int]]:
    """(process id, its parent's) of all that runs."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            stat = path.read_text()
            yield int(path.parent.name), int(stat.rpartition(")")[2].split()[1])


def _is_executor(pid: int) -> bool:
    with suppress(OSError):
        return b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False  # it has ended meanwhile


@pytest.fixture
def cluster(tmp_path):
    """See `Cluster`."""
    pytest.importorskip("pyspark")
    with standalone(tmp_path, "2g") as running:
        yield running


@contextmanager
def standalone(folder: Path, memory: str) -> Iterator[Cluster]:
    """A cluster whose workers have this much memory each, and work in `folder`."""
    import pyspark

    home = Path(pyspark.__file__).parent
    port, web, *webs = _free_ports(4)
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "workers"),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "ANONLIB_KEY": OTHER_KEY,
    }
    run, deploy = str(home / "bin" / "spark-class"), "org.apache.spark.deploy"
    master = f"spark://127.0.0.1:{port}"
    daemons = [
        _daemon(
            [run, f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", web], environment
        )
    ]
    for worker_web in webs:
        options = ["--host", "127.0.0.1", "--cores", "1", "--memory", memory, "--webui-port", worker_web]
        daemons.append(_daemon([run, f"{deploy}.worker.Worker", *options, master], environment))
    try:
        _wait_for_workers(web, 2)
        yield Cluster(master, environment, tuple(daemon.pid for daemon in daemons[1:]))
    finally:
        for daemon in daemons:
            os.killpg(daemon.pid, signal.SIGKILL)


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
        except (OSError, ValueError):  # no answer yet, or half of one
            pass
        time.sleep(0.5)
    pytest.fail("the workers did not register with the master within 90 s")
