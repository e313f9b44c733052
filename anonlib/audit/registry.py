"""Which auditor answers for which layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from anonlib.audit.bucketized.audit import audit as audit_bucketized
from anonlib.audit.generalized.audit import audit as audit_generalized
from anonlib.audit.perturbed.audit import audit as audit_perturbed
from anonlib.audit.verdict import Verdict
from anonlib.engine.relational import DataFrame
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import LayoutName
from anonlib.spec.release import Columns


class Auditor(Protocol):
    """Whether a release keeps what its manifest promises.

    tables   : {name: DataFrame}, as `anonlib.release.layout` names them for the layout
    original : the input after the missing-value policy; with it, records and values are compared too
    columns  : the roles of the original's columns, as the spec gave them; staged tables need it
    staged   : the manifest is still to be completed: what is measured of the tables is not missed in it
    evidence : what the method left for the audit alone; only layouts that have such tables take any

    Never raises on a bad release: it returns a verdict that failed. Raises TypeError when staged tables come without `columns`.
    """

    def __call__(
        self,
        tables: Mapping[str, DataFrame],
        manifest: Manifest,
        original: DataFrame | None = None,
        columns: Columns | None = None,
        *,
        staged: bool = False,
        evidence: Mapping[str, DataFrame] | None = None,
    ) -> Verdict: ...


AUDITORS: dict[LayoutName, Auditor] = {
    "bucketized": audit_bucketized,
    "perturbed": audit_perturbed,
    "generalized": audit_generalized,
}
