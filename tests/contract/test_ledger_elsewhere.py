"""A ledger from sessions of another kind, two months each: Spark Connect, and a standalone cluster whose executors are processes apart.

Slow: run by hand with `pytest -m slow tests/contract/test_ledger_elsewhere.py`. On Spark 3.5 the engine's own tests of schedules run at
night, and these of the cluster.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from anonlib.release.ledger import new_ledger, open_ledger
from tests.contract.cluster import Cluster
from tests.door import OTHER_KEY, of_its_own, write_files
from tests.engine.test_schedule import columns, month, visits_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
LEDGER_KEY = bytes.fromhex(OTHER_KEY)


def conf(home: Path, name: str, first: int, last: int) -> Path:
    """A month's spec: three visits of each person, the latest of whoever is new."""
    source = write_files(home / f"input-{name}", [visits_of(month(first, last))])
    spec = {
        "input": {"path": str(source)},
        "output": {"path": str(home / name)},
        "columns": columns() | {"identifiers": ["day"]},
        "persons": {"repeated": "latest", "order": "day"},
        "ledger": {"path": str(home / "ledger"), "key": "env:LEDGER_KEY"},
        "method": {"anatomy": {"l": 3}},
        "random": {"key": "env:RELEASE_KEY"},
    }
    path = home / f"{name}.yaml"
    path.write_text(yaml.safe_dump(spec, allow_unicode=True), encoding="utf-8")
    return path


def called(environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    """What `anonlib ... --json` prints, in a process of its own."""
    command = [sys.executable, "-m", "anonlib", *arguments, "--json"]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def two_months(home: Path, environment: dict[str, str], *where: str) -> None:
    """Published, entered and audited by their spec, in a session given by `where`."""
    new_ledger(str(home / "ledger"), LEDGER_KEY)
    for name, first, last, new in (("m1", 0, 60, 60), ("m2", 30, 105, 45)):
        spec = conf(home, name, first, last)
        told = called(environment, "run", str(spec), *where)["manifest"]
        assert (told["ledger"]["persons"], told["persons"]["known"]) == (new, last - first - new)
        verdict = called(environment, "audit", str(home / name), "--spec", str(spec), *where)
        assert verdict["passed"]
        assert "ledger: nobody twice" in [check["name"] for check in verdict["checks"]]
    notes = [note for name in ("m1", "m2") for note in pq.read_table(home / name / "qit")["note"].to_pylist()]
    assert sorted(note // 7 for note in notes) == list(range(105))
    assert all(note % 7 == 2 for note in notes)
    ledger = open_ledger(str(home / "ledger"), LEDGER_KEY)
    ledger.check_files()
    ledger.check_releases(ledger.beside())
    assert ledger.persons == 105


def test_under_connect(tmp_path: Path) -> None:
    import pyspark

    if pyspark.__version__ < "4":
        pytest.skip("pyspark 3.5 starts a Connect server only with the server's jars, which its package lacks")
    two_months(tmp_path, of_its_own(LEDGER_KEY=OTHER_KEY), "--remote", "local[2]")


def test_on_a_standalone_cluster(cluster: Cluster, tmp_path: Path) -> None:
    own = {
        **of_its_own(LEDGER_KEY=OTHER_KEY),
        **{k: v for k, v in cluster.environment.items() if k.startswith(("SPARK", "PYSPARK"))},
    }
    two_months(tmp_path, own, "--master", cluster.master)
