"""Tables of the session's catalog that read the files of a folder: what is there, what each reads, adding one.

Spark's catalog and SQL alone, so that it works under Spark Connect as in a classic session. No data is read: looking at a table lists its
files, on the driver.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from anonlib.engine.failures import explained
from anonlib.engine.tables import bare_type
from anonlib.sql import quoted

EXTERNAL = "EXTERNAL"
"""The type of a table whose files stay where they are when it is dropped."""
OWN_SCHEMA = ("delta",)
"""Formats whose folders say themselves which columns they have, and what a catalog may add to that."""


@dataclass(frozen=True)
class CatalogTable:
    """A table as the catalog has it: its kind ("EXTERNAL", "MANAGED", "VIEW"), {column: Spark type}, and the files it reads."""

    kind: str
    columns: dict[str, str]
    files: frozenset[str]


def qualified(spark: SparkSession, name: str) -> str:
    """The name with its catalog and schema, those of the session where it has none."""
    parts = name.split(".")
    if len(parts) == 1:
        parts = [spark.catalog.currentDatabase(), *parts]
    if len(parts) == 2:
        parts = [spark.catalog.currentCatalog(), *parts]
    return ".".join(parts)


def schema_exists(spark: SparkSession, name: str) -> bool:
    """Whether the catalog has the schema of the table `name` (qualified). A catalog that the session does not know has none."""
    try:
        return bool(spark.catalog.databaseExists(_quoted(name.split(".")[:-1])))
    except PySparkException:
        return False


def exists(spark: SparkSession, name: str) -> bool:
    """Whether there is a table or view `name` (qualified). Raises AnonlibError where the catalog does not tell."""
    with explained(f"looking for the table {name}"):
        return bool(spark.catalog.tableExists(_quoted(name.split("."))))


def files_of(frame: DataFrame) -> frozenset[str]:
    """The files that a table read from files reads, in one spelling."""
    return frozenset(re.sub(r"^file:/+", "file:/", unquote(file)) for file in frame.inputFiles())


def look(spark: SparkSession, name: str) -> CatalogTable | None:
    """The table `name` (qualified); None where there is none. Raises AnonlibError where it cannot be looked at."""
    if not exists(spark, name):
        return None
    with explained(f"looking at the table {name}"):
        entry = spark.catalog.getTable(_quoted(name.split(".")))
        spark.catalog.refreshTable(_quoted(name.split(".")))
        frame = spark.table(_quoted(name.split(".")))
        return CatalogTable(str(entry.tableType), dict(frame.dtypes), files_of(frame))


def add(spark: SparkSession, name: str, path: str, format: str, frame: DataFrame) -> None:
    """Add an external table `name` (qualified) over the folder `path`, with the columns of `frame`. One entry of the catalog: it is there
    wholly, or not at all. Raises AnonlibError where the catalog takes none, or has one of that name."""
    schema = None if format in OWN_SCHEMA else bare_type(frame.schema)
    with explained(f"adding the table {name} to the catalog"):
        spark.catalog.createTable(_quoted(name.split(".")), path, format, schema)  # type: ignore[arg-type]


def try_adding(spark: SparkSession, name: str, path: str, format: str, frame: DataFrame) -> None:
    """See whether `add` would be allowed: add an empty table of the same columns beside `name`, over the folder `path`, and drop it.

    Raises as `add` does. A format whose folders have a schema of their own gets an empty table written there first.
    """
    trial = f"{name}_{secrets.token_hex(4)}"
    with explained(f"adding a table beside {name} to the catalog, to see whether it takes one"):
        if format in OWN_SCHEMA:
            frame.limit(0).write.format(format).save(path)
    try:
        add(spark, trial, path, format, frame)
    finally:
        with suppress(Exception):
            spark.sql(f"DROP TABLE IF EXISTS {_quoted(trial.split('.'))}")


def forgets(spark: SparkSession, name: str) -> bool:
    """Whether the table `name` (qualified) would be gone with the session: Spark's own catalog, kept in memory."""
    kind = ""
    with suppress(Exception):
        kind = str(
            spark.conf.get("spark.sql.catalogImplementation")
        )  # with a default of ours, Spark would not tell its own
    return name.startswith("spark_catalog.") and kind == "in-memory"


def _quoted(parts: Sequence[str]) -> str:
    return ".".join(map(quoted, parts))
