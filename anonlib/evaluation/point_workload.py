"""The workload `point` (small domain randomization, appendix 10.9): random conditions A1 = a1 AND ... AND Ad = ad on d of 1 to 3
quasi-identifiers, each asked with every sensitive value; queries whose true count is below a share of the table are left out.

All queries of a workload are answered by one Spark job on the original and one on a release, perturbed or bucketized. No privacy rests
on the draws, so a plain seeded generator serves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from anonlib.arrays import Float64Array
from anonlib.engine.batches import partial_sums
from anonlib.engine.compound import text_of
from anonlib.engine.relational import DataFrame, aggregate, rows, select
from anonlib.engine.statistics import value_text
from anonlib.engine.tables import types
from anonlib.errors import SpecError
from anonlib.evaluation.evaluation import RelativeErrors
from anonlib.evaluation.workloads import Query, Workload
from anonlib.exact import exact
from anonlib.queries.batch import Masks
from anonlib.queries.crossed import CrossedBuckets, CrossedCounts, CrossedPerturbed, Domains
from anonlib.queries.flattening import Flattening
from anonlib.queries.many_counts import Asked, answers
from anonlib.queries.reconstruction import Operators
from anonlib.release.bucketized import QIT, ST
from anonlib.release.bucketized_kinds import kinds_of
from anonlib.release.manifest import Manifest
from anonlib.release.perturbed import (
    COUNTS,
    DOMAIN,
    DOMAIN_SIZE,
    GAMMA_EXACT,
    MAX_SUBTABLES,
    MICRODATA,
    OPERATORS,
    SIZE,
    columns_of_value,
)
from anonlib.spec.layouts import BUCKET_ID, COUNT, SUBTABLE
from anonlib.sql import quoted

DIMENSIONS = 3
ROWS_PER_TASK = 25_000
MAX_TASKS = 2_000


def point_workload(
    domains: Mapping[str, Sequence[str]],
    sensitive: str,
    conditions: int = 200,
    selectivity: float = 0.01,
    seed: int = 0,
) -> Workload:
    """`conditions` random conditions, each with every value of `sensitive`: conditions x m queries, a condition's queries in a row.

    Raises SpecError when there is no quasi-identifier with a value, or nothing to ask.
    """
    attributes = sorted(a for a in domains if a != sensitive and len(domains[a]) > 0)
    if not attributes or not domains.get(sensitive):
        raise SpecError("a workload needs at least one quasi-identifier and a sensitive column that have values")
    if conditions < 1:
        raise SpecError(f"a workload of {conditions} conditions is empty; ask for at least 1")
    draw = np.random.default_rng(seed)
    drawn = []
    for _ in range(conditions):
        d = min(int(draw.integers(1, DIMENSIONS + 1)), len(attributes))
        chosen = [attributes[i] for i in sorted(draw.choice(len(attributes), size=d, replace=False))]
        condition = {a: (int(draw.integers(len(domains[a]))),) for a in chosen}
        drawn += [Query({**condition, sensitive: (x,)}) for x in range(len(domains[sensitive]))]
    kept = {a: tuple(domains[a]) for a in [*attributes, sensitive]}
    return Workload("point", seed, selectivity, sensitive, kept, tuple(drawn))


def as_texts(frame: DataFrame, attributes: Sequence[str], sensitive: Sequence[str], called: str) -> DataFrame:
    """Text columns `attributes`, and the sensitive value (of one column or several) as the column `called`."""
    return select(frame, _texts(frame, attributes, sensitive, called))


def _texts(frame: DataFrame, attributes: Sequence[str], sensitive: Sequence[str], called: str) -> dict[str, str]:
    """The columns of `as_texts`, in SQL."""
    value = text_of({name: types(frame)[name] for name in sensitive})
    return {a: f"CAST({quoted(a)} AS STRING)" for a in attributes} | {called: value}


def true_counts(texts: DataFrame, workload: Workload, records: int) -> Float64Array:
    """(Q,) how many records of the original meet each query. `texts` as `as_texts` gives it. One scan, one job."""
    kernel = CrossedCounts(_conditions(workload), workload.sensitive, workload.domains[workload.sensitive])
    return np.rint(partial_sums(texts.repartition(_tasks(records)), kernel, len(workload.queries)))


def perturbed_estimates(
    tables: Mapping[str, DataFrame], workload: Workload, sensitive: Sequence[str], records: int
) -> tuple[Float64Array, Float64Array]:
    """((Q,) estimates, (Q,) raw estimates) from a perturbed release, as `Release.count` gives them. Two jobs; the operators come to the
    driver."""
    values = workload.domains[workload.sensitive]
    domains = _domains(tables[OPERATORS], sensitive, types(tables[MICRODATA]), values)
    kernel = CrossedPerturbed(_conditions(workload), workload.sensitive, values, SUBTABLE, domains)
    visible = [a for a in workload.domains if a != workload.sensitive]
    columns = _texts(tables[MICRODATA], visible, sensitive, workload.sensitive)
    frame = select(tables[MICRODATA], {**columns, SUBTABLE: SUBTABLE}).repartition(_tasks(records))
    best, raw = kernel.reconstructed(partial_sums(frame, kernel, kernel.length))
    return best.ravel(), raw.ravel()


def bucketized_estimates(tables: Mapping[str, DataFrame], workload: Workload, manifest: Manifest) -> Float64Array:
    """(Q,) estimates from a bucketized release (Anatomy among them), as `Release.count` gives them but for certain bounds. Two jobs."""
    known = kinds_of(tables[ST], manifest)
    values = workload.domains[workload.sensitive]
    own = [{a: c for a, c in q.accepted.items() if a != workload.sensitive} for q in workload.queries[:: len(values)]]
    visible = {a: d for a, d in workload.domains.items() if a != workload.sensitive}
    asked = Asked.of(own, {a: len(d) for a, d in visible.items()} if known else {})
    kernel = CrossedBuckets(Masks.of(visible, asked.conditions), workload.sensitive, values, COUNT, missing=True)
    buckets = _buckets(tables, workload, manifest.rows.published)
    flat = partial_sums(buckets, kernel, len(asked.conditions) * (len(values) + 1)).reshape(len(asked.conditions), -1)
    if known is None:
        return flat[:, :-1].ravel()
    kinds, texts = known
    code = {text: i for i, text in enumerate(values)}
    place = np.array([len(values) if t is None else code.get(t, len(values)) for t in texts])
    counts = np.zeros((len(own), len(values) + 1))
    system = Flattening(kinds)
    for v, at in enumerate(place.tolist()):
        accepted = np.zeros((len(place), len(own)))
        accepted[v] = 1
        counts[:, at] = answers(system, flat[:, place].T, asked, accepted)
    return counts[:, :-1].ravel()


def _buckets(tables: Mapping[str, DataFrame], workload: Workload, records: int) -> DataFrame:
    """A row a bucket: for each attribute the texts of its records, the texts of its sensitive values, and their counts."""
    sensitive = workload.sensitive
    visible = [a for a in workload.domains if a != sensitive]
    fields = ", ".join(f"CAST({quoted(a)} AS STRING) AS a{i}" for i, a in enumerate(visible))
    records_of = aggregate(tables[QIT], [BUCKET_ID], {"records": f"collect_list(struct({fields}))"})
    value = value_text(sensitive, types(tables[ST])[sensitive])
    values_of = aggregate(
        tables[ST], [BUCKET_ID], {"pairs": f"collect_list(struct({value} AS v, {quoted(COUNT)} AS c))"}
    )
    buckets = records_of.join(values_of, BUCKET_ID).repartition(_tasks(records))
    lists = {a: f"records.a{i}" for i, a in enumerate(visible)} | {sensitive: "pairs.v", COUNT: "pairs.c"}
    return select(buckets, lists)


def errors(actual: Float64Array, estimated: Float64Array, records: int, selectivity: float) -> RelativeErrors:
    """The relative errors of the queries that at least a share `selectivity` of the records meets; the others are dropped."""
    return RelativeErrors.of(selective(actual, records, selectivity), estimated)


def selective(actual: Float64Array, records: int, selectivity: float) -> Float64Array:
    """(Q,) true counts, 0 where they are below the share `selectivity` of the records."""
    return np.where(actual >= selectivity * records, actual, 0.0)


def _conditions(workload: Workload) -> Masks:
    """One mask per condition: every m-th query, without the sensitive attribute."""
    first_queries = workload.queries[:: len(workload.domains[workload.sensitive])]
    visible = {a: d for a, d in workload.domains.items() if a != workload.sensitive}
    return Masks.of(visible, [{a: c for a, c in q.accepted.items() if a != workload.sensitive} for q in first_queries])


def _domains(
    operators: DataFrame, sensitive: Sequence[str], kinds: Mapping[str, str], values: Sequence[str]
) -> Domains:
    """The operators in the order of their numbers, with the entries of `values`, and of a missing value, which no query asks for."""
    own = {name: kinds[name] for name in sensitive}
    entry = columns_of_value(f"held.{DOMAIN}", sensitive)
    listed = select(operators, {SUBTABLE: SUBTABLE, "held": f"explode(arrays_zip({DOMAIN}, {COUNTS}))"})
    apart = select(listed, {SUBTABLE: SUBTABLE, "anonlib count": f"held.{COUNTS}", **entry})
    pair = select(apart, {SUBTABLE: SUBTABLE, "pair": f"struct({text_of(own)} AS v, `anonlib count` AS c)"})
    held = aggregate(pair, [SUBTABLE], {"pairs": "collect_list(pair)"})
    line = select(operators, {SUBTABLE: SUBTABLE, "size": SIZE, "m": DOMAIN_SIZE, "gamma": GAMMA_EXACT})
    operator_rows = sorted(rows(line.join(held, SUBTABLE), MAX_SUBTABLES), key=lambda r: r[SUBTABLE])
    code = {value: i for i, value in enumerate(values)}
    true: dict[tuple[int, int], int] = {}
    for i, row in enumerate(operator_rows):
        for value_count in row["pairs"]:
            key = (i, code.get(value_count["v"], len(values)))
            true[key] = true.get(key, 0) + int(value_count["c"])
    subtable, value = np.array(list(true), dtype=np.int64).reshape(-1, 2).T
    gammas = np.array([float(exact(r["gamma"])) for r in operator_rows])
    return Domains(
        Operators(np.array([r["m"] for r in operator_rows], dtype=np.int64), gammas),
        np.array([r["size"] for r in operator_rows], dtype=np.int64),
        subtable,
        value,
        np.array(list(true.values()), dtype=np.int64),
    )


def _tasks(records: int) -> int:
    """An explicit number of tasks: left to itself, Spark would put so few bytes into one."""
    return max(2, min(MAX_TASKS, records // ROWS_PER_TASK))
