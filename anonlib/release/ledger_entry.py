"""The entries of a ledger, sealed: what is written of a release, and how it is known that nobody has edited it."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from anonlib.errors import SpecError
from anonlib.release.ledger_files import Files

BRING_BACK = "bring the ledger back as it was after its last release"
Outcome = Literal["", "published", "void"]


@dataclass(frozen=True)
class PersonFile:
    """A file of persons, of a size in bytes."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Entry:
    """A release, as the ledger has it.

    path, staging : where it is shown, and where it was made; manifest : SHA-256 of the manifest's text
    persons  : how many are entered; folder, files : where they stand
    columns  : [name, type] of the columns that say who a person is; values : {sensitive value's text: records} of the release
    previous : the HMAC of the entry before; machine, process : who made it; time : when, in UTC
    outcome  : "" while nobody has settled it
    """

    number: int
    path: str
    staging: str
    manifest: str
    persons: int
    folder: str
    files: tuple[PersonFile, ...]
    columns: tuple[tuple[str, str], ...]
    values: tuple[tuple[str | None, int], ...]
    previous: str
    machine: str
    process: str
    time: str
    seal: str = ""
    outcome: Outcome = ""


def read_entry(own: bytes, files: Files, name: str, path: str) -> Entry:
    """A sealed entry, without its outcome. Raises SpecError."""
    body = opened(own, files, name, path)
    told = json.loads(body)
    told["files"] = tuple(PersonFile(**file) for file in told["files"])
    told["columns"] = tuple((column, kind) for column, kind in told["columns"])
    told["values"] = tuple((value, count) for value, count in told["values"])
    return Entry(**told, seal=seal_of(own, body))


def body_of(entry: Entry) -> str:
    """The text that an entry is written as: what was known before its release was shown."""
    told: dict[str, Any] = asdict(entry)
    told.pop("seal")
    told.pop("outcome")
    return json.dumps(told, ensure_ascii=True)


def seal_of(key: bytes, body: str) -> str:
    """HMAC-SHA-256 of a text, in hexadecimal."""
    return hmac.new(key, body.encode("ascii"), hashlib.sha256).hexdigest()


def sealed(key: bytes, body: str) -> bytes:
    """A file of a ledger: a line of text, and a line with its seal."""
    return f"{body}\n{seal_of(key, body)}\n".encode("ascii")


def opened(key: bytes, files: Files, name: str, path: str) -> str:
    """The body of a sealed file. Raises SpecError when the seal is not the ledger's."""
    try:
        body, seal = files.read(name).decode("ascii").rstrip("\n").split("\n")
    except (ValueError, OSError):
        body, seal = "", ""
    if not hmac.compare_digest(seal, seal_of(key, body)):
        raise SpecError(f"ledger {path}: {name} was edited or cut; {BRING_BACK}")
    return body


def sha256_of(text: str) -> str:
    """The digest that an entry knows a manifest by, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
