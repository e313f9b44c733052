"""The audit of a perturbed release: every promise of its manifest, recomputed from the published tables.

`perturbed_tables` finds the facts, `perturbed_judge` judges them. Cost: one scan of `microdata` with a shuffle of one row per sub-table,
value and task; the operators, and one row per value of each domain, on the driver. With the original see `perturbed_original`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from anonlib.audit.perturbed.facts import PerturbedFacts
from anonlib.audit.perturbed.judge import judge, subtables_of
from anonlib.audit.perturbed.original import compare
from anonlib.audit.perturbed.tables import scan, too_large
from anonlib.audit.published import described, numbering, require_columns
from anonlib.audit.verdict import Verdict
from anonlib.engine.relational import DataFrame
from anonlib.engine.tables import FEW_RECORDS
from anonlib.release.manifest import Manifest
from anonlib.release.perturbed import MICRODATA, OPERATORS, sensitive_columns
from anonlib.spec.release import Columns

NEEDED = ("columns", "the requirement follows from the parameters")
"""Checks without which a scan makes no sense."""


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

    tables   : the published tables, "microdata" and "operators"
    original : the input after the missing-value policy; with it, records and values are compared too
    columns  : the roles of the original's columns, as the spec gave them; checked against what was published. Staged tables need it
    staged   : the manifest is still to be completed: an empty checksum or an unset `achieved` is measured, not missed

    Never raises on a bad release: it returns a verdict that failed. Evidence names sub-tables and values of the release.
    Raises TypeError when staged tables are audited without `columns`, or with `evidence`, of which this layout has none.
    """
    require_columns(columns, staged)
    if evidence:
        raise TypeError(f"evidence: a perturbed release leaves none, and {', '.join(evidence)} would not be looked at")
    facts = PerturbedFacts(described(tables))
    first = judge(facts, manifest, columns, staged)
    if not all(check.passed for check in first.checks if check.name in NEEDED):
        return first
    if reason := too_large(tables[OPERATORS]):
        return judge(replace(facts, too_large=reason), manifest, columns, staged)
    sensitive = {name: dict(tables[MICRODATA].dtypes)[name] for name in sensitive_columns(manifest)}
    few = manifest.rows.published <= FEW_RECORDS
    operators, records = scan(tables[OPERATORS], tables[MICRODATA], sensitive, few)
    numbers = numbering(tables[MICRODATA], records.measured.rows, records.ranges)
    facts = replace(facts, operators=operators, records=records, numbering=numbers)
    verdict = judge(facts, manifest, columns, staged)
    subtables = subtables_of(operators, records)
    if original is None or subtables is None:
        return verdict
    chances = {t.number: (t.p, t.q) for t in subtables}
    return verdict.with_checks(compare(tables, manifest, original, operators.entries, chances))
