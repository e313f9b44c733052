"""The same key and the same input splits give the same rows, whatever the session does on the way; another key gives other buckets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from chispa import assert_df_equality

import anonlib
from tests.door import Outcome, bucketize, cut, key_file, multiset, of_its_own, people, write_files

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "one shuffle partition": {"spark.sql.shuffle.partitions": "1"},
    "many shuffle partitions": {"spark.sql.shuffle.partitions": "37"},
    "no adaptive execution": {"spark.sql.adaptive.enabled": "false"},
    "code generation": {"spark.sql.codegen.wholeStage": "true"},
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
    key, output = key_file(source.parent), source.parent / "release"
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
from anonlib.methods import boxed, bucketize, heterogeneous, perturb

source, output, marks, master, speculate = sys.argv[1:]
spark = session(master=master, settings={
    "spark.sql.files.maxPartitionBytes": "64m", "spark.sql.files.openCostInBytes": "64m",
    "spark.speculation": speculate, "spark.speculation.quantile": "0.4", "spark.speculation.multiplier": "1.2",
    "spark.speculation.minTaskRuntime": "200ms", "spark.driver.memory": "1g", "spark.executor.memory": "1g",
    "spark.sql.shuffle.partitions": "4", "spark.sql.adaptive.coalescePartitions.enabled": "false",
})


def troubled(right, marks, speculates):
    class Trouble(right):
        # the first attempt of every odd partition fails after its first batch, or dawdles so that it is run twice

        def __call__(self, *given):
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
            return right.__call__(self, *given)

    return Trouble


bucketize.RoundRobin = troubled(bucketize.RoundRobin, marks + "/bucketize", speculate == "true")
perturb.PerturbKernel = troubled(perturb.PerturbKernel, marks + "/perturb", speculate == "true")
heterogeneous.Matching = troubled(heterogeneous.Matching, marks + "/heterogeneous", speculate == "true")
boxed.ClassBoxes = troubled(boxed.ClassBoxes, marks + "/sabre", speculate == "true")
given = {"quasi_identifiers": ["age", "country"], "sensitive": "illness", "other": ["note"], "key": "env:RELEASE_KEY"}
frame = spark.read.parquet(source)
releases = [
    anonlib.bucketize(frame, privacy={"l": 3}, solver="two_size", max_bucket_size=20, output=output, **given),
    anonlib.perturb(frame, rho2="1/4", output=output + "-perturb", **given),
]
given["identifiers"] = given.pop("other")
given["quasi_identifiers"] = [{"name": "age", "type": "numeric"}, "country"]
releases += [
    anonlib.heterogeneous(frame, l=3, partition_size=100, output=output + "-heterogeneous", **given),
    anonlib.sabre(frame, t="0.4", k=3, partition_size=100, output=output + "-sabre", **given),
]
print(json.dumps({
    "passed": all(release.audit.passed for release in releases),
    "attempts": {name: sorted(os.listdir(marks + "/" + name)) for name in sorted(os.listdir(marks))},
}))
spark.stop()
'''  # fmt: skip


def in_a_session_of_its_own(door, source, master: str, speculate: str = "false"):
    script, marks, output = door.home / "retried.py", door.home / "marks", door.home / "second"
    marks.mkdir()
    script.write_text(RETRIED, encoding="utf-8")
    command = [sys.executable, str(script), str(source), str(output), str(marks), master, speculate]
    done = subprocess.run(command, env=of_its_own(), cwd=ROOT, capture_output=True, text=True, timeout=400, check=False)
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
    first = published_by_all(door, source)
    assert first["bucketize"].manifest.splits.partitions == 4
    attempts = in_a_session_of_its_own(door, source, "local[2,4]")
    four = ["0-0", "1-0", "1-1", "2-0", "3-0", "3-1"]
    assert attempts["bucketize"] == attempts["perturb"] == four
    for name in BY_PARTITIONS:  # which partitions hold any cells is a matter of hashes
        assert {"1-1", "3-1"} & set(attempts[name])
        assert set(attempts[name]) <= set(four)
    the_same_again(door, first)


@pytest.mark.slow
@pytest.mark.usefixtures("one_file_each")
def test_a_task_that_is_run_twice_by_speculation(door, source):
    """Local sessions do not speculate: three executors with a core each, one of which is free while two dawdle."""
    first = published_by_all(door, source)
    attempts = in_a_session_of_its_own(door, source, "local-cluster[3,1,1024]", "true")
    for of_method in attempts.values():
        assert "1-1" in of_method or "3-1" in of_method
    the_same_again(door, first)


BY_PARTITIONS = {
    "heterogeneous": {"l": 3, "partition_size": 100},
    "sabre": {"t": "0.4", "k": 3, "partition_size": 100},
}


def published_by_all(door, source):
    """{method: its release}, made without trouble in this session."""
    made = {"bucketize": door.run(source, "first").published()}
    made["perturb"] = door.run(source, "first-perturb", method={"perturb": {"rho2": "1/4"}}).published()
    columns = door.spec(source)["columns"]
    columns["identifiers"] = columns.pop("other")
    for name, asked in BY_PARTITIONS.items():
        made[name] = door.run(source, f"first-{name}", method={name: asked}, columns=columns).published()
    return made


def the_same_again(door, first) -> None:
    """What the session with the troubles published, beside what this one did."""
    for name, one in first.items():
        output = door.home / ("second" if name == "bucketize" else f"second-{name}")
        same(door.spark, one, Outcome(0, "", "", output).published())
