"""Inputs whose plan may not repeat itself are written out once and published exactly; nothing depends on the order of rows."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

import anonlib
from anonlib import workflow
from anonlib.engine.repeatable import repeats
from anonlib.spec import load_spec
from tests.contract.methods import over, replace_recipe
from tests.door import KEY, multiset, people
from tests.thorough import some

pytestmark = pytest.mark.spark


@pytest.fixture
def table(door):
    return door.spark.read.parquet(str(door.input(people(600), files=3)))


@pytest.fixture
def publish(door, monkeypatch):
    """Publishes a frame; says whether it was staged, by what was written below the staging folder."""
    from anonlib.engine import tables

    written = []
    write = tables.write

    def recorded(frame, path, format, doing):
        written.append(path.rsplit("/", 1)[1])
        write(frame, path, format, doing)

    monkeypatch.setattr(tables, "write", recorded)
    monkeypatch.setenv("RELEASE_KEY", KEY)

    def published(frame, **changes):
        written.clear()
        given = {
            "quasi_identifiers": ["age", "country"], "sensitive": "illness", "other": ["note"], "privacy": {"l": 3},
            "solver": "two_size", "max_bucket_size": 20, "key": "env:RELEASE_KEY", "output": str(door.home / "release"),
        }  # fmt: skip
        release = anonlib.bucketize(frame, **(given | changes))
        assert written[-2:] == ["qit", "st"]
        return release, written[:-2] == ["input"]

    return published


RESTLESS = {
    "sorted": lambda t: t.orderBy("age"),
    "sorted by the sensitive value": lambda t: t.orderBy("illness", F.desc("note")),
    "round robin": lambda t: t.repartition(32),
    "by a column": lambda t: t.repartition("country"),
    "by a column into a number": lambda t: t.repartition(8, "country"),
    "coalesced": lambda t: t.coalesce(1),
    "distinct": lambda t: t.distinct(),
    "joined": lambda t: t.join(t.select("note"), "note"),
    "limited": lambda t: t.limit(599).unionByName(t.limit(1)),
    "sampled": lambda t: t.sample(0.9, seed=3),
    "cached": lambda t: t.repartition(5).cache(),
    "windowed": lambda t: t.selectExpr(
        "age", "concat(country, row_number() OVER (PARTITION BY country ORDER BY note)) AS country", "note", "illness"
    ),
    "a Python function": lambda t: t.withColumn("country", F.udf(lambda text: text.upper(), "string")("country")),
    "a pandas function": lambda t: t.mapInPandas(lambda batches: batches, t.schema),
    "random": lambda t: t.withColumn("country", F.expr("IF(rand() < 0.5, 'Peru', country)")),
    "a random filter": lambda t: t.where(F.rand() < 0.9),
    "a pandas frame": lambda t: t.sparkSession.createDataFrame(t.toPandas(), t.schema),
    "an RDD": lambda t: t.rdd.map(tuple).repartition(3).toDF(t.schema),
}
CALM = {
    "a scan": lambda t: t,
    "filtered": lambda t: t.where("age > 25 AND illness <> 'HIV'"),
    "derived": lambda t: t.withColumn("country", F.expr("concat(country, '!')")),
    "united": lambda t: t.where("note % 2 = 0").unionByName(t.where("note % 2 = 1")),
    "exploded": lambda t: t.selectExpr("age", "country", "explode(array(note, note + 1)) AS note", "illness"),
}


@pytest.mark.parametrize("kind", RESTLESS)
def test_which_plans_may_not_repeat_themselves(table, kind):
    assert not repeats(RESTLESS[kind](table))


@pytest.mark.parametrize("kind", CALM)
def test_which_plans_repeat_themselves(table, kind):
    assert repeats(CALM[kind](table))


@pytest.mark.parametrize("kind", some(RESTLESS, "sorted by the sensitive value", "a Python function", "a pandas frame"))
def test_a_plan_that_may_not_repeat_itself_is_written_out_once(publish, table, kind):
    frame = RESTLESS[kind](table)
    release, staged = publish(frame)
    assert staged
    assert release.audit.passed
    if "random" in kind or kind in ("limited", "sampled"):
        assert 0 < release.tables["qit"].count() <= 600
    else:
        found, wanted = ([r.asDict() for r in f.collect()] for f in (release.tables["qit"], frame))
        assert multiset(found, "age", "country", "note") == multiset(wanted, "age", "country", "note")


@pytest.mark.parametrize("kind", some(CALM, "exploded"))
def test_a_plan_of_scans_and_narrow_steps_is_read_twice_instead(publish, table, kind):
    frame = CALM[kind](table)
    release, staged = publish(frame)
    assert not staged
    found, wanted = ([r.asDict() for r in f.collect()] for f in (release.tables["qit"], frame))
    assert multiset(found, "age", "country", "note") == multiset(wanted, "age", "country", "note")


@over("a plan that may not repeat itself")
def test_every_method_is_given_a_table_that_repeats_itself(releases, tmp_path, monkeypatch, method):
    """The recipe's table is the working copy: in the order of the sensitive value here, as it was staged, with every value."""
    given = []

    class Seen(Exception):
        pass

    def publish(table, wanted, run):
        given.append((repeats(table.frame), table.frame.count(), dict(table.frame.dtypes)))
        raise Seen

    spec = load_spec(releases.written(method, tmp_path, "release")).model_copy(update={"input": None})
    frame = releases.original().orderBy("illness")
    replace_recipe(monkeypatch, method, publish)
    with pytest.raises(Seen):
        workflow.run(spec, releases.spark, frame)
    [(repeatable, rows, types)] = given
    assert repeatable
    assert rows == 240
    assert types.items() <= dict(frame.dtypes).items()
    assert not list(tmp_path.glob(".release*"))


def test_a_column_name_cannot_hide_an_exchange(table):
    """The plan is read as text: a name with a line break or an operator's name in it must not make it look calmer."""
    for name in ("a\nFileScan", "Project", "x [note] Batched: true"):
        frame = table.withColumnRenamed("country", name)
        assert not repeats(frame.repartition(3))
        assert not repeats(frame.orderBy(f"`{name}`"))


def test_values_and_records_stay_together(publish, table):
    """Staging must not part a record from its sensitive value: every record finds its value in its bucket."""
    frame = table.withColumn("country", F.col("illness")).orderBy(F.desc("age"))
    release, _ = publish(frame)
    held = (
        release.tables["st"]
        .withColumnRenamed("illness", "country")
        .join(release.tables["qit"], ["bucket_id", "country"], "right")
    )
    assert held.where("count IS NULL").count() == 0


# --- what the plans cost ------------------------------------------------------------------------------------------------------------


class Executions:
    """The SQL executions of a session since this was made, from Spark's own status store."""

    def __init__(self, spark) -> None:
        self._store = spark._jsparkSession.sharedState().statusStore()
        self._bus = spark.sparkContext._jsc.sc().listenerBus()
        self._before = max(self._ids(), default=-1)

    def _ids(self) -> list[int]:
        self._bus.waitUntilEmpty()
        found = self._store.executionsList()
        return [int(found.apply(k).executionId()) for k in range(found.size())]

    def plans(self) -> list[list[tuple[str, str]]]:
        """For each execution the (name, description) of its plan's nodes."""
        plans = []
        for number in sorted(k for k in self._ids() if k > self._before):
            nodes = self._store.planGraph(number).allNodes()
            plans.append([(nodes.apply(i).name(), nodes.apply(i).desc()) for i in range(nodes.size())])
        return plans


def test_the_input_is_scanned_twice_and_rows_are_shuffled_once(door):
    source = door.input(people(600), files=3)
    spark = door.spark
    before = spark.conf.get("spark.sql.maxMetadataStringLength", None)
    spark.conf.set("spark.sql.maxMetadataStringLength", "2000")
    try:
        seen = Executions(spark)
        door.run(source).published()
        plans = seen.plans()
    finally:
        spark.conf.set("spark.sql.maxMetadataStringLength", before or "100")
    reading = [plan for plan in plans if any(str(source) in text for _, text in plan)]
    assert len(reading) == 2, [[name for name, _ in plan] for plan in plans]
    scans = [sum(name.startswith("Scan") and str(source) in text for name, text in plan) for plan in reading]
    assert scans == [1, 1]
    counting, writing = (
        [name for name, _ in plan] for plan in sorted(reading, key=lambda p: any("InsertInto" in n for n, _ in p))
    )
    assert any("InsertInto" in name for name in writing)
    assert [name for name in writing if "Exchange" in name] == ["Exchange"]  # to files that say nothing of the input's
    assert [name for name in counting if "Exchange" in name] == ["Exchange"]
    assert any("HashAggregate" in name for name in counting)  # so that what is shuffled are counts, not rows


def test_explain_scans_for_counts_and_for_marks_of_missing_values_and_writes_nothing(door):
    source = door.input(people(600), files=3)
    door.spark.conf.set("spark.sql.maxMetadataStringLength", "2000")
    seen = Executions(door.spark)
    outcome = door.run(source, command="explain")
    plans = seen.plans()
    door.spark.conf.set("spark.sql.maxMetadataStringLength", "100")
    assert outcome.code == 0
    assert sum(str(source) in text for plan in plans for _, text in plan) == 2
    assert not any("InsertInto" in name for plan in plans for name, _ in plan)
    assert not outcome.output.exists()
