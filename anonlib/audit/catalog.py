"""Whether the tables of a catalog that a manifest names are the audited files: `look` asks the catalog, `judge` is pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anonlib.audit.verdict import Check
from anonlib.engine import catalog
from anonlib.engine.catalog import CatalogTable
from anonlib.engine.relational import DataFrame
from anonlib.engine.session import SparkSession
from anonlib.errors import AnonlibError
from anonlib.release.manifest import Manifest


@dataclass(frozen=True)
class Named:
    """A name that the manifest has for a table, and what this session's catalog has under it.

    entry : None where there is none; unseen : why it cannot be looked at, or ""
    files : those of the release's own table
    """

    entry: CatalogTable | None
    files: frozenset[str]
    unseen: str = ""


def look(spark: SparkSession, manifest: Manifest, tables: Mapping[str, DataFrame]) -> dict[str, Named]:
    """{table of the release: what the catalog has under its name}. Lists files, reads none."""
    return {table: _named(spark, name, tables[table]) for table, name in manifest.catalog.items() if table in tables}


def _named(spark: SparkSession, name: str, table: DataFrame) -> Named:
    try:
        entry = catalog.look(spark, name) if catalog.schema_exists(spark, name) else None
        return Named(entry, frozenset() if entry is None else catalog.files_of(table))
    except AnonlibError as error:
        return Named(None, frozenset(), str(error))


def judge(named: Mapping[str, Named], manifest: Manifest) -> list[Check]:
    """One check for all tables that the manifest names; none where it names none.

    A catalog that does not have them says nothing against the release, which is its folder: whoever received a copy has no such tables.
    """
    if not manifest.catalog:
        return []
    judged = {table: _judged(table, one, manifest) for table, one in named.items()}
    faults = {table: words for table, (passed, words) in judged.items() if not passed}
    told = faults or {table: words for table, (_, words) in judged.items()}
    return [
        Check(
            name="catalog",
            passed=not faults,
            asked="tables of the catalog, where it has them, that read the audited files and nothing else",
            achieved="; ".join(f"{manifest.catalog[table]} {words}" for table, words in told.items()),
        )
    ]


def _judged(table: str, named: Named, manifest: Manifest) -> tuple[bool, str]:
    entry = named.entry
    if named.unseen:
        return True, f"was not seen: {named.unseen}"
    if entry is None:
        return True, "is not in this session's catalog"
    if entry.kind != catalog.EXTERNAL:
        return False, f"is no table over the release's folder, but of the kind {entry.kind}"
    if entry.files != named.files:
        return (
            False,
            f"reads {len(entry.files - named.files):,} other files, and lacks {len(named.files - entry.files):,} of the release",
        )
    wanted = {column.name: column.type for column in manifest.tables[table].columns}
    if entry.columns != wanted:
        differing = sorted(dict(set(entry.columns.items()) ^ set(wanted.items())))
        return False, f"has other columns than the release: {', '.join(differing)}"
    return True, "reads the audited files"
