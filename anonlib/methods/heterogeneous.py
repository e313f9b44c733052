"""Heterogeneous generalization: every record under a box of its own, by matching it with records of different sensitive values.

Source: heterogeneous generalization (sections 3 and 4). The walk, for n records, m sensitive values and partitions of p records:

    counts        pass 1 over the sensitive column; m values reach the driver
    buckets       driver, from the counts of the whole table: what it needs at least       (Algorithms 1 and 3, Theorem 4, made exact)
    domains       at most two passes
    partitions    only above `partition_size`: equal parts along the Hilbert curve of the quasi-identifiers, two shuffles of codes, or a
                  sort in one task up to 500,000 records; a pass for their sensitive counts, and neighbours merged until each can
                  keep the promise
    matches       one shuffle of codes; each partition dealt to pools that come out even and to their buckets, large pools cut into
                  neighbourhoods; these matched, boxed, and values dealt by a random rainbow colouring from the cryptographic stream
                  (Algorithm 2; section 3.2 corrected)
    microdata     one shuffle of what is published, into an order that says nothing

Buckets are chosen from sensitive values alone, partitions from quasi-identifiers alone, neighbourhoods and matches from these and from
which records share a bucket, whichever it is; only that neighbouring partitions merge, the counts of their sensitive values say. With
thresholds on values, or on nodes of their hierarchy, pools are cut from a line (`anonlib.solvers.matching.line_pools`), by counts too. With
`refine`, a mode for comparison, partitions are cut on into pools, as Mondrian cuts, while both halves can keep the promise: matching then
stays within pools. What the audit needs and nobody may publish, the matches, is staged beside the release.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib import words as templates
from anonlib.arrays import Codes, Int32Array, Int64Array, Lists
from anonlib.domains import Domain
from anonlib.engine import curve_ranks
from anonlib.engine.microdata import Microdata
from anonlib.engine.partitions import in_one_piece, partition_counts, renumbered
from anonlib.engine.ranks import CHANGED
from anonlib.engine.relational import DataFrame, aggregate, one_row
from anonlib.engine.statistics import SensitiveStatistics
from anonlib.engine.tables import together, types
from anonlib.errors import AnonlibError, SpecError, Unsatisfiable
from anonlib.exact import exact, legible, text
from anonlib.hierarchy import Hierarchy
from anonlib.kernels.classes.mondrian import mondrian
from anonlib.kernels.hilbert import hilbert_positions
from anonlib.kernels.matching.far_apart import far_apart
from anonlib.kernels.matching.match_boxes import match_boxes
from anonlib.kernels.matching.matching_deal import DealtRecords, deal, into_pools
from anonlib.kernels.matching.matching_graph import matching_graph
from anonlib.kernels.matching.neighbourhoods import neighbourhoods
from anonlib.kernels.matching.rainbow_colouring import rainbow_matching
from anonlib.keyed import Stream
from anonlib.methods import boxed
from anonlib.methods.boxed import Coded
from anonlib.methods.recipe import Draft, Run
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.match_buckets import MatchBuckets, mean_matches
from anonlib.privacy.match_limits import MatchLimits
from anonlib.privacy.value_tree import refuse_root, unknown_names, value_tree
from anonlib.release.manifest import GuaranteePart, NodePart, RowsPart, SolverPart, ValuePart
from anonlib.solvers.matching.match_partitions import MAX_BUCKET, Bucketing, GoodPool, merged_runs
from anonlib.solvers.trade_offs.of_matches import bound_of, bucketing_at
from anonlib.spec.methods.heterogeneous import Heterogeneous

ORDER = "heterogeneous: order of the records of a partition"
POOLS = "heterogeneous: which records go to which pool"
DEAL = "heterogeneous: which records go to which bucket"
NEIGHBOURS = "heterogeneous: neighbourhoods of a pool"
SALT = "heterogeneous: order of records at one place of the curve"
POOL_BITS = 32
WORKING = "matched"
"""The table that holds boxes and evidence together, staged and never published."""
FEW, NEAR = 50, Fraction(5, 4)
"""A refusal offers a threshold that takes up to so many matches, the fewest for one within a quarter of the smallest."""
MAX_EDGES = 200_000_000
"""Matches of all records of a pool at most, where thresholds may ask for many: 800 MB of numbers."""


def hierarchy_of(table: Microdata) -> Hierarchy | None:
    """The hierarchy of the sensitive column, where the spec has one."""
    return table.columns.sensitive[0].told_hierarchy


def bucketing(counts: SensitiveCounts, wanted: Heterogeneous, hierarchy: Hierarchy | None = None) -> Bucketing:
    """What is asked, over the whole table's counts. hierarchy : of the sensitive values, None for none.

    Raises SpecError for a threshold of what is neither a value nor a node, or of the root.
    """
    if hierarchy is not None:
        refuse_root(wanted.thresholds, hierarchy, "thresholds")
    if missing := unknown_names(wanted.thresholds, counts.values, hierarchy):
        nodes = ", and its column has no hierarchy" if hierarchy is None else " and is not in its hierarchy"
        raise SpecError(f"thresholds: {missing[0]!r} does not occur in the sensitive column{nodes}")
    return bucketing_at(counts, wanted, bound_of(wanted), hierarchy)


def whole_table(column: str, counts: SensitiveCounts, promised: Bucketing) -> list[MatchBuckets]:
    """The pools of the whole table, largest first. Raises Unsatisfiable, with the most that can be asked, when there are none, or none
    that anybody could match."""
    limits, pools = promised.limits, promised.of_whole(counts.counts)
    if pools is None:  # beta-likeness by itself always has buckets of one record
        by_l = promised.l is not None and not LDiversity(promised.l).eligible(counts.counts[None, :])[0]
        raise Unsatisfiable(
            _not_eligible(column, counts, promised) if by_l or limits is None else _above_limits(column, counts, limits)
        )
    if limits is not None and max(pool.mu for pool in pools) > MAX_BUCKET:
        raise Unsatisfiable(_too_near(column, counts, limits, max(pool.mu for pool in pools)))
    return pools


def _above_limits(column: str, counts: SensitiveCounts, limits: MatchLimits) -> str:
    """Which values and nodes have more records than their threshold allows, and what each could be asked for."""
    above = np.flatnonzero(~limits.eligible(counts.counts)).tolist()
    held = limits.records(counts.counts)
    lines = [f"{_beside(counts, limits, at)}, {_would_do(int(held[at]), counts.n)}" for at in above]
    return (
        f"no release can keep these thresholds of {column!r}, since {len(above)} value(s) or node(s) have more of the records than their "
        "threshold allows among the matches of one; raise the thresholds, or coarsen or withhold the values:\n  "
        + "\n  ".join(lines)
    )


def _would_do(records: int, n: int) -> str:
    """The smallest threshold for so many of n records, which may take very many matches, and one near it that takes few by itself."""
    offers = [(Fraction(min(mu, -(-records // (n // mu))), mu), mu) for mu in range(2, min(n, FEW) + 1)]
    near = [offer for offer in offers if offer[0] <= NEAR * Fraction(records, n)]
    share, mu = near[0] if near else min(offers, default=(Fraction(1), 1))
    return f"smallest that works {legible(Fraction(records, n))}; {legible(share)} asks for {mu} matches or more"


def _too_near(column: str, counts: SensitiveCounts, limits: MatchLimits, matches: int) -> str:
    """Which limit asks for so many matches that no task could find them: one that is strict by itself, or else nearest to what is there."""
    records, fractions = limits.records(counts.counts).tolist(), (*limits.values, *limits.nodes)
    strict = limits.matches_needed > MAX_BUCKET
    there = [at for at in range(len(records)) if records[at] and fractions[at] < 1]
    nearest = max(there, key=lambda at: (bool(strict[at]), records[at] / fractions[at]))
    return (
        f"these thresholds of {column!r} leave so little room that some records would have to match {matches:,}, and a record is matched "
        f"with {MAX_BUCKET:,} at most; raise the one that is nearest to what is there:\n  {_beside(counts, limits, nearest)}"
    )


def _beside(counts: SensitiveCounts, limits: MatchLimits, at: int) -> str:
    records, f = int(limits.records(counts.counts)[at]), (*limits.values, *limits.nodes)[at]
    name = (*counts.values, *limits.labels)[at]
    return f"{name!r}: {records:,} of {counts.n:,} records ({records / counts.n:.4%}), threshold {legible(f)}"


def _not_eligible(column: str, counts: SensitiveCounts, promised: Bucketing) -> str:
    l = promised.l or 0  # noqa: E741
    table = counts.counts[None, :]
    best = next((k for k in range(min(l - 1, counts.m), 1, -1) if LDiversity(k).eligible(table)[0]), 0)
    mend = f"l: {best} can be kept" if best else "no l above 1 can be kept"
    if counts.m < l:
        return f"l: {l}, but column {column!r} has only {counts.m} different values; {mend}"
    most = int(np.argmax(counts.counts))
    return (
        f"l: {l}, but {counts.values[most]!r} in column {column!r} has {int(counts.counts[most]):,} of {counts.n:,} records, more than "
        f"one in {l}; {mend}"
    )


def heterogeneous(table: Microdata, wanted: Heterogeneous, run: Run) -> Draft:
    """Publish `table` by matches."""
    started = time.monotonic()
    statistics = boxed.count(table, run.say)
    counts = statistics.counts
    promised = bucketing(counts, wanted, hierarchy_of(table))
    whole = whole_table(table.sensitive, counts, promised)
    run.say(f"a record needs {mean_matches(whole):,.0f} matches on average in the table as a whole")
    coded = boxed.read_coded(table, [statistics], False, run.say)
    fewest = promised.matches(whole)
    partitions, held = cut(coded, wanted, promised.l, lambda row: promised.good_enough(row, fewest), run)
    number = len(held)
    run.say(f"matching {coded.n:,} records in {number:,} partitions ({wanted.matching})")
    pools = GoodPool(promised, fewest) if wanted.refine else None
    pairs = coded.n**2 // number
    kernel = Matching(coded.domains, counts.m, promised, pools, wanted.matching, wanted.far_apart, run.key, pairs)
    working = run.stage(
        WORKING, boxed.over_matches(coded, partitions, boxed.OneSensitive(kernel), ORDER, run.key, held)
    )
    summary = one_row(aggregate(together(working, coded.n), [], SUMMARY))
    solver = solver_part(wanted, summary, number, _of_whole(whole))
    guarantee = _guarantee(table, counts, wanted, promised)
    return boxed.publish_matches(coded, working, guarantee, rows_part(statistics, summary), solver, started, run)


SUMMARY = {
    "records": "count(1)",
    "dummies": "count_if(dummy)",
    "fewest": "min(size(matches))",
    "most": "max(size(matches))",
    "mean": "avg(size(matches))",
}


def cut(
    coded: Coded,
    wanted: Heterogeneous,
    l: int | None,  # noqa: E741  (the field's name)
    keeps: Callable[[Int64Array], bool],
    run: Run,
) -> tuple[DataFrame, Int64Array]:
    """(the located records, how many each partition has). By quasi-identifiers alone; merged where one could not keep the promise alone.

    l     : None under beta; keeps : of a partition's counts of all sensitive columns, side by side, whether it can
    """
    m = sum(coded.sizes)
    size = (
        coded.n
        if wanted.partition_size == "all"
        else max(int(wanted.partition_size), -(-coded.n * m // boxed.LEAF_CELLS), l or 1)
    )
    number = max(1, coded.n // size)
    if number == 1:
        return in_one_piece(coded.frame), np.array([coded.n])
    run.say(f"cutting the table into {number:,} partitions along the Hilbert curve of its quasi-identifiers")
    salt = int(Stream(run.key, SALT).below(1 << 62, 1)[0])
    records = curve_ranks.equal_partitions(
        coded.frame, _Curve(coded.domains), coded.n, number, salt, run.stage, coded.input_rows, l or 1
    )
    counts = partition_counts(records, number, coded.sizes)
    held = counts[:, : coded.sizes[0]].sum(axis=1)
    runs = merged_runs(counts, keeps)
    merged = int(runs.max()) + 1
    if merged == number:
        return records, held
    run.say(f"{merged:,} partitions, after merging neighbours that could not keep the promise well by themselves")
    sums = np.zeros(merged, dtype=np.int64)
    np.add.at(sums, runs, held)
    return renumbered(records, runs), sums


@dataclass(frozen=True)
class _Curve:
    domains: tuple[Domain, ...]

    def __call__(self, columns: list[Codes]) -> Int64Array:
        return hilbert_positions(columns, self.domains)


@dataclass(frozen=True)
class Matching:
    """The record kernel, for one partition: pools, buckets, matches, boxes, and whose sensitive value each box is published with.

    pairs : of records that are compared in all partitions, about

    Cost: see `matching_graph` and `rainbow_matching`, for the largest neighbourhood; memory about 100 bytes an edge of its graph (records x
    matches).
    """

    domains: tuple[Domain, ...]
    m: int
    promised: Bucketing
    pools: GoodPool | None
    matching: str
    far_apart: bool
    key: bytes
    pairs: int = 0

    def __call__(self, columns: list[Codes], sensitive: Int64Array, partition: int) -> dict[str, Any]:
        parts: list[dict[str, Any]] = []
        for rows in self.pooled(columns, sensitive):
            place = (partition << POOL_BITS) + len(parts)
            for buckets, members in self.bucketed(sensitive[rows], place):
                own = rows[members]
                pool = [column[own] for column in columns]
                place = (partition << POOL_BITS) + len(parts)
                for dealt in self.dealt(pool, sensitive[own], buckets, place):
                    place = (partition << POOL_BITS) + len(parts)
                    parts.append(self.matched(pool, dealt, buckets.distinct, place))
        return {name: _joined([part[name] for part in parts]) for name in parts[0]}

    def pooled(self, columns: list[Codes], sensitive: Int64Array) -> list[Int64Array]:
        """Record numbers of each pool: those that are matched among each other."""
        if self.pools is None:
            return [np.arange(len(sensitive))]
        pool = mondrian(columns, self.domains, sensitive, self.m, self.pools)
        return np.split(np.argsort(pool, kind="stable"), np.cumsum(np.bincount(pool))[:-1])

    def bucketed(self, sensitive: Int64Array, place: int) -> list[tuple[MatchBuckets, Int64Array]]:
        """(buckets, record numbers) of each pool, by counts of sensitive values and the key alone."""
        counts = np.bincount(sensitive, minlength=self.m).astype(np.int64)
        if (least := self.promised.least_bucket(len(sensitive))) > MAX_BUCKET:
            raise SpecError(_too_large(len(sensitive), least))
        if self.far_apart:
            whole = self.promised.buckets(counts)
            pools = None if whole is None else [whole]
        else:
            pools = self.promised.pools(counts)
        if pools is None:
            raise AnonlibError(f"a partition can no longer keep the promise; {CHANGED}")
        for buckets in pools:
            if buckets.size > MAX_BUCKET:
                raise SpecError(_too_large(len(sensitive), buckets.size))
            if self.promised.limits is not None and buckets.mu * buckets.mu * buckets.size > MAX_EDGES:
                raise Unsatisfiable(_too_many(buckets))
        members = into_pools(sensitive, pools, Stream(self.key, POOLS, place))
        return list(zip(pools, members, strict=True))

    def dealt(
        self, columns: list[Codes], sensitive: Int64Array, buckets: MatchBuckets, place: int
    ) -> list[DealtRecords]:
        """One pool's records in their buckets, neighbourhood by neighbourhood."""
        dealt = deal(sensitive, buckets, Stream(self.key, DEAL, place))
        if self.far_apart:
            dealt = far_apart(columns, self.domains, dealt)
        if buckets.distinct:
            return [
                dealt
            ]  # under l `partition_size` says how many are compared, and the paper's buckets match as a whole alone
        own = [column[dealt.source] for column in columns]
        return neighbourhoods(own, self.domains, dealt, Stream(self.key, NEIGHBOURS, place))

    def graph(self, columns: list[Codes], dealt: DealtRecords, distinct: bool) -> Int32Array:
        """(n, mu) the records that each of a neighbourhood matches. columns : of the n dealt records"""
        return matching_graph(columns, self.domains, dealt, distinct, self.matching, self.pairs)

    def matched(self, columns: list[Codes], dealt: DealtRecords, distinct: bool, place: int) -> dict[str, Any]:
        """The records of a neighbourhood, each with its box, its matches and the value it is published with. columns : of its pool"""
        own = [column[dealt.source] for column in columns]
        matches = self.graph(own, dealt, distinct)
        assigned = rainbow_matching(matches, self.key, place)
        n = len(assigned)
        return boxed.box_columns(match_boxes(own, self.domains, matches), np.arange(n)) | {
            "s0": dealt.sensitive[assigned].astype(np.int32),
            "partition": np.full(n, place, dtype=np.int64),
            "record": np.arange(n, dtype=np.int32),
            "own": dealt.sensitive.astype(np.int32),
            "dummy": dealt.dummy,
            "matches": Lists.of_rows(matches),
            "assigned": assigned.astype(np.int32),
            **{f"q{i}": column for i, column in enumerate(own)},
        }


def _too_large(records: int, bucket: int) -> str:
    return (
        f"a partition of {records:,} records has buckets of {bucket:,}, and matching compares two buckets pair by "
        f"pair, of at most {MAX_BUCKET:,} records each; give a smaller partition_size, or ask for less if partitions had to merge"
    )


def _too_many(buckets: MatchBuckets) -> str:
    records = buckets.mu * buckets.size
    return (
        f"where the records are that thresholds speak of, partitions merged to {records:,} records or more that each have to match "
        f"{buckets.mu:,}, more than a task can hold; raise the thresholds of the values or nodes that are nearest to theirs"
    )


def _joined(parts: list[Any]) -> Any:
    return Lists.joined(parts) if isinstance(parts[0], Lists) else np.concatenate(parts)


def thresholds(counts: SensitiveCounts, promised: Bucketing) -> list[Fraction]:
    """The share of each value that is allowed among the matches of a record."""
    if promised.limits is not None:
        return list(promised.limits.values)
    if promised.l is not None:
        return [Fraction(1, promised.l)] * counts.m
    assert promised.likeness is not None
    return [min(Fraction(1), (1 + promised.likeness.beta) * counts.frequency(i)) for i in range(counts.m)]


def words(
    column: str, wanted: Heterogeneous, values: Sequence[str | None] = (), nodes: Sequence[NodePart] | None = None
) -> str:
    """The promise in words, from the numbers used. values : of the table; nodes : above them, None where they have no hierarchy."""
    remainder = None if wanted.beta is None else wanted.remainder
    beta = None if wanted.l else Fraction(wanted.beta or 0)
    own = [(v, wanted.thresholds[v]) for v in values if v is not None and v in wanted.thresholds]
    bounded = None if nodes is None else [(n.node, exact(n.threshold)) for n in nodes if n.threshold is not None]
    return templates.matches(
        column,
        wanted.l,
        beta,
        wanted.leaking,
        remainder,
        strictest_first(own),
        None if bounded is None else strictest_first(bounded),
    )


def strictest_first(shares: Sequence[tuple[str | None, Fraction]]) -> list[templates.Share]:
    """Thresholds in the order in which a sentence names them."""
    return sorted(shares, key=lambda share: (share[1], share[0] or ""))


def node_parts(counts: SensitiveCounts, wanted: Heterogeneous, hierarchy: Hierarchy | None) -> list[NodePart]:
    """The nodes above the values as the manifest tells them: none where values have no hierarchy."""
    if hierarchy is None:
        return []
    tree = value_tree(counts.values, hierarchy, wanted.thresholds)
    asked = [wanted.thresholds.get(label) for label in tree.labels]
    return [
        NodePart(node=label, count=n, threshold=None if f is None else text(f))
        for label, n, f in zip(tree.labels, tree.records(counts.counts).tolist(), asked, strict=True)
    ]


def _guarantee(table: Microdata, counts: SensitiveCounts, wanted: Heterogeneous, promised: Bucketing) -> GuaranteePart:
    bounds, hierarchy = thresholds(counts, promised), hierarchy_of(table)
    nodes = node_parts(counts, wanted, hierarchy)
    asked = {"l": str(wanted.l)} if wanted.l is not None else {"beta": text(Fraction(wanted.beta or 0))}
    return GuaranteePart(
        model=templates.DIVERSE_MATCHES if wanted.l is not None else templates.ALIKE_MATCHES,
        words=words(table.sensitive, wanted, counts.values, None if hierarchy is None else nodes),
        sensitive=table.sensitive,
        sensitive_type=types(table.frame)[table.sensitive],
        values=[
            ValuePart(value=value, count=int(counts.counts[i]), threshold=text(bounds[i]))
            for i, value in enumerate(counts.values)
        ],
        asked=asked,
        hierarchy=hierarchy.rows if hierarchy is not None else [],
        nodes=nodes,
    )


def rows_part(statistics: SensitiveStatistics, summary: dict[str, Any]) -> RowsPart:
    n, dummies = statistics.counts.n, int(summary["dummies"])
    published = int(summary["records"]) - dummies
    return RowsPart(
        input=statistics.input_rows,
        published=published,
        dropped=statistics.dropped,
        suppressed=n - published,
        dummy=dummies,
    )


def _of_whole(whole: list[MatchBuckets]) -> dict[str, Any]:
    """What the table as a whole needs, for the manifest."""
    return {
        "whole_table": {
            "pools": len(whole),
            "matches": whole[0].mu,
            "mean_matches": round(mean_matches(whole), 3),
            "bucket_size": whole[0].size,
            "algorithm": whole[0].algorithm,
        }
    }


def solver_part(
    wanted: Heterogeneous, summary: dict[str, Any], number: int, more: Mapping[str, Any] | None = None
) -> SolverPart:
    """The driver's and the tasks' account, but for how long it took. summary : `SUMMARY` of what the tasks made; more : details"""
    return SolverPart(
        name=wanted.matching,
        status="heuristic",
        setting=[],
        unit="partitions",
        seconds=0.0,
        details={
            "partitions": number,
            "matches": {"fewest": summary["fewest"], "most": summary["most"], "mean": round(float(summary["mean"]), 3)},
        }
        | dict(more or {})
        | ({} if wanted.remainder is None else {"remainder": wanted.remainder}),
    )
