"""What may lie in a release's folder: the manifest, and of each table the data files that the manifest names. Pure: facts to checks."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from anonlib.audit.folder import Folder, Footer, column_list, is_data, of_sum
from anonlib.audit.verdict import Check
from anonlib.release.manifest import FILE_NAME, FilePart, Manifest
from anonlib.release.storage import Entry

_CODEC = r"(?:\.(?:snappy|gz|gzip|zstd|lz4|lz4raw|lz4_raw|lz4hadoop|brotli|zlib|lzo))?"
DATA_FILE = re.compile(rf"part-\d+(?:[-_.](?:[0-9a-f]+|c\d+|tid|attempt|[mr]))*{_CODEC}(?:-[0-9a-f-]+)?\.(parquet|orc)")
"""Spark's names of data files, with what the committers of S3 and of Databricks put in: numbers and random identifiers, no words."""
DELTA_LOG = re.compile(
    r"_delta_log(/_commits|/_staged_commits|/\.?\d{20}\.(json|crc)(\.crc)?|/\.?\d{20}\.checkpoint(\.\d+\.\d+)?\.parquet(\.crc)?"
    r"|/\.?_last_checkpoint(\.crc)?)?"
)
PAIRS = {
    "org.apache.spark.version": r"\d[\w.\-]{0,40}",
    "org.apache.spark.timeZone": r"[\w+\-/:]{1,60}",
    "org.apache.spark.legacyDateTime": r"",
    "org.apache.spark.legacyINT96": r"",
    "writer.model.name": r"\w{1,40}",
    "com.databricks.spark.jobGroupId": r"[\w.\-]{1,120}",
    "com.databricks.spark.clusterId": r"[\w.\-]{1,120}",
}
"""What a footer's key-value metadata may hold besides Spark's column list."""
COLUMN_LIST = "org.apache.spark.sql.parquet.row.metadata"
_BATCH = re.compile(r"batches/\d{6,}\.json")
_WRITER = re.compile(r"[\w .,:()+\-]{0,160}")


def judge(folder: Folder, manifest: Manifest, staged: bool = False) -> list[Check]:
    """Whether nothing lies in the folder but what the manifest names, and no data file tells more than the manifest's columns.

    staged : the folder is a staging area: it has no manifest yet, and what the manifest is to name is taken from it (see `named`)
    """
    checks = [
        _nothing_else(folder, manifest),
        _footers(folder, manifest),
        _not_by_value(folder, manifest),
    ]
    return checks if staged else [*checks, _as_listed(folder, manifest)]


def named(folder: Folder, manifest: Manifest) -> dict[str, list[FilePart]]:
    """The data files of each table with their sizes, for the manifest."""
    sizes = {entry.path: entry.size for entry in folder.entries if entry.kind == "file"}
    return {
        name: [FilePart(name=file, size=sizes[f"{part.path}/{file}"]) for file in _data_files(sizes, part.path)]
        for name, part in manifest.tables.items()
    }


def _data_files(paths: Iterable[str], table: str) -> list[str]:
    """Names of the data files of a table, without those of a Delta log."""
    start = f"{table}/"
    inside = (path.removeprefix(start) for path in paths if path.startswith(start) and is_data(path))
    return [name for name in inside if "/" not in name]


def _nothing_else(folder: Folder, manifest: Manifest) -> Check:
    formats = {part.path: part.format for part in manifest.tables.values()}
    names = {entry.path for entry in folder.entries}
    streamed = manifest.stream is not None
    entries = [entry for entry in folder.entries if not _is_manifest(entry, streamed)]
    faults = [fault for entry in entries if (fault := _stranger(entry, folder, formats, names)) is not None]
    faults += [f"{name} holds other bytes than the checksums of its file" for name in folder.false_sums]
    return Check(
        name="files",
        passed=not faults,
        asked=f"{FILE_NAME if manifest.stream is None else 'batches/'}, and data files in {', '.join(f'{path}/' for path in formats)}",
        achieved=f"{len(names):,} files and folders, {len(faults):,} that do not belong there",
        evidence="; ".join(faults[:3]) or None,
    )


def _is_manifest(entry: Entry, streamed: bool) -> bool:
    """Whether this is the manifest of a table's release, or of a batch of a stream, or the folder of these."""
    if not streamed:
        return entry.kind == "file" and entry.path == FILE_NAME
    return (
        entry.path == "batches"
        if entry.kind == "folder"
        else bool(_BATCH.fullmatch(entry.path)) and entry.kind == "file"
    )


def _stranger(entry: Entry, folder: Folder, formats: Mapping[str, str], names: set[str]) -> str | None:
    """Why this file or folder may not be here; None when it may."""
    path, _, name = entry.path.partition("/")
    if entry.kind == "link":
        return f"{entry.path} is a link or no plain file"
    if entry.path in formats and entry.kind == "folder":
        return None
    if path in formats and name:
        return _in_table(entry, name, folder, formats[path], names)
    if entry.kind == "file":
        if entry.path.endswith("_$folder$") and entry.path.removesuffix("_$folder$") in formats and entry.size == 0:
            return None  # Hadoop's mark of a folder on S3
        if of_sum(entry.path) == FILE_NAME and FILE_NAME in names:
            return None
    return f"{entry.path} is named nowhere in the manifest"


def _in_table(entry: Entry, name: str, folder: Folder, format: str, names: set[str]) -> str | None:
    if format == "delta" and DELTA_LOG.fullmatch(name):
        return None
    if entry.kind == "folder":
        return f"{entry.path} is a folder in a table"
    if (of := of_sum(entry.path)) and of in names:
        return None  # its content is looked at apart
    if name == "_SUCCESS":
        return f"{entry.path} is not empty" if entry.size else None
    if entry.path in folder.notes:
        return None if _honest_note(name, folder.notes[entry.path]) else f"{entry.path} holds more than names of files"
    if data_file := DATA_FILE.fullmatch(name):
        wanted = "orc" if format == "orc" else "parquet"
        return None if data_file[1] == wanted else f"{entry.path} is no {format} file"
    return f"{entry.path} is no data file of Spark's by its name, and a reader would not see it or not know it"


def _honest_note(name: str, text: str) -> bool:
    """`_started_N` of Databricks' committer is empty; `_committed_N` lists files that were added and removed."""
    if name.startswith("_started"):
        return text == ""
    try:
        changes = json.loads(text)
        return set(changes) <= {"added", "removed"} and all(
            DATA_FILE.fullmatch(n) for part in changes.values() for n in part
        )
    except (ValueError, TypeError, AttributeError):
        return False


def _as_listed(folder: Folder, manifest: Manifest) -> Check:
    """The data files are those of the manifest: dealt to files anew, the same rows could tell their values by the file they stand in."""
    present = named(folder, manifest)
    faults = [
        f"{table}: {what} {name}"
        for table in manifest.tables
        for what, name in _differences(manifest.files.get(table, []), present[table])
    ]
    return Check(
        name="data files as listed",
        passed=not faults,
        asked=f"{sum(map(len, manifest.files.values())):,} files with their sizes",
        achieved=f"{sum(map(len, present.values())):,} files, {len(faults):,} differences",
        evidence="; ".join(faults[:3]) or None,
    )


def _differences(listed: list[FilePart], present: list[FilePart]) -> list[tuple[str, str]]:
    stated, there = ({part.name: part.size for part in parts} for parts in (listed, present))
    differ = [("not listed:", name) for name in sorted(there.keys() - stated.keys())]
    differ += [("gone:", name) for name in sorted(stated.keys() - there.keys())]
    return differ + [("of another size:", n) for n in sorted(stated.keys() & there.keys()) if stated[n] != there[n]]


def _footers(folder: Folder, manifest: Manifest) -> Check:
    """Every data file has the manifest's columns and no word besides: also the last one, and behind the list that Spark believes."""
    faults: list[str] = []
    for part in manifest.tables.values():
        start = f"{part.path}/"
        mine = {start + name: folder.footers[start + name] for name in _data_files(folder.footers, part.path)}
        wanted = {column.name: column.type for column in part.columns}
        schemas = Counter(footer.schema for footer in mine.values() if not footer.problem)
        usual = schemas.most_common(1)[0][0] if schemas else ""
        for name, footer in mine.items():
            faults += [f"{name}: {fault}" for fault in _of_footer(footer, wanted, usual)]
    return Check(
        name="footers",
        passed=not faults,
        asked="in every data file the manifest's columns, the same types, and nothing beside them",
        achieved=f"{len(folder.footers):,} files read, {len(faults):,} faults",
        evidence="; ".join(faults[:3]) or None,
    )


def _of_footer(footer: Footer, wanted: Mapping[str, str], usual: str) -> list[str]:
    if footer.problem:
        return [f"cannot be read ({footer.problem})"]
    faults = [f"has the column {name!r}, not in the manifest" for name in footer.columns if name not in wanted]
    faults += [f"lacks the column {name!r}" for name in wanted if name not in footer.columns]
    if len(set(footer.columns)) < len(footer.columns):
        faults.append("has two columns of one name")
    if not faults and footer.schema != usual:
        faults.append("has other types than the other files")
    if not _WRITER.fullmatch(footer.writer):
        faults.append("says more of its writer than a name and a version")
    for key, value in (footer.pairs or {}).items():
        if key == COLUMN_LIST:
            if column_list(value) != wanted:
                faults.append("its list of columns for Spark is not the manifest's, or says more than names and types")
        elif key not in PAIRS or not re.fullmatch(PAIRS[key], value):
            faults.append(f"its footer holds {key[:60]!r} ({len(value):,} characters), which nothing here writes")
    return faults + [f"its footer holds {key!r} twice" for key in footer.doubled]


def _not_by_value(folder: Folder, manifest: Manifest) -> Check:
    """No table that withholds the value of each record lies in one file per value, as far as the numbers of rows tell.

    Three different counts or more: fewer may meet by chance.
    """
    counts = Counter(value.count for value in manifest.guarantee.values)
    faults = []
    for part in manifest.tables.values():
        if manifest.layout == "generalized" or "quasi_identifier" not in {column.role for column in part.columns}:
            continue
        footers = [folder.footers[f"{part.path}/{name}"] for name in _data_files(folder.footers, part.path)]
        if len(counts) >= 3 and Counter(footer.rows for footer in footers if footer.rows) == counts:
            faults.append(f"{part.path} has a file for each sensitive value, of as many rows as the value has records")
    return Check.unless(
        faults,
        "files and sensitive values",
        "no file for each sensitive value, by its number of rows",
        f"{len(faults)} tables",
    )
