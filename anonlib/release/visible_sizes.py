"""How many records groups have, where quasi-identifiers are published as they are: exact, one aggregation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anonlib.engine.relational import DataFrame, aggregate, select
from anonlib.queries.predicate import TRUE, Hierarchies, parse
from anonlib.release import bucketized, perturbed
from anonlib.release.answers import ESTIMATES, groups, visible_only
from anonlib.release.bucketized_values import sensitive_types
from anonlib.release.hierarchies import hierarchies
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import BUCKET_ID, SUBTABLE
from anonlib.sql import quoted


def of_buckets(tables: Mapping[str, DataFrame], manifest: Manifest, by: Sequence[str], where: str | None) -> DataFrame:
    """`by`, then `anonlib.release.answers.ESTIMATES`: the records of each group that meet `where`. Not computed yet."""
    kinds = {name: kind for name, kind in tables[bucketized.QIT].dtypes if name != BUCKET_ID}
    of_value = sensitive_types(tables[bucketized.ST], manifest)
    return _sizes(tables[bucketized.QIT], kinds, of_value, by, where, hierarchies(manifest))


def of_perturbed(
    tables: Mapping[str, DataFrame], manifest: Manifest, by: Sequence[str], where: str | None
) -> DataFrame:
    """The same on perturbed records."""
    frame, sensitive = tables[perturbed.MICRODATA], perturbed.sensitive_columns(manifest)
    kinds = {name: kind for name, kind in frame.dtypes if name != SUBTABLE}
    return _sizes(frame, kinds, {name: kinds[name] for name in sensitive}, by, where, hierarchies(manifest))


def _sizes(
    frame: DataFrame,
    kinds: Mapping[str, str],
    sensitive: Mapping[str, str],
    by: Sequence[str],
    where: str | None,
    known: Hierarchies,
) -> DataFrame:
    """kinds, sensitive : column -> its type, of those that are published beside each other and of the sensitive ones."""
    parsed = parse(where or TRUE, {**kinds, **sensitive}, list(sensitive), known)
    visible_only(where, parsed.sensitive, TRUE)
    spelled = groups(by, kinds, list(sensitive), ESTIMATES)
    keys = {f"g{i}": quoted(name) for i, name in enumerate(spelled)}
    counted = aggregate(select(frame.where(parsed.visible), keys | {"one": "1"}), list(keys), {"n": "count(one)"})
    number = "CAST(n AS DOUBLE)"
    exact = dict.fromkeys(("estimate", "unbiased", "interval_low", "interval_high"), number)
    shown = exact | {"estimator": "'exact'", "standard_error": "0D", "low": "n", "high": "n"}
    return select(counted, dict(zip(spelled, keys, strict=True)) | {name: shown[name] for name in ESTIMATES})
