"""BuReL, the baseline: enhanced beta-likeness by equivalence classes that take their share of every bucket of sensitive values.

Source: Cao and Karras, VLDB 2012, as compared with in heterogeneous generalization (section 5). The walk, for n records:

    counts        pass 1 over the sensitive column
    buckets       driver, from counts alone: dynamic programming                                           (`anonlib.solvers.classes.burel`)
    domains       at most two passes
    partitions    only above `partition_size`: two passes over the codes                                           (`anonlib.methods.boxed`)
    classes       one shuffle of the codes; sizes by halving, records by nearness along the Hilbert curve
    microdata     one shuffle of what is published

`refine` is ours and makes the baseline stronger: buckets leave some room below their bounds, and classes are cut on as Mondrian does
while they keep the bound.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from anonlib.arrays import Codes, Int64Array
from anonlib.domains import Domain
from anonlib.engine.microdata import Microdata
from anonlib.kernels.classes.mondrian import mondrian
from anonlib.kernels.classes.take_out import approximate
from anonlib.kernels.hilbert import hilbert_positions
from anonlib.keyed import Stream
from anonlib.methods import boxed, trade_offs
from anonlib.methods.baselines import classes
from anonlib.methods.class_promises import Asked, Promise, class_promise
from anonlib.methods.recipe import Draft, Explanation, Run, Say
from anonlib.privacy.class_requirements import Requirement, enhanced_beta_likeness
from anonlib.privacy.counts import SensitiveCounts
from anonlib.solvers.classes.burel import ROOM, ValueBuckets, class_sizes, value_buckets
from anonlib.solvers.trade_offs.of_class_sizes import MOST_VALUES, of_beta
from anonlib.spec.methods.burel import BuReL

PURPOSE = "burel: order of the records of a partition"
DRAW = "burel: which records classes start from"


def promised(table: Microdata, counts: SensitiveCounts, wanted: BuReL) -> tuple[Promise, ValueBuckets]:
    """What the spec asks of every class (the enhanced bound, and so the basic one), and the buckets that keep it."""
    promise = class_promise(table, counts, Asked(beta=wanted.beta, enhanced_beta=wanted.beta))
    room = ROOM if wanted.refine else Fraction(1)
    return promise, value_buckets(counts, enhanced_beta_likeness(wanted.beta, counts), room)


def burel(table: Microdata, wanted: BuReL, run: Run) -> Draft:
    """Publish `table` in BuReL's classes."""
    started = time.monotonic()
    statistics = boxed.count(table, run.say)
    promise, buckets = promised(table, statistics.counts, wanted)
    run.say(f"{buckets.q} buckets for {statistics.counts.m} sensitive values")
    coded = boxed.read_coded(table, [statistics], True, run.say)
    cut = boxed.cut_by_tree(coded, wanted.partition_size, promise.requirement, run.say)
    run.say(f"filling classes with {coded.n:,} records")
    kernel = Filling(coded.domains, statistics.counts.m, buckets, promise.requirement, wanted.refine, run.key)
    solver = classes.solver_part("burel", started, partitions=cut.number, buckets=buckets.q)
    return classes.publish(coded, cut.records, kernel, PURPOSE, promise, solver, started, run)


def explain(table: Microdata, wanted: BuReL, say: Say) -> Explanation:
    """The buckets, the class sizes of a table in one piece, and those of other values of beta: one scan for the counts, then the driver."""
    promise, buckets = promised(table, boxed.count(table, say).counts, wanted)
    sizes = class_sizes(buckets.counts(promise.counts.counts), buckets.bounds).sum(axis=1)
    span = f"{sizes.min():,} to {sizes.max():,} records"
    summary = f"{buckets.q} buckets for {promise.counts.m} values; in one piece, {len(sizes):,} classes of {span}"
    explained = classes.explained(table.sensitive, promise, summary)
    trade_off = of_beta(promise.counts, wanted) if promise.counts.m <= MOST_VALUES else None
    return replace(
        explained,
        summary=summary + trade_offs.sentence(trade_off, "" if trade_off is None else trade_off.at_asked.note),
        grids=(*trade_offs.grids(trade_off), *explained.grids),
        facts={**explained.facts, **trade_offs.facts(trade_off)},
        trade_off=trade_off,
    )


@dataclass(frozen=True)
class Filling:
    """The kernel of one partition: fills classes with records near each other along the curve, as many of each bucket of values as planned;
    with `refine` Mondrian cuts them on.

    Returns (n,) int64, the class of each record.
    """

    domains: tuple[Domain, ...]
    m: int
    buckets: ValueBuckets
    requirement: Requirement
    refine: bool
    key: bytes

    def __call__(
        self, columns: list[Codes], sensitive: list[Int64Array], nodes: Int64Array, partition: int
    ) -> Int64Array:
        values = sensitive[0]
        sizes = class_sizes(self.buckets.counts(np.bincount(values, minlength=self.m)), self.buckets.bounds)
        curve = hilbert_positions(columns, self.domains).tolist()
        seeds = Stream(self.key, DRAW, partition).permutation(len(values))
        filled = approximate(curve, self.buckets.bucket[values], sizes.tolist(), seeds)
        if not self.refine:
            return filled
        return mondrian(columns, self.domains, values, self.m, self.requirement, begin=filled)
