"""Sessions: the one that is there, settings put back after a run, and what the manifest tells of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from anonlib.engine import session as sessions
from tests.thorough import nightly

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.every_spark
def test_an_active_session_is_used_as_it_is(spark):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    assert sessions.session(master="local[1]", settings={"spark.sql.shuffle.partitions": "99"}) is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == before


@pytest.mark.every_spark
@pytest.mark.parametrize("fails", [False, True])
def test_run_settings_are_put_back(spark, fails):
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(name, "123")
    other = "spark.sql.execution.arrow.pyspark.enabled"
    spark.conf.unset(other)
    default = spark.conf.get(other)
    try:
        with sessions.run_settings(spark):
            assert spark.conf.get(name) == "100000"
            assert spark.conf.get(other) == "true"
            if fails:
                raise RuntimeError("midway")
    except RuntimeError:
        assert fails
    assert spark.conf.get(name) == "123"
    assert spark.conf.get(other) == default
    spark.conf.unset(name)


@pytest.mark.every_spark
def test_a_session_that_refuses_settings_keeps_its_own():
    class Locked:
        class conf:  # noqa: N801
            @staticmethod
            def get(name, default=None):
                return "its own"

            @staticmethod
            def set(name, value):
                raise RuntimeError("this setting cannot be changed here")

            unset = set

    with sessions.run_settings(Locked()):
        assert Locked.conf.get("x") == "its own"


@pytest.mark.every_spark
def test_split_settings_are_told(spark):
    found = sessions.split_settings(spark)
    assert found["spark.sql.files.maxPartitionBytes"]
    assert found["spark.sql.files.openCostInBytes"]


EMBEDDED = """
from anonlib.engine.session import session
spark = session(master="local[1]", settings={"spark.driver.memory": "1g"})
conf = spark.conf
print(conf.get("spark.sql.session.timeZone"), conf.get("spark.driver.memory"), spark.sparkContext.master)
found = spark.range(3).mapInPandas(lambda it: ([f.assign(id=f.id + __import__("sys").version_info[1]) for f in it]), "id long")
print(sorted(r.id for r in found.collect()))
"""


@nightly  # releases are made in sessions like it at every change; see `tests.contract.elsewhere`
def test_an_embedded_session_runs_its_workers_on_this_python_and_is_silent():
    """In a process of its own, with another `python3` first on the path."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")}
    done = subprocess.run(
        [sys.executable, "-c", EMBEDDED], env=environment | {"PYTHONPATH": str(ROOT)}, cwd=ROOT, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    minor = sys.version_info[1]
    assert done.stdout.splitlines() == ["UTC 1g local[1]", str([minor, minor + 1, minor + 2])]
    assert "ERROR" not in done.stderr
    assert "WARN TaskSetManager" not in done.stderr


@pytest.mark.every_spark
@pytest.mark.parametrize("few", [False, True])
def test_settings_for_few_records_are_put_back(spark, few):
    name = "spark.sql.codegen.wholeStage"
    before = spark.conf.get(name)
    spark.conf.set(name, "true")
    try:
        with sessions.few_settings(spark, few):
            assert spark.conf.get(name) == str(not few).lower()
        assert spark.conf.get(name) == "true"
    finally:
        spark.conf.set(name, before)


@pytest.mark.parametrize(
    ("setting", "option"),
    [
        ("always [madvise] never\n", "-XX:+UseTransparentHugePages"),
        ("[always] madvise never\n", "-XX:+UseTransparentHugePages"),
        ("always madvise [never]\n", ""),
        (None, ""),
    ],
)
def test_large_pages_are_asked_for_where_there_are_some(tmp_path, setting, option):
    """Else Java says on standard output that there are none, where `--json` prints."""
    file = tmp_path / "enabled"
    if setting is not None:
        file.write_text(setting)
    assert sessions.large_pages(file) == option
