"""What heterogeneous generalization would choose, and what l or beta costs: certainty penalty on a sample.

The passes of counts and domains, one scan for the sample, then the driver alone.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.engine.codes import sampled
from anonlib.engine.microdata import Microdata
from anonlib.exact import exact, text
from anonlib.hierarchy import Hierarchy
from anonlib.methods import boxed, trade_offs
from anonlib.methods.boxed import Coded
from anonlib.methods.heterogeneous import bucketing, hierarchy_of, node_parts, thresholds, whole_table, words
from anonlib.methods.heterogeneous_sample import SAMPLE, certainty_penalty
from anonlib.methods.recipe import Explanation, Grid, Say
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.match_buckets import MatchBuckets, mean_matches
from anonlib.privacy.value_tree import value_tree
from anonlib.release.manifest import NodePart
from anonlib.solvers.matching.beta_buckets import by_l_diversity, fewest_dummies, largest_buckets, published_bound
from anonlib.solvers.matching.beta_pools import ALGORITHM
from anonlib.solvers.trade_offs.of_matches import NOT_LOOKED_AT, bound_of, note_of, of_matches
from anonlib.solvers.trade_offs.trade_off import TradeOff
from anonlib.spec.methods.heterogeneous import Heterogeneous

MOST = 20


def explain(table: Microdata, wanted: Heterogeneous, say: Say) -> Explanation:
    """The pools of the whole table, and the penalty over l or beta on a sample. Partitions are held to the same, with about as many
    matches."""
    statistics = boxed.count(table, say)
    counts = statistics.counts
    hierarchy = hierarchy_of(table)
    promised = bucketing(counts, wanted, hierarchy)
    whole = whole_table(table.sensitive, counts, promised)
    coded = boxed.read_coded(table, [statistics], False, say)
    trade_off = _trade_off(coded, wanted, whole, hierarchy, say)
    size = counts.n if wanted.partition_size == "all" else int(wanted.partition_size)
    partitions = max(1, counts.n // size)
    bounds = thresholds(counts, promised)
    likeness = promised.likeness
    choices = _pools(whole) if promised.l is not None or promised.dummies is None else {}
    if likeness is not None and promised.limits is None:
        choices |= _choices(counts, likeness, promised.dummies is not False)
    nodes = node_parts(counts, wanted, hierarchy)
    largest = _largest_of_nodes(counts, whole, hierarchy, wanted)
    first = sorted(range(counts.m), key=lambda i: (-bounds[i], -int(counts.counts[i])))[:MOST]
    values = tuple(
        (
            str(counts.values[i]),
            f"{int(counts.counts[i]):,}",
            f"{float(counts.frequency(i)):.4%}",
            f"{max(1 / pool.mu if pool.distinct else pool.held_by[i] / pool.mu for pool in whole):.4%}",
            f"{float(bounds[i]):.4%}",
        )
        for i in first
    )
    more = f"... and {counts.m - MOST:,} values that are protected more" if counts.m > MOST else ""
    shapes = ", ".join(f"{pool.mu:,} of {pool.size:,}" for pool in whole)
    counted = likeness is not None or wanted.far_apart
    return Explanation(
        words=words(table.sensitive, wanted, counts.values, None if hierarchy is None else nodes),
        summary=f"Matches every record with {mean_matches(whole):,.0f} of the table's {counts.n:,} on average, from buckets of equal size: "
        f"{shapes} records ({whole[0].algorithm}), in {partitions:,} partition(s) or fewer{trade_offs.sentence(trade_off, note_of(whole))}",
        grids=(
            *trade_offs.grids(trade_off),
            Grid(
                ("buckets by", "matches", "bucket size", "dummies", "left out", "beta kept", "bound of equation 7"),
                tuple((name, *_buckets_row(buckets, counts, likeness)) for name, buckets in choices.items()),
            ),
            Grid(("value", "records", "share of the table", "most among matches", "allowed"), values, more),
            *_grid_of_nodes(nodes, largest),
        ),
        facts={
            "records": counts.n,
            "sensitive_values": counts.m,
            "asked": {"l": str(wanted.l)} if wanted.l is not None else {"beta": text(wanted.beta)},  # type: ignore[arg-type]
            "pools": len(whole),
            "matches": whole[0].mu,
            "mean_matches": round(mean_matches(whole), 3),
            "bucket_size": whole[0].size,
            "algorithm": whole[0].algorithm,
            "dummies": sum(pool.made_up for pool in whole) if counted else 0,
            "left_out": sum(pool.left_out for pool in whole) if counted else 0,
            "partitions": partitions,
            "choices": {name: buckets.mu for name, buckets in choices.items()},
            **({} if hierarchy is None else {"nodes": _nodes_explained(nodes, largest)}),
            **trade_offs.facts(trade_off),
        },
        choice=whole,
        trade_off=trade_off,
    )


def _trade_off(
    coded: Coded, wanted: Heterogeneous, whole: list[MatchBuckets], hierarchy: Hierarchy | None, say: Say
) -> TradeOff:
    """Matches over the bound by the whole table's counts, and the certainty penalty on a sample."""
    say("trading the bound against matches")
    counts = coded.statistics[0].counts
    trade_off = of_matches(counts, wanted, {bound_of(wanted): whole}, hierarchy)
    columns, sensitive = sampled(coded.frame, SAMPLE, coded.n)
    say(f"matching {len(columns[0]):,} records for each bound")
    may = [point.bound for point in trade_off.points if point.measures or point.note == NOT_LOOKED_AT]
    penalties = {
        bound: certainty_penalty(columns, coded.domains, sensitive[0], wanted, bound, counts.values, hierarchy)
        for bound in may
    }
    measured = {bound: penalty for bound, penalty in penalties.items() if penalty is not None}
    return (
        trade_off.with_measure("gcp", "certainty penalty (GCP)", measured, len(columns[0])) if measured else trade_off
    )


def _largest_of_nodes(
    counts: SensitiveCounts, whole: list[MatchBuckets], hierarchy: Hierarchy | None, wanted: Heterogeneous
) -> list[Fraction]:
    """The largest share of each node among the matches of a record, by the pools of the whole table."""
    if hierarchy is None:
        return []
    under = value_tree(counts.values, hierarchy, wanted.thresholds).members()
    held = [[len(np.unique(pool.bucket[member[pool.value]])) for member in under] for pool in whole]
    return [max(Fraction(each[k], pool.mu) for each, pool in zip(held, whole, strict=True)) for k in range(len(under))]


def _nodes_explained(nodes: list[NodePart], largest: list[Fraction]) -> list[dict[str, Any]]:
    return [
        {"node": n.node, "count": n.count, "threshold": n.threshold, "largest": text(share)}
        for n, share in zip(nodes, largest, strict=True)
    ]


def _grid_of_nodes(nodes: list[NodePart], largest: list[Fraction]) -> tuple[Grid, ...]:
    """What matches tell of nodes, the most first; none where values have no hierarchy."""
    if not nodes:
        return ()
    told = sorted(zip(nodes, largest, strict=True), key=lambda pair: (pair[0].threshold is None, -pair[1]))
    rows = tuple(
        (
            n.node,
            f"{n.count:,}",
            f"{float(share):.4%}",
            "no bound" if n.threshold is None else f"{float(exact(n.threshold)):.4%}",
        )
        for n, share in told[:MOST]
    )
    more = f"... and {len(nodes) - MOST:,} nodes" if len(nodes) > MOST else ""
    return (Grid(("node", "records", "most among matches", "allowed"), rows, more),)


def _pools(whole: list[MatchBuckets]) -> dict[str, MatchBuckets]:
    """The pools that are taken, each by its name."""
    if len(whole) == 1:
        return {whole[0].algorithm: whole[0]}
    return {f"{pool.algorithm} {k} of {len(whole)}": pool for k, pool in enumerate(whole, 1)}


def _choices(counts: SensitiveCounts, likeness: BetaLikeness, dummies: bool) -> dict[str, MatchBuckets]:
    """What else would keep beta: the better packing, the published one, and l-diversity by Theorem 4."""
    packed = largest_buckets(counts.counts, likeness, dummies=dummies)
    choices = {
        "packed": None if packed is None else fewest_dummies(packed, counts.counts, likeness),
        "greedy (Algorithm 3)": largest_buckets(counts.counts, likeness, dummies=dummies, packings="greedy"),
    }
    choices[f"l = {likeness.equivalent_l} (Theorem 4)"] = by_l_diversity(counts.counts, likeness, dummies)
    return {name: each for name, each in choices.items() if each is not None}


def _buckets_row(buckets: MatchBuckets, counts: SensitiveCounts, likeness: BetaLikeness | None) -> tuple[str, ...]:
    """A line of the table of choices: matches, bucket size, dummies, left out, beta kept, bound of equation 7."""
    kept = bound = ""
    if likeness is not None:
        carried = np.minimum(buckets.held_by, 1) if buckets.distinct else buckets.held_by
        kept = f"{float(likeness.attained(carried, buckets.mu)):.4g}"
        bound = (
            ""
            if buckets.distinct or buckets.algorithm == ALGORITHM
            else f"{float(published_bound(counts.counts, buckets)):.4g}"
        )
    return f"{buckets.mu:,}", f"{buckets.size:,}", f"{buckets.made_up:,}", f"{buckets.left_out:,}", kept, bound
