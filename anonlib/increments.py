"""Which rows of the input a release is made of: one for each person, and nobody who is out already.

Without persons in the spec every row is one record, as it stands. With them (`columns.person`) the rows are counted by person first, and
where somebody has several, or a ledger is kept, the rows that were chosen are written out once, with a keyed hash instead of the person.
With a ledger the persons of the release are entered in the same step in which it is shown (`anonlib.release.ledger`).

Shuffles: the hashes of persons, 16 bytes a row, to count them. Rows only where some are left out: once by that hash, at which the ledger's
hashes meet them; and the hashes of those entered, once more, into an order of their own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from anonlib.engine import persons, tables
from anonlib.engine.failures import explained
from anonlib.engine.microdata import Microdata
from anonlib.engine.persons import PersonCounts
from anonlib.engine.relational import DataFrame
from anonlib.engine.repeatable import repeats
from anonlib.errors import AnonlibError, OutOfTime, Postponed, SpecError, Unsatisfiable
from anonlib.keyed import derive
from anonlib.methods.enough import more_persons
from anonlib.release import storage
from anonlib.release.ledger import Ledger, open_ledger
from anonlib.release.ledger_entry import Entry
from anonlib.release.manifest import GuaranteePart, LedgerPart, Manifest, PersonsPart, RowsPart
from anonlib.spec.keys import resolve_key, run_key
from anonlib.spec.ledger import DATE
from anonlib.spec.ledger import Ledger as LedgerOfSpec
from anonlib.spec.persons import Repeated
from anonlib.spec.release import WITHHELD, Output, ReleaseSpec

Say = Callable[[str], None]
WrittenOut = Callable[[str, DataFrame], DataFrame]
"""(name, table) -> the same, written where nobody sees it and read back."""
ROWS, INPUT = "rows", "input"
"""What is written out: rows with whose they are, and the rows of the release."""


@dataclass(frozen=True)
class Increment:
    """table : one row a person; part : what the manifest tells of persons, None where the spec names none.

    rows : with a ledger, the same rows and whose they are, to enter; columns : [name, type] of what says who a person is
    """

    table: Microdata
    part: PersonsPart | None
    rows: DataFrame | None = None
    columns: dict[str, str] | None = None


def dated(output: Output) -> Output:
    """The output of a run of today: `{date}` in its paths, and in the name of its tables, is the day, in UTC."""
    day = time.strftime("%Y-%m-%d", time.gmtime())
    evidence = None if output.evidence is None else output.evidence.replace(DATE, day)
    table = None if output.table is None else output.table.replace(DATE, day.replace("-", "_"))
    return output.model_copy(update={"path": output.path.replace(DATE, day), "evidence": evidence, "table": table})


def opened(spec: ReleaseSpec, place: storage.Place | None) -> Ledger | None:
    """The spec's ledger, checked: its entries, its files, and that no release is newer than it. None where there is none.

    place : where the release will go; None for looks alone: then nothing is written, and a release that no one has settled is left open
    """
    if spec.ledger is None:
        return None
    ledger = _with_its_files(spec.ledger, settle=place is not None)
    near = {} if place is None else storage.manifests_beside(place)
    of_days = {} if spec.output is None else storage.manifests_of_days(spec.output.path, DATE)
    ledger.check_releases(ledger.beside() | near | of_days)
    return ledger


def looked_into(spec: ReleaseSpec) -> Ledger | None:
    """The spec's ledger with its entries and files checked, for whoever looks at one of its releases; nothing is written or settled."""
    return None if spec.ledger is None else _with_its_files(spec.ledger, settle=False)


def _with_its_files(asked: LedgerOfSpec, settle: bool) -> Ledger:
    key = resolve_key(asked.key, allow_open_key_file=asked.allow_open_key_file, name="ledger.key")
    ledger = open_ledger(asked.path, key, settle=settle)
    ledger.check_files()
    return ledger


def run_key_of(spec: ReleaseSpec, release: tuple[str, int] | None) -> bytes:
    """What the recipes draw from: never the release key itself, see `anonlib.spec.keys`.

    release : (id, number) of a ledger's release, each of which has its own; None without a ledger
    """
    key = resolve_key(spec.random.key, allow_open_key_file=spec.random.allow_open_key_file)
    published = {role: [n for r, n in spec.columns.roles() if r == role] for role, _ in spec.columns.roles()}
    for role in WITHHELD:
        published.pop(role, None)
    if release is not None:
        published["release of a ledger"] = [release[0], str(release[1])]
    return run_key(key, spec.method.name, spec.method.to_public_dict(), published)


def key_of_persons(run: bytes) -> bytes:
    """What persons are hashed under where no ledger has a key for it, by the key of a run."""
    return derive(run, "rows of persons")


def key_of_draws(own: bytes) -> bytes:
    """What rows of a person are drawn by, given `key_of_persons`."""
    return derive(own, "draws among rows")


def chosen(
    spec: ReleaseSpec,
    frame: DataFrame,
    table: Microdata,
    key: bytes | None,
    ledger: Ledger | None,
    written_out: WrittenOut | None,
    say: Say,
) -> Increment:
    """One row for each person of the input who is not out already.

    frame : the input; table : the same, checked; key : of the run, that rows are drawn by; None for a fresh one
    written_out : how to keep what no plan may work out twice; None where nothing may be written, and nobody minds

    Raises SpecError for rows of nobody, or of somebody with several, or of somebody who is out, where the spec refuses them;
    Unsatisfiable where nobody is new.
    """
    if not spec.columns.person:
        return Increment(table, None)
    if ledger is not None and spec.method.shares_of_ledger:
        table = replace(table, before=ledger.values)
    own = key_of_persons(key or os.urandom(32))
    hash_key = own if ledger is None else ledger.person_key
    rows = persons.rows_of_persons(frame, table, spec.columns.person, spec.persons.order, hash_key)
    if ledger is not None:
        refuse_other_columns(ledger, rows.kinds)
    hashed = rows.hashed
    copied = written_out is not None and not repeats(rows.frame)
    if written_out is not None and copied:
        say("writing the input out once, since its plan may not repeat itself (it shuffles, caches or runs Python)")
        hashed = written_out(ROWS, hashed)
    say("counting the rows of each person")
    with explained("counting the rows of each person"):
        counts = persons.counted(hashed)
    _refuse(spec, counts)
    part = PersonsPart(
        repeated=spec.persons.repeated,
        rows=counts.rows,
        persons=counts.persons,
        nameless=counts.nameless,
        left_out=counts.left_out,
    )
    if ledger is None and not counts.left_out:
        say(in_words(part))
        taken = persons.somebodys(hashed) if copied else rows.named if counts.nameless else rows.frame
        return Increment(replace(table, frame=tables.project(taken, list(rows.publish))), part)
    taken = _one_each(spec, counts, hashed, key_of_draws(own))
    if ledger is not None and ledger.published:
        folders = [storage.spark_path(folder) for folder in ledger.folders]
        taken = persons.without(taken, persons.read(frame.sparkSession, folders))
    say(
        "taking one row of each person"
        + ("" if ledger is None else f" who is not in the ledger ({ledger.persons:,} are)")
    )
    taken = taken if written_out is None else written_out(INPUT, taken)
    if ledger is not None:
        part = part.model_copy(update={"known": counts.persons - tables.number(taken)})
        _refuse_known(spec, part)
    say(in_words(part))
    table = replace(table, frame=tables.project(taken, list(rows.publish)))
    return Increment(table, part, None if ledger is None else taken, rows.kinds)


def _one_each(spec: ReleaseSpec, counts: PersonCounts, hashed: DataFrame, key: bytes) -> DataFrame:
    if not counts.left_out:
        return persons.somebodys(hashed).drop(persons.ORDER)
    return persons.one_each(hashed, spec.persons.repeated == "latest", key)


def ledger_part(
    ledger: Ledger | None, rows: RowsPart, guarantee: GuaranteePart, before: Mapping[str | None, int]
) -> LedgerPart | None:
    """What the manifest tells of the ledger: who took part is entered, also where the method suppressed the record."""
    if ledger is None:
        return None
    return LedgerPart(
        id=ledger.id,
        number=ledger.next_number,
        persons=rows.input - rows.dropped,
        before=[before.get(value.value, 0) for value in guarantee.values] if before else [],
        records_before=sum(before.values()),
    )


def entered_persons(increment: Increment, ledger: Ledger, part: LedgerPart) -> str:
    """Write the persons of the release into a new folder of the ledger, where nobody reads them yet. Returns the folder.

    Raises AnonlibError unless they are as many as the manifest says.
    """
    assert increment.rows is not None
    rows, folder = increment.rows, ledger.new_folder()
    keep = increment.table.keep
    kept = rows if keep is None else rows.where(keep)
    path = storage.spark_path(f"{ledger.path}/{folder}")
    try:
        persons.write(kept, path, part.persons)
        number = tables.number(persons.read(rows.sparkSession, [path]))
        if number != part.persons:
            raise AnonlibError(
                f"entering persons in the ledger: {number:,} were written where {part.persons:,} took part; the input changed while the "
                "release was made: publish from a table that nobody writes to, e.g. a snapshot"
            )
    except BaseException:
        ledger.files.remove_folder(folder)
        raise
    return folder


def entered(increment: Increment, ledger: Ledger, where: storage.Place, manifest: Manifest, folder: str) -> Entry:
    """The entry of the release that is about to be shown; its persons stand in `folder`. Raises SpecError when another run was faster."""
    assert manifest.ledger is not None
    assert increment.columns is not None
    values = [(value.value, value.count) for value in manifest.guarantee.values]
    try:
        return ledger.enter(where, manifest.to_json(), manifest.ledger.persons, folder, increment.columns, values)
    except BaseException:
        ledger.files.remove_folder(folder)
        raise


def too_small(spec: ReleaseSpec, table: Microdata, ledger: Ledger, new: int, error: Unsatisfiable) -> AnonlibError:
    """What to raise where the new persons are too few, or their values too uneven, to publish: how many more it takes, and with
    `wait` that they are left for next time. The error itself where no number will do, and of a solver that was only slow."""
    if isinstance(error, OutOfTime) or not new:
        return error
    try:
        more = more_persons(table, spec.method, ledger.values)
    except OutOfTime:
        enough = "How many more it takes could not be told in time"
    else:
        if more is None:
            return error
        enough = f"With {more:,} more, whose values are spread as of all so far, the increment can be published"
    words = f"{new:,} new persons are too few: {error}. {enough}"
    return _postponed(words) if spec.ledger is not None and spec.ledger.wait else Unsatisfiable(words)


def nobody_new(spec: ReleaseSpec, part: PersonsPart) -> AnonlibError:
    """What to raise where everybody is out already."""
    words = f"all {part.persons:,} persons of the input have been published: with 1 more there is somebody to publish"
    return _postponed(words) if spec.ledger is not None and spec.ledger.wait else Unsatisfiable(words)


def _postponed(words: str) -> Postponed:
    return Postponed(f"nothing was published, and everybody is left for next time: {words}")


def _refuse(spec: ReleaseSpec, counts: PersonCounts) -> None:
    if not counts.rows:
        raise SpecError("input: the table is empty; there is nothing to publish")
    if counts.nameless and spec.missing.person == "error":
        raise SpecError(
            f"columns.person: {counts.nameless:,} rows have no person (null in {_columns(spec)}) and missing.person is error; "
            "set missing: {person: drop}, or mend the data"
        )
    if not counts.persons:
        raise SpecError("missing.person: the policy drops every row of the table; there is nothing to publish")
    if counts.several and spec.persons.repeated == "error":
        raise SpecError(
            f"columns.person: {counts.several:,} persons have several rows, {counts.rows_of_several:,} in all, and a promise about one "
            f"record does not hold for a person with more; take one of each, e.g. persons: {{repeated: latest, order: COLUMN}} or "
            f"persons: {{repeated: random}}, or name under columns.person all columns that tell persons apart (now {_columns(spec)})"
        )


def _refuse_known(spec: ReleaseSpec, part: PersonsPart) -> None:
    assert spec.ledger is not None
    if part.known and spec.ledger.known == "error":
        raise SpecError(
            f"ledger: {part.known:,} of {part.persons:,} persons have been published, and ledger.known is error; leave them out of the "
            "input, or set ledger: {known: skip}"
        )
    if part.known == part.persons:
        raise nobody_new(spec, part)


def refuse_other_columns(ledger: Ledger, kinds: dict[str, str]) -> None:
    """Raises SpecError when a person of the ledger would not be known again by these columns."""
    if not ledger.published:
        return
    before = dict(ledger.published[-1].columns)
    if [name.lower() for name in before] != [name.lower() for name in kinds]:
        raise SpecError(
            f"columns.person: {', '.join(kinds)}, and the persons of the ledger at {ledger.path} are told apart by {', '.join(before)}, in "
            "this order; by other columns nobody would be known again"
        )
    for (name, kind), was in zip(kinds.items(), before.values(), strict=True):
        if kind != was:
            raise SpecError(
                f"columns.person: {name!r} is of type {kind}, and was {was} when the ledger at {ledger.path} was written; the same person "
                "may have another text, and would not be known again: cast it in the input"
            )


def _columns(spec: ReleaseSpec) -> str:
    return ", ".join(spec.columns.person)


HOW: dict[Repeated, str] = {
    "error": "",
    "first": " (the first of each person is taken)",
    "latest": " (the latest of each person is taken)",
    "random": " (one of each person is drawn by the key)",
}


def in_words(part: PersonsPart) -> str:
    """Rows and persons in a sentence."""
    words = f"{part.rows:,} rows of {part.persons:,} persons"
    if part.left_out:
        words += f"; {part.left_out:,} left out{HOW[part.repeated]}"
    if part.nameless:
        words += f"; {part.nameless:,} without a person dropped"
    if part.known:
        words += f"; {part.known:,} persons published before and left out"
    return words
