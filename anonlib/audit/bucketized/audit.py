"""The audit of a bucketized release: every promise of its manifest, recomputed from the published tables.

`bucketized_tables` finds the facts, `bucketized_judge` judges them. Cost: one scan of `qit` without a shuffle, two scans of `st` with a
shuffle of one 64-bit entry per row, one row per (sensitive value, count) on the driver; one scan of `st` more where its values have a
hierarchy (`anonlib.audit.bucketized.nodes`), or there are two sensitive columns (`anonlib.audit.bucketized.columns`). Searches for the
worst bucket run only when a check fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from anonlib.audit import manifest as stated
from anonlib.audit.bucketized import evidence as examples
from anonlib.audit.bucketized.columns import column_entries
from anonlib.audit.bucketized.facts import BucketizedFacts
from anonlib.audit.bucketized.judge import Stated, closest_to_threshold, judge, shares_of
from anonlib.audit.bucketized.nodes import node_entries
from anonlib.audit.bucketized.original import compare
from anonlib.audit.bucketized.tables import scan
from anonlib.audit.nodes import under
from anonlib.audit.published import described, fresh_salt, numbering, require_columns
from anonlib.audit.verdict import Verdict
from anonlib.engine.relational import DataFrame, with_columns
from anonlib.engine.tables import FEW_RECORDS
from anonlib.release.bucketized import QIT, ST
from anonlib.release.bucketized_values import sensitive_types, value_of
from anonlib.release.manifest import Manifest
from anonlib.spec.release import Columns


def audit(
    tables: Mapping[str, DataFrame],
    manifest: Manifest,
    original: DataFrame | None = None,
    columns: Columns | None = None,
    *,
    staged: bool = False,
    evidence: Mapping[str, DataFrame] | None = None,
) -> Verdict:
    """Whether the release keeps what its manifest promises.

    tables   : the published tables, "qit" and "st"
    original : the input after the missing-value policy; with it, records and values are compared too
    columns  : the roles of the original's columns, as the spec gave them; checked against what was published. Staged tables need it
    staged   : the manifest is still to be completed: an empty checksum or an unset `achieved` is measured (see
               `Verdict.tables` and `Verdict.achieved`), not missed

    Never raises on a bad release: it returns a verdict that failed. Evidence names buckets and values of the release.
    Raises TypeError when staged tables are audited without `columns`, or with `evidence`, of which this layout has none.
    """
    require_columns(columns, staged)
    if evidence:
        raise TypeError(f"evidence: a bucketized release leaves none, and {', '.join(evidence)} would not be looked at")
    facts = BucketizedFacts(described(tables))
    thresholds = stated.stated_thresholds(manifest.guarantee)
    first = judge(facts, manifest, columns, staged)
    if thresholds is None or not all(check.passed for check in first.checks if check.name == "columns"):
        return first
    release = Stated(manifest, thresholds, stated.fake_values(manifest))
    salt = fresh_salt()
    few = manifest.rows.published <= FEW_RECORDS
    known = _with_value(tables, manifest)
    qit, st = scan(
        known[QIT],
        known[ST],
        manifest.guarantee.sensitive,
        release.values,
        release.largest,
        release.fake_values,
        salt,
        few,
        [name for name, _ in facts.columns[ST]],
    )
    numbers = numbering(tables[QIT], qit.measured.rows, qit.ranges)
    nodes = node_entries(tables[ST], release.sensitive, under(manifest.guarantee), release.largest, few)
    facts = replace(facts, qit=qit, st=st, numbering=numbers, nodes=nodes)
    if parts := manifest.guarantee.also:
        texts = [[v.value for v in part.values] for part in parts]
        of_two = column_entries(tables[ST], sensitive_types(tables[ST], manifest), texts, release.largest, few)
        facts = replace(facts, columns_of_two=of_two)
    verdict = judge(facts, manifest, columns, staged).with_evidence(
        {
            "F'-privacy": lambda: _worst_bucket(known[ST], release, facts),
            "one row per bucket and value": lambda: examples.value_in_two_rows(known[ST], release.sensitive),
            "rows of st": lambda: examples.bad_row(known[ST], release.sensitive, release.values, st.largest),
            "buckets of qit and st": lambda: examples.bucket_that_differs(known[QIT], known[ST], release.fake_values),
        }
    )
    return verdict if original is None else verdict.with_checks(compare(known, manifest, original))


def _with_value(tables: Mapping[str, DataFrame], manifest: Manifest) -> dict[str, DataFrame]:
    """The tables; of two sensitive columns `st` has besides the text of their combination, under the name that the manifest has for it."""
    if not manifest.guarantee.also:
        return dict(tables)
    st = tables[ST]
    return {**tables, ST: with_columns(st, {manifest.guarantee.sensitive: value_of(st, manifest)})}


def _worst_bucket(st: DataFrame, release: Stated, facts: BucketizedFacts) -> str | None:
    assert facts.st is not None
    achieved = shares_of(facts.st.entries, release.fake_values)
    worst = closest_to_threshold(release, achieved)
    if worst is None:
        return None
    return examples.bucket_of(st, release.sensitive, release.values[worst], achieved[worst][1])
