"""The mean of a numeric column on an opened bucketized release: one Spark plan."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from anonlib.engine.relational import DataFrame, aggregate, one_row
from anonlib.queries import means
from anonlib.queries.means import MeanEstimate
from anonlib.queries.predicate import TRUE, parse
from anonlib.release.answers import visible_only
from anonlib.release.bucketized import QIT, ST
from anonlib.release.bucketized_count import kinds_seen, seen_by_kind
from anonlib.release.bucketized_distribution import flat
from anonlib.release.bucketized_kinds import MAX_KINDS
from anonlib.release.hierarchies import hierarchies
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import BUCKET_ID
from anonlib.sql import quoted


def mean(tables: Mapping[str, DataFrame], manifest: Manifest, column: str, where: str | None = None) -> MeanEstimate:
    """The mean of a numeric column among the records that meet `where`, a condition on published columns other than the sensitive one.

    Exact for a published column. Of the sensitive one as counts are estimated; where buckets list fakes, or are of too many kinds, the
    flattened mean. Missing values have no part in it. Raises SpecError for a condition that cannot be read.
    """
    qit, sensitive = tables[QIT], manifest.guarantee.sensitive
    columns = {name: kind for name, kind in qit.dtypes if name != BUCKET_ID} | {
        sensitive: dict(tables[ST].dtypes)[sensitive]
    }
    parsed = parse(where or TRUE, columns, sensitive, hierarchies(manifest))
    visible_only(where, parsed.sensitive, TRUE)
    if column != sensitive:
        average = one_row(aggregate(qit.where(parsed.visible), [], {"y": f"avg(CAST({quoted(column)} AS DOUBLE))"}))[
            "y"
        ]
        return MeanEstimate.exact(math.nan if average is None else float(average))
    by_kind = [] if manifest.rows.fake else kinds_seen(tables, sensitive, parsed)
    if manifest.rows.fake or len(by_kind) > MAX_KINDS:
        known = flat(tables, sensitive, qit.where(parsed.visible), {}).where("s IS NOT NULL")
        sums = one_row(aggregate(known, [], {"total": "sum(f * CAST(s AS DOUBLE))", "records": "sum(f)"}))
        return means.flattened(float(sums["total"] or 0), float(sums["records"] or 0))
    kinds, values, _, seen = seen_by_kind(by_kind, len(parsed.parts))
    return means.of_buckets(kinds, np.array([math.nan if v is None else float(v) for v in values]), seen)
