"""What a bucketized release is worth: mean squared bucket size, and the relative error of count queries against the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from anonlib.arrays import Float64Array
from anonlib.engine.batches import partial_sums
from anonlib.engine.relational import DataFrame, aggregate, one_row, select, with_columns
from anonlib.errors import SpecError
from anonlib.evaluation import attacks_on_bucketized
from anonlib.evaluation.class_sizes import sizes_by_looks, sizes_of
from anonlib.evaluation.evaluation import Evaluation, RelativeErrors
from anonlib.evaluation.risks import RiskMeasures
from anonlib.evaluation.workloads import Workload, domains, in_workload
from anonlib.queries.batch import BucketEstimates, Masks, TrueCounts
from anonlib.queries.crossed import CrossedBuckets
from anonlib.queries.flattening import Flattening
from anonlib.queries.many_counts import Asked, Condition, answers
from anonlib.release.bucketized import QIT, ST, sensitive_columns
from anonlib.release.bucketized_kinds import kinds_of
from anonlib.release.bucketized_values import value_of
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import BUCKET_ID, COUNT
from anonlib.sql import quoted

ROWS_PER_TASK = 25_000
MAX_TASKS = 2_000
MAX_NUMBERS = 1 << 26
"""Numbers that tasks hand on to be added up: with many queries and values there are fewer tasks."""


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

    Spark jobs: one per attribute for the domains, one for the true counts, three for the estimates, one for MSBS, one for the risks,
    six for the attacks on a sensitive column;
    never one per query. Of two sensitive columns queries ask for combinations of their values, and attacks are played on each in turn.
    Raises SpecError for a column of the release that the original lacks, or a domain that is too large.
    """
    sensitive = manifest.guarantee.sensitive
    attributes = [c.name for c in manifest.tables[QIT].columns if c.role == "quasi_identifier"]
    absent = [a for a in [*attributes, *sensitive_columns(manifest)] if a not in original.columns]
    if absent:
        raise SpecError(
            f"the original table has no column {absent[0]!r}, which the release has; is it the table it was made from? "
            f"It has {', '.join(original.columns)}"
        )
    combined, records = _combined(tables, manifest, original) if manifest.guarantee.also else (tables, original)
    workload = in_workload(
        domains(records, [*attributes, sensitive]), sensitive, queries, selectivity, seed, dimensions
    )
    actual = true_counts(records, workload, manifest.rows.published)
    estimated = estimates(combined, workload, manifest)
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
        risks=RiskMeasures.of(sizes_of(sizes_by_looks(tables[QIT], attributes, manifest.rows.published))),
    )


def _combined(
    tables: Mapping[str, DataFrame], manifest: Manifest, original: DataFrame
) -> tuple[dict[str, DataFrame], DataFrame]:
    """The tables and the original with the text of a combination of the two sensitive columns, under the manifest's name of it."""
    named = {
        where: with_columns(frame, {manifest.guarantee.sensitive: value_of(frame, manifest)})
        for where, frame in ((ST, tables[ST]), ("", original))
    }
    return {**tables, ST: named[ST]}, named[""]


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


def estimates(tables: Mapping[str, DataFrame], workload: Workload, manifest: Manifest) -> Float64Array:
    """(Q,) the release's estimate of each query, as `Release.count` gives it but for certain bounds.

    Three jobs: the kinds of buckets, and twice both tables grouped by bucket, joined, one pass over the buckets: for the queries and for
    what each attribute tells by itself, where it has up to `anonlib.queries.many_counts.MAX_SINGLES` values.
    """
    value = f"CAST({quoted(workload.sensitive)} AS STRING)"
    known = kinds_of(tables[ST], manifest, value)
    if known is None:
        return flattened(tables, workload, manifest.rows.published)
    kinds, values = known
    secret = workload.sensitive
    asked = Asked.of(
        [{a: codes for a, codes in query.accepted.items() if a != secret} for query in workload.queries],
        {a: len(domain) for a, domain in workload.domains.items() if a != secret},
    )
    code = {text: i for i, text in enumerate(workload.domains[secret])}
    m = len(code)
    accepted = np.zeros((m + 1, len(workload.queries)))
    for q, query in enumerate(workload.queries):
        accepted[list(query.accepted.get(secret, range(m + 1))), q] = 1
    place = [m if text is None else code.get(text, m) for text in values]
    attributes = [a for a in workload.domains if a != secret]
    own, singles = asked.conditions[: asked.queries], asked.conditions[asked.queries :]
    flat = crossed(tables, workload, own, attributes, manifest.rows.published)
    if singles:  # apart: masks of long domains are made for the queries alone
        flat = np.concatenate([flat, crossed(tables, workload, singles, asked.alone, manifest.rows.published)])
    return answers(Flattening(kinds), flat[:, place].T, asked, accepted[place])


def flattened(tables: Mapping[str, DataFrame], workload: Workload, records: int) -> Float64Array:
    """(Q,) the estimates that take every bucket as evenly mixed: where fakes are listed, and before association is got back. One job."""
    queries = [query.accepted for query in workload.queries]
    visible = {a: d for a, d in workload.domains.items() if a != workload.sensitive}
    sensitive = {workload.sensitive: workload.domains[workload.sensitive]}
    kernel = BucketEstimates(Masks.of(visible, queries), Masks.of(sensitive, queries), COUNT)
    return partial_sums(_buckets(tables, workload, _tasks(records)), kernel, len(queries))


def crossed(
    tables: Mapping[str, DataFrame],
    workload: Workload,
    conditions: Sequence[Condition],
    attributes: Sequence[str],
    records: int,
) -> Float64Array:
    """(C, m + 1) flattened estimates of how many records meet each condition and have each value of the workload; last, a missing one.

    attributes : those that conditions are on. One job.
    """
    values = workload.domains[workload.sensitive]
    visible = {a: workload.domains[a] for a in attributes}
    kernel = CrossedBuckets(Masks.of(visible, conditions), workload.sensitive, values, COUNT, missing=True)
    length = len(conditions) * (len(values) + 1)
    tasks = max(2, min(_tasks(records), MAX_NUMBERS // length))
    return partial_sums(_buckets(tables, workload, tasks), kernel, length).reshape(len(conditions), -1)


def _buckets(tables: Mapping[str, DataFrame], workload: Workload, tasks: int) -> DataFrame:
    """A row a bucket: for each attribute the texts of its records, the texts of its sensitive values, and their counts."""
    visible = [a for a in workload.domains if a != workload.sensitive]
    # Fields are numbered: an attribute may be called like a column of ours.
    fields = ", ".join(f"CAST({quoted(a)} AS STRING) AS a{i}" for i, a in enumerate(visible))
    records_of = aggregate(tables[QIT], [BUCKET_ID], {"records": f"collect_list(struct({fields}))"})
    pair = f"struct(CAST({quoted(workload.sensitive)} AS STRING) AS v, {quoted(COUNT)} AS c)"
    values_of = aggregate(tables[ST], [BUCKET_ID], {"pairs": f"collect_list({pair})"})
    buckets = records_of.join(values_of, BUCKET_ID).repartition(tasks)
    lists = {a: f"records.a{i}" for i, a in enumerate(visible)} | {workload.sensitive: "pairs.v", COUNT: "pairs.c"}
    return select(buckets, lists)


def _tasks(records: int) -> int:
    """An explicit number of tasks: left to itself, Spark would put so few bytes into one."""
    return max(2, min(MAX_TASKS, records // ROWS_PER_TASK))
