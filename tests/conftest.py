"""Shared fixtures. The Spark session is made on first use, so that a run of the pure tests never starts Java."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """One session for the whole run, made as the product makes its own: two cores, UTC, four shuffle partitions."""
    pytest.importorskip("pyspark.sql")
    from anonlib.engine.session import session
    from tests.door import QUICK_JAVA

    made = session(
        master="local[2]",
        settings={
            "spark.app.name": "anonlib tests",
            "spark.driver.memory": "3g",
            "spark.sql.shuffle.partitions": "4",
            # compiling a plan's code costs more than it saves on a handful of rows; sessions that tests start for themselves compile
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.cache.maxEntries": "5000",  # the same few plans come again and again: keep what was compiled for them
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.driver.extraJavaOptions": f"{QUICK_JAVA} -Dderby.system.home={tmp_path_factory.mktemp('derby')}",
        },
    )
    made.sparkContext.setLogLevel("ERROR")
    yield made
    made.stop()


@pytest.fixture
def door(tmp_path, capsys, monkeypatch, spark):
    """The public door with a table of its own; see `tests.door.Door`."""
    from tests.door import Door

    return Door(spark, tmp_path, capsys, monkeypatch)
