"""A release's tables under names of a catalog, for readers who ask for tables and not for folders.

A release stays its folder: the manifest there says what it is, and the tables of the catalog are external ones over its folders, which
copy nothing. So what they show is what was audited, byte by byte, and they cannot be ahead of it: they are added once the release is
visible, one entry of the catalog each, the records' table last. Whoever sees that one sees the others.

No catalog shows a folder and a table in one step. Before anything is published the names are seen to be free, and the catalog is asked
for a table of the same columns, which is dropped again; what may then still go wrong (a run that dies between the two steps) leaves a
release without tables in the catalog, and `register` adds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress

from anonlib.engine import catalog
from anonlib.engine.relational import DataFrame
from anonlib.engine.session import SparkSession
from anonlib.errors import AnonlibError, SpecError
from anonlib.release import storage
from anonlib.release.manifest import Manifest
from anonlib.release.opened import Release

TRIAL = "catalog_trial"
"""Folder of the staging area that a table is tried over; removed before publication."""
_SPACE = re.compile(r"[\w-]{1,100}", re.ASCII)


def names(spark: SparkSession, prefix: str, tables: Iterable[str]) -> dict[str, str]:
    """{table of the release: its name in the catalog, with catalog and schema}. Raises SpecError where the session's own catalog or schema,
    which stand for those that `prefix` lacks, have names that a manifest cannot state."""
    full = catalog.qualified(spark, prefix)
    *spaces, _ = full.split(".")
    if len(spaces) != 2 or not all(map(_SPACE.fullmatch, spaces)):
        raise SpecError(
            f"output.table: {prefix!r} would be {full!r} in this session, which is no catalog.schema.name of letters, digits, - and _; "
            "write a catalog and a schema of such names before it"
        )
    return {table: f"{full}_{table}" for table in tables}


def check_free(spark: SparkSession, named: Mapping[str, str]) -> None:
    """Raise SpecError where the schema is not there, or one of the tables is."""
    for name in named.values():
        _check_schema(spark, name)
        if catalog.exists(spark, name):
            raise SpecError(
                f"output.table: there is a table {name} already, and none is ever replaced; name another, or drop it if nobody reads it"
            )


def try_out(
    spark: SparkSession, named: Mapping[str, str], place: storage.Place, tables: Mapping[str, DataFrame], format: str
) -> None:
    """See that the catalog will take the tables, while nothing is visible yet. Raises SpecError with what it said."""
    check_free(spark, named)
    for table, name in named.items():
        path = storage.spark_path(place.table(f"{TRIAL}_{table}"))
        try:
            catalog.try_adding(spark, name, path, format, tables[table])
        except AnonlibError as error:
            raise SpecError(
                f"output.table: the catalog takes no {format} table over a folder ({error}); ask for the right to create external tables "
                "there, name another catalog, or leave output.table out"
            ) from None


def register(release: Release, named: Mapping[str, str]) -> list[str]:
    """Add the tables of a release to the catalog, the records' last; those that are there and read its files stay as they are.

    Returns the names that were added. Raises SpecError for a schema that is not there, or a name that another table has: then none is
    added; AnonlibError where the catalog refuses.
    """
    added: list[str] = []
    missing = [table for table in named if not _is_there(release, table, named[table])]
    for table in reversed(missing):
        part = release.manifest.tables[table]
        path = storage.spark_path(storage.absolute(f"{release.path}/{part.path}"))
        catalog.add(release.spark, named[table], path, part.format, release.tables[table])
        added.append(named[table])
    return added


def _is_there(release: Release, table: str, name: str) -> bool:
    _check_schema(release.spark, name)
    entry = catalog.look(release.spark, name)
    if entry is None:
        return False
    columns = {column.name: column.type for column in release.manifest.tables[table].columns}
    same_files = entry.kind == catalog.EXTERNAL and entry.files == catalog.files_of(release.tables[table])
    if same_files and entry.columns == columns:
        return True
    what = "show the columns" if same_files else "read the files"
    raise SpecError(
        f"there is a table {name} already, which does not {what} of {release.path}/{table}; name another, or drop it if nobody reads it"
    )


def _check_schema(spark: SparkSession, name: str) -> None:
    if not catalog.schema_exists(spark, name):
        schema = name.rpartition(".")[0]
        raise SpecError(f"output.table: the session's catalog has no schema {schema}; create it first, or name another")


def names_of(release: Release, prefix: str | None) -> dict[str, str]:
    """The names that the tables of a release are to have: by `prefix`, or those that its manifest states. Raises SpecError for a stream,
    or where nobody has said any."""
    manifest = release.manifest
    if manifest.stream is not None:
        raise SpecError(
            f"{release.path!r} is a stream's: its folder holds files that are shown by no batch yet, and a table over it would read them"
        )
    if prefix is not None:
        return names(release.spark, prefix, manifest.tables)
    if strange := sorted(manifest.catalog.keys() - manifest.tables.keys()):
        raise SpecError(
            f"{release.path!r}: its manifest names {strange[0]!r} in a catalog, which is no table of the release"
        )
    if not manifest.catalog:
        raise SpecError(
            f"{release.path!r}: its manifest names no tables of a catalog; say which: anonlib register {release.path} CATALOG.SCHEMA.NAME"
        )
    return dict(manifest.catalog)


def told_of_release_there(error: SpecError, spark: SparkSession, path: str, named: Mapping[str, str]) -> SpecError:
    """Why the output path is taken and, where a release of the same names lies there whose tables the catalog lacks, how to add them."""
    with suppress(Exception):
        text = storage.manifest_at(path)
        same = text is not None and Manifest.from_json(text).catalog == named
        lacking = [name for name in named.values() if same and not catalog.exists(spark, name)]
        if lacking:
            return SpecError(
                f"{error}. What lies there is complete, but the catalog lacks {', '.join(lacking)}: anonlib register {path} adds them"
            )
    return error


def forgetful(spark: SparkSession, named: Mapping[str, str]) -> str:
    """A note where the catalog will not outlive the session; else ""."""
    if not any(catalog.forgets(spark, name) for name in named.values()):
        return ""
    return (
        "note: this session's catalog is kept in memory, and forgets the tables when the session ends; for one that stays, give Spark a "
        "metastore (spark.sql.catalogImplementation=hive), or name another catalog in output.table"
    )
