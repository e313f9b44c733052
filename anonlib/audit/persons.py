"""Whether a manifest's persons add up: one row for each, every other row accounted for. Pure: no table tells whose a row is."""

from __future__ import annotations

from anonlib.audit.verdict import Check
from anonlib.release.manifest import Manifest


def judge(manifest: Manifest) -> list[Check]:
    """The checks of the manifest's persons; none where it names none."""
    part = manifest.persons
    if part is None:
        return [_no_policy(manifest)] if "person" in manifest.missing else []
    rows = part.nameless + part.persons + part.left_out
    one_each = part.persons
    faults = [] if rows == part.rows else [f"nameless + persons + left out make {rows:,}"]
    if one_each != manifest.rows.input:
        faults.append(f"{manifest.rows.input:,} rows were published from, of {one_each:,} persons")
    if min(part.nameless, part.persons, part.left_out) < 0:
        faults.append("a count is below 0")
    if part.left_out and part.repeated == "error":
        faults.append(f"{part.left_out:,} rows were left out where several of a person are refused")
    if part.nameless and manifest.missing.get("person") != "drop":
        faults.append(f"{part.nameless:,} rows without a person were dropped where they are refused")
    return [
        Check.unless(
            faults,
            "one record a person",
            f"{part.rows:,} rows = nameless + persons + left out, and a row for each person",
            f"{part.nameless:,} + {part.persons:,} + {part.left_out:,}, and {manifest.rows.input:,} rows",
        )
    ]


def _no_policy(manifest: Manifest) -> Check:
    return Check("one record a person", False, "persons where there is a policy on them", "a policy, and no persons")
