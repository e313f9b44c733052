"""Counts by group and the values of some of several sensitive columns on an opened bucketized release: one plan, beside what
`anonlib.release.bucketized_distribution` brings to the driver first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from anonlib.arrays import Float64Array
from anonlib.engine.compound import text_of
from anonlib.engine.lists import over_lists
from anonlib.engine.relational import DataFrame, aggregate, rows, select
from anonlib.queries.flattening import MAX_VALUES
from anonlib.queries.group_counts import ADDED
from anonlib.queries.group_sums import SUM, VALUE, GroupSums
from anonlib.queries.predicate import TRUE, parse
from anonlib.release.answers import ESTIMATES, groups, visible_only
from anonlib.release.bucketized import QIT, ST, combined
from anonlib.release.bucketized_distribution import kernel_of, shown_estimates
from anonlib.release.bucketized_values import sensitive_types, value_of
from anonlib.release.hierarchies import hierarchies
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import BUCKET_ID, COUNT
from anonlib.sql import quoted

_LISTS = {"t": "int", "v": "string", "f": "double", "low": "bigint", "high": "bigint"}


def distribution_of_some(
    tables: Mapping[str, DataFrame], manifest: Manifest, by: Sequence[str], where: str | None, shown: Sequence[str]
) -> DataFrame:
    """How many records of each group have each value of the sensitive columns `shown`, whatever they have in the others.

    by    : published columns to group by; none for all records in one group
    where : a condition on published columns, and on the other sensitive ones

    A DataFrame, not yet computed: `by`, `shown`, then `anonlib.release.answers.ESTIMATES` and `flattened`. Jobs and plan are those of
    `anonlib.release.bucketized_distribution.distribution`, and a small job for which combinations have which value. Raises SpecError for a
    column that is unknown, sensitive or named twice, or a condition that cannot be read or is on a column that is shown.
    """
    qit, st, sensitive = tables[QIT], tables[ST], sensitive_types(tables[ST], manifest)
    columns = {name: kind for name, kind in qit.dtypes if name != BUCKET_ID}
    spelled = groups(by, columns, list(sensitive), (*ESTIMATES, "flattened"))
    parsed = parse(where or TRUE, columns | sensitive, list(sensitive), hierarchies(manifest))
    own = parse(where or TRUE, columns | sensitive, list(shown), hierarchies(manifest))
    visible_only(where, own.sensitive, TRUE)
    values = select(
        st,
        {
            BUCKET_ID: BUCKET_ID,
            "v": value_of(st, manifest),
            "l": text_of({name: sensitive[name] for name in shown}),
            "s": combined(tuple(shown)),
            "c": quoted(COUNT),
            "a": f"coalesce({parsed.sensitive}, FALSE)",
        },
    )
    keys = {f"g{i}": quoted(name) for i, name in enumerate(spelled)}
    items = aggregate(
        _by_value_and_sum(qit.where(parsed.visible), keys, values),
        list(keys),
        {"e": "collect_list(struct(t, s, v, f, low, high))"},
    )
    texts = {f"t{i}": f"CAST(g{i} AS STRING)" for i in range(len(keys))}
    lists = select(items, {g: g for g in keys} | texts | {name: f"e.{name}" for name in ("s", *_LISTS)})
    counts = kernel_of(tables, manifest, parsed, spelled)
    kernel = _Apart(GroupSums(counts, *_sums(values, counts.values)))
    answered = over_lists(lists, kernel, [*_LISTS, *texts], "v", ADDED)
    zipped = ", ".join(("s", *_LISTS, *ADDED))
    entries = select(answered, {g: g for g in keys} | {"e": f"explode(arrays_zip({zipped}))"}).where(f"e.t = {SUM}")
    told = {name: "e.s" if len(shown) == 1 else f"e.s.{quoted(name)}" for name in shown}
    return select(entries, dict(zip(spelled, keys, strict=True)) | told | shown_estimates())


def _by_value_and_sum(records: DataFrame, keys: Mapping[str, str], values: DataFrame) -> DataFrame:
    """`keys`, t, v, s, f, low, high: flattened estimates and certain bounds of each value of the system (t = VALUE), and of each sum
    (t = SUM) over those that are asked for.

    values : of the rows of `st`, bucket_id, v the value, l and s the sum's label and what is shown of it, c, and a, whether it is asked for
    """
    by_sum = aggregate(
        values,
        [BUCKET_ID, "l"],
        {
            "s": "first(s)",
            "asked": "sum(IF(a, c, 0L))",
            "held": f"collect_list(struct({VALUE} AS t, v, s, c))",
            "n": "sum(c)",
        },
    )
    sums = f"filter(collect_list(struct({SUM} AS t, l AS v, s, asked AS c)), e -> e.c > 0)"
    by_bucket = aggregate(by_sum, [BUCKET_ID], {"held": f"concat(flatten(collect_list(held)), {sums})", "n": "sum(n)"})
    matching = aggregate(select(records, {**keys, BUCKET_ID: BUCKET_ID}), [*keys, BUCKET_ID], {"k": "count(1)"})
    joined = select(
        matching.join(by_bucket, BUCKET_ID), {g: g for g in keys} | {"k": "k", "n": "n", "h": "explode(held)"}
    )
    apart = select(joined, {g: g for g in keys} | {"k": "k", "n": "n", "t": "h.t", "v": "h.v", "s": "h.s", "c": "h.c"})
    numbers = {
        "s": "first(s)",
        "f": "sum(CAST(k AS DOUBLE) * c / n)",
        "low": "sum(greatest(0L, k + c - n))",
        "high": "sum(least(k, c))",
    }
    return aggregate(apart, [*keys, "t", "v"], numbers)


def _sums(values: DataFrame, known: Sequence[str | None]) -> tuple[tuple[str | None, ...], Float64Array]:
    """(labels, (m, L) which of the `known` values are in each). One job."""
    place = {value: i for i, value in enumerate(known)}
    if not place:
        return (), np.zeros((0, 0))
    asked = rows(aggregate(values.where("a"), ["v"], {"l": "first(l)"}).limit(MAX_VALUES + 1), MAX_VALUES + 1)
    labels = {label: i for i, label in enumerate(dict.fromkeys(row["l"] for row in asked))}
    sums = np.zeros((len(known), len(labels)))
    for row in asked:
        sums[place[row["v"]], labels[row["l"]]] = 1
    return tuple(labels), sums


class _Apart:
    """The kernel with texts of columns as one argument."""

    def __init__(self, kernel: GroupSums) -> None:
        self.kernel = kernel

    def __call__(
        self, kinds: object, names: object, flat: object, low: object, high: object, *texts: object
    ) -> dict[str, Float64Array]:
        return self.kernel(kinds, names, flat, low, high, texts)
