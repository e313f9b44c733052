"""A bucketized release against the table it was made from: same records, same values, and no value in the wrong bucket.

Cost: one scan of the original and one of `qit` for the fingerprint, one grouping of the original by its published columns
(128-bit hashes travel, not the columns), and a join with `qit`. The driver gets m counts and one row of evidence.
"""

from __future__ import annotations

from collections.abc import Mapping

from anonlib.audit.bucketized_tables import fresh_salt
from anonlib.audit.verdict import Check
from anonlib.engine.checksum import pieces, row_hash, sum_columns
from anonlib.engine.relational import DataFrame, aggregate, one_row, rows, select
from anonlib.engine.statistics import value_text
from anonlib.release.bucketized import BUCKET_ID, COUNT, QIT, ST
from anonlib.release.manifest import Manifest
from anonlib.sql import quoted


def compare(tables: Mapping[str, DataFrame], manifest: Manifest, original: DataFrame) -> list[Check]:
    """The checks that need the original (the input after the missing-value policy)."""
    published = [c.name for c in manifest.tables[QIT].columns if c.name != BUCKET_ID]
    columns = _columns(original, tables[QIT], published, manifest.guarantee.sensitive)
    if not columns.passed:
        return [columns]
    return [
        columns,
        _same_records(tables[QIT], manifest, original, published),
        _same_distribution(manifest, original),
        _determined_values(tables, manifest, original, published),
    ]


def _columns(original: DataFrame, qit: DataFrame, published: list[str], sensitive: str) -> Check:
    have, types = dict(original.dtypes), dict(qit.dtypes)
    faults = [f"{n!r} is {types[n]}, was {have.get(n, 'absent')}" for n in published if have.get(n) != types[n]]
    if sensitive not in have:
        faults.append(f"the original has no column {sensitive!r}")
    return Check(
        name="original: columns",
        passed=not faults,
        asked="published columns as in the original, with their types",
        achieved="equal" if not faults else f"{len(faults)} differ",
        evidence=faults[0] if faults else None,
    )


def _same_records(qit: DataFrame, manifest: Manifest, original: DataFrame, published: list[str]) -> Check:
    """The published columns hold the same multiset of records, by a fingerprint under a fresh salt."""
    salt = fresh_salt()
    found = []
    for frame in (original, qit):
        hashed = select(frame, {"row": row_hash(frame, published, salt)})
        row = one_row(aggregate(hashed, [], {"n": "count(1)", **sum_columns("row", "f")}))
        found.append((int(row["n"]), pieces(row, "f")))
    (n_original, of_original), (n_qit, of_qit) = found
    same = of_original == of_qit
    return Check(
        name="original: records",
        passed=same and n_original == n_qit == manifest.rows.input - manifest.rows.dropped,
        asked=f"the {n_original:,} records of the original, each as often",
        achieved=f"{n_qit:,} records, {'the same' if same else 'not the same'}; the manifest counts {manifest.rows.input:,}"
        f" less {manifest.rows.dropped:,} dropped",
    )


def _same_distribution(manifest: Manifest, original: DataFrame) -> Check:
    """The manifest's count of each sensitive value is the original's."""
    values = manifest.guarantee.values
    grouped = aggregate(original, [manifest.guarantee.sensitive], {"n": "count(1)"})
    texts = select(grouped, {"value": _text(original, manifest), "n": "n"})
    limit = len(values) + 1
    found = {r["value"]: int(r["n"]) for r in rows(texts.limit(limit), limit)}
    faults = [
        f"{v.value!r}: stated {v.count:,}, was {found.get(v.value, 0):,}"
        for v in values
        if found.get(v.value) != v.count
    ]
    faults += [f"{v!r} is not in the manifest" for v in found.keys() - {v.value for v in values}]
    return Check(
        name="original: distribution of the sensitive column",
        passed=not faults,
        asked="each value as often as in the original",
        achieved=f"{len(faults):,} values differ",
        evidence=faults[0] if faults else None,
    )


def _text(frame: DataFrame, manifest: Manifest) -> str:
    """SQL: the sensitive value as the manifest writes it."""
    sensitive = manifest.guarantee.sensitive
    return value_text(sensitive, dict(frame.dtypes)[sensitive])


def _determined_values(
    tables: Mapping[str, DataFrame], manifest: Manifest, original: DataFrame, published: list[str]
) -> Check:
    """Records that agree on all published columns and all have value x need as many x in the st of their bucket.

    A necessary condition for the release to be a bucketization of the original (whether an assignment of the remaining,
    ambiguous records exists is a three-way transportation problem). It finds a value moved to another bucket whenever the
    record it belongs to is alone with its published columns, or alone with others of the same value.
    """
    salts = (fresh_salt(), fresh_salt())
    sensitive = _text(original, manifest)

    def keyed(frame: DataFrame, extra: dict[str, str]) -> DataFrame:
        return select(frame, {f"k{i}": row_hash(frame, published, salt) for i, salt in enumerate(salts)} | extra)

    classes = aggregate(
        keyed(original, {"value": sensitive}),
        ["k0", "k1"],
        {"value": "min(value)", "high": "max(value)", "known": "count(value)", "n": "count(1)"},
    )
    determined = classes.where("(known = n AND value = high) OR known = 0").select("k0", "k1", "value")
    needed = aggregate(
        keyed(tables[QIT], {BUCKET_ID: BUCKET_ID}).join(determined, ["k0", "k1"]),
        [BUCKET_ID, "value"],
        {"n": "count(1)"},
    )
    given = aggregate(
        select(tables[ST], {"b": BUCKET_ID, "v": sensitive, "c": quoted(COUNT)}),
        ["b", "v"],
        {"c": "sum(CAST(c AS DECIMAL(38, 0)))"},
    )
    both = needed.join(given, needed[BUCKET_ID].eqNullSafe(given["b"]) & needed["value"].eqNullSafe(given["v"]), "left")
    short = "n > coalesce(c, 0)"
    found = one_row(
        aggregate(
            both,
            [],
            {
                "records": "sum(n)",
                "short": f"count_if({short})",
                "worst": f"min(IF({short}, struct({BUCKET_ID}, value, n, coalesce(c, 0) AS c), NULL))",
            },
        )
    )
    worst = found["worst"]
    return Check(
        name="original: values in their buckets",
        passed=not found["short"],
        asked="each record whose value its published columns determine finds it in its bucket",
        achieved=f"{found['records'] or 0:,} such records, {found['short']:,} buckets and values that fall short",
        evidence=f"bucket {worst[BUCKET_ID]}: {worst['n']} records have {worst['value']!r}, st counts {worst['c']}"
        if worst
        else None,
    )
