"""A bucketized release against the table it was made from: same records, same values, and no value in the wrong bucket.

Cost: one scan of the original and one of `qit` for the fingerprint, one grouping of the original by its published columns
(128-bit hashes travel, not the columns), and a join with `qit`. The driver gets m counts and one row of evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anonlib.audit.original import (
    determined_values,
    keyed,
    same_columns,
    same_distribution,
    same_records,
    sensitive_text,
)
from anonlib.audit.published import fresh_salt
from anonlib.audit.verdict import Check
from anonlib.engine.compound import text_of
from anonlib.engine.relational import DataFrame, Small, aggregate, collected, select, with_columns
from anonlib.engine.tables import types
from anonlib.release.bucketized import QIT, ST, sensitive_columns
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import BUCKET_ID, COUNT
from anonlib.sql import quoted


def compare(tables: Mapping[str, DataFrame], manifest: Manifest, original: DataFrame) -> list[Check]:
    """The checks that need the original (the input after the missing-value policy). Of two sensitive columns `st` has their combination
    besides, under the manifest's name of it."""
    published = [c.name for c in manifest.tables[QIT].columns if c.name != BUCKET_ID]
    sensitive = sensitive_columns(manifest)
    faulty = [c for c in (same_columns(original, tables[QIT], published, name) for name in sensitive) if not c.passed]
    if faulty:
        return faulty[:1]
    columns = same_columns(original, tables[QIT], published, sensitive[0])
    if len(sensitive) > 1:  # the manifest knows a combination by its text, and so does this `st`
        kinds = types(original)
        original = with_columns(original, {manifest.guarantee.sensitive: text_of({n: kinds[n] for n in sensitive})})
    asked = [
        same_records(tables[QIT], manifest, original, published),
        same_distribution(manifest, original),
        _determined_values(tables, manifest, original, published),
    ]
    return [columns, *collected(asked)]


def _determined_values(
    tables: Mapping[str, DataFrame], manifest: Manifest, original: DataFrame, published: list[str]
) -> Small[Check]:
    """Records that agree on all published columns and all have value x need as many x in the st of their bucket.

    A necessary condition for the release to be a bucketization of the original (whether an assignment of the remaining,
    ambiguous records exists is a three-way transportation problem). It finds a value moved to another bucket whenever the
    record it belongs to is alone with its published columns, or alone with others of the same value.
    """
    salts = (fresh_salt(), fresh_salt())
    sensitive = sensitive_text(original, manifest)
    determined = determined_values(original, manifest, published, salts)
    needed = aggregate(
        keyed(tables[QIT], published, salts, {BUCKET_ID: BUCKET_ID}).join(determined, ["k0", "k1"]),
        [BUCKET_ID, "value"],
        {"n": "count(1)"},
    )
    listed = aggregate(
        select(tables[ST], {"b": BUCKET_ID, "v": sensitive, "c": quoted(COUNT)}),
        ["b", "v"],
        {"c": "sum(CAST(c AS DECIMAL(38, 0)))"},
    )
    both = needed.join(
        listed, needed[BUCKET_ID].eqNullSafe(listed["b"]) & needed["value"].eqNullSafe(listed["v"]), "left"
    )
    short = "n > coalesce(c, 0)"
    facts = {
        "records": "sum(n)",
        "short": f"count_if({short})",
        "worst": f"min(IF({short}, struct({BUCKET_ID}, value, n, coalesce(c, 0) AS c), NULL))",
    }
    return Small.of_row(aggregate(both, [], facts), _in_their_buckets)


def _in_their_buckets(row: Mapping[str, Any]) -> Check:
    worst = row["worst"]
    return Check(
        name="original: values in their buckets",
        passed=not row["short"],
        asked="each record whose value its published columns determine finds it in its bucket",
        achieved=f"{row['records'] or 0:,} such records, {row['short']:,} buckets and values that fall short",
        evidence=f"bucket {worst[BUCKET_ID]}: {worst['n']} records have {worst['value']!r}, st counts {worst['c']}"
        if worst
        else None,
    )
