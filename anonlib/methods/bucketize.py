"""Generalized bucketization: publish every record, in buckets of mixed sizes that keep each sensitive value below its own threshold.

Source: generalized bucketization (sections 3 to 6) and inferential privacy (sections 4 to 6). The walk, with its cost for n records,
m sensitive values and P partitions:

    counts        pass 1 over the sensitive column; P m counts are shuffled, m values reach the driver
    thresholds    exact, driver; Unsatisfiable names what is too frequent                                   (Lemma 1)
    solution      driver, from counts alone, independent of n                                (Algorithms 2-4, section 6.1)
    deal          driver; how many records of each value go to each size, and where each value starts in which band   (Section 4)
    qit           pass 2: rank within value, keyed permutation, round robin; dealt to files by bucket, sorted  (Algorithm 1)
    st            generated from the same deal, bucket by bucket; no pass over records

With `fake_values` the deal is another one: what each bucket lists and which of it is fake is chosen on the driver from counts, and records
go to the places that are real (`anonlib.solvers.buckets.fake_values`); no further pass. With `avoid_negative_associations` fakes are drawn
afterwards, beside the deal above, which costs the shuffles that `anonlib.engine.fakes` says. With `mix_companions` the deal goes round
in several bands for each size, values in another order in each (`Deal.mixed`); sizes, thresholds and passes are the same.

Where the sensitive values have a hierarchy, its nodes may have thresholds, values of other branches share buckets where they can
(`anonlib.solvers.buckets.companions`), and the manifest says of every node how much of a bucket it may be.

Two scans of the input; one shuffle of rows, so that a row's file says nothing of its partition of the input; driver memory O(m q) for q
bucket sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

from anonlib.arrays import Int64Array
from anonlib.engine import fakes, generate, ranks
from anonlib.engine.columnar.columns import Itself
from anonlib.engine.columnar.listing import Listing
from anonlib.engine.columnar.rewriting import Rewriting
from anonlib.engine.microdata import Microdata
from anonlib.engine.order import arranged, files
from anonlib.engine.relational import DataFrame
from anonlib.engine.statistics import SensitiveStatistics, sensitive_statistics
from anonlib.engine.tables import project, types
from anonlib.errors import OutOfTime, Unsatisfiable
from anonlib.exact import exact, text
from anonlib.hierarchy import Hierarchy
from anonlib.kernels.ranked.fake_deal import FakeDeal
from anonlib.kernels.ranked.fake_values import FakeValues
from anonlib.kernels.ranked.round_robin import Deal, RoundRobin, composition
from anonlib.methods import trade_offs
from anonlib.methods.recipe import Draft, Explanation, Grid, Run, Say
from anonlib.privacy.buckets import BucketSetting, BucketSolution
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import Thresholds, guarantee_words
from anonlib.release import account
from anonlib.release.bucketized import QIT, ST
from anonlib.release.manifest import GuaranteePart, NodePart, RowsPart, SizePart, SolverPart, ValuePart
from anonlib.solvers.buckets import choose, companions
from anonlib.solvers.buckets import fake_values as fake_solver
from anonlib.solvers.buckets.fake_values import FakePlan
from anonlib.solvers.buckets.wanted import f_privacy
from anonlib.solvers.trade_offs import of_thresholds
from anonlib.solvers.trade_offs.registry import from_counts
from anonlib.solvers.trade_offs.trade_off import TradeOff, with_offer
from anonlib.spec.layouts import BUCKET_ID, COUNT
from anonlib.spec.methods.bucketize import Bucketize
from anonlib.words import F_PRIVACY


def hierarchy_of(table: Microdata) -> Hierarchy | None:
    """The hierarchy of the sensitive column, where the spec has one."""
    return table.columns.sensitive[0].told_hierarchy


def choose_buckets(
    counts: SensitiveCounts,
    wanted: Bucketize,
    before: Mapping[str | None, int] | None = None,
    hierarchy: Hierarchy | None = None,
) -> tuple[Thresholds, BucketSolution]:
    """Thresholds and the solver's answer, from counts alone; `before` are those of earlier releases. Raises Unsatisfiable.

    hierarchy : of the sensitive values, None for none
    """
    thresholds = f_privacy(wanted.privacy).thresholds(counts, before, hierarchy)
    solution = choose.solve(counts, thresholds, wanted.solver, wanted.max_bucket_size, wanted.time_limit)
    solution = companions.apart(counts, thresholds, solution)
    if wanted.fake_values:
        _check_fakes(counts, thresholds, solution, wanted.fake_values)
    return thresholds, solution


def check_buckets(
    counts: SensitiveCounts,
    wanted: Bucketize,
    before: Mapping[str | None, int],
    hierarchy: Hierarchy | None,
    deadline: float = inf,
) -> None:
    """Raises Unsatisfiable where there are no buckets for these counts, as the quickest solver tells.

    With limits on nodes only an integer program can tell; OutOfTime where `deadline` (time.perf_counter) comes before it has.
    """
    thresholds = f_privacy(wanted.privacy).thresholds(counts, before, hierarchy)
    if not thresholds.limited:
        choose_buckets(counts, wanted.model_copy(update={"solver": "two_size", "time_limit": None}), before)
        return
    exist = choose.possible(counts, thresholds, wanted.max_bucket_size, deadline)
    if exist is None:
        raise OutOfTime(f"whether {counts.n:,} records have buckets that keep these thresholds was not told in time")
    if not exist:
        raise Unsatisfiable(f"no buckets of at most {wanted.max_bucket_size} records keep these thresholds")


def chosen_or_offered(
    counts: SensitiveCounts,
    wanted: Bucketize,
    before: Mapping[str | None, int] | None,
    hierarchy: Hierarchy | None = None,
) -> tuple[Thresholds, BucketSolution]:
    """`choose_buckets`, whose refusals end with a setting that gives a useful release, where one is known; with nodes none is, and none
    is looked for where time ran out."""
    try:
        return choose_buckets(counts, wanted, before, hierarchy)
    except OutOfTime:
        raise
    except Unsatisfiable as refusal:
        asked, as_l = f_privacy(wanted.privacy), wanted.privacy.l is not None
        whole = hierarchy is None
        offered = of_thresholds.offer(counts, asked, wanted.max_bucket_size, before, as_l) if whole else ""
        raise Unsatisfiable(with_offer(str(refusal), offered)) from None


def bucketize(table: Microdata, wanted: Bucketize, run: Run) -> Draft:
    """Publish `table` under F'-privacy."""
    run.say("counting the sensitive values (first pass)")
    statistics = sensitive_statistics(table.frame, table.sensitive, table.keep, table.refuse)
    run.say(f"choosing buckets for {statistics.counts.n:,} records and {statistics.counts.m:,} sensitive values")
    thresholds, solution = chosen_or_offered(statistics.counts, wanted, table.before, hierarchy_of(table))
    proven = account.proven(solution.solver, solution.status, solution.gap)
    run.say(f"{solution.setting} ({proven}); loss {solution.loss:,}")
    return publish_buckets(
        table,
        statistics,
        thresholds,
        solution,
        wanted.fake_values,
        wanted.avoid_negative_associations,
        run,
        wanted.mix_companions,
    )


def publish_buckets(
    table: Microdata,
    statistics: SensitiveStatistics,
    thresholds: Thresholds,
    solution: BucketSolution,
    fake_values: int,
    avoid_negative_associations: bool,
    run: Run,
    mix_companions: bool = False,
) -> Draft:
    """The second half, which Anatomy shares: deal the records into the chosen buckets and stage both tables."""
    paths = thresholds.tree.paths if thresholds.tree is not None else None
    deal = Deal.of(solution.setting, solution.partition, paths)
    if mix_companions:
        deal = deal.mixed()
    run.say("assigning records to buckets (second pass)")
    plan = None
    if fake_values and not avoid_negative_associations:
        plan = fake_solver.plan(statistics.counts.counts, list(composition(deal)), fake_values, run.key)
    kernel = by_plan(plan, statistics.counts, run.key) if plan else RoundRobin(deal, run.key)
    dealt = ranks.with_kernel(table.published, statistics, kernel, BUCKET_ID)
    published = [*table.quasi_identifiers, *table.other, BUCKET_ID]
    # qit: qi..., other..., bucket_id
    by_rows = arranged(project(dealt, published), files(statistics.counts.n), by=BUCKET_ID, narrow=True)
    by_columns = Rewriting(table, statistics, kernel, tuple(published), Itself(BUCKET_ID), True)
    qit = run.stage(QIT, by_rows, by_columns)
    run.say("writing the sensitive values of each bucket")
    avoided = fake_values if avoid_negative_associations else 0
    st_by_rows = _sensitive_table(table, qit, statistics, deal, plan, avoided, run.key)
    st = run.stage(ST, st_by_rows, None if avoided else _listing(table, statistics.counts, deal, plan))
    roles = {
        QIT: {
            **dict.fromkeys(table.quasi_identifiers, "quasi_identifier"),
            **dict.fromkeys(table.other, "other"),
            BUCKET_ID: BUCKET_ID,
        },
        ST: {BUCKET_ID: BUCKET_ID, table.sensitive: "sensitive", COUNT: COUNT},
    }
    counts = statistics.counts
    return Draft(
        layout="bucketized",
        tables={QIT: qit, ST: st},
        records=QIT,
        roles=roles,
        guarantee=_guarantee(table, counts, thresholds, fake_values, plan.fakes if plan else None),
        rows=RowsPart(
            input=statistics.input_rows,
            published=counts.n,
            dropped=statistics.dropped,
            fake=fake_values * solution.setting.buckets,
        ),
        solver=solver_part(solution),
        utility={"msbs": solution.setting.msbs},
        partitions=statistics.partitions,
    )


def explain(table: Microdata, wanted: Bucketize, say: Say) -> Explanation:
    """What `bucketize` would choose and what its bound costs: one scan for the counts, then the driver alone."""
    say("counting the sensitive values")
    counts = sensitive_statistics(table.frame, table.sensitive, table.keep, table.refuse).counts
    say(f"choosing buckets for {counts.n:,} records and {counts.m:,} sensitive values")
    thresholds, solution = chosen_or_offered(counts, wanted, table.before, hierarchy_of(table))
    say("trading the bound against the size of buckets")
    # bounds on nodes change with no single number
    trade_off = None if thresholds.limited else from_counts(wanted, counts, table.before)
    fakes = None
    if wanted.fake_values and not wanted.avoid_negative_associations:
        buckets = solution.setting.buckets
        fakes = fake_solver.apportion(counts.counts, wanted.fake_values * buckets, buckets)
    choice = BucketChoice(counts, thresholds, solution)
    return explained_buckets(table.sensitive, choice, trade_off, wanted.fake_values, fakes)


@dataclass(frozen=True)
class BucketChoice:
    """counts : the sensitive values; thresholds : f'_i, exact, same order; solution : the buckets with loss, bound and gap."""

    counts: SensitiveCounts
    thresholds: Thresholds
    solution: BucketSolution


def explained_buckets(
    sensitive: str,
    choice: BucketChoice,
    trade_off: TradeOff | None = None,
    fake_values: int = 0,
    fakes: Int64Array | None = None,
    most: int = 20,
) -> Explanation:
    """A choice of buckets in words and tables; Anatomy's too. `most` values are shown, those that are protected least first.

    fakes : (m,) how often each value is a fake, None where that does not follow its frequency
    """
    counts, thresholds, solution = choice.counts, choice.thresholds, choice.solution
    setting = solution.setting
    first = sorted(range(counts.m), key=lambda i: (-thresholds.fractions[i], -int(counts.counts[i])))[:most]
    unbounded = sum(int(counts.counts[i]) for i in range(counts.m) if thresholds.fractions[i] >= 1)
    note = of_thresholds.note_of(setting, unbounded / counts.n)
    values = tuple(
        (
            str(counts.values[i]),
            f"{int(counts.counts[i]):,}",
            f"{float(counts.frequency(i)):.4%}",
            f"{float(thresholds.fractions[i]):.4%}",
        )
        for i in first
    )
    return Explanation(
        words=guarantee_words(sensitive, counts, thresholds, fake_values, fakes),
        summary=f"Loss {solution.loss:,} ({account.proven(solution.solver, solution.status, solution.gap)}; {solution.seconds:.1f} s); "
        f"mean squared bucket size {setting.msbs:.2f}{trade_offs.sentence(trade_off, note)}",
        grids=(
            *trade_offs.grids(trade_off),
            grid_of_sizes(setting),
            Grid(
                ("value", "records", "share of the table", "at most in any bucket"),
                values,
                f"... and {counts.m - most:,} values with lower thresholds" if counts.m > most else "",
            ),
            *_grid_of_nodes(choice, most),
        ),
        facts={
            **solution_facts(counts.n, counts.m, solution),
            "values": [
                {"value": v, "count": int(counts.counts[i]), "threshold": text(thresholds.fractions[i])}
                for i, v in enumerate(counts.values)
            ],
            **({} if thresholds.tree is None else {"nodes": _nodes_explained(choice)}),
            **trade_offs.facts(trade_off),
        },
        choice=choice,
        trade_off=trade_off,
    )


def grid_of_sizes(setting: BucketSetting) -> Grid:
    """How many buckets of each size there are, and the records in them."""
    sizes = zip(setting.sizes, setting.numbers, strict=True)
    return Grid(("bucket size", "buckets", "records"), tuple((str(s), f"{b:,}", f"{s * b:,}") for s, b in sizes))


def solution_facts(records: int, values: int, solution: BucketSolution) -> dict[str, Any]:
    """The solver's answer as plain values, for tables of so many `records` and sensitive `values` (or combinations of them)."""
    setting = solution.setting
    return {
        "records": records,
        "sensitive_values": values,
        "solver": solution.solver,
        "status": solution.status,
        "setting": [{"size": s, "number": b} for s, b in zip(setting.sizes, setting.numbers, strict=True)],
        "loss": solution.loss,
        "bound": solution.bound,
        "gap": solution.gap,
        "msbs": setting.msbs,
        "seconds": solution.seconds,
    }


def _nodes_explained(choice: BucketChoice) -> list[dict[str, Any]]:
    """Of each node: its records, its threshold, its largest share of a bucket, and how many buckets hold values under it alone."""
    tree, setting = choice.thresholds.tree, choice.solution.setting
    assert tree is not None
    telling = companions.telling(tree, setting, choice.solution.partition)
    held = tree.records(choice.solution.partition).tolist()
    explained = []
    for k, part in enumerate(node_parts(choice.counts, choice.thresholds)):
        shares = [
            Fraction(-(-n // number), size)
            for n, size, number in zip(held[k], setting.sizes, setting.numbers, strict=True)
        ]
        explained.append(
            {
                "node": part.node,
                "count": part.count,
                "threshold": part.threshold,
                "largest": text(max(shares)),
                "telling": int(telling[k]),
            }
        )
    return explained


def _grid_of_nodes(choice: BucketChoice, most: int) -> tuple[Grid, ...]:
    """What buckets tell of nodes, those first that most buckets tell; none where values have no hierarchy."""
    if choice.thresholds.tree is None:
        return ()
    nodes = sorted(_nodes_explained(choice), key=lambda n: (-n["telling"], -exact(n["largest"])))
    rows = tuple(
        (
            n["node"],
            f"{n['count']:,}",
            "none" if n["threshold"] is None else f"{float(exact(n['threshold'])):.4%}",
            f"{float(exact(n['largest'])):.4%}",
            f"{n['telling']:,}",
        )
        for n in nodes[:most]
    )
    header = ("node", "records", "at most in any bucket", "largest share of a bucket", "buckets of nothing else")
    return (Grid(header, rows, f"... and {len(nodes) - most:,} nodes" if len(nodes) > most else ""),)


def by_plan(plan: FakePlan, counts: SensitiveCounts, key: bytes) -> FakeDeal:
    """The record kernel that sends records to the places where the plan has their values real."""
    return FakeDeal(counts.counts, plan.extra, plan.listed, plan.real_start, plan.real, key)


def _sensitive_table(
    table: Microdata,
    qit: DataFrame,
    statistics: SensitiveStatistics,
    deal: Deal,
    plan: FakePlan | None,
    avoided: int,
    key: bytes,
) -> DataFrame:
    """st: bucket_id, sa, count. By the `plan` of fakes; without one by the `deal`, with `avoided` fakes that no association rules out."""
    names, counts = (BUCKET_ID, table.sensitive, COUNT), statistics.counts
    spark, spark_type = table.frame.sparkSession, types(table.frame)[table.sensitive]

    def real(as_type: str) -> DataFrame:
        held = ((s.start, s.stop, [counts.values[c] for c in s.codes], s.counts) for s in composition(deal))
        return generate.repeated_rows(spark, held, names, as_type)

    if plan is not None:
        listed = ((s.start, s.stop, [counts.values[c] for c in s.codes], [1] * len(s.codes)) for s in plan.listed)
        return generate.repeated_rows(spark, listed, names, spark_type)
    if not avoided:
        return real(spark_type)
    shares = {v: (i, float(counts.frequency(i))) for i, v in enumerate(counts.values)}
    size = counts.n / deal.buckets
    excluded = fakes.excluded_codes(qit, real("string"), table.quasi_identifiers, table.sensitive, shares, size)
    kernel = FakeValues(deal, counts.m, avoided, key)
    return fakes.listed_values(spark, deal.buckets, kernel, counts.values, excluded, names, spark_type)


def _listing(table: Microdata, counts: SensitiveCounts, deal: Deal, plan: FakePlan | None) -> Listing:
    """st, made column by column."""
    stretches = [(s.start, s.stop, s.codes, s.counts) for s in composition(deal)]
    if plan is not None:
        stretches = [(s.start, s.stop, s.codes, (1,) * len(s.codes)) for s in plan.listed]
    names, kind = (BUCKET_ID, table.sensitive, COUNT), types(table.frame)[table.sensitive]
    return Listing(table.frame.sparkSession, names, counts.values, kind, stretches)


def _check_fakes(counts: SensitiveCounts, thresholds: Thresholds, solution: BucketSolution, fake_values: int) -> None:
    """Fake values stand for an adversary who knows records of a bucket; that argument needs one record per value and bucket."""
    doubled = [size for size in solution.setting.sizes if int(thresholds.capacity(size).max()) > 1]
    if doubled:
        raise Unsatisfiable(
            f"fake_values needs buckets in which every sensitive value occurs once, and these thresholds let a value occur twice in a "
            f"bucket of {doubled[0]}; state one threshold for all values, e.g. privacy: {{l: {thresholds.equivalent_l}}}, and "
            f"max_bucket_size below {2 * thresholds.equivalent_l}"
        )
    room = counts.m - max(solution.setting.sizes)
    if fake_values > room:
        raise Unsatisfiable(
            f"fake_values: {fake_values} fake values do not fit into a bucket of {max(solution.setting.sizes)} distinct ones out of "
            f"{counts.m} sensitive values; at most {max(0, room)} do"
        )


def solver_part(solution: BucketSolution) -> SolverPart:
    """The solver's answer as the manifest tells it."""
    setting = solution.setting
    return SolverPart(
        name=solution.solver,
        status=solution.status,
        setting=[SizePart(size=s, number=b) for s, b in zip(setting.sizes, setting.numbers, strict=True)],
        loss=solution.loss,
        bound=solution.bound,
        gap=solution.gap,
        seconds=round(solution.seconds, 3),
    )


def _guarantee(
    table: Microdata, counts: SensitiveCounts, thresholds: Thresholds, fake_values: int, fakes: Int64Array | None
) -> GuaranteePart:
    hierarchy = None if thresholds.tree is None else hierarchy_of(table)
    return GuaranteePart(
        model=F_PRIVACY,
        words=guarantee_words(table.sensitive, counts, thresholds, fake_values, fakes),
        sensitive=table.sensitive,
        sensitive_type=types(table.frame)[table.sensitive],
        values=[
            ValuePart(value=value, count=int(counts.counts[i]), threshold=text(thresholds.fractions[i]))
            for i, value in enumerate(counts.values)
        ],
        hierarchy=hierarchy.rows if hierarchy is not None else [],
        nodes=node_parts(counts, thresholds),
    )


def node_parts(counts: SensitiveCounts, thresholds: Thresholds) -> list[NodePart]:
    """The nodes above the values as the manifest tells them: none where values have no hierarchy."""
    if thresholds.tree is None:
        return []
    held = thresholds.tree.records(counts.counts).tolist()
    return [
        NodePart(node=label, count=n, threshold=None if f is None else text(f))
        for label, n, f in zip(thresholds.tree.labels, held, thresholds.nodes, strict=True)
    ]
