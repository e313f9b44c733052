"""Spark Connect: the same job in a Connect session gives the rows of a classic one, for the same key and the same splits."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.door import bucketize, of_its_own, people

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
JOB = """
import json, sys
from anonlib.cli import main
from anonlib.engine.session import session

original, *pairs = sys.argv[1:]
found = {}
for conf, path in zip(pairs[::2], pairs[1::2]):
    code = main(["run", conf, "--remote", "local[2]"])
    assert code == 0, code
    spark = session(remote="local[2]")
    from anonlib.release.opened import open_release
    release = open_release(spark, path)
    found[path] = {
        "session": type(spark).__module__, "passed": release.audit.passed, "splits": release.manifest.splits.partitions,
        "audit": main(["audit", path, "--original", original]),
    }
print(json.dumps(found))
"""
METHODS = {
    "bucketize": bucketize(l=3),
    "perturb": {"perturb": {"rho2": "1/4"}},
    "sabre": {"sabre": {"t": "0.3", "k": 4, "partition_size": 300}},
    "sabre-ak": {
        "sabre": {"t": "0.3", "k": 4, "neighbours": "approximate", "partition_size": 300, "allow_minimality_leak": True}
    },
    "heterogeneous": {"heterogeneous": {"l": 3}},
}
PUBLISHES_OTHER = ("bucketize", "perturb")


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
    classic, pairs = {}, []
    for name, method in METHODS.items():
        columns = door.spec(source)["columns"]
        if name not in PUBLISHES_OTHER:
            columns["identifiers"] = columns.pop("other")
        classic[name] = door.run(source, f"classic-{name}", method=method, columns=columns).published()
        conf, output = door.home / f"connect-{name}.yaml", door.home / f"connect-{name}"
        spec = door.spec(source, method=method, columns=columns) | {"output": {"path": str(output)}}
        conf.write_text(yaml.safe_dump(spec), encoding="utf-8")
        pairs += [str(conf), str(output)]
    done = subprocess.run(
        [sys.executable, "-c", JOB, str(source), *pairs], env=of_its_own(), cwd=ROOT, capture_output=True,
        text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.strip().splitlines()[-1])
    for (name, made), output in zip(classic.items(), pairs[1::2], strict=True):
        found = told[output]
        assert "connect" in found["session"]
        assert found["passed"]
        assert found["audit"] == 0
        assert found["splits"] == made.manifest.splits.partitions
        connect = type(made)(0, "", "", door.home / f"connect-{name}").published()
        assert connect.manifest.tables == made.manifest.tables
        for table in made.manifest.tables:
            frames = [door.spark.read.parquet(str(outcome.output / table)) for outcome in (made, connect)]
            assert_df_equality(*frames, ignore_row_order=True, ignore_nullable=True)
