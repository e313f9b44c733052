"""Whether a bucketized release keeps its promise, from what its tables hold and what its manifest says. Pure: facts to verdict.

What it rests on: equal fingerprints of bucket ids mean that `qit` and `st` agree on the size of every bucket but for a chance
of about 2^-64, since the salt is drawn at audit time; counts, thresholds and shares are compared exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from anonlib.audit import arithmetic, promised
from anonlib.audit import manifest as stated
from anonlib.audit import nodes as hierarchy_nodes
from anonlib.audit.achieved import Bound, within_asked
from anonlib.audit.bucketized import columns_judge, nodes_judge
from anonlib.audit.bucketized.facts import BucketizedFacts, Entry, QitFacts, StFacts
from anonlib.audit.fields import nothing_else
from anonlib.audit.form import Described, column_faults, columns_check, contents, no_row_numbers
from anonlib.audit.verdict import Check, Verdict
from anonlib.exact import text
from anonlib.release.bucketized import QIT, ST, sensitive_columns
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import BUCKET_ID, COUNT
from anonlib.spec.release import Columns


def judge(facts: BucketizedFacts, manifest: Manifest, columns: Columns | None = None, staged: bool = False) -> Verdict:
    """The verdict on all that the published tables and the manifest show. Never raises.

    Without scans (`facts.qit` is None) the verdict is on the manifest and the columns alone: it tells whether a scan makes sense.
    """
    thresholds = stated.stated_thresholds(manifest.guarantee)
    checks = [
        stated.rows_add_up(manifest),
        stated.values_add_up(manifest),
        _schema(facts.columns, manifest, columns),
        stated.thresholds_follow(manifest, thresholds),
        stated.can_be_kept(manifest, thresholds),
        nothing_else(manifest),
        *hierarchy_nodes.of_manifest(manifest, columns),
        *columns_judge.of_manifest(manifest),
    ]
    qit, st = facts.qit, facts.st
    if not stated.fakes_by_frequency(manifest):
        checks.append(promised.as_promised(manifest.guarantee, lambda: _words(manifest)))
    if not checks[2].passed or thresholds is None or qit is None or st is None:
        return Verdict(tuple(checks))
    if any(entry.code >= len(thresholds) for entry in st.entries):
        unlisted = Check("rows of st", False, "listed values alone", "st has values that the manifest does not list")
        return Verdict((*checks, unlisted))
    release = Stated(manifest, thresholds, stated.fake_values(manifest))
    if stated.fakes_by_frequency(manifest):  # the words tell what the tables hold
        checks.append(promised.as_promised(manifest.guarantee, lambda: _words(manifest, _counts_in_st(st))))
        checks.append(_fakes_even(release, st))
    achieved = shares_of(st.entries, release.fake_values)
    of_columns = columns_judge.shares(facts.columns_of_two)
    checks += [
        _threshold_check(release, achieved),
        within_asked(
            [Bound(f"the share of {release.values[i]!r}", s, thresholds[i]) for i, (s, _) in achieved.items()]
            + nodes_judge.bounds(manifest.guarantee, nodes_judge.shares(facts.nodes))
            + columns_judge.bounds(manifest.guarantee, of_columns)
        ),
        *nodes_judge.of_tables(manifest.guarantee, facts.nodes, staged),
        *columns_judge.of_tables(manifest.guarantee, of_columns, staged),
        _achieved_as_stated(manifest, achieved, staged),
        _one_row_each(st),
        _counts_valid(release, st),
        _overall_counts(release, st),
        _sizes(release, st),
        _same_buckets(release, qit, st),
        _published_rows(release, qit, st),
        no_row_numbers(QIT, facts.numbering, qit.measured.rows, qit.ranges),
    ]
    measured = {QIT: qit.measured, ST: st.measured}
    checks += [contents(name, manifest.tables[name], of_table, staged) for name, of_table in measured.items()]
    shares = {release.values[code]: text(share) for code, (share, _) in achieved.items()}
    found = {k: (text(share), telling) for k, (share, telling) in nodes_judge.shares(facts.nodes).items()}
    also = columns_judge.found(manifest.guarantee, of_columns)
    return Verdict(tuple(checks), shares, measured, nodes=found, also=also)


def _words(manifest: Manifest, listed: Counter[int] | None = None) -> str:
    if manifest.guarantee.also:
        return columns_judge.words_of_both(manifest)
    thresholds, fakes = stated.thresholds_of(manifest), stated.fake_values(manifest)
    nodes = hierarchy_nodes.promised(manifest.guarantee)
    return promised.bucketized(manifest.guarantee, thresholds, fakes, listed, nodes)


def _counts_in_st(facts: StFacts) -> Counter[int]:
    """{number of a value: its counts in `st`, added up}."""
    counted: Counter[int] = Counter()
    for entry in facts.entries:
        counted[entry.code] += entry.count * entry.rows
    return counted


@dataclass(frozen=True)
class Stated:
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
        numbers: Counter[int] = Counter()
        for part in self.manifest.solver.setting:
            numbers[part.size] += part.number
        return dict(numbers)

    @property
    def largest(self) -> int:
        """The largest sum of counts a bucket may have."""
        return max(self.setting, default=0) + self.fake_values


def _schema(tables: Described, manifest: Manifest, columns: Columns | None) -> Check:
    """The tables have exactly the manifest's columns and types, and none that may not be published."""
    asked = "exactly the columns and types of the manifest, none of them an identifier"
    sensitive = sensitive_columns(manifest)
    if set(tables) != {QIT, ST} or set(manifest.tables) != {QIT, ST}:
        return Check("columns", False, asked, f"tables {sorted(tables)}; the manifest lists {sorted(manifest.tables)}")
    faults = [fault for table in (QIT, ST) for fault in column_faults(tables, manifest, table)]
    faults += columns_judge.name_faults(manifest.guarantee)
    of_values = {p.sensitive: p.sensitive_type for p in manifest.guarantee.also or [manifest.guarantee]}
    layout = {BUCKET_ID: "bigint", **of_values, COUNT: "bigint"}
    if dict(tables[ST]) != layout or len(layout) != len(of_values) + 2:
        faults.append(f"st must have {', '.join(f'{n} {t}' for n, t in layout.items())}")
    in_qit = dict(tables[QIT])
    if in_qit.get(BUCKET_ID) != "bigint":
        faults.append(f"qit must have {BUCKET_ID} bigint")
    faults += [
        f"the sensitive column {name!r} stands in qit beside the quasi-identifiers"
        for name in sensitive
        if name.lower() in {n.lower() for n in in_qit}
    ]
    if columns is not None:
        asked_of = [name.lower() for name in columns.sensitive_names]
        if len(sensitive) + len(asked_of) > 2 and sorted(name.lower() for name in sensitive) != sorted(asked_of):
            faults.append(
                f"the sensitive columns are {', '.join(asked_of)}, and something is promised of {', '.join(sensitive)}"
            )
        allowed = {n.lower() for n in (*columns.quasi_identifier_names, *columns.other, BUCKET_ID)}
        faults += [
            f"{n!r} in qit is no quasi-identifier and not named under other" for n in in_qit if n.lower() not in allowed
        ]
        faults += [f"qit lacks the column {n!r}" for n in sorted(allowed - {n.lower() for n in in_qit})]
    return columns_check(asked, faults)


Shares = dict[int, tuple[Fraction, Entry]]


def shares_of(entries: Sequence[Entry], fake_values: int) -> Shares:
    """Value number -> its largest share of the records of any bucket, exactly, with the entry that has it.

    With fake values the share is taken of the |g| records alone: the promise holds even if all fakes were known.
    """
    largest: Shares = {}
    for entry in entries:
        records = entry.smallest - fake_values
        share = Fraction(entry.count, records) if records > 0 else Fraction(entry.count + 1)
        if entry.code not in largest or share > largest[entry.code][0]:
            largest[entry.code] = (share, entry)
    return largest


def closest_to_threshold(release: Stated, achieved: Shares) -> int | None:
    """The value whose largest share comes closest to its threshold, or exceeds it most."""
    return max(achieved, key=lambda code: achieved[code][0] / release.thresholds[code], default=None)


def _threshold_check(release: Stated, achieved: Shares) -> Check:
    """count(g, x_i) / |g| <= f'_i in every bucket, for every value."""
    broken = {code: share for code, (share, _) in achieved.items() if share > release.thresholds[code]}
    closest = closest_to_threshold(release, achieved)
    if closest is None:
        return Check("F'-privacy", False, "every value within its threshold in every bucket", "no known value in st")
    share, _ = achieved[closest]
    words = (
        f"{release.values[closest]!r} has {text(share)} in some bucket, threshold {text(release.thresholds[closest])}"
    )
    return Check(
        name="F'-privacy",
        passed=not broken,
        asked="every value within its threshold in every bucket",
        achieved=f"closest: {words}" if not broken else f"{len(broken):,} values above theirs; worst: {words}",
    )


def _achieved_as_stated(manifest: Manifest, achieved: Shares, staged: bool) -> Check:
    """The achieved shares that the manifest prints are those of the tables."""
    faults = []
    for code, part in enumerate(manifest.guarantee.values):
        share = text(achieved[code][0]) if code in achieved else "none"
        if part.achieved != share and not (staged and part.achieved is None):
            faults.append(f"{part.value!r}: stated {part.achieved}, found {share}")
    asked = "the largest share of each value as the manifest states it"
    return Check("achieved shares", not faults, asked, f"{len(faults):,} differ", faults[0] if faults else None)


def _one_row_each(facts: StFacts) -> Check:
    """A value has one row in a bucket: split in two rows it could exceed its threshold unseen."""
    return Check(
        name="one row per bucket and value",
        passed=facts.doubled == 0,
        asked="no value twice in a bucket of st",
        achieved=f"{facts.doubled:,} buckets with a value in more than one row",
    )


def _counts_valid(release: Stated, facts: StFacts) -> Check:
    """Counts are whole numbers from 1 to the largest bucket, of listed values, in buckets that have an id."""
    below = sum(e.rows for e in facts.entries if e.count < 1)
    above = sum(e.rows for e in facts.entries if e.count > facts.largest)
    fakes_wrong = release.fake_values and any(e.count != 1 for e in facts.entries)
    fine = not (below or above or facts.unknown or facts.null_buckets or fakes_wrong)
    return Check(
        name="rows of st",
        passed=fine,
        asked="listed values, a bucket id, counts of 1" + ("" if release.fake_values else f" to {facts.largest:,}"),
        achieved=f"{facts.unknown:,} rows of unknown values, {below:,} counts below 1, {above:,} too large, "
        f"{facts.null_buckets} null bucket id" + (", counts above 1 beside fake values" if fakes_wrong else ""),
    )


def _overall_counts(release: Stated, facts: StFacts) -> Check:
    """Over all buckets each value is counted as often as the manifest says (at least so often with fake values)."""
    counted = _counts_in_st(facts)
    parts = release.manifest.guarantee.values
    added = sum(counted.values()) - sum(v.count for v in parts)
    fakes = release.fake_values * sum(facts.sizes.values())
    short = [i for i, v in enumerate(parts) if counted[i] < v.count]
    over = [] if release.fake_values else [i for i, v in enumerate(parts) if counted[i] > v.count]
    wrong = short or over
    stated_fakes = release.manifest.rows.fake
    return Check(
        name="overall counts of sensitive values",
        passed=not wrong and added == fakes == stated_fakes,
        asked=f"the manifest's counts, and {stated_fakes:,} fake values beside them",
        achieved=f"{len(short) + len(over):,} values differ, {added:,} beyond the counts, {fakes:,} fake by the buckets",
        evidence=f"{parts[wrong[0]].value!r}: stated {parts[wrong[0]].count:,}, st has {counted[wrong[0]]:,}"
        if wrong
        else None,
    )


def _fakes_even(release: Stated, facts: StFacts) -> Check:
    """Each value is a fake as often as it is common: no other numbers of fakes would tell less of the likeliest value."""
    counted, buckets = _counts_in_st(facts), sum(facts.sizes.values())
    values = [(v.count, counted[i]) for i, v in enumerate(release.manifest.guarantee.values)]
    possible = all(0 < records <= listings <= buckets for records, listings in values)
    even = possible and not arithmetic.could_be_fake_more_evenly(values, buckets)
    shares = sorted(Fraction(records, listings) for records, listings in values) if possible else []
    return Check(
        name="fake values by frequency",
        passed=even,
        asked="each value a fake as often as it is common, as far as whole numbers and buckets allow",
        achieved=f"of the buckets that list a value {float(shares[0]):.4%} to {float(shares[-1]):.4%} hold it"
        if shares
        else "impossible",
    )


def _sizes(release: Stated, facts: StFacts) -> Check:
    """As many buckets of each size as the manifest states, none above the largest size asked for; loss and MSBS follow."""
    numbers = {size - release.fake_values: number for size, number in facts.sizes.items()}
    wanted = release.setting
    loss, msbs = arithmetic.bucket_loss(numbers), arithmetic.mean_squared_bucket_size(numbers)
    faults = [
        f"size {size}: stated {wanted.get(size, 0):,}, found {numbers.get(size, 0):,}"
        for size in sorted(wanted.keys() | numbers.keys())
        if wanted.get(size, 0) != numbers.get(size, 0)
    ]
    if loss != release.manifest.solver.loss:
        faults.append(f"loss: stated {release.manifest.solver.loss}, found {loss}")
    utility = release.manifest.utility.get("msbs", msbs)
    if abs(utility - msbs) > 1e-9 * max(1.0, msbs):
        faults.append(f"MSBS: stated {utility}, found {msbs}")
    limit = release.manifest.method.parameters.get("max_bucket_size")
    if limit is not None and not isinstance(limit, int):
        faults.append(f"max_bucket_size: {limit!r} is no number of records")
    elif limit is not None and max(numbers, default=0) > limit:
        faults.append(f"size {max(numbers):,} is above max_bucket_size {limit:,}")
    return Check(
        name="bucket sizes",
        passed=not faults,
        asked=", ".join(f"{number:,} x {size}" for size, number in sorted(wanted.items())),
        achieved=f"{sum(numbers.values()):,} buckets, loss {loss:,}",
        evidence="; ".join(faults[:3]) or None,
    )


def _same_buckets(release: Stated, qit: QitFacts, st: StFacts) -> Check:
    """qit has as many rows in each bucket as st has records."""
    same = qit.fingerprint == st.fingerprint and not qit.null_buckets
    return Check(
        name="buckets of qit and st",
        passed=same,
        asked="each bucket of qit as large as its counts in st" + (" less the fakes" if release.fake_values else ""),
        achieved="equal" if same else f"different; {qit.null_buckets:,} rows of qit without a bucket",
    )


def _published_rows(release: Stated, qit: QitFacts, st: StFacts) -> Check:
    """qit has one row per published record; so has st by its sizes."""
    records = sum((size - release.fake_values) * number for size, number in st.sizes.items())
    published = release.manifest.rows.published
    return Check(
        name="published rows",
        passed=qit.measured.rows == published == records,
        asked=f"{published:,}",
        achieved=f"{qit.measured.rows:,} in qit, {records:,} in the buckets of st",
    )
