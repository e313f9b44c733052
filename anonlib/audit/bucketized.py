"""The audit of a bucketized release: every promise of its manifest, recomputed from the published tables.

Cost: one scan of `qit` without a shuffle, two scans of `st` with a shuffle of one 64-bit entry per row, one row per
(sensitive value, count) on the driver. Searches for the worst bucket run only when a check fails.

What it rests on: equal fingerprints of bucket ids mean that `qit` and `st` agree on the size of every bucket but for a chance
of about 2^-64, since the salt is drawn at audit time; counts, thresholds and shares are compared exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from anonlib.audit import bucketized_evidence as evidence
from anonlib.audit import manifest as stated
from anonlib.audit.bucketized_original import compare
from anonlib.audit.bucketized_tables import Entry, QitFacts, StFacts, scan_qit, scan_st
from anonlib.audit.published import column_faults, contents, fresh_salt, no_row_numbers
from anonlib.audit.verdict import Check, Verdict
from anonlib.engine.relational import DataFrame
from anonlib.exact import text
from anonlib.release.bucketized import BUCKET_ID, COUNT, QIT, ST
from anonlib.release.manifest import Manifest
from anonlib.spec.release import Columns


def audit(
    tables: Mapping[str, DataFrame],
    manifest: Manifest,
    original: DataFrame | None = None,
    columns: Columns | None = None,
    *,
    staged: bool = False,
) -> Verdict:
    """Whether the release keeps what its manifest promises.

    tables   : the published tables, "qit" and "st"
    original : the input after the missing-value policy; with it, records and values are compared too
    columns  : the roles of the original's columns, as the spec gave them; checked against what was published
    staged   : the manifest is still to be completed: an empty checksum or an unset `achieved` is measured (see
               `Verdict.tables` and `Verdict.achieved`), not missed

    Never raises on a bad release: it returns a verdict that failed. Evidence names buckets and values of the release.
    """
    checks = [stated.rows_add_up(manifest), stated.values_add_up(manifest), _schema(tables, manifest, columns)]
    thresholds = stated.stated_thresholds(manifest.guarantee)
    checks.append(stated.thresholds_follow(manifest, thresholds))
    if not checks[2].passed or thresholds is None:
        return Verdict(tuple(checks))
    release = _Release(manifest, thresholds, stated.fake_values(manifest))
    salt = fresh_salt()
    st = scan_st(tables[ST], manifest.guarantee.sensitive, release.values, release.largest, release.fake_values, salt)
    qit = scan_qit(tables[QIT], salt)
    achieved = _shares(st.entries, release.fake_values)
    checks += [
        _threshold_check(tables[ST], release, achieved),
        _achieved_as_stated(manifest, achieved, staged),
        _one_row_each(tables[ST], release, st),
        _counts_valid(tables[ST], release, st),
        _overall_counts(release, st),
        _sizes(release, st),
        _same_buckets(tables, release, qit, st),
        _published_rows(release, qit, st),
        no_row_numbers(QIT, tables[QIT], qit.measured.rows, qit.ranges),
    ]
    measured = {QIT: qit.measured, ST: st.measured}
    checks += [contents(name, manifest.tables[name], found, staged) for name, found in measured.items()]
    if original is not None:
        checks += compare(tables, manifest, original)
    shares = {release.values[code]: text(entry[0]) for code, entry in achieved.items()}
    return Verdict(tuple(checks), shares, measured)


@dataclass(frozen=True)
class _Release:
    """What the manifest states, in the form the checks use."""

    manifest: Manifest
    thresholds: Sequence[Fraction]
    fake_values: int

    @property
    def values(self) -> list[str | None]:
        return [v.value for v in self.manifest.guarantee.values]

    @property
    def sensitive(self) -> str:
        return self.manifest.guarantee.sensitive

    @property
    def setting(self) -> dict[int, int]:
        """Bucket size in records -> number of buckets."""
        found: Counter[int] = Counter()
        for part in self.manifest.solver.setting:
            found[part.size] += part.number
        return dict(found)

    @property
    def largest(self) -> int:
        """The largest sum of counts a bucket may have."""
        return max(self.setting, default=0) + self.fake_values


def _schema(tables: Mapping[str, DataFrame], manifest: Manifest, columns: Columns | None) -> Check:
    """The tables have exactly the manifest's columns and types, and none that may not be published."""
    name, asked = "columns", "exactly the columns and types of the manifest, none of them an identifier"
    faults: list[str] = []
    sensitive = manifest.guarantee.sensitive
    if set(tables) != {QIT, ST} or set(manifest.tables) != {QIT, ST}:
        return Check(name, False, asked, f"tables {sorted(tables)}; the manifest lists {sorted(manifest.tables)}")
    for table in (QIT, ST):
        faults += column_faults(tables, manifest, table)
    layout = {BUCKET_ID: "bigint", sensitive: manifest.guarantee.sensitive_type, COUNT: "bigint"}
    if dict(tables[ST].dtypes) != layout:
        faults.append(f"st must have {', '.join(f'{n} {t}' for n, t in layout.items())}")
    in_qit = dict(tables[QIT].dtypes)
    if in_qit.get(BUCKET_ID) != "bigint":
        faults.append(f"qit must have {BUCKET_ID} bigint")
    if sensitive.lower() in {n.lower() for n in in_qit}:
        faults.append(f"the sensitive column {sensitive!r} stands in qit beside the quasi-identifiers")
    if columns is not None:
        allowed = {n.lower() for n in (*columns.quasi_identifier_names, *columns.other, BUCKET_ID)}
        faults += [
            f"{n!r} in qit is no quasi-identifier and not named under other" for n in in_qit if n.lower() not in allowed
        ]
        faults += [f"qit lacks the column {n!r}" for n in sorted(allowed - {n.lower() for n in in_qit})]
    return Check(name, not faults, asked, "as stated" if not faults else faults[0], "; ".join(faults[1:4]) or None)


Shares = dict[int, tuple[Fraction, Entry]]


def _shares(entries: Sequence[Entry], fake_values: int) -> Shares:
    """Value number -> its largest share of the records of any bucket, exactly, with the entry that has it.

    With fake values the share is taken of the |g| records alone: the promise holds even if all fakes were known.
    """
    found: Shares = {}
    for entry in entries:
        records = entry.smallest - fake_values
        share = Fraction(entry.count, records) if records > 0 else Fraction(entry.count + 1)
        if entry.code not in found or share > found[entry.code][0]:
            found[entry.code] = (share, entry)
    return found


def _threshold_check(st: DataFrame, release: _Release, achieved: Shares) -> Check:
    """count(g, x_i) / |g| <= f'_i in every bucket, for every value."""
    broken = {code: share for code, (share, _) in achieved.items() if share > release.thresholds[code]}
    closest = max(achieved, key=lambda code: achieved[code][0] / release.thresholds[code], default=None)
    if closest is None:
        return Check("F'-privacy", False, "every value within its threshold in every bucket", "no known value in st")
    share, entry = achieved[closest]
    words = (
        f"{release.values[closest]!r} has {text(share)} in some bucket, threshold {text(release.thresholds[closest])}"
    )
    return Check(
        name="F'-privacy",
        passed=not broken,
        asked="every value within its threshold in every bucket",
        achieved=f"closest: {words}" if not broken else f"{len(broken):,} values above theirs; worst: {words}",
        evidence=evidence.bucket_of(st, release.sensitive, release.values[closest], entry) if broken else None,
    )


def _achieved_as_stated(manifest: Manifest, achieved: Shares, staged: bool) -> Check:
    """The achieved shares that the manifest prints are those of the tables."""
    faults = []
    for code, part in enumerate(manifest.guarantee.values):
        found = text(achieved[code][0]) if code in achieved else "none"
        if part.achieved != found and not (staged and part.achieved is None):
            faults.append(f"{part.value!r}: stated {part.achieved}, found {found}")
    asked = "the largest share of each value as the manifest states it"
    return Check("achieved shares", not faults, asked, f"{len(faults):,} differ", faults[0] if faults else None)


def _one_row_each(st: DataFrame, release: _Release, facts: StFacts) -> Check:
    """A value has one row in a bucket: split in two rows it could exceed its threshold unseen."""
    return Check(
        name="one row per bucket and value",
        passed=facts.doubled == 0,
        asked="no value twice in a bucket of st",
        achieved=f"{facts.doubled:,} buckets with a value in more than one row",
        evidence=evidence.value_in_two_rows(st, release.sensitive) if facts.doubled else None,
    )


def _counts_valid(st: DataFrame, release: _Release, facts: StFacts) -> Check:
    """Counts are whole numbers from 1 to the largest bucket, of listed values, in buckets that have an id."""
    below = sum(e.rows for e in facts.entries if e.count < 1)
    above = sum(e.rows for e in facts.entries if e.count > facts.largest)
    fakes_wrong = release.fake_values and any(e.count != 1 for e in facts.entries)
    fine = not (below or above or facts.unknown or facts.null_buckets or fakes_wrong)
    bad = below or above or facts.unknown or facts.null_buckets
    return Check(
        name="rows of st",
        passed=fine,
        asked="listed values, a bucket id, counts of 1" + ("" if release.fake_values else f" to {facts.largest:,}"),
        achieved=f"{facts.unknown:,} rows of unknown values, {below:,} counts below 1, {above:,} too large, "
        f"{facts.null_buckets} null bucket id" + (", counts above 1 beside fake values" if fakes_wrong else ""),
        evidence=evidence.bad_row(st, release.sensitive, release.values, facts.largest) if bad else None,
    )


def _overall_counts(release: _Release, facts: StFacts) -> Check:
    """Over all buckets each value is counted as often as the manifest says (at least so often with fake values)."""
    found: Counter[int] = Counter()
    for entry in facts.entries:
        found[entry.code] += entry.count * entry.rows
    parts = release.manifest.guarantee.values
    added = sum(found.values()) - sum(v.count for v in parts)
    fakes = release.fake_values * sum(facts.sizes.values())
    short = [i for i, v in enumerate(parts) if found[i] < v.count]
    over = [] if release.fake_values else [i for i, v in enumerate(parts) if found[i] > v.count]
    wrong = short or over
    stated_fakes = release.manifest.rows.fake
    return Check(
        name="overall counts of sensitive values",
        passed=not wrong and added == fakes == stated_fakes,
        asked=f"the manifest's counts, and {stated_fakes:,} fake values beside them",
        achieved=f"{len(short) + len(over):,} values differ, {added:,} beyond the counts, {fakes:,} fake by the buckets",
        evidence=f"{parts[wrong[0]].value!r}: stated {parts[wrong[0]].count:,}, st has {found[wrong[0]]:,}"
        if wrong
        else None,
    )


def _sizes(release: _Release, facts: StFacts) -> Check:
    """As many buckets of each size as the manifest states, none above the largest size asked for; loss and MSBS follow."""
    found = {size - release.fake_values: number for size, number in facts.sizes.items()}
    wanted = release.setting
    loss = sum(number * (size - 1) ** 2 for size, number in found.items())
    msbs = loss / max(1, sum(size * number for size, number in found.items()) - 1)
    faults = [
        f"size {size}: stated {wanted.get(size, 0):,}, found {found.get(size, 0):,}"
        for size in sorted(wanted.keys() | found.keys())
        if wanted.get(size, 0) != found.get(size, 0)
    ]
    if loss != release.manifest.solver.loss:
        faults.append(f"loss: stated {release.manifest.solver.loss:,}, found {loss:,}")
    utility = release.manifest.utility.get("msbs", msbs)
    if abs(utility - msbs) > 1e-9 * max(1.0, msbs):
        faults.append(f"MSBS: stated {utility}, found {msbs}")
    limit = release.manifest.method.parameters.get("max_bucket_size")
    if limit is not None and max(found, default=0) > int(limit):
        faults.append(f"size {max(found):,} is above max_bucket_size {int(limit):,}")
    return Check(
        name="bucket sizes",
        passed=not faults,
        asked=", ".join(f"{number:,} x {size}" for size, number in sorted(wanted.items())),
        achieved=f"{sum(found.values()):,} buckets, loss {loss:,}",
        evidence="; ".join(faults[:3]) or None,
    )


def _same_buckets(tables: Mapping[str, DataFrame], release: _Release, qit: QitFacts, st: StFacts) -> Check:
    """qit has as many rows in each bucket as st has records."""
    same = qit.fingerprint == st.fingerprint and not qit.null_buckets
    return Check(
        name="buckets of qit and st",
        passed=same,
        asked="each bucket of qit as large as its counts in st" + (" less the fakes" if release.fake_values else ""),
        achieved="equal" if same else f"different; {qit.null_buckets:,} rows of qit without a bucket",
        evidence=None if same else evidence.bucket_that_differs(tables[QIT], tables[ST], release.fake_values),
    )


def _published_rows(release: _Release, qit: QitFacts, st: StFacts) -> Check:
    """qit has one row per published record; so has st by its sizes."""
    records = sum((size - release.fake_values) * number for size, number in st.sizes.items())
    published = release.manifest.rows.published
    return Check(
        name="published rows",
        passed=qit.measured.rows == published == records,
        asked=f"{published:,}",
        achieved=f"{qit.measured.rows:,} in qit, {records:,} in the buckets of st",
    )
