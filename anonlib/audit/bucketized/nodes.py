"""What buckets tell of the nodes of the sensitive values' hierarchy: counted in `st`, value by value, as the manifest's tree has them.

Cost: one shuffle of `st` by bucket, no row of which leaves its bucket's task again; the driver gets one row per (node, count).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anonlib.audit.bucketized.facts import NodeEntry
from anonlib.engine.relational import DataFrame, Row, aggregate, rows, select
from anonlib.engine.statistics import value_text
from anonlib.engine.values import small_table
from anonlib.spec.layouts import BUCKET_ID, COUNT
from anonlib.sql import quoted


def node_entries(
    st: DataFrame, sensitive: str, under: Sequence[frozenset[str]], largest: int, few: bool
) -> tuple[NodeEntry, ...]:
    """One entry per (node, count) that occurs in a bucket. under : the values under each node; largest : sum of a bucket's counts."""
    if not under:
        return ()
    pairs = [(node, value) for node, values in enumerate(under) for value in sorted(values)]
    known = small_table(st, "node int, known string", pairs)
    shown = {
        BUCKET_ID: BUCKET_ID,
        "shown": value_text(sensitive, dict(st.dtypes)[sensitive]),
        "n": f"least(greatest(coalesce({quoted(COUNT)}, 0L), 0L), {largest + 1}L)",
    }
    lines = select(st.coalesce(1) if few else st, shown)
    buckets = aggregate(lines, [BUCKET_ID], {"size": "sum(n)", "lines": "collect_list(struct(shown, n))"})
    apart = select(buckets, {BUCKET_ID: BUCKET_ID, "size": "size", "line": "explode(lines)"})
    single = select(apart, {BUCKET_ID: BUCKET_ID, "size": "size", "shown": "line.shown", "n": "line.n"})
    joined = single.join(known, single["shown"] == known["known"])
    sums = aggregate(joined, [BUCKET_ID, "node"], {"size": "max(size)", "n": "sum(n)"})
    capped = select(sums, {"node": "node", "count": f"least(n, {largest + 1}L)", "size": "size", "n": "n"})
    facts = {"buckets": "count(1)", "smallest": "min(size)", "telling": "count_if(n = size)"}
    limit = len(under) * (largest + 2)
    return _entries(rows(aggregate(capped, ["node", "count"], facts).limit(limit), limit))


def _entries(found: Sequence[Row] | Sequence[Mapping[str, int]]) -> tuple[NodeEntry, ...]:
    entries = (
        NodeEntry(int(r["node"]), int(r["count"]), int(r["buckets"]), int(r["smallest"]), int(r["telling"]))
        for r in found
    )
    return tuple(sorted(entries, key=lambda e: (e.node, e.count)))
