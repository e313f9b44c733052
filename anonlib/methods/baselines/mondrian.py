"""Mondrian, the baseline: equivalence classes by cutting the quasi-identifiers' space while both halves keep every promise.

Source: LeFevre, DeWitt and Ramakrishnan, ICDE 2006; with t-closeness it is the tMondrian that SABRE is compared with (section 6), with
beta-likeness or frequency l-diversity a baseline of heterogeneous generalization. The walk, for n records:

    counts        pass 1 over the sensitive column
    domains       at most two passes; values of categorical attributes reach the driver
    partitions    only above `partition_size`: two passes over the codes and bounded counts on the driver   (`anonlib.methods.boxed`)
    classes       one shuffle of the codes; cuts within each partition, all regions at once          (`anonlib.kernels.classes.mondrian`)
    microdata     one shuffle of what is published

Cutting for the cluster first costs hardly any penalty, since the first cuts are Mondrian's own kind: on a census table of 100,000 records,
k = 10, GCP moves from 0.0246 to 0.0245 with seven partitions and to 0.0247 with seventy.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from anonlib.arrays import Codes, Int64Array
from anonlib.domains import Domain
from anonlib.engine.microdata import Microdata
from anonlib.kernels.classes import mondrian as kernel
from anonlib.methods import boxed
from anonlib.methods.baselines import classes
from anonlib.methods.class_promises import Asked, Promise, class_promise
from anonlib.methods.recipe import Draft, Explanation, Run, Say
from anonlib.privacy.class_requirements import Requirement
from anonlib.privacy.counts import SensitiveCounts
from anonlib.spec.methods.mondrian import Mondrian

PURPOSE = "mondrian: order of the records of a partition"


def promised(table: Microdata, counts: SensitiveCounts, wanted: Mondrian) -> Promise:
    """What the spec asks of every class."""
    asked = Asked(wanted.k, wanted.distinct_l, wanted.frequency_l, wanted.beta, wanted.enhanced_beta, wanted.t)
    return class_promise(table, counts, asked)


def mondrian(table: Microdata, wanted: Mondrian, run: Run) -> Draft:
    """Publish `table` in Mondrian's classes."""
    started = time.monotonic()
    statistics = boxed.count(table, run.say)
    promise = promised(table, statistics.counts, wanted)
    coded = boxed.read_coded(table, [statistics], True, run.say)
    cut = boxed.cut_by_tree(coded, wanted.partition_size, promise.requirement, run.say)
    run.say(f"cutting {coded.n:,} records into classes")
    cuts = Cuts(coded.domains, statistics.counts.m, promise.requirement, wanted.cuts == "strict")
    solver = classes.solver_part("mondrian", started, partitions=cut.number)
    return classes.publish(coded, cut.records, cuts, PURPOSE, promise, solver, started, run)


def explain(table: Microdata, wanted: Mondrian, say: Say) -> Explanation:
    """What would be promised, and the least that a class then holds: one scan for the counts."""
    promise = promised(table, boxed.count(table, say).counts, wanted)
    summary = f"Cuts {promise.counts.n:,} records into classes of at least {promise.requirement.smallest:,}"
    return classes.explained(table.sensitive, promise, summary)


@dataclass(frozen=True)
class Cuts:
    """The kernel of one partition: cuts it while every class keeps `requirement`. Returns (n,) int64, the class of each record."""

    domains: tuple[Domain, ...]
    m: int
    requirement: Requirement
    strict: bool

    def __call__(
        self, columns: list[Codes], sensitive: list[Int64Array], nodes: Int64Array, partition: int
    ) -> Int64Array:
        return kernel.mondrian(columns, self.domains, sensitive[0], self.m, self.requirement, self.strict)
