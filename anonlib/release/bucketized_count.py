"""A count query on an opened bucketized release: one Spark plan, and a linear system of the size of the sensitive domain on the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from anonlib.arrays import BoolArray
from anonlib.engine.relational import DataFrame, Row, aggregate, one_row, rows
from anonlib.queries import bucketized as counting
from anonlib.queries.estimates import CountEstimate
from anonlib.queries.flattening import Kinds
from anonlib.queries.predicate import TRUE, Predicate, parse
from anonlib.release.bucketized import QIT, ST
from anonlib.release.bucketized_kinds import MAX_KINDS, by_bucket, composed
from anonlib.release.bucketized_values import sensitive_types, value_of
from anonlib.release.hierarchies import hierarchies
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import BUCKET_ID, COUNT


def count(tables: Mapping[str, DataFrame], manifest: Manifest, predicate: str) -> CountEstimate:
    """How many records meet `predicate`, e.g. "age BETWEEN 30 AND 40 AND occupation = 'x'", estimated from the release.

    One job: `qit` and `st` grouped by bucket, joined, grouped by kind of bucket. Shuffles of one slim row per bucket; as many rows
    as there are kinds reach the driver. Where buckets list fake values, or are of more than MAX_KINDS kinds, which no deal of this
    package makes, the flattened estimate answers. Raises SpecError for a predicate that cannot be read or that names an unknown column.
    """
    qit, st = tables[QIT], tables[ST]
    sensitive = sensitive_types(st, manifest)
    columns = {name: kind for name, kind in qit.dtypes if name != BUCKET_ID} | sensitive
    parsed = parse(predicate, columns, list(sensitive), hierarchies(manifest))
    if manifest.rows.fake or parsed.sensitive == TRUE:
        return flattened(tables, parsed)
    by_kind = kinds_seen(tables, value_of(st, manifest), parsed)
    if len(by_kind) > MAX_KINDS:
        return flattened(tables, parsed)
    return counting.answer(*seen_by_kind(by_kind, len(parsed.parts)))


def flattened(tables: Mapping[str, DataFrame], parsed: Predicate) -> CountEstimate:
    """The flattened estimate and the certain bounds; exact where the predicate asks nothing of the sensitive column. One job."""
    matching = aggregate(tables[QIT].where(parsed.visible), [BUCKET_ID], counting.qit_columns(parsed))
    meeting = aggregate(tables[ST], [BUCKET_ID], counting.st_columns(parsed, COUNT))
    totals = one_row(aggregate(matching.join(meeting, BUCKET_ID), [], counting.total_columns()))
    if parsed.sensitive == TRUE:  # buckets with fake values have more values than records, so the bounds are too wide
        return CountEstimate.exact(int(totals["matching"] or 0))
    return counting.flattened(totals)


def kinds_seen(tables: Mapping[str, DataFrame], value: str, parsed: Predicate) -> list[Row]:
    """A row for each kind of bucket, at most MAX_KINDS + 1: its composition, how many buckets have how many matching records, the sums of
    parts. value : SQL of the text of a sensitive value.
    """
    of_qit = counting.qit_columns(parsed)
    matching = aggregate(tables[QIT], [BUCKET_ID], of_qit)
    joined = by_bucket(tables[ST], value, parsed.sensitive).join(matching, BUCKET_ID)
    parts = {name: f"sum({name})" for name in of_qit if name != "matching"}
    alike = aggregate(joined, ["kind", "matching"], {"buckets": "count(1)"} | parts)
    entries = {"seen": "collect_list(struct(matching, buckets))"}
    return rows(aggregate(alike, ["kind"], entries | parts).limit(MAX_KINDS + 1), MAX_KINDS + 1)


def seen_by_kind(by_kind: Sequence[Row], parts: int) -> tuple[Kinds, list[str | None], BoolArray, counting.Seen]:
    """(the kinds, the texts of the values, which of them are asked for, what was seen) from the rows of `kinds_seen`."""
    entries = [(kind, pair["matching"], pair["buckets"]) for kind, row in enumerate(by_kind) for pair in row["seen"]]
    kind, matching, buckets = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    number = np.zeros(len(by_kind), dtype=np.int64)
    np.add.at(number, kind, buckets)
    sums = np.array([[row[f"part{i}"] for i in range(parts)] for row in by_kind], dtype=np.float64)
    kinds, values, accepted = composed([row["kind"] for row in by_kind], number.tolist())
    seen = counting.Seen(kind, matching, buckets, sums.reshape(len(by_kind), parts))
    return kinds, values, np.array(accepted, dtype=bool), seen
