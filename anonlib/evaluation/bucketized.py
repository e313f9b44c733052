"""What a bucketized release is worth: mean squared bucket size, and the relative error of count queries against the original."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from anonlib.arrays import Float64Array
from anonlib.engine.batches import partial_sums
from anonlib.engine.relational import DataFrame, aggregate, one_row, select
from anonlib.errors import SpecError
from anonlib.evaluation import attacks_on_bucketized
from anonlib.evaluation.evaluation import Evaluation, RelativeErrors
from anonlib.evaluation.workloads import Workload, domains, in_workload
from anonlib.queries.batch import BucketEstimates, Masks, TrueCounts
from anonlib.release.bucketized import QIT, ST
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import BUCKET_ID, COUNT
from anonlib.sql import quoted

ROWS_PER_TASK = 25_000
MAX_TASKS = 2_000


def evaluate(
    tables: Mapping[str, DataFrame],
    manifest: Manifest,
    original: DataFrame,
    *,
    queries: int = 5_000,
    selectivity: float = 0.01,
    seed: int = 0,
    dimensions: int | None = None,
    attacks: bool = False,
) -> Evaluation:
    """MSBS, and the error of a workload of kind `in`, for a bucketized release and the table it was made from.

    original : the input after the missing-value policy. Its quasi-identifiers are those of the manifest.
    attacks  : play those of `anonlib.evaluation.attacks_registry` that apply

    Spark jobs: one per attribute for the domains, one for the true counts, one for the estimates, one for MSBS, five for the attacks;
    never one per query. Raises SpecError for a column of the release that the original lacks, or a domain that is too large.
    """
    sensitive = manifest.guarantee.sensitive
    attributes = [c.name for c in manifest.tables[QIT].columns if c.role == "quasi_identifier"]
    absent = [a for a in [*attributes, sensitive] if a not in original.columns]
    if absent:
        raise SpecError(
            f"the original table has no column {absent[0]!r}, which the release has; is it the table it was made from? "
            f"It has {', '.join(original.columns)}"
        )
    workload = in_workload(
        domains(original, [*attributes, sensitive]), sensitive, queries, selectivity, seed, dimensions
    )
    actual = true_counts(original, workload, manifest.rows.published)
    estimated = estimates(tables, workload, manifest.rows.published)
    d = np.array([query.dimensions(sensitive) for query in workload.queries])
    return Evaluation(
        measures={"msbs": msbs(tables[QIT])},
        errors=RelativeErrors.of(actual, estimated),
        by_group=RelativeErrors.by(d, actual, estimated),
        grouped_by="quasi-identifiers in the query",
        workload=workload,
        actual=actual,
        estimated=estimated,
        attacks=attacks_on_bucketized.attacks(tables, manifest, original, seed) if attacks else {},
    )


def msbs(qit: DataFrame) -> float:
    """Sum over buckets of (|g| - 1)^2, over |T| - 1, from the published table. One shuffle of one row per bucket and task."""
    sizes = aggregate(qit, [BUCKET_ID], {"size": "CAST(count(1) AS DECIMAL(38, 0))"})
    totals = one_row(aggregate(sizes, [], {"loss": "sum((size - 1) * (size - 1))", "n": "sum(size)"}))
    return float(totals["loss"] or 0) / max(1, int(totals["n"] or 0) - 1)


def true_counts(original: DataFrame, workload: Workload, records: int) -> Float64Array:
    """(Q,) how many records of the original meet each query. One scan, one job; `records` only sizes the tasks."""
    masks = Masks.of(workload.domains, [query.accepted for query in workload.queries])
    texts = select(original, {a: f"CAST({quoted(a)} AS STRING)" for a in workload.domains})
    return np.rint(partial_sums(texts.repartition(_tasks(records)), TrueCounts(masks), len(workload.queries)))


def estimates(tables: Mapping[str, DataFrame], workload: Workload, records: int) -> Float64Array:
    """(Q,) the release's estimate of each query. One job: both tables grouped by bucket, joined, one pass over the buckets."""
    queries = [query.accepted for query in workload.queries]
    visible = {a: d for a, d in workload.domains.items() if a != workload.sensitive}
    sensitive = {workload.sensitive: workload.domains[workload.sensitive]}
    kernel = BucketEstimates(Masks.of(visible, queries), Masks.of(sensitive, queries), COUNT)
    # Fields are numbered: an attribute may be called like a column of ours.
    fields = ", ".join(f"CAST({quoted(a)} AS STRING) AS a{i}" for i, a in enumerate(visible))
    records_of = aggregate(tables[QIT], [BUCKET_ID], {"records": f"collect_list(struct({fields}))"})
    pair = f"struct(CAST({quoted(workload.sensitive)} AS STRING) AS v, {quoted(COUNT)} AS c)"
    values_of = aggregate(tables[ST], [BUCKET_ID], {"pairs": f"collect_list({pair})"})
    buckets = records_of.join(values_of, BUCKET_ID).repartition(_tasks(records))
    lists = {a: f"records.a{i}" for i, a in enumerate(visible)} | {workload.sensitive: "pairs.v", COUNT: "pairs.c"}
    return partial_sums(select(buckets, lists), kernel, len(queries))


def _tasks(records: int) -> int:
    """An explicit number of tasks: left to itself, Spark would put so few bytes into one."""
    return max(2, min(MAX_TASKS, records // ROWS_PER_TASK))
