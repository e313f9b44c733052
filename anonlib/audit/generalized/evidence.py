"""The graph behind a heterogeneous release, from the evidence that the method left for the audit; see `anonlib.release.generalized`.

Recomputed: every record matches as many records as match it, itself among them; the sensitive values of its matches are as diverse as
promised, and so are the values shown by the records that may be a person's; the box that was published for it is the tight box of its
matches; the value published with the box is that of one of them, each record's value once; the records are the original's, less the
suppressed and plus the declared dummies.

Cost: the evidence is shuffled by partition twice and each partition handled in one task (p x mu numbers), fingerprints are sums; two rows
per sensitive value and fault reach the driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from anonlib.arrays import Int32Array, Int64Array
from anonlib.audit.generalized.nodes_judge import bounds_of_values
from anonlib.audit.generalized.promises import NodeCase
from anonlib.audit.published import fresh_salt
from anonlib.audit.verdict import Check
from anonlib.domains import NumericDomain
from anonlib.engine.boxes import box_schema, decode
from anonlib.engine.checksum import pieces, row_hash, sum_columns
from anonlib.engine.codes import encode
from anonlib.engine.relational import DataFrame, Small, aggregate, select
from anonlib.engine.tables import together
from anonlib.errors import AnonlibError
from anonlib.exact import text
from anonlib.release import generalized
from anonlib.release.manifest import Manifest

FAULTS = {
    "records": "records are not numbered 0, 1, ... in their partition",
    "matches": "a record's matches are no distinct records of its partition, or lack itself",
    "regular": "records of a partition do not all match, and are not all matched by, the same number of records",
    "assigned": "a published value is not that of a match, or a record's value is published twice",
    "dummies": "a dummy has not the quasi-identifiers of a real record of its partition",
}
_Fingerprint = tuple[int, tuple[int, int, int]]
"""Rows, and the sums of their hashes in pieces."""
MAX_ROWS = 10_000_000
"""Sensitive values and faults, each a few times."""
_SCHEMA = "kind string, key bigint, n bigint, worst double, top bigint, bottom bigint, partition bigint"


@dataclass(frozen=True)
class GraphFacts:
    """faults : {fault: (partitions that have it, one of them)}; shares : sensitive code -> (largest share among a record's matches, a
    partition that has it); beliefs : the same among the records that match a person, each with the value it was published with;
    torn : (partitions where the records around somebody show a bucket twice, one of them), None when nowhere;
    fewest : the smallest number of different values among a record's matches; nodes : {number of a node: what shows of it}."""

    faults: dict[str, tuple[int, int]]
    shares: dict[int, tuple[Fraction, int]]
    beliefs: dict[int, tuple[Fraction, int]]
    torn: tuple[int, int] | None
    fewest: int
    records: int
    dummies: int
    nodes: dict[int, NodeCase] = field(default_factory=dict)


def scan_graph(matches: DataFrame, attributes: int, under: Sequence[Sequence[int]] = ()) -> Small[GraphFacts]:
    """The facts of all partitions. under : the sensitive codes under each of K nodes. One shuffle of the evidence; O(K p mu)."""

    def facts(group: pd.DataFrame) -> pd.DataFrame:
        return _facts(group, attributes, under)

    by_partition = matches.groupBy("partition").applyInPandas(facts, _SCHEMA)
    best = {"n": "sum(n)", "best": "max(struct(worst, top, bottom, partition))"}
    return Small.of_rows(aggregate(by_partition, ["kind", "key"], best), MAX_ROWS, _graph_facts)


def _graph_facts(worst_cases: list[dict[str, Any]]) -> GraphFacts:
    of: dict[str, dict[int, dict[str, Any]]] = {}
    for row in worst_cases:
        of.setdefault(row["kind"], {})[int(row["key"])] = row
    return GraphFacts(
        faults={k: (int(of[k][0]["n"]), of[k][0]["best"]["partition"]) for k in FAULTS if k in of},
        shares=_fractions(of.get("share", {})),
        beliefs=_fractions(of.get("belief", {})),
        torn=(int(of["torn"][0]["n"]), of["torn"][0]["best"]["partition"]) if "torn" in of else None,
        fewest=int(of["fewest"][0]["best"]["bottom"]) if "fewest" in of else 0,
        records=sum(int(r["n"]) for r in of.get("records of", {}).values()),
        dummies=sum(int(r["n"]) for r in of.get("dummies of", {}).values()),
        nodes=_nodes(of),
    )


def _nodes(of: Mapping[str, Mapping[int, dict[str, Any]]]) -> dict[int, NodeCase]:
    shares, beliefs = _fractions(of.get("node share", {})), _fractions(of.get("node belief", {}))
    telling = {k: int(row["n"]) for k, row in of.get("telling", {}).items()}
    return {
        k: NodeCase(share, beliefs.get(k, (Fraction(0), 0))[0], telling.get(k, 0), f"partition {where}")
        for k, (share, where) in shares.items()
    }


def _fractions(by_code: Mapping[int, dict[str, Any]]) -> dict[int, tuple[Fraction, int]]:
    return {
        code: (Fraction(row["best"]["top"], row["best"]["bottom"]), row["best"]["partition"])
        for code, row in by_code.items()
    }


def _facts(group: pd.DataFrame, attributes: int, under: Sequence[Sequence[int]] = ()) -> pd.DataFrame:
    """What one partition tells, as rows of `_SCHEMA`. under : the sensitive codes under each node."""
    group = group.sort_values("record", kind="stable")
    p, partition = len(group), int(group["partition"].iloc[0])
    entries: list[tuple[str, int, int, float, int, int, int]] = []

    def tell(kind: str, key: int = 0, n: int = 1, top: int = 1, bottom: int = 1) -> None:
        entries.append((kind, key, n, top / bottom, top, bottom, partition))

    dummy = group["dummy"].to_numpy(bool)
    tell("records of", n=p)
    tell("dummies of", n=int(dummy.sum()))
    if not np.array_equal(group["record"].to_numpy(), np.arange(p)):
        tell("records")
    graph = matched(group["matches"])
    if graph is None:
        tell("regular")
    elif graph.min() < 0 or graph.max() >= p:
        tell("matches")
    else:
        ordered = np.sort(graph, axis=1)
        if (ordered[:, 1:] == ordered[:, :-1]).any() or not (graph == np.arange(p)[:, None]).any(axis=1).all():
            tell("matches")
        if (np.bincount(graph.ravel(), minlength=p) != graph.shape[1]).any():
            tell("regular")
        assigned = group["assigned"].to_numpy()
        if not (graph == assigned[:, None]).any(axis=1).all() or not np.array_equal(np.sort(assigned), np.arange(p)):
            tell("assigned")
        own = group["s0"].to_numpy(np.int64)
        values = np.sort(own[graph], axis=1)
        _tell_values(tell, "share", values)
        inside = [np.isin(own, codes) for codes in under]
        for k, node in enumerate(inside):
            held = node[graph].sum(axis=1)
            if held.any():
                tell("node share", key=k, top=int(held.max()), bottom=graph.shape[1])
            if (held == graph.shape[1]).any():
                tell("telling", key=k, n=int((held == graph.shape[1]).sum()))
        tell("fewest", bottom=int((np.diff(values, axis=1) != 0).sum(axis=1).min()) + 1)
        if not any(kind in ("matches", "regular", "assigned") for kind, *_ in entries) and not dummy.all():
            around = np.argsort(graph.ravel(), kind="stable").reshape(p, -1) // graph.shape[1]
            _tell_values(tell, "belief", np.sort(own[assigned][around[~dummy]], axis=1))
            for k, node in enumerate(inside):
                held = node[assigned][around[~dummy]].sum(axis=1)
                if held.any():
                    tell("node belief", key=k, top=int(held.max()), bottom=graph.shape[1])
            if not _rainbow(assigned, around):
                tell("torn")
    if dummy.any():
        columns = group[[f"q{i}" for i in range(attributes)]]
        real = set(columns[~dummy].itertuples(index=False, name=None))
        if not all(row in real for row in columns[dummy].itertuples(index=False, name=None)):
            tell("dummies")
    return pd.DataFrame(entries, columns=["kind", "key", "n", "worst", "top", "bottom", "partition"])


def _rainbow(assigned: Int64Array, around: Int64Array) -> bool:
    """Whether the records around every person show values of different buckets: (p,) who each record shows, (p, mu) the records around each
    person. Records are numbered bucket after bucket, mu buckets of one size."""
    p, mu = around.shape
    if p % mu:
        return False
    buckets = np.sort(assigned[around] // (p // mu), axis=1)
    return bool((buckets == np.arange(mu)).all())


def matched(lists: pd.Series[Any]) -> Int64Array | None:
    """(p, mu) int64 of lists that are all equally long and not empty, else None."""
    sizes = {-1 if item is None else len(item) for item in lists}
    if len(sizes) != 1 or min(sizes) < 1:
        return None
    return np.stack([np.asarray(item, dtype=np.int64) for item in lists])


def _tell_values(tell: Any, kind: str, values: Int64Array) -> None:
    """The most often that each value stands in a row of `values`: (p, mu) sensitive codes, sorted along rows."""
    p, mu = values.shape
    begins = np.ones((p, mu), dtype=bool)
    begins[:, 1:] = values[:, 1:] != values[:, :-1]
    starts = np.flatnonzero(begins)
    runs, codes = np.diff(np.r_[starts, p * mu]), values.ravel()[starts]
    most = np.zeros(int(codes.max()) + 1, dtype=np.int64)
    np.maximum.at(most, codes, runs)
    for code in np.flatnonzero(most):
        tell(kind, key=int(code), top=int(most[code]), bottom=mu)


def graph_checks(facts: GraphFacts, manifest: Manifest) -> list[Check]:
    """The graph is what the method says it is."""
    wrong = [f"{FAULTS[fault]} ({n:,} partitions, e.g. {where})" for fault, (n, where) in facts.faults.items()]
    rows_ = manifest.rows
    counted = facts.records == rows_.published + rows_.dummy and facts.dummies == rows_.dummy
    return [
        Check(
            name="graph of matches",
            passed=not wrong,
            asked="every record matches as many records as match it, itself among them, and gets the value of one of them",
            achieved="so it is" if not wrong else f"{len(wrong)} faults",
            evidence=wrong[0] if wrong else None,
        ),
        Check(
            name="records of the graph",
            passed=counted,
            asked=f"{rows_.published:,} published and {rows_.dummy:,} dummies",
            achieved=f"{facts.records - facts.dummies:,} and {facts.dummies:,}",
        ),
        *_person_side(facts, manifest),
    ]


def _person_side(facts: GraphFacts, manifest: Manifest) -> list[Check]:
    """The belief of somebody who knows the graph and sees the records: each record that matches a person is the person's own with the same
    probability, so a value is believed with its share among those records. At most 1/l, or (1 + beta) times its share of the table, or its
    own threshold.
    That they are equally likely rests on their showing every bucket once: of a bucket that is shown twice, neither record is the person's.

    Not for rings (`nh`), nor where shared buckets were filled far apart: their promise is about a record's matches alone.
    """
    asked, values = manifest.method.parameters, manifest.guarantee.values
    if manifest.method.name != "heterogeneous" or asked.get("far_apart"):
        return []
    name, promise = "what may be believed of a person", "no value above its bound among the records that match a person"
    try:
        bounds = bounds_of_values(manifest)
    except (AnonlibError, AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError) as problem:
        return [Check(name, False, promise, f"the parameters state no bound: {problem}")]
    if not facts.beliefs or max(facts.beliefs) >= len(values):
        return [Check(name, False, promise, "cannot be told from this evidence")]
    code, (belief, where) = max(facts.beliefs.items(), key=lambda item: item[1][0] / bounds[item[0]])
    broken = sum(share > bounds[v] for v, (share, _) in facts.beliefs.items())
    return [
        Check(
            name=name,
            passed=not broken and facts.torn is None,
            asked=promise + ", which show every bucket once",
            achieved=f"largest beside its bound: {text(belief)} of {text(bounds[code])}, {values[code].value!r}"
            + (f"; {broken:,} values above" if broken else "")
            + (f"; a bucket is shown twice around somebody in {facts.torn[0]:,} partitions" if facts.torn else ""),
            evidence=f"in partition {where}" if broken else f"in partition {facts.torn[1]}" if facts.torn else None,
        )
    ]


def boxes_of_matches(microdata: DataFrame, matches: DataFrame, manifest: Manifest) -> Small[Check]:
    """The published rows are the tight boxes of each record's matches with its assigned value, each as often; by a fingerprint."""
    quasi_identifiers = generalized.quasi_identifiers(manifest)
    numeric = [isinstance(domain, NumericDomain) for domain in quasi_identifiers.domains]

    def boxes(group: pd.DataFrame) -> pd.DataFrame:
        return _boxes(group, numeric)

    coded = matches.groupBy("partition").applyInPandas(boxes, box_schema(quasi_identifiers))
    part = manifest.guarantee
    values = {part.sensitive: ([v.value for v in part.values], part.sensitive_type)}
    salt = fresh_salt()

    def fingerprint(frame: DataFrame) -> Small[_Fingerprint]:
        hashed = select(frame, {"row": row_hash(frame, salt=salt)})
        sums = aggregate(hashed, [], {"n": "count(1)", **sum_columns("row", "f")})
        return Small.of_row(sums, lambda row: (int(row["n"]), pieces(row, "f")))

    def compared(sums: list[_Fingerprint]) -> Check:
        published, by_graph = sums
        return Check(
            name="boxes",
            passed=published == by_graph,
            asked="the published rows are the boxes of the records' matches, with the values assigned",
            achieved="equal"
            if published == by_graph
            else f"different ({published[0]:,} rows, {by_graph[0]:,} by the graph)",
        )

    return Small.of([fingerprint(microdata), fingerprint(decode(coded, quasi_identifiers, values))], compared)


def _boxes(group: pd.DataFrame, numeric: Sequence[bool]) -> pd.DataFrame:
    """The tight box of each record's matches, recomputed from the graph; unusable graphs give boxes of nothing but the record itself."""
    group = group.sort_values("record", kind="stable")
    p, graph = len(group), matched(group["matches"])
    if graph is None or graph.min() < 0 or graph.max() >= p:
        graph = np.arange(p)[:, None]
    columns: dict[str, Any] = {}
    for i, interval in enumerate(numeric):
        codes = group[f"q{i}"].to_numpy()[graph]
        if interval:
            columns |= {f"q{i}_lo": codes.min(axis=1), f"q{i}_hi": codes.max(axis=1)}
        else:
            columns[f"q{i}_set"] = _distinct(codes)
    assigned = np.clip(group["assigned"].to_numpy(np.int64), 0, p - 1)
    columns["s0"] = group["s0"].to_numpy()[assigned]
    return pd.DataFrame(columns)


def _distinct(codes: Int64Array) -> list[Int32Array]:
    """The distinct codes of each row of `codes`, (p, mu), ascending. All rows at once: one sort along them."""
    ordered = np.sort(codes, axis=1)
    new = np.ones(ordered.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    values, ends = ordered[new].astype(np.int32), np.concatenate([[0], np.cumsum(new.sum(axis=1))]).tolist()
    return [values[first:last] for first, last in pairwise(ends)]


def records_of_graph(matches: DataFrame, manifest: Manifest, original: DataFrame) -> Small[Check]:
    """The graph's real records are the original's, less the suppressed ones."""
    quasi_identifiers = generalized.quasi_identifiers(manifest)
    sensitive: Mapping[str, Sequence[str | None]] = {
        manifest.guarantee.sensitive: [v.value for v in manifest.guarantee.values]
    }
    coded = encode(original, quasi_identifiers, sensitive)
    salt = fresh_salt()
    one = select(coded, {"row": row_hash(coded, salt=salt), "n": "1L"})
    typed = select(matches.where("NOT dummy"), {name: f"CAST({name} AS {kind})" for name, kind in coded.dtypes})
    other = select(typed, {"row": row_hash(typed, salt=salt), "n": "-1L"})
    both = together(one.unionAll(other), manifest.rows.published + manifest.rows.dummy)
    left = aggregate(both, ["row"], {"n": "sum(n)"})
    suppressed = manifest.rows.suppressed

    def compared(sums: dict[str, Any]) -> Check:
        lost, added = int(sums["lost"] or 0), int(sums["added"] or 0)
        return Check(
            name="original: records of the graph",
            passed=lost == suppressed and added == 0,
            asked=f"the original's records, less {suppressed:,} suppressed",
            achieved=f"{lost:,} of the original's are not there, {added:,} are not the original's",
        )

    sums = {"lost": "sum(greatest(n, 0L))", "added": "sum(greatest(-n, 0L))"}
    return Small.of_row(aggregate(left, [], sums), compared)
