"""What a ledger holds, and whether it agrees with its files and with the manifests of its releases. No Spark."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pyarrow import parquet

from anonlib.errors import SpecError
from anonlib.release import storage
from anonlib.release.ledger import Ledger, number_in
from anonlib.release.ledger_entry import Entry, sha256_of


@dataclass(frozen=True)
class Line:
    """A release: when it was entered, how many persons, what became of it, where it was shown, and how its manifest there is."""

    number: int
    time: str
    persons: int
    outcome: str
    path: str
    manifest: str


@dataclass(frozen=True)
class LedgerReport:
    """lines : in the order of their numbers; fault : what is wrong first, None when all agrees."""

    id: str
    lines: tuple[Line, ...]
    fault: str | None

    @property
    def releases(self) -> int:
        """How many releases are out."""
        return sum(line.outcome == "published" for line in self.lines)

    @property
    def persons(self) -> int:
        """How many persons are out."""
        return sum(line.persons for line in self.lines if line.outcome == "published")

    def to_dict(self) -> dict[str, Any]:
        """In JSON's types."""
        told = {"releases": [asdict(line) for line in self.lines], "persons": self.persons}
        return {"id": self.id, **told, "passed": self.fault is None, "fault": self.fault}


def looked_at(ledger: Ledger) -> LedgerReport:
    """Every entry beside its files and its release. Reads all files of persons once, in pieces; the driver's memory is flat.

    A release that is no longer where it was shown is no fault: it may have been moved.
    """
    faults: list[str] = []
    for checks in (
        (ledger.check_files, lambda: _check_numbers(ledger)),
        (lambda: ledger.check_releases(ledger.beside()),),
    ):
        try:
            for check in checks:  # what is damaged is not counted
                check()
        except SpecError as problem:
            faults.append(str(problem))
    lines = []
    for entry in ledger.entries:
        state, fault = _manifest_of(ledger, entry)
        lines.append(Line(entry.number, entry.time, entry.persons, entry.outcome or "open", entry.path, state))
        faults += [fault] if fault else []
    return LedgerReport(ledger.id, tuple(lines), faults[0] if faults else None)


def _check_numbers(ledger: Ledger) -> None:
    """As many persons stand in an entry's files as it says. Raises SpecError."""
    for entry in ledger.published:
        rows = 0
        for file in entry.files:
            with storage.opened(ledger.path, f"{entry.folder}/{file.name}") as opened:
                rows += parquet.ParquetFile(opened).metadata.num_rows
        if rows != entry.persons:
            raise SpecError(
                f"ledger {ledger.path}: release {entry.number} entered {entry.persons:,} persons, its files hold {rows:,}"
            )


def _manifest_of(ledger: Ledger, entry: Entry) -> tuple[str, str | None]:
    """How an entry's manifest is, in a word, and what is wrong with that."""
    if entry.outcome != "published":
        return "", None
    try:
        text = storage.manifest_at(entry.path)
    except (OSError, SpecError):
        return "cannot be read", None
    if text is None:
        return "not there (moved?)", None
    if sha256_of(text) == entry.manifest:
        return "the same", None
    other = number_in(text, ledger.id)
    if other == entry.number:
        return (
            "edited",
            f"ledger {ledger.path}: the manifest of release {entry.number} at {entry.path} was edited after it was entered",
        )
    return "another release", None
