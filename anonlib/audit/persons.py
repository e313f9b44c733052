"""Whether a manifest's persons add up: one row for each, every other row accounted for. Pure: no table tells whose a row is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from anonlib.audit.verdict import Check
from anonlib.release.manifest import Manifest


@dataclass(frozen=True)
class Entered:
    """What a ledger's files say of a release. persons : how many are entered; again : how many of them stand in another release's entry;
    absent : how many have no row in the original; same_manifest : the entry has this manifest's digest"""

    persons: int
    again: int
    absent: int
    same_manifest: bool


def of_entry(manifest: Manifest, entered: Entered) -> list[Check]:
    """The checks of a release against its entry in the ledger and the original."""
    assert manifest.ledger is not None
    told = manifest.ledger.persons
    return [
        Check(
            "ledger: entered as published",
            entered.same_manifest and entered.persons == told,
            f"the manifest that was entered, with {told:,} persons",
            f"{'the same' if entered.same_manifest else 'another'}, with {entered.persons:,} persons",
        ),
        Check(
            "ledger: nobody twice", not entered.again, "persons of no other release", f"{entered.again:,} in another"
        ),
        Check(
            "ledger: persons of the original",
            not entered.absent,
            "a row of the original for each person entered",
            f"none for {entered.absent:,} of {entered.persons:,}",
        ),
    ]


def judge(manifest: Manifest) -> list[Check]:
    """The checks of the manifest's persons; none where it names none."""
    part = manifest.persons
    if part is None:
        told = "person" in manifest.missing or manifest.ledger is not None
        return (
            [Check("one record a person", False, "persons, where a policy or a ledger is told", "none")] if told else []
        )
    rows = part.nameless + part.persons + part.left_out
    one_each = part.persons - part.known
    faults = [] if rows == part.rows else [f"nameless + persons + left out make {rows:,}"]
    if one_each != manifest.rows.input:
        faults.append(f"{manifest.rows.input:,} rows were published from, of {one_each:,} new persons")
    if min(part.nameless, part.persons, part.left_out, part.known) < 0:
        faults.append("a count is below 0")
    if part.left_out and part.repeated == "error":
        faults.append(f"{part.left_out:,} rows were left out where several of a person are refused")
    if part.nameless and manifest.missing.get("person") != "drop":
        faults.append(f"{part.nameless:,} rows without a person were dropped where they are refused")
    faults += _of_ledger(manifest, part.known)
    return [
        Check.unless(
            faults,
            "one record a person",
            f"{part.rows:,} rows = nameless + persons + left out, and a row for each person who is not known",
            f"{part.nameless:,} + {part.persons:,} + {part.left_out:,}, {part.known:,} known, and {manifest.rows.input:,} rows",
        )
    ]


def _of_ledger(manifest: Manifest, known: int) -> list[str]:
    ledger = manifest.ledger
    if ledger is None:
        return [f"{known:,} persons were left out as known, and no ledger knows them"] if known else []
    faults = []
    if not re.fullmatch(r"[0-9a-f]{32}", ledger.id) or ledger.number < 1:
        faults.append("the ledger's id or the release's number is none")
    entered = manifest.rows.input - manifest.rows.dropped
    if ledger.persons != entered:
        faults.append(f"{ledger.persons:,} persons were entered in the ledger, and {entered:,} took part")
    if ledger.number == 1 and known:
        faults.append(f"{known:,} persons were known to a ledger before its first release")
    asked = manifest.method.parameters.get("privacy")
    if (ledger.before or ledger.records_before) and not (isinstance(asked, dict) and asked.get("shares") == "ledger"):
        faults.append("earlier records are counted, and no threshold follows from them")
    return faults
