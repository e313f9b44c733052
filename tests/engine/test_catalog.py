"""Tables of the session's catalog over a release's files: named beside the path, added once the release is out, held to it by the audit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from anonlib import workflow
from anonlib.audit.catalog import Named, judge, look
from anonlib.audit.verdict import Check
from anonlib.engine import catalog as entries
from anonlib.errors import AnonlibError
from anonlib.release import catalog, storage
from anonlib.release.opened import open_release
from tests.door import Door, Outcome, people

pytestmark = pytest.mark.spark
SCHEMA = "spark_catalog.lake"
QIT, ST = f"{SCHEMA}.people_qit", f"{SCHEMA}.people_st"


def in_catalog(spark: Any) -> list[str]:
    return sorted(table.name for table in spark.catalog.listTables("lake"))


@pytest.fixture(scope="module")
def lake(spark: Any) -> Iterator[str]:
    """A schema that the session's catalog has while this module runs."""
    spark.sql("CREATE DATABASE lake")
    yield "lake"
    spark.sql("DROP DATABASE lake CASCADE")


def publish(door: Door, table: str, output: str = "release") -> Outcome:
    source = door.home / "people"
    spec = door.spec(source if source.exists() else door.input(people(), "people"), output)
    return door.run_spec({**spec, "output": {**spec["output"], "table": table}}, output)


@pytest.fixture
def published(door: Door, lake: str) -> Iterator[Outcome]:
    yield publish(door, "lake.people")
    for table in door.spark.catalog.listTables("lake"):
        kind = "VIEW" if table.tableType == "VIEW" else "TABLE"
        door.spark.sql(f"DROP {kind} lake.{table.name}")


def rows(frame: Any) -> list[str]:
    return sorted(str(row.asDict()) for row in frame.collect())


def test_tables_of_the_catalog_are_the_release(door: Door, published: Outcome) -> None:
    """One release, looked at from every side, since it takes seconds to make."""
    spark, path = door.spark, str(published.published().output)
    assert published.manifest.catalog == {"qit": QIT, "st": ST}
    assert f"{QIT} in the catalog" in published.out
    assert "forgets the tables" in published.err
    assert in_catalog(spark) == ["people_qit", "people_st"]  # what was tried is gone
    for name, table in open_release(spark, path).tables.items():
        assert rows(spark.table(f"lake.people_{name}")) == rows(table)
    assert door.call("register", path).code == 0  # nothing to do
    code, checks = door.audit(published.output)
    said = next(check for check in checks if check["name"] == "catalog")
    assert (code, said["achieved"]) == (0, f"{QIT} reads the audited files; {ST} reads the audited files")

    few = Named(entries.CatalogTable("EXTERNAL", {"age": "int"}, frozenset("f")), frozenset("f"))
    assert "has other columns than the release: bucket_id" in judge({"qit": few}, published.manifest)[0].achieved
    hidden = judge({"qit": Named(None, frozenset(), "no right")}, published.manifest)[0]
    assert (hidden.passed, hidden.achieved) == (True, f"{QIT} was not seen: no right")

    # a name that is taken, a schema that is not there: before any work
    publish(door, "lake.people", "second").refused(2, f"there is a table {QIT} already", "none is ever replaced")
    publish(door, "nowhere.people", "second").refused(2, "output.table", "has no schema spark_catalog.nowhere")
    publish(door, "nowhere.lake.people", "second").refused(2, "has no schema nowhere.lake")
    assert door.call("register", path, "nowhere.people").code == 2

    # a run that died between the folder and the catalog
    spark.sql("DROP TABLE lake.people_qit")
    lacking = judged(spark, path)
    assert lacking.passed
    assert f"{QIT} is not in this session's catalog" in lacking.achieved
    again = publish(door, "lake.people")
    assert again.code == 2
    assert "already holds a release" in again.sentence
    assert f"the catalog lacks {QIT}: anonlib register {path} adds them" in " ".join(again.sentence.split())
    mended = door.call("register", path, "--json")
    assert json.loads(mended.out) == {"release": path, "catalog": {"qit": QIT, "st": ST}}
    assert in_catalog(spark) == ["people_qit", "people_st"]

    # a table of that name that is not the release, in two ways
    spark.sql("DROP TABLE lake.people_st")
    spark.sql(f"CREATE TABLE lake.people_st USING parquet LOCATION '{path}/qit'")
    code, checks = door.audit(published.output)
    assert code == 4
    assert [check["achieved"] for check in checks if not check["passed"]] == [
        f"{ST} reads 1 other files, and lacks 1 of the release"
    ]
    spark.sql("DROP TABLE lake.people_st")
    spark.sql(f"CREATE VIEW lake.people_st AS SELECT * FROM parquet.`{path}/st` LIMIT 1")
    assert judged(spark, path).achieved == f"{ST} is no table over the release's folder, but of the kind VIEW"
    assert "which does not read the files" in door.call("register", path).sentence
    spark.sql("DROP VIEW lake.people_st")
    spark.sql(f"CREATE TABLE lake.people_st (bucket_id BIGINT) USING parquet LOCATION '{path}/st'")
    assert "which does not show the columns" in door.call("register", path).sentence
    spark.sql("DROP TABLE lake.people_st")

    # the records' table comes last, and a catalog that refuses it takes nothing back
    dropped, said = {"qit": QIT, "st": ST}, []
    spark.sql("DROP TABLE lake.people_qit")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entries, "add", refusing(entries.add, QIT))
        left = workflow._in_catalog(open_release(spark, path), dropped, said.append)
    assert left.catalog == {}
    assert in_catalog(spark) == ["people_st"]
    assert said == [f"note: its tables are not all in the catalog (no table {QIT}); anonlib register {path} adds them"]
    assert door.call("register", path, "lake.other").code == 0  # under names of another choice
    assert in_catalog(spark) == ["other_qit", "other_st", "people_st"]

    # whatever lies in the folder beside the audited files would be read too
    (published.output / "qit" / "part-00009-notes.parquet").write_bytes(b"")
    refused = door.call("register", path)
    assert (refused.code, "qit/part-00009-notes.parquet" in refused.sentence) == (4, True)


def judged(spark: Any, path: str) -> Check:
    """The audit's check of the catalog, by itself: an audit is seconds."""
    release = open_release(spark, path)
    return judge(look(spark, release.manifest, release.tables), release.manifest)[0]


def refusing(add: Any, name: str) -> Any:
    def added(spark: Any, asked: str, *arguments: Any) -> None:
        if asked.startswith(name):
            raise AnonlibError(f"no table {name}")
        add(spark, asked, *arguments)

    return added


@pytest.mark.slow
def test_a_catalog_that_takes_no_table_is_found_out_before_anything_is_seen(
    door: Door, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "add", refusing(entries.add, f"{SCHEMA}.shy_st"))
    publish(door, "lake.shy").refused(2, "output.table: the catalog takes no parquet table over a folder (no table")
    assert in_catalog(door.spark) == []


@pytest.mark.slow
def test_each_format_can_be_tried(door: Door, lake: str) -> None:
    """What is tried is a table of the same columns over an empty folder, and nothing of it stays."""
    table = door.spark.createDataFrame([(1, "x")], "`a b` int, `c``d` string")
    for format in ("parquet", "orc"):
        place = storage.Place(str(door.home / "r"), str(door.home / f".r.staging-{format}"))
        catalog.try_out(door.spark, {"qit": f"{SCHEMA}.tried_{format}"}, place, {"qit": table}, format)
    assert in_catalog(door.spark) == []
    with pytest.raises(AnonlibError, match=r"the catalog takes no nonsense table over a folder \(adding the table"):
        catalog.try_out(door.spark, {"qit": f"{SCHEMA}.tried"}, place, {"qit": table}, "nonsense")
