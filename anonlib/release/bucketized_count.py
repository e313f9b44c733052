"""A count query on an opened bucketized release: one Spark plan."""

from __future__ import annotations

from collections.abc import Mapping

from anonlib.engine.relational import DataFrame, aggregate, one_row
from anonlib.queries import bucketized as counting
from anonlib.queries.predicate import parse
from anonlib.release.bucketized import QIT, ST
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import BUCKET_ID, COUNT


def count(tables: Mapping[str, DataFrame], manifest: Manifest, predicate: str) -> counting.CountEstimate:
    """How many records meet `predicate`, e.g. "age BETWEEN 30 AND 40 AND occupation = 'x'", estimated from the release.

    One job: `qit` and `st` grouped by bucket, joined, summed. Two shuffles of one slim row per bucket at most; only buckets
    with a matching row are joined. The sums of doubles may differ in their last digits from run to run.
    Raises SpecError for a predicate that cannot be read or that names an unknown column.
    """
    qit, st = tables[QIT], tables[ST]
    sensitive = manifest.guarantee.sensitive
    columns = {name: kind for name, kind in qit.dtypes if name != BUCKET_ID} | {sensitive: dict(st.dtypes)[sensitive]}
    parsed = parse(predicate, columns, sensitive)
    matching = aggregate(qit.where(parsed.visible), [BUCKET_ID], counting.qit_columns(parsed))
    meeting = aggregate(st, [BUCKET_ID], counting.st_columns(parsed, COUNT))
    return counting.estimate(one_row(aggregate(matching.join(meeting, BUCKET_ID), [], counting.total_columns())))
