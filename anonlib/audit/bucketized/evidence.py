"""Searches that run only when a check failed: the bucket, value or row that shows it. Each is one Spark job, slow and exact."""

from __future__ import annotations

from collections.abc import Sequence

from anonlib.audit.bucketized.facts import Entry
from anonlib.engine.relational import DataFrame, aggregate, rows, select
from anonlib.engine.statistics import value_text
from anonlib.engine.values import small_table
from anonlib.spec.layouts import BUCKET_ID, COUNT
from anonlib.sql import literal, quoted

_TOTAL = f"sum(CAST({quoted(COUNT)} AS DECIMAL(38, 0)))"
"""A sum that no tampered count can overflow."""


def bucket_of(st: DataFrame, sensitive: str, value: str | None, entry: Entry) -> str | None:
    """A bucket in which `value` has the entry's count and whose counts sum to the entry's smallest size."""
    here = f"{value_text(sensitive, dict(st.dtypes)[sensitive])} <=> {literal(value)}"
    buckets = aggregate(st, [BUCKET_ID], {"size": _TOTAL, "n": f"max(IF({here}, {quoted(COUNT)}, 0L))"})
    examples = rows(buckets.where(f"n = {entry.count} AND size = {entry.smallest}").orderBy(BUCKET_ID).limit(1), 1)
    return f"bucket {examples[0][BUCKET_ID]}: {entry.count:,} of {entry.smallest:,}" if examples else None


def value_in_two_rows(st: DataFrame, sensitive: str) -> str | None:
    """A value with more than one row in a bucket."""
    twice = aggregate(st, [BUCKET_ID, sensitive], {"lines": "count(1)"}).where("lines > 1")
    examples = rows(twice.orderBy(BUCKET_ID).limit(1), 1)
    return (
        f"bucket {examples[0][BUCKET_ID]}: {examples[0][sensitive]!r} in {examples[0]['lines']:,} rows"
        if examples
        else None
    )


def bad_row(st: DataFrame, sensitive: str, values: Sequence[str | None], largest: int) -> str | None:
    """A row of `st` whose value is not listed, whose count is out of range, or that has no bucket."""
    known = small_table(st, "listed string", [(v,) for v in values])
    shown = select(
        st, {BUCKET_ID: BUCKET_ID, "value": value_text(sensitive, dict(st.dtypes)[sensitive]), "n": quoted(COUNT)}
    )
    joined = shown.join(known, shown["value"].eqNullSafe(known["listed"]), "left_anti").limit(1)
    wrong = shown.where(f"{BUCKET_ID} IS NULL OR n IS NULL OR n < 1 OR n > {largest}").limit(1)
    examples = rows(wrong, 1) or rows(joined, 1)
    return f"bucket {examples[0][BUCKET_ID]}: {examples[0]['value']!r}, count {examples[0]['n']}" if examples else None


def bucket_that_differs(qit: DataFrame, st: DataFrame, fake_values: int) -> str | None:
    """A bucket whose rows in `qit` are not as many as its records in `st`."""
    left = aggregate(qit, [BUCKET_ID], {"n_qit": "count(1)"})
    right = aggregate(st, [BUCKET_ID], {"n_st": f"{_TOTAL} - {fake_values}L"})
    both = left.join(right, BUCKET_ID, "full").where("NOT (n_qit <=> n_st)").orderBy(BUCKET_ID).limit(1)
    examples = rows(both, 1)
    if not examples:
        return None
    worst = examples[0]
    return f"bucket {worst[BUCKET_ID]}: {worst['n_qit'] or 0:,} rows in qit, {worst['n_st'] or 0:,} records in st"
