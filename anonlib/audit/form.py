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


ROW_NUMBER_FROM = 1000
"""A column of fewer rows than this may be dense and distinct by chance (ages of a dozen people)."""


def is_dense(low: int, high: int, n: int) -> bool:
    """Whether whole numbers from `low` to `high` could number `n` rows, with as many gaps as rows at most."""
    return n <= high - low + 1 <= 2 * n


def no_row_numbers(table: str, numbering: Sequence[str], rows: int, ranges: Mapping[str, tuple[int, int]]) -> Check:
    """No published whole-number column counts the rows: it would join back to the source one to one. `numbering` says which do.

    Of few rows nobody can tell a number from an age; the check then passes and says so, with the columns that could be one.
    """
    if rows < ROW_NUMBER_FROM and not numbering:
        dense = [f"{name!r} ({low:,} to {high:,})" for name, (low, high) in ranges.items() if is_dense(low, high, rows)]
        return Check(
            name="no row numbers",
            passed=True,
            asked=f"no column of {table} numbers the rows",
            achieved=f"{rows:,} rows are too few to tell, {len(dense)} columns could",
            evidence=f"look yourself at {', '.join(dense[:5])}" if dense else None,
        )
    return Check(
        name="no row numbers",
        passed=not numbering,
        asked=f"no column of {table} numbers the rows",
        achieved=f"{len(numbering)} do",
        evidence=numbering[0] + "; list it under identifiers instead" if numbering else None,
    )
