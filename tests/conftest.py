"""Shared fixtures. The Spark session is made on first use, so that a run of the pure tests never starts Java."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.cpu_time import of_process_tree
from tests.together import pytest_addoption, pytest_runtestloop

__all__ = ["pytest_addoption", "pytest_runtestloop"]


HERE = Path(__file__).parent
COLLECTED = pytest.StashKey[Counter[str]]()
"""{folder of tests: how many tests were collected there, before `-m` or `-k` left any out}."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """For `tests/structure/test_collection.py`."""
    config.stash[COLLECTED] = Counter(item.path.relative_to(HERE).parts[0] for item in items)


def pytest_terminal_summary(terminalreporter):
    """What the run has cost; `scripts/check.py` reads it."""
    if (seconds := of_process_tree(os.getpid())) is not None:
        terminalreporter.write_line(f"CPU seconds of all processes: {seconds:.0f}")


ROOMY_JAVA = "-Xms1g -Xmn500m"
"""A run's garbage dies young: with the room that Java takes by itself at first, collecting it takes 8 % of the time."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """One session for the whole run, made as the product makes its own: two cores, UTC, two shuffle partitions."""
    pytest.importorskip("pyspark.sql")
    from anonlib.engine.session import session
    from tests.door import QUICK_JAVA

    made = session(
        master="local[2]",
        settings={
            "spark.app.name": "anonlib tests",
            "spark.driver.memory": "3g",
            "spark.sql.shuffle.partitions": "2",  # a tenth less work for a query of a few rows than four, and still more than one
            # compiling a plan's code costs more than it saves on a handful of rows; sessions that tests start for themselves compile
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.cache.maxEntries": "5000",  # the same few plans come again and again: keep what was compiled for them
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.driver.extraJavaOptions": f"{QUICK_JAVA} {ROOMY_JAVA} -Dderby.system.home={tmp_path_factory.mktemp('derby')}",
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
