"""The mean of a numeric column on an opened bucketized release: one Spark plan."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from anonlib.engine.relational import DataFrame, aggregate, one_row, select
from anonlib.queries import means
from anonlib.queries.means import MeanEstimate
from anonlib.queries.predicate import TRUE, Predicate, parse
from anonlib.release.answers import visible_only
from anonlib.release.bucketized import QIT, ST, sensitive_columns
from anonlib.release.bucketized_count import kinds_seen, seen_by_kind
from anonlib.release.bucketized_distribution import flat
from anonlib.release.bucketized_kinds import MAX_KINDS
from anonlib.release.bucketized_values import parts_of_values, sensitive_types, value_of
from anonlib.release.hierarchies import hierarchies
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import BUCKET_ID, COUNT
from anonlib.sql import quoted

_WEIGHT = "anonlib records"


def mean(tables: Mapping[str, DataFrame], manifest: Manifest, column: str, where: str | None = None) -> MeanEstimate:
    """The mean of a numeric column among the records that meet `where`, a condition on published columns; of two sensitive columns on these
    too, where one of them is averaged.

    Exact for a published column. Of a sensitive one as counts are estimated; where buckets list fakes, or are of too many kinds, the
    flattened mean. Missing values have no part in it. Raises SpecError for a condition that cannot be read.
    """
    qit, sensitive = tables[QIT], sensitive_types(tables[ST], manifest)
    columns = {name: kind for name, kind in qit.dtypes if name != BUCKET_ID} | sensitive
    parsed = parse(where or TRUE, columns, list(sensitive), hierarchies(manifest))
    if column not in sensitive or len(sensitive) == 1:
        visible_only(where, parsed.sensitive, TRUE)
    if column not in sensitive:
        average = one_row(aggregate(qit.where(parsed.visible), [], {"y": f"avg(CAST({quoted(column)} AS DOUBLE))"}))[
            "y"
        ]
        return MeanEstimate.exact(math.nan if average is None else float(average))
    if len(sensitive) > 1 and parsed.visible == TRUE:
        return _of_all(tables[ST], column, parsed)
    by_kind = [] if manifest.rows.fake else kinds_seen(tables, value_of(tables[ST], manifest), parsed)
    if manifest.rows.fake or len(by_kind) > MAX_KINDS:
        return _flattened(tables, manifest, column, parsed)
    kinds, values, accepted, seen = seen_by_kind(by_kind, len(parsed.parts))
    own = parts_of_values(values, len(sensitive), list(sensitive).index(column))
    numbers = np.array([math.nan if v is None else float(v) for v in own])
    return means.of_buckets(kinds, numbers, seen, accepted)


def _flattened(tables: Mapping[str, DataFrame], manifest: Manifest, column: str, parsed: Predicate) -> MeanEstimate:
    """The mean if each bucket's values were anybody's. One job."""
    sensitive = sensitive_columns(manifest)
    own = {name: "s" if len(sensitive) == 1 else f"s.{quoted(name)}" for name in sensitive}
    by_value = flat(tables, manifest, tables[QIT].where(parsed.visible), {})
    known = select(by_value, own | {_WEIGHT: "f"}).where(f"{parsed.sensitive} AND {quoted(column)} IS NOT NULL")
    sums = {"total": f"sum({quoted(_WEIGHT)} * CAST({quoted(column)} AS DOUBLE))", "records": f"sum({quoted(_WEIGHT)})"}
    row = one_row(aggregate(known, [], sums))
    return means.flattened(float(row["total"] or 0), float(row["records"] or 0))


def _of_all(st: DataFrame, column: str, parsed: Predicate) -> MeanEstimate:
    """The mean where nothing is asked of published columns: `st` tells how many records have each value. One job."""
    count, number = f"CAST({quoted(COUNT)} AS DOUBLE)", f"CAST({quoted(column)} AS DOUBLE)"
    known = st.where(f"{parsed.sensitive} AND {quoted(column)} IS NOT NULL")
    row = one_row(aggregate(known, [], {"total": f"sum({count} * {number})", "records": f"sum({count})"}))
    return MeanEstimate.exact(float(row["total"] or 0) / float(row["records"]) if row["records"] else math.nan)
