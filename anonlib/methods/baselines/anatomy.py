"""Anatomy, the baseline: l-diversity by buckets of l or l + 1 records with distinct sensitive values.

Source: Xiao and Tao, VLDB 2006, as compared with in generalized bucketization, section 7. Same layout, same passes and same record
kernel as `bucketize`; only the choice of buckets differs, so that a comparison compares that choice alone.
"""

from __future__ import annotations

from anonlib.engine.microdata import Microdata
from anonlib.engine.statistics import sensitive_statistics
from anonlib.methods.bucketize import BucketChoice, explained_buckets, publish_buckets
from anonlib.methods.recipe import Draft, Explanation, Run, Say
from anonlib.privacy.buckets import BucketSolution
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy, Thresholds
from anonlib.solvers.buckets import anatomy as solver
from anonlib.solvers.trade_offs.registry import from_counts
from anonlib.spec.methods.anatomy import Anatomy


def choose_buckets(counts: SensitiveCounts, wanted: Anatomy) -> tuple[Thresholds, BucketSolution]:
    """Thresholds 1/l and Anatomy's buckets. Raises Unsatisfiable unless max o_i <= n / l."""
    thresholds = FPrivacy.l_diversity(wanted.l).thresholds(counts)
    return thresholds, solver.solve(counts, wanted.l)


def anatomy(table: Microdata, wanted: Anatomy, run: Run) -> Draft:
    """Publish `table` under l-diversity as Anatomy does."""
    run.say("counting the sensitive values (first pass)")
    statistics = sensitive_statistics(table.frame, table.sensitive, table.keep, table.refuse)
    thresholds, solution = choose_buckets(statistics.counts, wanted)
    run.say(f"anatomy: {solution.setting}; loss {solution.loss:,}")
    return publish_buckets(table, statistics, thresholds, solution, 0, False, run)


def explain(table: Microdata, wanted: Anatomy, say: Say) -> Explanation:
    """What `anatomy` would choose: one scan for the counts, then the driver alone."""
    say("counting the sensitive values")
    counts = sensitive_statistics(table.frame, table.sensitive, table.keep, table.refuse).counts
    thresholds, solution = choose_buckets(counts, wanted)
    trade_off = from_counts(wanted, counts)
    return explained_buckets(table.sensitive, BucketChoice(counts, thresholds, solution), trade_off)
