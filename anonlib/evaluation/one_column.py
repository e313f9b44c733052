"""A release of several sensitive columns as a release of each alone: what attacks on a column are played on, and cells are counted by.

Nothing is learnt from the other columns there: who knows a person's value in one of them may believe more of the others than any of these
attacks does.
"""

from __future__ import annotations

from collections.abc import Mapping

from anonlib.engine.relational import DataFrame, aggregate
from anonlib.release.bucketized import ST
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import BUCKET_ID, COUNT
from anonlib.sql import quoted


def of_boxes(manifest: Manifest) -> tuple[Manifest, ...]:
    """The manifest of a generalized release, once for each sensitive column, as if it had no other."""
    first = manifest.guarantee
    parts = (first.model_copy(update={"also": []}), *first.also)
    return tuple(manifest.model_copy(update={"guarantee": part}) for part in parts)


def of_buckets(
    tables: Mapping[str, DataFrame], manifest: Manifest
) -> tuple[tuple[Mapping[str, DataFrame], Manifest], ...]:
    """The same of a bucketized release, whose `also` has a part for each column: with tables in which `st` lists the values of one column,
    whatever the other. One shuffle of `st` each, where it is used."""
    if not manifest.guarantee.also:
        return ((tables, manifest),)
    total = {COUNT: f"sum({quoted(COUNT)})"}
    return tuple(
        (
            {**tables, ST: aggregate(tables[ST], [BUCKET_ID, part.sensitive], total)},
            manifest.model_copy(update={"guarantee": part}),
        )
        for part in manifest.guarantee.also
    )
