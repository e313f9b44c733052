"""Which rows of an original a release was made of: what an audit or an evaluation holds the release against.

Without persons they are the rows that the policy on missing values lets through. With them a row of each person was taken, and with a
ledger of the persons who were new: nothing published says which. The release's own spec does: whose a row is, which of several is taken,
and the ledger in which the release's persons are entered. Reads alone; nothing is written or settled.

Costs, for n rows: hashing as in `anonlib.engine.persons`, and where rows were left out one shuffle of all rows by person, in each pass that
the audit makes over the original.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anonlib import increments
from anonlib.audit import persons as persons_judge
from anonlib.audit.verdict import Check
from anonlib.engine import persons, tables
from anonlib.engine.as_missing import read_as_missing
from anonlib.engine.codes import within
from anonlib.engine.failures import explained
from anonlib.engine.microdata import microdata
from anonlib.engine.relational import DataFrame
from anonlib.engine.statistics import is_missing
from anonlib.errors import SpecError
from anonlib.release import generalized, storage
from anonlib.release.ledger import Ledger
from anonlib.release.ledger_entry import Entry, sha256_of
from anonlib.release.manifest import Manifest
from anonlib.release.opened import Release
from anonlib.spec.keys import key_tag
from anonlib.spec.release import ReleaseSpec


@dataclass(frozen=True)
class Original:
    """rows : those that the release was made of, after its policies; checks : what the ledger says of them."""

    rows: DataFrame
    checks: tuple[Check, ...] = ()


def rows_of(release: Release, original: DataFrame, spec: ReleaseSpec | None = None) -> Original:
    """The rows of `original` that `release` was made of.

    spec : the release's own, where it was made of one row a person; without it the original must hold these rows alone

    Raises SpecError where nothing says which rows were taken, or the spec or its ledger are not the release's.
    """
    manifest = release.manifest
    _as_it_was_read(tables.types(original), manifest)
    policies = ("quasi_identifier", "sensitive")
    may_be_missing = [name for name, role in _roles(manifest).items() if role in policies]
    persons_of = (
        () if spec is None or manifest.persons is None else spec.columns.person
    )  # withheld, so the manifest is silent of them
    original = read_as_missing(original, [*may_be_missing, *persons_of], manifest.as_missing)
    if manifest.persons is None:
        return Original(after_policy(original, manifest))
    if spec is None or not spec.columns.person:
        _refuse_unless_whole(original, manifest)
        return Original(after_policy(original, manifest))
    _same_policy(spec, manifest)
    entered = None if manifest.ledger is None else _entered(spec, manifest)
    taken, checks = _taken(release, original, spec, entered)
    return Original(after_policy(taken, manifest), checks)


def after_policy(original: DataFrame, manifest: Manifest) -> DataFrame:
    """The rows that the release's missing-value policy published; of a stream's, those it may have shown by now."""
    policy, types, roles = manifest.missing, tables.types(original), _roles(manifest)
    asked = {"quasi_identifier": policy["quasi_identifiers"], "sensitive": policy["sensitive"]}
    dropped = [
        is_missing(name, types[name]) for name, role in roles.items() if asked.get(role) == "drop" and name in types
    ]
    kept = original.where(" AND ".join(f"NOT {condition}" for condition in dropped)) if dropped else original
    if manifest.stream is None:
        return kept
    part = manifest.guarantee
    return within(kept, generalized.quasi_identifiers(manifest), {part.sensitive: [v.value for v in part.values]})


def _roles(manifest: Manifest) -> dict[str, str]:
    """{column of the input that is published, unchanged or in boxes: its role}."""
    roles = {column.name: column.role for part in manifest.tables.values() for column in part.columns}
    return roles | {part.name: "quasi_identifier" for part in manifest.quasi_identifiers}


def _refuse_unless_whole(original: DataFrame, manifest: Manifest) -> None:
    part = manifest.persons
    if part is not None and part.rows > manifest.rows.input and tables.number(original) != manifest.rows.input:
        raise SpecError(
            f"original: the release was made of {manifest.rows.input:,} of {part.rows:,} rows, one a person, and nothing published says "
            "which; give the release's spec with --spec CONF, whose columns.person, persons and ledger say it, or a table that has one "
            "row for each person of the release"
        )


def _same_policy(spec: ReleaseSpec, manifest: Manifest) -> None:
    """Raises SpecError where the spec takes other rows than the release's did."""
    assert manifest.persons is not None
    asked, was = spec.persons.repeated, manifest.persons.repeated
    if asked != was:
        raise SpecError(
            f"persons.repeated: {asked}, and the release was made with {was}; give the spec it was made with"
        )
    if (spec.ledger is None) != (manifest.ledger is None):
        raise SpecError(
            "ledger: the spec has "
            + ("none, and the release was entered in one" if spec.ledger is None else "one, and the release has none")
            + "; give the spec the release was made with"
        )


def _entered(spec: ReleaseSpec, manifest: Manifest) -> tuple[Ledger, Entry]:
    """The spec's ledger, checked, and the release's entry in it. Raises SpecError."""
    assert manifest.ledger is not None
    ledger = increments.looked_into(spec)
    assert ledger is not None
    number = manifest.ledger.number
    entry = next((entry for entry in ledger.published if entry.number == number), None)
    if manifest.ledger.id != ledger.id or entry is None:
        raise SpecError(
            f"ledger {ledger.path}: the release was entered as number {number} in "
            + ("another ledger" if manifest.ledger.id != ledger.id else "it, and it has no such release that is out")
            + "; give the ledger it was entered in"
        )
    return ledger, entry


def _taken(
    release: Release, original: DataFrame, spec: ReleaseSpec, entered: tuple[Ledger, Entry] | None
) -> tuple[DataFrame, tuple[Check, ...]]:
    """One row for each person of the release, as the run took it, and what the ledger says."""
    run_key = _run_key(release.manifest, spec)
    own = increments.key_of_persons(run_key or os.urandom(32))
    table = microdata(original, spec.columns, spec.missing)
    hash_key = own if entered is None else entered[0].person_key
    rows = persons.rows_of_persons(original, table, spec.columns.person, spec.persons.order, hash_key)
    hashed = persons.somebodys(rows.hashed)
    checks: tuple[Check, ...] = ()
    if entered is not None:
        increments.refuse_other_columns(entered[0], rows.kinds)
        hashed, checks = _of_entry(release, hashed, *entered)
    latest = spec.persons.repeated == "latest"
    with explained("counting the rows of each person"):
        several = persons.counted(hashed).several
        if several and run_key is None:
            _refuse_drawn(spec, persons.drawn_among(hashed, latest))
    if several and spec.persons.repeated == "error":
        raise SpecError(
            f"original: {several:,} persons of the release have several rows, and it was made of a table with one for each; give that"
        )
    taken = persons.one_each(hashed, latest, increments.key_of_draws(own)) if several else hashed
    return tables.project(taken, list(rows.publish)), checks


def _of_entry(release: Release, hashed: DataFrame, ledger: Ledger, entry: Entry) -> tuple[DataFrame, tuple[Check, ...]]:
    """The rows of the persons who are entered for the release, and what the ledger's files say of them."""

    def of(entries: Sequence[Entry]) -> DataFrame:
        folders = [storage.spark_path(f"{ledger.path}/{one.folder}") for one in entries]
        return persons.read(release.spark, folders)

    theirs, others = of([entry]), [one for one in ledger.published if one.number != entry.number]
    with explained("looking persons up in the ledger"):
        entered = persons_judge.Entered(
            persons=tables.number(theirs),
            again=tables.number(persons.common(theirs, of(others))) if others else 0,
            absent=tables.number(persons.absent(theirs, hashed)),
            same_manifest=entry.manifest == sha256_of(storage.read_manifest(release.path)),
        )
    return persons.among(hashed, theirs), tuple(persons_judge.of_entry(release.manifest, entered))


def _refuse_drawn(spec: ReleaseSpec, drawn: int) -> None:
    """Raises SpecError where nothing says which of a person's rows was published."""
    if drawn and spec.persons.repeated != "error":
        alike = "" if spec.persons.order is None else f" that {spec.persons.order!r} does not tell apart"
        raise SpecError(
            f"original: of {drawn:,} persons the run drew one of several rows{alike}, by a key that it did not keep or that is not the "
            "spec's random.key, so nothing says which rows to compare; give a table that has one row for each person of the release"
        )


def _run_key(manifest: Manifest, spec: ReleaseSpec) -> bytes | None:
    """The key of the release's draws, where the spec keeps the one it was made with; else None."""
    if spec.random.key is None or not manifest.splits.key_tag:
        return None
    key = increments.run_key_of(spec, None if manifest.ledger is None else (manifest.ledger.id, manifest.ledger.number))
    return key if key_tag(key) == manifest.splits.key_tag else None


def _as_it_was_read(types: Mapping[str, str], manifest: Manifest) -> None:
    """Refuse an original that was read without the header, or has a column of another type than the release was made from: nothing would
    match, and the release would be accused."""
    how = "read it as the release's input was: with --spec CONF, whose input has its schema and options"
    if all(re.fullmatch(r"_c[0-9]+", name) for name in types):
        raise SpecError(f"original: its columns have no names; {how}")
    for name, kind in types_of_input(manifest).items():
        if (there := types.get(name, kind)) != kind:
            raise SpecError(
                f"original: column {name!r} is read as {there}, and the release was made from {kind}; {how}"
            )


def types_of_input(manifest: Manifest) -> dict[str, str]:
    """{column: its Spark type} of the input, of those columns that a release publishes, unchanged or in boxes."""
    unchanged = ("quasi_identifier", "sensitive", "other")
    published = {c.name: c.type for part in manifest.tables.values() for c in part.columns if c.role in unchanged}
    return published | {part.name: part.type for part in manifest.quasi_identifiers}
