"""What buckets hold of each value of each of two sensitive columns: counted in `st`, whatever the combinations.

Cost: one shuffle of `st` by bucket, no row of which leaves its bucket's task again; the driver gets one row per (value, count).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anonlib.audit.bucketized.facts import Entry
from anonlib.engine.relational import DataFrame, aggregate, rows, select
from anonlib.engine.statistics import value_text
from anonlib.engine.values import small_table
from anonlib.spec.layouts import BUCKET_ID, COUNT
from anonlib.sql import quoted


def column_entries(
    st: DataFrame, sensitive: Mapping[str, str], values: Sequence[Sequence[str | None]], largest: int, few: bool
) -> tuple[tuple[Entry, ...], ...]:
    """Of each column one entry per (value, count) that occurs in a bucket; a count above `largest` is reported as `largest` + 1.

    sensitive : {column: its Spark type}; values : the known ones of each column, as texts; largest : sum of a bucket's counts
    """
    known = small_table(
        st, "at int, known string, code int", [(k, v, i) for k, of in enumerate(values) for i, v in enumerate(of)]
    )
    texts = {f"v{k}": value_text(name, kind) for k, (name, kind) in enumerate(sensitive.items())}
    capped = f"least(greatest(coalesce({quoted(COUNT)}, 0L), 0L), {largest + 1}L)"
    lines = select(st.coalesce(1) if few else st, {BUCKET_ID: BUCKET_ID, **texts, "n": capped})
    buckets = aggregate(lines, [BUCKET_ID], {"size": "sum(n)", "lines": f"collect_list(struct({', '.join(texts)}, n))"})
    apart = select(buckets, {BUCKET_ID: BUCKET_ID, "size": "size", "line": "explode(lines)"})
    both = ", ".join(f"struct({k} AS at, line.{v} AS v)" for k, v in enumerate(texts))
    each = select(apart, {BUCKET_ID: BUCKET_ID, "size": "size", "n": "line.n", "one": f"explode(array({both}))"})
    shown = select(each, {BUCKET_ID: BUCKET_ID, "size": "size", "n": "n", "column": "one.at", "shown": "one.v"})
    same = (shown["column"] == known["at"]) & shown["shown"].eqNullSafe(known["known"])
    sums = aggregate(shown.join(known, same), [BUCKET_ID, "at", "code"], {"size": "max(size)", "n": "sum(n)"})
    by_count = select(sums, {"at": "at", "code": "code", "count": f"least(n, {largest + 1}L)", "size": "size"})
    facts = {"buckets": "count(1)", "smallest": "min(size)"}
    limit = sum(len(of) for of in values) * (largest + 2)
    counted = rows(aggregate(by_count, ["at", "code", "count"], facts).limit(limit), limit)
    return tuple(
        tuple(
            sorted(
                (
                    Entry(int(r["code"]), int(r["count"]), int(r["buckets"]), int(r["smallest"]))
                    for r in counted
                    if int(r["at"]) == k
                ),
                key=lambda e: (e.code, e.count),
            )
        )
        for k in range(len(values))
    )
