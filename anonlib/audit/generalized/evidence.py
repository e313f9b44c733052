"""The graph behind a heterogeneous release, from the evidence that the method left for the audit; see `anonlib.release.generalized`.

Recomputed: every record matches as many records as match it, itself among them; the sensitive values of its matches are as diverse as
promised, and so are the values shown by the records that may be a person's, of each sensitive column by itself; the box that was published
for it is the tight box of its matches; the values published with the box are those of one of them, each record's once; the records are the
original's, less the suppressed and plus the declared dummies.

Cost: the evidence is shuffled by partition once and each partition handled in one task (p x mu numbers), fingerprints are sums; two rows
per sensitive value and fault reach the driver. Only where records are lost or added are rows counted one by one, in a shuffle more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.arrays import Codes, Int64Array, IntegerArray, UInt64Array
from anonlib.audit.generalized.facts import BoxFacts
from anonlib.audit.generalized.fingerprint import PIECES, BoxFingerprint, summed
from anonlib.audit.generalized.nodes_judge import bounds_of_values
from anonlib.audit.generalized.promises import NodeCase
from anonlib.audit.published import fresh_salt
from anonlib.audit.verdict import Check
from anonlib.domains import CategoricalDomain, Domain, NumericDomain
from anonlib.engine.batches import over_groups
from anonlib.engine.checksum import pieces, row_hash, sum_columns
from anonlib.engine.codes import encode
from anonlib.engine.relational import DataFrame, Small, aggregate, one_row, select
from anonlib.engine.tables import together
from anonlib.errors import AnonlibError
from anonlib.exact import text
from anonlib.release import generalized
from anonlib.release.manifest import GuaranteePart, Manifest

FAULTS = {
    "records": "records are not numbered 0, 1, ... in their partition",
    "matches": "a record's matches are no distinct records of its partition, or lack itself",
    "regular": "records of a partition do not all match, and are not all matched by, the same number of records",
    "assigned": "a published value is not that of a match, or a record's value is published twice",
    "dummies": "a dummy has not the quasi-identifiers of a real record of its partition",
}
MAX_ROWS = 10_000_000
"""Sensitive values and faults, each a few times."""
_SCHEMA = "kind string, key bigint, n bigint, worst double, top bigint, bottom bigint, partition bigint"


@dataclass(frozen=True)
class ColumnFacts:
    """One sensitive column. shares : sensitive code -> (largest share among a record's matches, a partition that has it); beliefs : the
    same among the records that match a person, each with the value it was published with; fewest : the smallest number of different values
    among a record's matches."""

    shares: dict[int, tuple[Fraction, int]]
    beliefs: dict[int, tuple[Fraction, int]]
    fewest: int


@dataclass(frozen=True)
class GraphFacts:
    """faults : {fault: (partitions that have it, one of them)}; columns : what shows of each sensitive column that the evidence has;
    torn : (partitions where the records around somebody show a bucket twice, one of them), None when nowhere;
    boxes : fingerprint of the tight boxes of all matches, with the values assigned; nodes : {number of a node: what shows of it}, of the
    first column."""

    faults: dict[str, tuple[int, int]]
    columns: tuple[ColumnFacts, ...]
    torn: tuple[int, int] | None
    records: int
    dummies: int
    boxes: tuple[int, ...]
    nodes: dict[int, NodeCase] = field(default_factory=dict)


def scan_graph(
    matches: DataFrame, manifest: Manifest, fingerprint: BoxFingerprint, under: Sequence[Sequence[int]] = ()
) -> Small[GraphFacts]:
    """The facts of all partitions. under : the sensitive codes under each of K nodes. One shuffle of the evidence; O(K p mu)."""
    domains, columns = generalized.quasi_identifiers(manifest).domains, len(_parts(matches, manifest))

    def facts(partition: int, group: Any) -> dict[str, Any]:
        return facts_of(Graph.read(partition, group, len(domains), columns), domains, fingerprint, under)

    by_partition = over_groups(matches, "partition", facts, _SCHEMA)
    best = {"n": "sum(n)", "best": "max(struct(worst, top, bottom, partition))"}
    return Small.of_rows(
        aggregate(by_partition, ["kind", "key"], best), MAX_ROWS, lambda found: _graph_facts(found, columns)
    )


def _parts(matches: DataFrame, manifest: Manifest) -> list[GuaranteePart]:
    """What is promised of each sensitive column that the evidence has, up to the first that it lacks; of the first always."""
    parts = (manifest.guarantee, *manifest.guarantee.also)
    known = next((i for i in range(1, len(parts)) if f"s{i}" not in matches.columns), len(parts))
    return [*parts[:known]]


def _of_column(kind: str, column: int) -> str:
    """The kind of an entry that tells of one sensitive column."""
    return kind if column == 0 else f"{kind} of column {column}"


def _graph_facts(worst_cases: list[dict[str, Any]], columns: int = 1) -> GraphFacts:
    of: dict[str, dict[int, dict[str, Any]]] = {}
    for row in worst_cases:
        of.setdefault(row["kind"], {})[int(row["key"])] = row
    return GraphFacts(
        faults={k: (int(of[k][0]["n"]), of[k][0]["best"]["partition"]) for k in FAULTS if k in of},
        columns=tuple(_column_facts(of, column) for column in range(columns)),
        torn=(int(of["torn"][0]["n"]), of["torn"][0]["best"]["partition"]) if "torn" in of else None,
        records=sum(int(r["n"]) for r in of.get("records of", {}).values()),
        dummies=sum(int(r["n"]) for r in of.get("dummies of", {}).values()),
        boxes=tuple(int(of["boxes"][k]["n"]) if "boxes" in of else 0 for k in range(PIECES)),
        nodes=_nodes(of),
    )


def _column_facts(of: Mapping[str, Mapping[int, dict[str, Any]]], column: int) -> ColumnFacts:
    share, belief, fewest = (_of_column(kind, column) for kind in ("share", "belief", "fewest"))
    return ColumnFacts(
        _fractions(of.get(share, {})),
        _fractions(of.get(belief, {})),
        int(of[fewest][0]["best"]["bottom"]) if fewest in of else 0,
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


@dataclass(frozen=True)
class Graph:
    """The evidence of one partition of p records, in the order of their numbers.

    codes    : (p,) each, of each quasi-identifier; own : (p,) sensitive codes; also : of further sensitive columns; dummy, assigned : (p,)
    matches  : (p, mu), None where the lists are empty or not equally long
    numbered : whether the records are 0, 1, ..., p - 1
    """

    partition: int
    codes: list[Codes]
    own: IntegerArray
    dummy: Any
    matches: IntegerArray | None
    assigned: IntegerArray
    numbered: bool
    also: tuple[IntegerArray, ...] = ()

    @staticmethod
    def read(partition: int, group: Any, attributes: int, columns: int = 1) -> Graph:
        """From an Arrow table of the evidence's columns, rows in any order. attributes, columns : how many quasi-identifiers and sensitive
        columns there are

        What is null is no number of a record, and no dummy.
        """
        record = group.column("record").fill_null(-1).to_numpy()
        order = np.argsort(record, kind="stable")
        matches = matched(group.column("matches"))
        return Graph(
            partition,
            [group.column(f"q{i}").to_numpy()[order] for i in range(attributes)],
            group.column("s0").to_numpy()[order],
            group.column("dummy").fill_null(False).to_numpy()[order],
            None if matches is None else matches[order],
            group.column("assigned").fill_null(-1).to_numpy()[order],
            np.array_equal(record[order], np.arange(len(record))),
            tuple(group.column(f"s{i}").to_numpy()[order] for i in range(1, columns)),
        )

    @property
    def sensitive(self) -> tuple[IntegerArray, ...]:
        """The codes of every sensitive column, (p,) each."""
        return (self.own, *self.also)

    @property
    def usable(self) -> IntegerArray | None:
        """`matches`, if they are records of the partition."""
        graph = self.matches
        return None if graph is None or graph.min() < 0 or graph.max() >= len(self.own) else graph


def facts_of(
    graph: Graph, domains: Sequence[Domain], fingerprint: BoxFingerprint, under: Sequence[Sequence[int]] = ()
) -> dict[str, list[Any]]:
    """What one partition tells, as columns of `_SCHEMA`. under : the sensitive codes under each node."""
    p, dummy, assigned = len(graph.own), graph.dummy, graph.assigned
    entries: list[tuple[str, int, int, float, int, int, int]] = []

    def tell(kind: str, key: int = 0, n: int = 1, top: int = 1, bottom: int = 1) -> None:
        entries.append((kind, key, n, top / bottom, top, bottom, graph.partition))

    tell("records of", n=p)
    tell("dummies of", n=int(dummy.sum()))
    if not graph.numbered:
        tell("records")
    matches = graph.usable
    if graph.matches is None:
        tell("regular")
    elif matches is None:
        tell("matches")
    else:
        ordered = np.sort(matches, axis=1)
        if (ordered[:, 1:] == ordered[:, :-1]).any() or not (matches == np.arange(p)[:, None]).any(axis=1).all():
            tell("matches")
        if (np.bincount(matches.ravel(), minlength=p) != matches.shape[1]).any():
            tell("regular")
        if not (matches == assigned[:, None]).any(axis=1).all() or not np.array_equal(np.sort(assigned), np.arange(p)):
            tell("assigned")
        for i, own in enumerate(graph.sensitive):
            values = np.sort(own[matches], axis=1)
            _tell_values(tell, _of_column("share", i), values)
            different = (np.diff(values, axis=1) != 0).sum(axis=1) + 1
            tell(_of_column("fewest", i), bottom=int(different.min()))
        inside = [np.isin(graph.own, codes) for codes in under]
        for k, node in enumerate(inside):
            held = node[matches].sum(axis=1)
            if held.any():
                tell("node share", key=k, top=int(held.max()), bottom=matches.shape[1])
            if (held == matches.shape[1]).any():
                tell("telling", key=k, n=int((held == matches.shape[1]).sum()))
        if not any(kind in ("matches", "regular", "assigned") for kind, *_ in entries) and not dummy.all():
            around = np.argsort(matches.ravel(), kind="stable").reshape(p, -1) // matches.shape[1]
            for i, own in enumerate(graph.sensitive):
                _tell_values(tell, _of_column("belief", i), np.sort(own[assigned][around[~dummy]], axis=1))
            for k, node in enumerate(inside):
                held = node[assigned][around[~dummy]].sum(axis=1)
                if held.any():
                    tell("node belief", key=k, top=int(held.max()), bottom=matches.shape[1])
            if not _rainbow(assigned, around):
                tell("torn")
    if dummy.any():
        real = set(zip(*(column[~dummy].tolist() for column in graph.codes), strict=True))
        if not real.issuperset(zip(*(column[dummy].tolist() for column in graph.codes), strict=True)):
            tell("dummies")
    for k, part in enumerate(summed(boxes_of(graph, domains, fingerprint)).astype(np.int64).tolist()):
        tell("boxes", key=k, n=part)
    names = ("kind", "key", "n", "worst", "top", "bottom", "partition")
    return {name: list(column) for name, column in zip(names, zip(*entries, strict=True), strict=True)}


def _rainbow(assigned: IntegerArray, around: Int64Array) -> bool:
    """Whether the records around every person show values of different buckets: (p,) who each record shows, (p, mu) the records around each
    person. Records are numbered bucket after bucket, mu buckets of one size."""
    p, mu = around.shape
    if p % mu:
        return False
    buckets = np.sort(assigned[around] // (p // mu), axis=1)
    return bool((buckets == np.arange(mu)).all())


def matched(lists: Any) -> IntegerArray | None:
    """(p, mu) of an Arrow column of p lists that are all equally long and not empty, else None."""
    lists = lists.combine_chunks()
    sizes = lists.value_lengths().fill_null(-1).to_numpy(zero_copy_only=False)
    items = lists.flatten()
    if sizes.min() < 1 or sizes.min() != sizes.max() or items.null_count:
        return None
    return np.asarray(items.to_numpy().reshape(len(sizes), -1))


def _tell_values(tell: Any, kind: str, values: IntegerArray) -> None:
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
    if manifest.method.name != "heterogeneous" or manifest.method.parameters.get("far_apart"):
        return []
    parts = (manifest.guarantee, *manifest.guarantee.also)
    return [_believed(column, facts.torn, manifest, part) for part, column in zip(parts, facts.columns, strict=False)]


def _believed(facts: ColumnFacts, torn: tuple[int, int] | None, manifest: Manifest, part: GuaranteePart) -> Check:
    """The same of one sensitive column."""
    values, promise = part.values, "no value above its bound among the records that match a person"
    name = "what may be believed of a person" + ("" if part is manifest.guarantee else f", of {part.sensitive}")
    try:
        bounds = bounds_of_values(manifest, part)
    except (AnonlibError, AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError) as problem:
        return Check(name, False, promise, f"the parameters state no bound: {problem}")
    if not facts.beliefs or max(facts.beliefs) >= len(values):
        return Check(name, False, promise, "cannot be told from this evidence")
    code, (belief, where) = max(facts.beliefs.items(), key=lambda item: item[1][0] / bounds[item[0]])
    broken = sum(share > bounds[v] for v, (share, _) in facts.beliefs.items())
    return Check(
        name=name,
        passed=not broken and torn is None,
        asked=promise + ", which show every bucket once",
        achieved=f"largest beside its bound: {text(belief)} of {text(bounds[code])}, {values[code].value!r}"
        + (f"; {broken:,} values above" if broken else "")
        + (f"; a bucket is shown twice around somebody in {torn[0]:,} partitions" if torn else ""),
        evidence=f"in partition {where}" if broken else f"in partition {torn[1]}" if torn else None,
    )


def same_boxes(published: BoxFacts, graph: GraphFacts, manifest: Manifest) -> Check:
    """The published rows are the tight boxes of each record's matches with its assigned values, each as often; by a fingerprint. Of every
    sensitive column the evidence has codes."""
    same = published.fingerprint == graph.boxes and published.measured.rows == graph.records
    promised = [manifest.guarantee.sensitive, *(part.sensitive for part in manifest.guarantee.also)]
    known = len(graph.columns)
    unknown = [f"{name!r} (its column s{i})" for i, name in enumerate(promised[known:], known)]
    passed = same and known == len(promised)
    different = f"different ({published.measured.rows:,} rows, {graph.records:,} by the graph)"
    return Check(
        name="boxes",
        passed=passed,
        asked="the published rows are the boxes of the records' matches, with the values assigned",
        achieved="equal" if passed else f"no codes of {', '.join(unknown)} in the evidence" if unknown else different,
    )


def boxes_of(graph: Graph, domains: Sequence[Domain], fingerprint: BoxFingerprint) -> UInt64Array:
    """(p,) hash of the tight box of each record's matches with the values assigned to it, recomputed from the graph; unusable graphs give
    boxes of nothing but the record itself."""
    p, matches = len(graph.own), graph.usable
    if matches is None:
        matches = np.arange(p)[:, None]
    parts = []
    for domain, column in zip(domains, graph.codes, strict=True):
        codes = column[matches]
        if isinstance(domain, NumericDomain):
            parts.append(fingerprint.interval(codes.min(axis=1), codes.max(axis=1)))
        else:
            assert isinstance(domain, CategoricalDomain)
            parts.append(_set_words(codes, fingerprint.members(domain.size)))
    assigned = np.clip(graph.assigned, 0, p - 1)
    return fingerprint.rows(parts, [own[assigned] for own in graph.sensitive])


def _set_words(codes: IntegerArray, words: UInt64Array) -> UInt64Array:
    """(p,) the sum of the words of the distinct codes of each row of `codes`, (p, mu). All rows at once: one sort along them."""
    ordered = np.sort(codes, axis=1)
    known = np.where((ordered < 0) | (ordered >= len(words) - 1), len(words) - 1, ordered)
    terms = words[known]
    terms[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = 0
    return np.asarray(terms.sum(axis=1))


def same_records(matches: DataFrame, manifest: Manifest, original: DataFrame) -> Small[bool]:
    """Whether the graph's real records are the original's, by a fingerprint under a fresh salt. Two scans, no shuffle."""
    coded = _coded(original, manifest, _parts(matches, manifest))
    salt = fresh_salt()

    def fingerprint(frame: DataFrame) -> Small[tuple[int, tuple[int, int, int]]]:
        hashed = select(frame, {"row": row_hash(frame, salt=salt)})
        sums = aggregate(hashed, [], {"n": "count(1)", **sum_columns("row", "f")})
        return Small.of_row(sums, lambda row: (int(row["n"]), pieces(row, "f")))

    return Small.of([fingerprint(coded), fingerprint(_real(matches, coded))], lambda sums: sums[0] == sums[1])


def _coded(original: DataFrame, manifest: Manifest, parts: Sequence[GuaranteePart]) -> DataFrame:
    sensitive: Mapping[str, Sequence[str | None]] = {part.sensitive: [v.value for v in part.values] for part in parts}
    return encode(original, generalized.quasi_identifiers(manifest), sensitive)


def _real(matches: DataFrame, coded: DataFrame) -> DataFrame:
    """The real records of the graph, with the columns and types of `coded`."""
    return select(matches.where("NOT dummy"), {name: f"CAST({name} AS {kind})" for name, kind in coded.dtypes})


def records_of_graph(matches: DataFrame, manifest: Manifest, original: DataFrame, same: bool) -> Check:
    """The graph's real records are the original's, less the suppressed ones. same : they are the original's, all of them; else each is
    counted, in a job."""
    lost, added = (0, 0) if same else _differing(matches, manifest, original)
    suppressed = manifest.rows.suppressed
    return Check(
        name="original: records of the graph",
        passed=lost == suppressed and added == 0,
        asked=f"the original's records, less {suppressed:,} suppressed",
        achieved=f"{lost:,} of the original's are not there, {added:,} are not the original's",
    )


def _differing(matches: DataFrame, manifest: Manifest, original: DataFrame) -> tuple[int, int]:
    """(records of the original that the graph has not, real records of the graph that the original has not). One shuffle of both."""
    coded = _coded(original, manifest, _parts(matches, manifest))
    salt = fresh_salt()
    one = select(coded, {"row": row_hash(coded, salt=salt), "n": "1L"})
    real = _real(matches, coded)
    other = select(real, {"row": row_hash(real, salt=salt), "n": "-1L"})
    both = together(one.unionAll(other), manifest.rows.published + manifest.rows.dummy)
    left = aggregate(both, ["row"], {"n": "sum(n)"})
    sums = one_row(aggregate(left, [], {"lost": "sum(greatest(n, 0L))", "added": "sum(greatest(-n, 0L))"}))
    return int(sums["lost"] or 0), int(sums["added"] or 0)
