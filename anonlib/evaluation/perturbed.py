"""What a perturbed release is worth: how many values it retains, and the relative error of count queries against the original."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from anonlib.engine.relational import DataFrame, aggregate, one_row
from anonlib.errors import SpecError
from anonlib.evaluation import attacks_on_perturbed
from anonlib.evaluation import point_workload as points
from anonlib.evaluation.class_sizes import sizes_by_looks, sizes_of
from anonlib.evaluation.evaluation import Evaluation, RelativeErrors
from anonlib.evaluation.risks import RiskMeasures
from anonlib.evaluation.workloads import domains
from anonlib.release.manifest import Manifest
from anonlib.release.perturbed import MICRODATA, OPERATORS, RETENTION, SIZE, sensitive_columns


def evaluate(
    tables: Mapping[str, DataFrame],
    manifest: Manifest,
    original: DataFrame,
    *,
    queries: int = 5_000,
    selectivity: float = 0.01,
    seed: int = 0,
    attacks: bool = False,
) -> Evaluation:
    """Mean retention, number of sub-tables, and the error of a workload of kind `point`, by the estimates that `Release.count` gives.

    queries     : about as many are drawn, as conditions crossed with all sensitive values
    selectivity : queries whose true count is a smaller share of the records are left out
    attacks     : play those of `anonlib.evaluation.attacks_registry` that apply
    original    : the input after the missing-value policy

    Spark jobs: one per attribute for the domains, one for the true counts, two for the estimates, one for the operators, one for the
    risks, three for the attacks; never one per query. Raises SpecError for a column of the release that the original lacks, or a domain
    that is too large.
    """
    sensitive, called = sensitive_columns(manifest), manifest.guarantee.sensitive
    attributes = [c.name for c in manifest.tables[MICRODATA].columns if c.role == "quasi_identifier"]
    absent = [a for a in [*attributes, *sensitive] if a not in original.columns]
    if absent:
        raise SpecError(
            f"the original table has no column {absent[0]!r}, which the release has; is it the table it was made from? "
            f"It has {', '.join(original.columns)}"
        )
    n = manifest.rows.published
    texts = points.as_texts(original, attributes, sensitive, called)
    values_of = domains(texts, [*attributes, called])
    conditions = max(1, math.ceil(queries / max(1, len(values_of[called]))))
    workload = points.point_workload(values_of, called, conditions, selectivity, seed)
    actual = points.selective(points.true_counts(texts, workload, n), n, selectivity)
    estimated, _ = points.perturbed_estimates(tables, workload, sensitive, n)
    d = np.array([query.dimensions(called) for query in workload.queries])
    of_operators = one_row(
        aggregate(tables[OPERATORS], [], {"k": "count(1)", "kept": f"sum({SIZE} * {RETENTION}) / sum({SIZE})"})
    )
    return Evaluation(
        measures={"mean_retention": float(of_operators["kept"]), "sub_tables": float(of_operators["k"])},
        errors=RelativeErrors.of(actual, estimated),
        by_group=RelativeErrors.by(d, actual, estimated),
        grouped_by="quasi-identifiers in the query",
        workload=workload,
        actual=actual,
        estimated=estimated,
        attacks=attacks_on_perturbed.attacks(tables, manifest, original, seed) if attacks else {},
        risks=RiskMeasures.of(sizes_of(sizes_by_looks(tables[MICRODATA], attributes, n))),
    )
