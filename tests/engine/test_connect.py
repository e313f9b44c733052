"""Spark Connect: the same job in a Connect session gives the rows of a classic one, for the same key and the same splits."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.door import KEY, people

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
JOB = """
import json, sys
from anonlib.cli import main
from anonlib.engine.session import session

conf, path = sys.argv[1:]
code = main(["run", conf, "--remote", "local[2]"])
assert code == 0, code
spark = session(remote="local[2]")
from anonlib.engine.checksum import checksum
from anonlib.release.opened import open_release
release = open_release(spark, path)
print(json.dumps({
    "session": type(spark).__module__, "passed": release.audit.passed, "splits": release.manifest.splits.partitions,
    "audit": main(["audit", path, "--original", sys.argv[1] + ".input"]),
}))
"""


@pytest.fixture
def connect():
    import pyspark

    if pyspark.__version__ < "4":
        pytest.skip("pyspark 3.5 starts a Connect server only with the server's jars, which its package lacks")
    for module in ("grpc", "grpc_status", "google.rpc"):
        if importlib.util.find_spec(module.split(".")[0]) is None:
            pytest.skip(f"Spark Connect needs {module}: pip install anonlib[connect]")


@pytest.mark.usefixtures("connect")
def test_connect_and_classic_publish_the_same_rows(door):
    import yaml
    from chispa import assert_df_equality

    source = door.input(people(1200), files=4)
    classic = door.run(source, "classic").published()
    conf = door.home / "connect.yaml"
    spec = door.spec(source) | {"output": {"path": str(door.home / "connect")}}
    conf.write_text(yaml.safe_dump(spec), encoding="utf-8")
    (door.home / "connect.yaml.input").symlink_to(source)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RELEASE_KEY": KEY, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", JOB, str(conf), str(door.home / "connect")], env=environment, cwd=ROOT, capture_output=True,
        text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert "connect" in found["session"]
    assert found["passed"]
    assert found["audit"] == 0
    assert found["splits"] == classic.manifest.splits.partitions
    connect = type(classic)(0, "", "", door.home / "connect").published()
    assert connect.manifest.tables == classic.manifest.tables
    for name in ("qit", "st"):
        frames = [door.spark.read.parquet(str(outcome.output / name)) for outcome in (classic, connect)]
        assert_df_equality(*frames, ignore_row_order=True, ignore_nullable=True)
