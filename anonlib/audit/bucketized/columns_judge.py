"""Whether a bucketized release of two sensitive columns keeps what it promises of the values of each. Pure: facts to checks.

What a column's values are and how often they occur is taken from the combinations that the manifest lists, which are counted in `st`;
what a bucket holds of a value is counted in the bucket. No composition, flow or kind of bucket is taken up here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from anonlib.audit import arithmetic, promised
from anonlib.audit import manifest as stated
from anonlib.audit.achieved import Bound
from anonlib.audit.bucketized.facts import Entry
from anonlib.audit.verdict import Check
from anonlib.errors import AnonlibError
from anonlib.exact import text
from anonlib.release.bucketized import type_of_combination
from anonlib.release.manifest import GuaranteePart, Manifest

COLUMNS = 2
"""Sensitive columns that are bounded together."""
VALUES = "values of each sensitive column"
PRIVACY = "F'-privacy of each sensitive column"
ACHIEVED = "achieved shares of each sensitive column"


def name_faults(part: GuaranteePart) -> list[str]:
    """What is wrong with the name and type of the combinations that the manifest states; nothing of one column."""
    if not part.also:
        return []
    kinds = {each.sensitive: each.sensitive_type for each in part.also}
    faults = []
    if len(kinds) != COLUMNS or len(part.also) != COLUMNS:
        faults.append(f"{len(part.also)} sensitive columns are promised something; {COLUMNS} may be")
    if part.sensitive.rstrip("_") != " and ".join(kinds).rstrip("_") or part.sensitive in kinds:
        faults.append(f"{part.sensitive!r} is no name of {' and '.join(kinds)} together")
    if part.sensitive_type != type_of_combination(kinds):
        faults.append(f"a combination of {' and '.join(kinds)} is said to be of type {part.sensitive_type}")
    return faults


def of_manifest(manifest: Manifest) -> list[Check]:
    """The manifest's values of each column are those of its combinations, with the thresholds that follow; and what is said of them.

    None of one sensitive column.
    """
    part = manifest.guarantee
    if not part.also:
        return []
    told = f"{' and '.join(f'{len(each.values):,} of {each.sensitive}' for each in part.also)}"
    checks = [
        Check.unless(_faults(manifest), VALUES, "those of the combinations, with the thresholds that follow", told)
    ]
    for each in part.also:
        name = f"{promised.NAME} for {each.sensitive}"
        checks.append(promised.as_promised(each, lambda each=each: _words(manifest, each), name))  # type: ignore[misc]
    return checks


def words_of_both(manifest: Manifest) -> str:
    """What the manifest has to say of both columns. Raises where its parameters state no requirement."""
    return promised.of_two_columns(
        [(part, stated.thresholds_of_column(manifest, part)) for part in manifest.guarantee.also]
    )


def _words(manifest: Manifest, part: GuaranteePart) -> str:
    return promised.bucketized(part, stated.thresholds_of_column(manifest, part), 0)


def _faults(manifest: Manifest) -> list[str]:
    part = manifest.guarantee
    faults = name_faults(part)
    for key in ("fake_values", "mix_companions", "avoid_negative_associations"):
        if manifest.method.parameters.get(key):
            faults.append(f"{key} beside two sensitive columns")
    if part.nodes or part.hierarchy or manifest.ledger is not None:
        faults.append("nodes of a hierarchy, or a ledger, beside two sensitive columns")
    try:
        apart = [promised.taken_apart(v.value, len(part.also)) for v in part.values]
    except ValueError as problem:
        return [*faults, str(problem)]
    for k, each in enumerate(part.also):
        counted: Counter[str | None] = Counter()
        for values, v in zip(apart, part.values, strict=True):
            counted[values[k]] += v.count
        faults += _faults_of_column(manifest, each, counted)
    return faults


def _faults_of_column(manifest: Manifest, part: GuaranteePart, counted: Counter[str | None]) -> list[str]:
    faults = []
    listed = {v.value: v.count for v in part.values}
    if len(listed) < len(part.values) or listed != dict(counted):
        faults.append(f"{part.sensitive}: the values listed are not those of the combinations, each as often")
    if (
        part.model != manifest.guarantee.model
        or part.nodes
        or part.hierarchy
        or part.also
        or part.asked
        or part.achieved
    ):
        faults.append(f"{part.sensitive}: something else is promised than of both columns together")
    bounds = stated.stated_thresholds(part)
    if bounds is None:
        return [*faults, f"{part.sensitive}: a threshold is no share above 0 and at most 1"]
    try:
        expected = stated.thresholds_of_column(manifest, part)
    except (AnonlibError, ValueError, TypeError, AttributeError, ArithmeticError) as problem:
        return [*faults, f"{part.sensitive}: no thresholds can be recomputed: {problem}"]
    n = sum(v.count for v in part.values)
    for v, bound, wanted in zip(part.values, bounds, expected, strict=True):
        if bound != wanted:
            faults.append(
                f"{part.sensitive} {v.value!r}: stated threshold {text(bound)}, the parameters give {text(wanted)}"
            )
        elif not arithmetic.can_be_kept(v.count, n, bound):
            faults.append(
                f"{part.sensitive} {v.value!r}: no release can keep {text(bound)} of {v.count:,} in {n:,} records"
            )
    return faults


Shares = list[dict[int, Fraction]]
"""Of each column: number of a value -> its largest share of any bucket, exactly."""


def shares(entries: Sequence[Sequence[Entry]]) -> Shares:
    """The largest shares, from what was counted."""
    largest: Shares = []
    for of_column in entries:
        largest.append({})
        for e in of_column:
            share = Fraction(e.count, e.smallest) if e.smallest > 0 else Fraction(e.count + 1)
            largest[-1][e.code] = max(share, largest[-1].get(e.code, Fraction(0)))
    return largest


def bounds(part: GuaranteePart, largest: Shares) -> list[Bound]:
    """The largest share of each value of each column against its threshold; one that no bucket was seen to hold is above it."""
    asked = []
    for each, of_column in zip(part.also, largest, strict=False):
        thresholds = stated.stated_thresholds(each) or [Fraction(0)] * len(each.values)
        asked += [
            Bound(f"the share of {each.sensitive} {v.value!r}", of_column.get(i, Fraction(2)), thresholds[i])
            for i, v in enumerate(each.values)
        ]
    return asked


def of_tables(part: GuaranteePart, largest: Shares, staged: bool) -> list[Check]:
    """No value of either column above its threshold in any bucket, and the shares are what the manifest says."""
    if not part.also:
        return []
    asked = bounds(part, largest)
    broken = [str(bound) for bound in asked if not bound.kept]
    if len(largest) != len(part.also):
        broken.append("the values of a column were not counted")
    closest = max(asked, key=lambda b: b.achieved / b.asked if b.asked else Fraction(10**9), default=None)
    kept = Check.unless(
        broken, PRIVACY, "every value of each within its threshold in every bucket", f"closest: {closest}"
    )
    faults = []
    for each, of_column in zip(part.also, largest, strict=False):
        for i, v in enumerate(each.values):
            share = text(of_column[i]) if i in of_column else "none"
            if v.achieved != share and not (staged and v.achieved is None):
                faults.append(f"{each.sensitive} {v.value!r}: stated {v.achieved}, found {share}")
    wanted = "the largest share of each value of each column as the manifest states it"
    return [kept, Check.unless(faults, ACHIEVED, wanted, f"{len(faults):,} differ")]


def found(part: GuaranteePart, largest: Shares) -> dict[str, tuple[dict[str | None, str], dict[str, str]]]:
    """The same for a manifest that is still to be completed: column -> ({value: share}, no numbers)."""
    return {
        each.sensitive: (
            {each.values[i].value: text(share) for i, share in of_column.items() if i < len(each.values)},
            {},
        )
        for each, of_column in zip(part.also, largest, strict=False)
    }
