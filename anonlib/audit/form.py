"""What every layout's judge asks of the published tables: contents as recorded, columns as stated, no row numbers. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anonlib.audit.verdict import Check, Measured
from anonlib.release.manifest import Manifest, TablePart

Described = Mapping[str, Sequence[tuple[str, str]]]
"""{table: (column, Spark type) in order}: all that is known of tables before they are scanned."""


def contents(table: str, part: TablePart, measured: Measured, staged: bool) -> Check:
    """Rows and checksum of a table are those that the manifest recorded; a staged table's are still to be recorded."""
    if staged and not part.checksum:
        return Check(
            f"contents of {table}", True, "still to be recorded", f"{measured.rows:,} rows, {measured.checksum}"
        )
    return Check(
        name=f"contents of {table}",
        passed=(part.rows, part.checksum) == (measured.rows, measured.checksum),
        asked=f"{part.rows:,} rows, {part.checksum or 'a checksum, which the manifest lacks'}",
        achieved=f"{measured.rows:,} rows, {measured.checksum}",
    )


def column_faults(tables: Described, manifest: Manifest, name: str) -> list[str]:
    """How the columns of the table `name` differ from those that the manifest lists, in sentences."""
    wanted = [(c.name, c.type) for c in manifest.tables[name].columns]
    present = list(tables[name])
    faults = [f"{name} has {n!r} ({t}), not in the manifest" for n, t in present if (n, t) not in wanted]
    faults += [f"{name} lacks {n!r} ({t})" for n, t in wanted if (n, t) not in present]
    if len({n.lower() for n, _ in present}) < len(present):
        faults.append(f"{name} has two columns of one name")
    return faults


def columns_check(asked: str, faults: Sequence[str]) -> Check:
    """The check of a layout's columns, from what is wrong with them."""
    return Check("columns", not faults, asked, "as stated" if not faults else faults[0], "; ".join(faults[1:4]) or None)


def no_row_numbers(table: str, numbering: Sequence[str]) -> Check:
    """No published whole-number column counts the rows: it would join back to the source one to one. `numbering` says which do."""
    return Check(
        name="no row numbers",
        passed=not numbering,
        asked=f"no column of {table} numbers the rows",
        achieved=f"{len(numbering)} do",
        evidence=numbering[0] + "; list it under identifiers instead" if numbering else None,
    )
