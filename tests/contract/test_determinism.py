"""The same key and the same input splits give the same rows, whatever the session does on the way; another key gives other buckets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from chispa import assert_df_equality

import anonlib
from tests.door import KEY, Outcome, bucketize, cut, multiset, people, write_files

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "one shuffle partition": {"spark.sql.shuffle.partitions": "1"},
    "many shuffle partitions": {"spark.sql.shuffle.partitions": "37"},
    "no adaptive execution": {"spark.sql.adaptive.enabled": "false"},
    "no code generation": {"spark.sql.codegen.wholeStage": "false"},
    "row-wise reader": {"spark.sql.parquet.enableVectorizedReader": "false"},
    "small batches": {"spark.sql.execution.arrow.maxRecordsPerBatch": "7"},
    "the other ANSI mode": {},
    "another time zone": {"spark.sql.session.timeZone": "America/St_Johns"},
}


def same(spark, one, other) -> None:
    for name in one.manifest.tables:
        frames = [spark.read.parquet(str(outcome.output / name)) for outcome in (one, other)]
        assert_df_equality(*frames, ignore_row_order=True, ignore_nullable=True)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("determinism") / "input", cut(people(1200), 4))


@pytest.fixture(scope="module")
def first(spark, source):
    """What the door publishes with the release key, made once."""
    key, output = source.parent / "key", source.parent / "release"
    key.write_text(KEY, encoding="ascii")
    frame = spark.read.parquet(str(source))
    given = {"quasi_identifiers": ["age", "country"], "sensitive": "illness", "other": ["note"], "privacy": {"l": 3}}
    more = {"solver": "two_size", "max_bucket_size": 20, "output": str(output), "key": f"file:{key}"}
    anonlib.bucketize(frame, **given, **more)
    return Outcome(0, "", "", output).published()


@pytest.fixture
def fakes():
    return bucketize(l=2, max_bucket_size=3, fake_values=2)


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_do_not_matter(door, source, first, monkeypatch, setting):
    changed = dict(SETTINGS[setting])
    if setting == "the other ANSI mode":
        changed = {"spark.sql.ansi.enabled": str(door.spark.conf.get("spark.sql.ansi.enabled") == "false").lower()}
    if setting == "small batches":
        monkeypatch.setattr("anonlib.engine.session.RUN_SETTINGS", changed)
    before = {name: door.spark.conf.get(name) for name in changed}
    try:
        for name, value in changed.items():
            door.spark.conf.set(name, value)
        second = door.run(source, "second").published()
    finally:
        for name, value in before.items():
            door.spark.conf.set(name, value)
    same(door.spark, first, second)
    assert first.manifest.tables == second.manifest.tables


def test_fake_values_repeat_as_well(door, source, fakes):
    first, second = (door.run(source, name, method=fakes).published() for name in ("first", "second"))
    same(door.spark, first, second)


def test_another_key_gives_other_buckets_and_the_same_promise(door, source, first):
    second = door.run(source, "second", random={"key": "env:OTHER_KEY"}).published()
    pairs = [multiset(outcome.table("qit"), "note", "bucket_id") for outcome in (first, second)]
    together = sum((pairs[0] & pairs[1]).values())
    # two independent deals of 1,200 records into 400 buckets agree on about 3; on 40 with a chance far below 1e-20
    assert together < 40
    assert multiset(first.table("st"), "bucket_id", "illness", "count") == multiset(
        second.table("st"), "bucket_id", "illness", "count"
    )


def test_a_fresh_key_each_time_when_none_is_given(door, source):
    spec = door.spec(source)
    spec.pop("random")
    outcomes = []
    for name in ("first", "second"):
        outcomes.append(door.run_spec(spec | {"output": {"path": str(door.home / name)}}, name).published())
    one, other = (multiset(outcome.table("qit"), "note", "bucket_id") for outcome in outcomes)
    assert sum((one & other).values()) < 40


def test_the_large_road_publishes_the_same_rows(door, source, first, monkeypatch):
    """Offsets too many for the driver stay on the cluster, and every record gets the bucket it gets without."""
    monkeypatch.setattr("anonlib.engine.statistics.DRIVER_CELLS", 5)
    second = door.run(source, "second", missing={"quasi_identifiers": "drop"}).published()
    same(door.spark, first, second)
    assert first.manifest.rows == second.manifest.rows
    assert first.manifest.splits == second.manifest.splits


def test_the_manifest_says_how_the_input_was_cut(spark, source, first):
    frame = spark.read.parquet(str(source))
    assert first.manifest.splits.partitions == frame.rdd.getNumPartitions()
    assert first.manifest.splits.settings["spark.sql.files.maxPartitionBytes"]


# --- tasks that fail and are retried, in sessions of their own ------------------------------------------------------------------

RETRIED = '''
import json, os, sys
from pathlib import Path

import anonlib
from anonlib.engine.session import session
from anonlib.methods import bucketize, perturb

source, output, marks, master, speculate = sys.argv[1:]
spark = session(master=master, settings={
    "spark.sql.files.maxPartitionBytes": "64m", "spark.sql.files.openCostInBytes": "64m",
    "spark.speculation": speculate, "spark.speculation.quantile": "0.4", "spark.speculation.multiplier": "1.2",
    "spark.speculation.minTaskRuntime": "200ms", "spark.driver.memory": "1g", "spark.executor.memory": "1g",
})


def troubled(right, marks, speculates):
    class Trouble(right):
        # the first attempt of every odd partition fails after its first batch, or dawdles so that it is run twice

        def __call__(self, code, rank):
            import time
            from pathlib import Path
            from pyspark import TaskContext

            task = TaskContext.get()
            here = Path(marks) / f"{task.partitionId()}-{task.attemptNumber()}"
            here.parent.mkdir(exist_ok=True)
            here.touch()
            if task.attemptNumber() == 0 and task.partitionId() % 2:
                if speculates:
                    time.sleep(20)
                else:
                    raise RuntimeError("a planted failure of the first attempt")
            return right.__call__(self, code, rank)

    return Trouble


bucketize.RoundRobin = troubled(bucketize.RoundRobin, marks + "/bucketize", speculate == "true")
perturb.Kernel = troubled(perturb.Kernel, marks + "/perturb", speculate == "true")
given = {"quasi_identifiers": ["age", "country"], "sensitive": "illness", "other": ["note"], "key": "env:RELEASE_KEY"}
frame = spark.read.parquet(source)
releases = [
    anonlib.bucketize(frame, privacy={"l": 3}, solver="two_size", max_bucket_size=20, output=output, **given),
    anonlib.perturb(frame, rho2="1/4", output=output + "-perturbed", **given),
]
print(json.dumps({
    "passed": all(release.audit.passed for release in releases),
    "attempts": [sorted(os.listdir(marks + "/" + name)) for name in ("bucketize", "perturb")],
}))
spark.stop()
'''  # fmt: skip


def in_a_session_of_its_own(door, source, master: str, speculate: str = "false"):
    script, marks, output = door.home / "retried.py", door.home / "marks", door.home / "second"
    marks.mkdir()
    script.write_text(RETRIED, encoding="utf-8")
    environment = {**os.environ, "RELEASE_KEY": KEY, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, str(script), str(source), str(output), str(marks), master, speculate]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert found["passed"]
    return found["attempts"]


@pytest.fixture
def one_file_each(door):
    """Each file a partition of its own, here as in the session that is started."""
    for name in ("spark.sql.files.openCostInBytes", "spark.sql.files.maxPartitionBytes"):
        door.spark.conf.set(name, "64m")
    yield
    for name in ("spark.sql.files.openCostInBytes", "spark.sql.files.maxPartitionBytes"):
        door.spark.conf.unset(name)


@pytest.mark.usefixtures("one_file_each")
def test_a_task_that_fails_and_is_retried(door, source):
    first = door.run(source, "first").published()
    assert first.manifest.splits.partitions == 4
    perturbed = door.run(source, "first-perturbed", method={"perturb": {"rho2": "1/4"}}).published()
    attempts = in_a_session_of_its_own(door, source, "local[2,4]")
    assert attempts == [["0-0", "1-0", "1-1", "2-0", "3-0", "3-1"]] * 2
    for one, name in ((first, "second"), (perturbed, "second-perturbed")):
        same(door.spark, one, Outcome(0, "", "", door.home / name).published())


@pytest.mark.slow
@pytest.mark.usefixtures("one_file_each")
def test_a_task_that_is_run_twice_by_speculation(door, source):
    """Local sessions do not speculate: two executors with a core each."""
    first = door.run(source, "first").published()
    attempts = in_a_session_of_its_own(door, source, "local-cluster[2,1,1024]", "true")
    for of_method in attempts:
        assert "1-1" in of_method or "3-1" in of_method
    second = Outcome(0, "", "", door.home / "second").published()
    same(door.spark, first, second)
