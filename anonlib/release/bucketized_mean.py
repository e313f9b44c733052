"""The mean of a numeric column on an opened bucketized release: one Spark plan."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from anonlib.engine.relational import DataFrame, aggregate, one_row
from anonlib.errors import SpecError
from anonlib.queries import means
from anonlib.queries.means import MeanEstimate
from anonlib.queries.predicate import TRUE, parse
from anonlib.release.answers import visible_only
from anonlib.release.bucketized import QIT, ST
from anonlib.release.bucketized_count import kinds_seen, seen_by_kind
from anonlib.release.bucketized_distribution import flat
from anonlib.release.bucketized_kinds import MAX_KINDS
from anonlib.release.bucketized_values import sensitive_types, value_of
from anonlib.release.hierarchies import hierarchies
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import BUCKET_ID
from anonlib.sql import quoted


def mean(tables: Mapping[str, DataFrame], manifest: Manifest, column: str, where: str | None = None) -> MeanEstimate:
    """The mean of a numeric column among the records that meet `where`, a condition on published columns other than the sensitive one.

    Exact for a published column. Of the sensitive one as counts are estimated; where buckets list fakes, or are of too many kinds, the
    flattened mean. Missing values have no part in it. Raises SpecError for a condition that cannot be read.
    """
    qit, sensitive = tables[QIT], sensitive_types(tables[ST], manifest)
    columns = {name: kind for name, kind in qit.dtypes if name != BUCKET_ID} | sensitive
    parsed = parse(where or TRUE, columns, list(sensitive), hierarchies(manifest))
    visible_only(where, parsed.sensitive, TRUE)
    if column not in sensitive:
        average = one_row(aggregate(qit.where(parsed.visible), [], {"y": f"avg(CAST({quoted(column)} AS DOUBLE))"}))[
            "y"
        ]
        return MeanEstimate.exact(math.nan if average is None else float(average))
    if len(sensitive) > 1:
        raise SpecError(
            f"mean: {column!r} is one of {len(sensitive)} sensitive columns of this release; average it over the rows of "
            f"group_by({column!r}), each weighted with its estimate"
        )
    by_kind = [] if manifest.rows.fake else kinds_seen(tables, value_of(tables[ST], manifest), parsed)
    if manifest.rows.fake or len(by_kind) > MAX_KINDS:
        known = flat(tables, manifest, qit.where(parsed.visible), {}).where("s IS NOT NULL")
        sums = one_row(aggregate(known, [], {"total": "sum(f * CAST(s AS DOUBLE))", "records": "sum(f)"}))
        return means.flattened(float(sums["total"] or 0), float(sums["records"] or 0))
    kinds, values, _, seen = seen_by_kind(by_kind, len(parsed.parts))
    return means.of_buckets(kinds, np.array([math.nan if v is None else float(v) for v in values]), seen)
