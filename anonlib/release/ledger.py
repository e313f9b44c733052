"""The ledger: who has been published, in which release; entered in one step with the release's manifest.

    ledger.json                 what it is: format, and the tag of its key, by which a ledger is known
    entries/000001.json         an entry: which release, the SHA-256 of its manifest, how many persons, in which files
    entries/000001.outcome      what became of it: "published", or "void" when the release was never shown
    persons/000001-3f2a.../     the persons: Parquet, 16 bytes each, a keyed hash (HMAC-SHA-256, truncated)

Every file is written once and never changed. Entries and outcomes carry an HMAC, and each entry that of the entry before, so that
what is edited, missing or out of place is seen; the files of persons are known by size and SHA-256.

**The step.** A run writes its persons first, then the entry, then shows the release, then writes the outcome. The entry names the
manifest that is about to be written, so while there is no outcome the manifest decides: if it lies at the release's path, everybody in
the entry is out; if not, nobody is, once the run can no longer show it. Whoever opens the ledger next settles this: he takes the
staging folder away (a rename, which the release's own rename cannot survive), looks for the manifest again, and writes the outcome;
what he took away is kept until then, as proof for whoever comes next, should he die too.
Of two runs at once one makes the entry of the next number; the other finds it taken and publishes nothing.

Nothing here grows with the table but the reading of files to check them: the driver's memory is flat.
"""

from __future__ import annotations

import json
import re
import secrets
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace

from anonlib.errors import SpecError
from anonlib.keyed import derive
from anonlib.release import ledger_runs, storage
from anonlib.release.ledger_entry import (
    BRING_BACK,
    Entry,
    Outcome,
    PersonFile,
    body_of,
    opened,
    read_entry,
    seal_of,
    sealed,
    sha256_of,
)
from anonlib.release.ledger_files import Files
from anonlib.release.storage import Place

FORMAT = 1
HEAD, ENTRIES, PERSONS = "ledger.json", "entries", "persons"
_NUMBER = re.compile(r"(\d{6,})\.(json|outcome)")


@dataclass(frozen=True)
class Ledger:
    """A ledger as it was opened. key : of its entries; person_key : what persons are hashed under; both follow from the ledger's key."""

    files: Files
    id: str
    key: bytes = field(repr=False)
    person_key: bytes = field(repr=False)
    entries: tuple[Entry, ...]

    @property
    def path(self) -> str:
        return self.files.path

    @property
    def published(self) -> tuple[Entry, ...]:
        """The entries whose persons are out."""
        return tuple(entry for entry in self.entries if entry.outcome == "published")

    @property
    def persons(self) -> int:
        """How many persons are out."""
        return sum(entry.persons for entry in self.published)

    @property
    def values(self) -> dict[str | None, int]:
        """{sensitive value's text: records} of all releases that are out."""
        sums: dict[str | None, int] = {}
        for entry in self.published:
            for value, count in entry.values:
                sums[value] = sums.get(value, 0) + count
        return sums

    @property
    def folders(self) -> list[str]:
        """Where the persons stand that are out."""
        return [f"{self.path}/{entry.folder}" for entry in self.published]

    @property
    def next_number(self) -> int:
        return len(self.entries) + 1

    def new_folder(self) -> str:
        """A folder of the ledger for the persons of the next entry."""
        return f"{PERSONS}/{self.next_number:06d}-{secrets.token_hex(8)}"

    # --- entering ------------------------------------------------------------------------------------------------------

    def enter(
        self,
        where: Place,
        manifest_text: str,
        persons: int,
        folder: str,
        columns: Mapping[str, str],
        values: Sequence[tuple[str | None, int]],
    ) -> Entry:
        """Enter the persons in `folder` for the release that is about to be shown. Raises SpecError when another run was faster.

        From here on the release's manifest decides whether they are out, until `settle` says so for good.
        """
        present = [
            name for name in self.files.names(folder) if name.endswith(".parquet") and not name.startswith((".", "_"))
        ]
        entry = Entry(
            number=self.next_number,
            path=storage.absolute(where.path),
            staging=storage.absolute(where.staging),
            manifest=sha256_of(manifest_text),
            persons=persons,
            folder=folder,
            files=tuple(self._digests(folder, present)),
            columns=tuple(columns.items()),
            values=tuple(values),
            previous=self.entries[-1].seal if self.entries else "",
            machine=socket.gethostname(),
            process=ledger_runs.this_process(),
            time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        )
        body = body_of(entry)
        try:
            self.files.create(f"{ENTRIES}/{entry.number:06d}.json", sealed(self.key, body))
        except FileExistsError:
            raise SpecError(
                f"ledger {self.path}: another run entered release {entry.number} while this one was made, perhaps with the same persons; "
                "nothing was published. Run again, and persons who are out by then are left out"
            ) from None
        return replace(entry, seal=seal_of(self.key, body))

    def settle(self, entry: Entry, outcome: Outcome) -> None:
        """Say for good what became of an entry. What was taken away to find out is kept until then."""
        body = json.dumps({"ledger": self.id, "number": entry.number, "seal": entry.seal, "outcome": outcome})
        try:
            self.files.create(f"{ENTRIES}/{entry.number:06d}.outcome", sealed(self.key, body))
        except FileExistsError:
            there = self._outcome(entry)
            if there != outcome:
                raise SpecError(
                    f"ledger {self.path}: release {entry.number} is {there} already, not {outcome}"
                ) from None
        storage.drop_seized(_place_of(entry))

    def withdraw(self, entry: Entry) -> bool:
        """After a run failed between entry and outcome: void the entry unless the release is out. Returns whether it is out."""
        if self._is_settled(entry):  # another run has taken this one for dead
            return self._outcome(entry) == "published"
        if _is_out(entry):
            self.settle(entry, "published")
            return True
        if storage.seize(_place_of(entry)) or entry.staging == entry.path:
            out = _is_out(entry)
            self.settle(entry, "published" if out else "void")
            return out
        raise SpecError(_undecided(self.path, entry))

    def abandon(self, where: Place) -> None:
        """Before a run that failed removes what it staged at `where`: withdraw its entry, if it had come that far without knowing."""
        name = f"{ENTRIES}/{self.next_number:06d}.json"
        if not self.files.there(name) or self.files.there(name.replace(".json", ".outcome")):
            return
        entry = read_entry(self.key, self.files, name, self.path)
        if entry.staging == storage.absolute(where.staging):
            self.withdraw(entry)

    def _digests(self, folder: str, names: Sequence[str]) -> Iterator[PersonFile]:
        with ThreadPoolExecutor(8) as pool:
            for name, (size, sha256) in zip(
                names, pool.map(lambda name: self.files.digest(f"{folder}/{name}"), names), strict=True
            ):
                yield PersonFile(name, size, sha256)

    def _is_settled(self, entry: Entry) -> bool:
        return self.files.there(f"{ENTRIES}/{entry.number:06d}.outcome")

    def _outcome(self, entry: Entry) -> Outcome:
        name = f"{ENTRIES}/{entry.number:06d}.outcome"
        told = json.loads(opened(self.key, self.files, name, self.path))
        if (told.get("ledger"), told.get("number"), told.get("seal")) != (self.id, entry.number, entry.seal):
            raise SpecError(f"ledger {self.path}: {name} belongs to another entry; {BRING_BACK}")
        outcome: Outcome = told["outcome"]
        return outcome

    # --- checking ------------------------------------------------------------------------------------------------------

    def check_files(self) -> None:
        """Every file of persons who are out is there, as it was written, and no other. Reads them all; raises SpecError."""
        for entry in self.published:
            present = {name for name in self.files.names(entry.folder) if not name.startswith((".", "_"))}
            listed = {file.name for file in entry.files}
            if lost := sorted(listed - present):
                raise SpecError(
                    f"ledger {self.path}: {entry.folder}/{lost[0]} is gone, and who stands in it would be published again; {BRING_BACK}"
                )
            if strange := sorted(present - listed):
                raise SpecError(
                    f"ledger {self.path}: {entry.folder}/{strange[0]} is none of its files, and who stands in it would never be published; "
                    "remove it"
                )
            for file, found in zip(
                entry.files, self._digests(entry.folder, [f.name for f in entry.files]), strict=True
            ):
                if found != file:
                    raise SpecError(
                        f"ledger {self.path}: {entry.folder}/{file.name} was edited or cut ({found.size:,} bytes, {file.size:,} were "
                        f"written); {BRING_BACK}"
                    )

    def check_releases(self, manifests: Mapping[str, str]) -> None:
        """No release was entered in this ledger after what it holds: then it is an old copy. Raises SpecError.

        manifests : {path: text of the manifest} of releases anywhere
        """
        known = {entry.number: entry for entry in self.published}
        for path, text in sorted(manifests.items()):
            number = number_in(text, self.id)
            if number is None:
                continue
            entry = known.get(number)
            if entry is None:
                raise SpecError(
                    f"ledger {self.path}: the release at {path} was entered as number {number}, which this ledger does not have: it is an "
                    f"old copy, was cut, or was started anew under the same key; {BRING_BACK}"
                )
            if entry.manifest != sha256_of(text):
                raise SpecError(
                    f"ledger {self.path}: the release at {path} has number {number}, which is another release here; another copy of this "
                    f"ledger has been used, or the manifest was edited; {BRING_BACK}"
                )

    def beside(self) -> dict[str, str]:
        """The manifests of the releases that lie where this ledger's releases were shown, as far as they can be read."""
        manifests: dict[str, str] = {}
        parents: set[str] = set()
        for entry in self.published:
            parent = entry.path.rpartition("/")[0]
            if parent not in parents:
                parents.add(parent)
                with suppress(SpecError):
                    manifests |= storage.manifests_beside(Place(entry.path, ""))
        return manifests


def new_ledger(path: str, key: bytes) -> Ledger:
    """Start a ledger at `path`, known by its key. Raises SpecError when something lies there."""
    files = Files(path)
    # what a start that was killed left of its draft is in nobody's way
    if files.there() and [name for name in files.names("") if not name.startswith(".")]:
        raise SpecError(f"ledger {path}: something lies there already; a ledger is started once")
    id, own, persons = _keys(key)
    try:
        files.create(HEAD, sealed(own, json.dumps({"format": FORMAT, "ledger": id})))
    except FileExistsError:
        raise SpecError(f"ledger {path}: another run has just started it") from None
    except OSError as error:
        raise SpecError(f"ledger {path}: cannot be written ({error.strerror or error}); choose another path") from None
    return Ledger(files, id, own, persons, ())


def open_ledger(path: str, key: bytes, settle: bool = True) -> Ledger:
    """The ledger at `path`, all of its entries checked and settled.

    settle : say what became of an entry whose run did not; without it (for looks alone) nothing is written: such an entry is "published"
             where its release lies, and else ""

    Raises SpecError for a ledger that is not there, of another key, edited or cut, and while another run is publishing.
    """
    files = Files(path)
    id, own, persons = _keys(key)
    _check_head(files, path, id, own)
    ledger = Ledger(files, id, own, persons, tuple(_entries(files, path, id, own)))
    entries = [replace(entry, outcome=_settled(ledger, entry, settle)) for entry in ledger.entries]
    if settle:
        _remove_orphans(ledger, entries)
    return replace(ledger, entries=tuple(entries))


def number_in(manifest_text: str, id: str) -> int | None:
    """The number of a release in the ledger `id`, by its manifest; None for others, and for what is no manifest."""
    try:
        part = json.loads(manifest_text).get("ledger")
        return int(part["number"]) if part and part.get("id") == id else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def ledger_id(key: bytes) -> str:
    """What a ledger is known by: 128 bits that follow from its key, and from which nothing leads back."""
    return _keys(key)[0]


def _keys(key: bytes) -> tuple[str, bytes, bytes]:
    return (
        derive(key, "public tag of a ledger")[:16].hex(),
        derive(key, "entries of a ledger"),
        derive(key, "persons of a ledger"),
    )


def _check_head(files: Files, path: str, id: str, own: bytes) -> None:
    try:
        raw = files.read(HEAD)
    except FileNotFoundError:
        raise SpecError(
            f"ledger {path}: there is none; start it once with `anonlib ledger {path} --new --key ...`. If there was one, bring it back or "
            "say where it is: a new one knows nobody, and would publish the same persons again"
        ) from None
    except OSError as error:
        raise SpecError(f"ledger {path}: cannot be read ({error}); check the path and its permissions") from None
    try:
        told = json.loads(raw.split(b"\n")[0])
        theirs, version = told["ledger"], told["format"]
    except (ValueError, KeyError, TypeError, IndexError):
        raise SpecError(f"ledger {path}: {HEAD} was edited or cut; {BRING_BACK}") from None
    if theirs != id:
        raise SpecError(
            f"ledger {path}: it belongs to another ledger.key; under this one its persons are not known again, and would be published "
            "twice. Give the key that it was started with"
        )
    opened(own, files, HEAD, path)
    if version != FORMAT:
        raise SpecError(f"ledger {path}: it has format {version}, and this version reads {FORMAT}; use a newer anonlib")


def _entries(files: Files, path: str, id: str, own: bytes) -> Iterator[Entry]:
    matches = [match for name in files.names(ENTRIES) if (match := _NUMBER.fullmatch(name))]
    numbers = sorted(int(match[1]) for match in matches if match[2] == "json")
    outcomes = {int(match[1]) for match in matches if match[2] == "outcome"}
    if numbers != list(range(1, len(numbers) + 1)) or not outcomes <= set(numbers):
        gone = next(k for k in range(1, max([*numbers, *outcomes]) + 1) if k not in numbers)
        raise SpecError(
            f"ledger {path}: its entry {gone} is gone, and its persons would be published again; {BRING_BACK}"
        )
    previous = ""
    bare = Ledger(files, id, own, b"", ())
    for number in numbers:
        name = f"{ENTRIES}/{number:06d}.json"
        entry = read_entry(own, files, name, path)
        if entry.number != number or entry.previous != previous:
            raise SpecError(f"ledger {path}: {name} does not follow the entry before it; {BRING_BACK}")
        previous = entry.seal
        yield replace(entry, outcome=bare._outcome(entry) if number in outcomes else "")


def _settled(ledger: Ledger, entry: Entry, settle: bool) -> Outcome:
    """What became of an entry, found out and written down where nobody has."""
    if entry.outcome:
        return entry.outcome
    if not settle:
        return "published" if _is_out(entry) else ""
    if not _is_out(entry):
        if ledger_runs.still_runs(entry):
            raise SpecError(_busy(ledger.path, entry))
        # nobody can show what was taken away; where it is gone already, somebody may have shown and moved it
        if not storage.seize(_place_of(entry)) and not _is_out(entry):
            if ledger._is_settled(entry):  # by another opening, in this very moment
                return ledger._outcome(entry)
            raise SpecError(_undecided(ledger.path, entry))
    outcome: Outcome = "published" if _is_out(entry) else "void"
    ledger.settle(entry, outcome)
    return outcome


def _busy(path: str, entry: Entry) -> str:
    return (
        f"ledger {path}: another run ({entry.process} on {entry.machine}, since {entry.time}) is publishing release {entry.number} at "
        f"{entry.path}; run again when it has ended"
    )


def _undecided(path: str, entry: Entry) -> str:
    return (
        f"ledger {path}: the run that made release {entry.number} died while it published, and neither the release nor what was made of it "
        f"lies at {entry.path} now: nobody can tell from here whether somebody has seen it. If it was moved, put it back and run again; if "
        f"it never left the house, remove what is left of it and say so: anonlib ledger {path} --void {entry.number}"
    )


def void(ledger: Ledger, number: int) -> None:
    """On a steward's word that a release which is not settled was never seen. Raises SpecError for any other, and while its run lives."""
    entry = next((entry for entry in ledger.entries if entry.number == number), None)
    if entry is None or entry.outcome:
        raise SpecError(
            f"ledger {ledger.path}: release {number} is not open: "
            + ("there is none" if entry is None else _in_words(entry))
        )
    if ledger_runs.still_runs(entry):
        raise SpecError(_busy(ledger.path, entry))
    storage.seize(_place_of(entry))
    ledger.settle(entry, "published" if _is_out(entry) else "void")


def _in_words(entry: Entry) -> str:
    return "it is void" if entry.outcome == "void" else f"it is published at {entry.path}, and its persons are out"


def _place_of(entry: Entry) -> Place:
    return Place(entry.path, entry.staging)


def _is_out(entry: Entry) -> bool:
    """Whether the release that the entry speaks of lies at its path."""
    text = storage.manifest_at(entry.path)
    return text is not None and sha256_of(text) == entry.manifest


def _remove_orphans(ledger: Ledger, entries: Sequence[Entry]) -> None:
    """Folders of persons that dead runs left under numbers which others have taken since."""
    kept = {entry.folder for entry in entries if entry.outcome != "void"}
    for name in ledger.files.names(PERSONS):
        number = name.partition("-")[0]
        if f"{PERSONS}/{name}" not in kept and number.isdigit() and int(number) < len(entries):
            ledger.files.remove_folder(f"{PERSONS}/{name}")
