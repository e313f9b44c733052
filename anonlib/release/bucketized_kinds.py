"""The kinds of buckets of an opened bucketized release: one grouping of `st`, a row a kind on the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from anonlib.engine.relational import DataFrame, aggregate, rows
from anonlib.queries.flattening import MAX_VALUES, Kinds
from anonlib.queries.predicate import TRUE
from anonlib.release.bucketized_values import value_of
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import BUCKET_ID, COUNT
from anonlib.sql import quoted

MAX_KINDS = 50_000
"""Kinds of buckets that are brought to the driver; a deal has fewer, whatever the number of records."""
Entry = Mapping[str, Any]
"""Of a composition: a value's text `v`, its count `c`, and whether it is asked for, `a`."""


def by_bucket(st: DataFrame, value: str, asked: str = TRUE) -> DataFrame:
    """bucket_id, kind: the composition of each bucket, a sorted array of `Entry`. One shuffle.

    value : SQL of the text of a sensitive value; asked : SQL on the sensitive columns
    """
    entry = f"struct({value} AS v, {quoted(COUNT)} AS c, coalesce({asked}, FALSE) AS a)"
    return aggregate(st, [BUCKET_ID], {"kind": f"sort_array(collect_list({entry}))"})


def kinds_of(st: DataFrame, manifest: Manifest, value: str | None = None) -> tuple[Kinds, list[str | None]] | None:
    """(the kinds, the texts of the values in the order of their columns); None where no system over kinds holds: buckets list fakes, or
    there are too many kinds or values. One job. value : SQL of a value's text, where it is not the manifest's."""
    if manifest.rows.fake:
        return None
    counted = aggregate(by_bucket(st, value or value_of(st, manifest)), ["kind"], {"buckets": "count(1)"})
    by_kind = rows(counted.limit(MAX_KINDS + 1), MAX_KINDS + 1)
    if len(by_kind) > MAX_KINDS:
        return None
    kinds, values, _ = composed([row["kind"] for row in by_kind], [row["buckets"] for row in by_kind])
    return (kinds, values) if len(values) <= MAX_VALUES else None


def composed(
    compositions: Sequence[Sequence[Entry]], buckets: Sequence[int]
) -> tuple[Kinds, list[str | None], list[bool]]:
    """(kinds, texts of the m values, which of them are asked for) from the composition of each kind and its number of buckets."""
    code: dict[str | None, int] = {}
    asked: list[bool] = []
    entries = []
    for kind, composition in enumerate(compositions):
        for entry in composition:
            value = code.setdefault(entry["v"], len(code))
            if value == len(asked):
                asked.append(entry["a"])
            entries.append((kind, value, entry["c"]))
    kind_of, value_of, held = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    held_by = sp.csr_matrix((held, (kind_of, value_of)), shape=(len(compositions), len(code)))
    return Kinds(np.array(buckets, dtype=np.int64), held_by), list(code), asked
