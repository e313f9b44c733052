"""Counts by group and sensitive value on an opened bucketized release: one plan, beside the kinds of buckets, which the driver gets
first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from anonlib.arrays import Float64Array
from anonlib.engine.lists import over_lists
from anonlib.engine.relational import DataFrame, Row, Small, aggregate, collected, select
from anonlib.queries.flattening import Flattening, Kinds
from anonlib.queries.group_counts import ADDED, ESTIMATORS, GroupCounts, Part
from anonlib.queries.predicate import TRUE, Predicate, parse
from anonlib.release.answers import ESTIMATES, groups, visible_only
from anonlib.release.bucketized import QIT, ST, combined, sensitive_columns
from anonlib.release.bucketized_kinds import kinds_of
from anonlib.release.bucketized_values import sensitive_types, value_of
from anonlib.release.hierarchies import hierarchies
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import BUCKET_ID, COUNT
from anonlib.sql import quoted

MAX_RATIOS = 200_000
"""(value of a column, sensitive value) pairs that priors are made of; a column with more tells nothing to them."""
_LISTS = {"v": "string", "f": "double", "low": "bigint", "high": "bigint"}


def distribution(
    tables: Mapping[str, DataFrame], manifest: Manifest, by: Sequence[str] = (), where: str | None = None
) -> DataFrame:
    """How many records of each group have each sensitive value, estimated from the release.

    by    : published columns to group by; none for all records in one group
    where : a condition on published columns other than the sensitive one, as in `count`

    A DataFrame, not yet computed: `by`, the sensitive column, then `anonlib.release.answers.ESTIMATES` and `flattened`, as `count` gives
    them for the question of that group and value. A row for each group and value of its buckets.

    One job first for the kinds of buckets, and, where several conditions meet, one for what each column tells by itself. The plan: both
    tables grouped by bucket, joined, grouped by group and value, and a list of a group's values goes through Arrow once.
    Raises SpecError for a column that is unknown, sensitive or named twice, or a condition that cannot be read.
    """
    qit, sensitive = tables[QIT], sensitive_types(tables[ST], manifest)
    columns = {name: kind for name, kind in qit.dtypes if name != BUCKET_ID}
    spelled = groups(by, columns, list(sensitive), (*ESTIMATES, "flattened"))
    parsed = parse(where or TRUE, columns | sensitive, list(sensitive), hierarchies(manifest))
    visible_only(where, parsed.sensitive, TRUE)
    keys = {f"g{i}": quoted(name) for i, name in enumerate(spelled)}
    by_value = flat(tables, manifest, qit.where(parsed.visible), keys)
    items = aggregate(by_value, list(keys), {"e": "collect_list(struct(s, v, f, low, high))"})
    texts = {f"t{i}": f"CAST(g{i} AS STRING)" for i in range(len(keys))}
    lists = select(items, {g: g for g in keys} | texts | {name: f"e.{name}" for name in ("s", *_LISTS)})
    kernel = kernel_of(tables, manifest, parsed, spelled)
    answered = over_lists(lists, _Apart(kernel), [*_LISTS, *texts], "v", ADDED)
    zipped = ", ".join(("s", *_LISTS, *ADDED))
    entries = select(answered, {g: g for g in keys} | {"e": f"explode(arrays_zip({zipped}))"})
    shown = {name: "e.s" if len(sensitive) == 1 else f"e.s.{quoted(name)}" for name in sensitive}
    return select(entries, dict(zip(spelled, keys, strict=True)) | shown | shown_estimates())


def flat(tables: Mapping[str, DataFrame], manifest: Manifest, records: DataFrame, keys: Mapping[str, str]) -> DataFrame:
    """`keys`, s (the sensitive value, of two columns a struct of them), v (its text), f, low, high: flattened estimates and certain bounds
    for some records of `qit`.

    keys : name -> SQL over `records` to group by
    """
    st = tables[ST]
    entry = f"struct({combined(sensitive_columns(manifest))} AS s, {value_of(st, manifest)} AS v, {quoted(COUNT)} AS c)"
    held = aggregate(st, [BUCKET_ID], {"held": f"collect_list({entry})", "n": f"sum({quoted(COUNT)})"})
    named = select(records, {**keys, BUCKET_ID: BUCKET_ID})
    matching = aggregate(named, [*keys, BUCKET_ID], {"k": "count(1)"})
    joined = select(matching.join(held, BUCKET_ID), {g: g for g in keys} | {"k": "k", "n": "n", "h": "explode(held)"})
    sums = {
        "s": "first(h.s)",
        "f": "sum(CAST(k AS DOUBLE) * h.c / n)",
        "low": "sum(greatest(0L, k + h.c - n))",
        "high": "sum(least(k, h.c))",
    }
    apart = select(joined, {g: g for g in keys} | {"k": "k", "n": "n", "h": "h", "v": "h.v"})
    return aggregate(apart, [*keys, "v"], sums)


def kernel_of(tables: Mapping[str, DataFrame], manifest: Manifest, parsed: Predicate, by: Sequence[str]) -> GroupCounts:
    """The kernel for groups by these columns under a condition. One job, or two where priors are made of several conditions."""
    known = kinds_of(tables[ST], manifest)
    if known is None:
        return GroupCounts(None, (), (), np.zeros(0), 0)
    kinds, values = known
    system = Flattening(kinds)
    several = len(parsed.parts) + len(by) > 1
    alone = _alone(tables, manifest, parsed.parts, by) if several else [None] * (len(parsed.parts) + len(by))
    common = np.ones(len(values))
    for rows in alone[: len(parsed.parts)]:
        for ratio in _ratios(system, kinds, values, rows or []).values():
            common *= ratio
    columns = tuple(
        Part(None if rows is None else _ratios(system, kinds, values, rows)) for rows in alone[len(parsed.parts) :]
    )
    return GroupCounts(system, tuple(values), columns, common, len(parsed.parts))


def _alone(
    tables: Mapping[str, DataFrame], manifest: Manifest, conditions: Sequence[str], by: Sequence[str]
) -> list[list[Row] | None]:
    """For each condition, and then for each column, the rows (t, v, f): flattened estimates of it by itself. One job."""
    qit = tables[QIT]
    frames = [flat(tables, manifest, qit.where(condition), {"t": "''"}) for condition in conditions]
    frames += [flat(tables, manifest, qit, {"t": f"CAST({quoted(name)} AS STRING)"}) for name in by]
    most = MAX_RATIOS + 1
    asked = [Small.of_rows(select(f, {"t": "t", "v": "v", "f": "f"}).limit(most), most, list[Row]) for f in frames]
    return [rows if len(rows) < most else None for rows in collected(asked)]


def _ratios(
    system: Flattening, kinds: Kinds, values: Sequence[str | None], rows: Sequence[Row]
) -> dict[str | None, Float64Array]:
    """Text of a column's value -> (m,) how much likelier than overall each sensitive value has it."""
    place = {value: i for i, value in enumerate(values)}
    texts = {text: i for i, text in enumerate(dict.fromkeys(row["t"] for row in rows))}
    flattened = np.zeros((len(values), len(texts)))
    for row in rows:
        flattened[place[row["v"]], texts[row["t"]]] = row["f"]
    ratio = system.ratio(flattened)
    return {text: ratio[:, i] for text, i in texts.items()}


class _Apart:
    """The kernel with texts of columns as one argument."""

    def __init__(self, kernel: GroupCounts) -> None:
        self.kernel = kernel

    def __call__(
        self, values: object, flat: object, low: object, high: object, *texts: object
    ) -> dict[str, Float64Array]:
        return self.kernel(values, flat, low, high, texts)


def shown_estimates() -> dict[str, str]:
    """The columns of the result in SQL over an entry `e`."""
    names = ", ".join(f"'{name}'" for name in ESTIMATORS)
    own = {"estimator": f"element_at(array({names}), CAST(e.estimator AS INT) + 1)"}
    return {name: own.get(name, f"e.{name}") for name in ESTIMATES} | {"flattened": "e.f"}
