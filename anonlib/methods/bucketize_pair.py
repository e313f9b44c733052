"""Generalized bucketization of one or two sensitive columns; of two, every value of each is bounded, and so is every combination.

One column is `anonlib.methods.bucketize`. Of two, the walk, with its cost for n records, m combinations of values and P partitions:

    counts        pass 1 over both columns; P m counts are shuffled, m combinations reach the driver
    thresholds    of the values of each column, exact; Unsatisfiable names the column and what is too frequent      (Lemma 1)
    solution      driver, from counts alone, independent of n            (`anonlib.solvers.buckets.pair_setting`, `pair_kinds`)
    qit           pass 2: rank within combination, keyed permutation, the kind's place; dealt to files by bucket, sorted
    st            generated from the same kinds, bucket by bucket; no pass over records

Two scans of the input, one shuffle of rows; driver memory as the solver says. Which values make up a bucket follows from counts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from anonlib import words
from anonlib.engine import compound, generate, ranks
from anonlib.engine.microdata import Microdata
from anonlib.engine.order import arranged, files
from anonlib.engine.relational import DataFrame
from anonlib.engine.statistics import SensitiveStatistics, sensitive_statistics
from anonlib.engine.tables import project, types
from anonlib.engine.values import with_values
from anonlib.exact import text
from anonlib.kernels.ranked.kind_deal import ByKind, KindDeal, stretches
from anonlib.methods import bucketize as one_column
from anonlib.methods.bucketize import grid_of_sizes, solution_facts, solver_part
from anonlib.methods.recipe import Draft, Explanation, Grid, Run, Say
from anonlib.privacy.column_pair import PairCounts, PairThresholds, pair_thresholds
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import Thresholds, guarantee_words
from anonlib.release import account
from anonlib.release.bucketized import QIT, ST, type_of_combination
from anonlib.release.manifest import GuaranteePart, RowsPart, ValuePart
from anonlib.solvers.buckets import pair_setting
from anonlib.solvers.buckets.pair_setting import PairSolution
from anonlib.solvers.buckets.wanted import f_privacy_of
from anonlib.spec.layouts import BUCKET_ID, COUNT
from anonlib.spec.methods.bucketize import OPTIMAL_SECONDS, Bucketize

_CODE = "anonlib code"
SEVERAL = "Of two sensitive columns no trade-off is drawn: what buckets cost follows from both together"


@dataclass(frozen=True, eq=False)
class PairChoice:
    """counts : of combinations and of the values of each column; thresholds : of the latter; pair : the buckets."""

    counts: PairCounts
    thresholds: PairThresholds
    pair: PairSolution


def choose_buckets(counts: PairCounts, wanted: Bucketize, names: Sequence[str]) -> PairChoice:
    """Thresholds and the solver's answer, from counts alone. names : of the columns. Raises Unsatisfiable and SpecError."""
    thresholds = pair_thresholds(counts, [f_privacy_of(wanted.privacy, name) for name in names], names)
    seconds = wanted.time_limit or OPTIMAL_SECONDS
    return PairChoice(counts, thresholds, pair_setting.solve(counts, thresholds, wanted.max_bucket_size, seconds))


def bucketize(table: Microdata, wanted: Bucketize, run: Run) -> Draft:
    """Publish `table` under F'-privacy."""
    if len(table.sensitive_columns) == 1:
        return one_column.bucketize(table, wanted, run)
    table, column, statistics, choice = _counted_and_chosen(table, wanted, run.say)
    sensitive = {name: types(table.frame)[name] for name in table.sensitive_columns}
    kinds = choice.pair.kinds
    run.say("assigning records to buckets (second pass)")
    kernel = ByKind(KindDeal.of(kinds, choice.counts.m), run.key)
    dealt = ranks.with_kernel(table.published, statistics, kernel, BUCKET_ID)
    published = [*table.quasi_identifiers, *table.other, BUCKET_ID]
    # qit: qi..., other..., bucket_id
    qit = run.stage(QIT, arranged(project(dealt, published), files(choice.counts.n), by=BUCKET_ID, narrow=True))
    run.say("writing the sensitive values of each bucket")
    st = run.stage(ST, _sensitive_table(table, choice, sensitive))
    roles = {
        QIT: {
            **dict.fromkeys(table.quasi_identifiers, "quasi_identifier"),
            **dict.fromkeys(table.other, "other"),
            BUCKET_ID: BUCKET_ID,
        },
        ST: {BUCKET_ID: BUCKET_ID, **dict.fromkeys(sensitive, "sensitive"), COUNT: COUNT},
    }
    return Draft(
        layout="bucketized",
        tables={QIT: qit, ST: st},
        records=QIT,
        roles=roles,
        guarantee=_guarantee(choice, column, sensitive),
        rows=RowsPart(input=statistics.input_rows, published=choice.counts.n, dropped=statistics.dropped),
        solver=solver_part(choice.pair.solution),
        utility={"msbs": choice.pair.solution.setting.msbs},
        partitions=statistics.partitions,
    )


def explain(table: Microdata, wanted: Bucketize, say: Say, most: int = 20) -> Explanation:
    """What `bucketize` would choose: one scan for the counts, then the driver alone. `most` values of a column are shown."""
    if len(table.sensitive_columns) == 1:
        return one_column.explain(table, wanted, say)
    table, _, _, choice = _counted_and_chosen(table, wanted, say)
    solution, names = choice.pair.solution, table.sensitive_columns
    setting = solution.setting
    per_column = list(zip(names, choice.counts.columns, choice.thresholds.columns, strict=True))
    return Explanation(
        words=_words(choice, names),
        summary=f"Loss {solution.loss:,} ({account.proven(solution.solver, solution.status, solution.gap)}; {solution.seconds:.1f} s); "
        f"mean squared bucket size {setting.msbs:.2f}; {choice.counts.m:,} combinations of values. {SEVERAL}.",
        grids=(
            grid_of_sizes(setting),
            *(_grid(name, counts, thresholds, most) for name, counts, thresholds in per_column),
        ),
        facts={
            **solution_facts(choice.counts.n, choice.counts.m, solution),
            "columns": {
                name: [
                    {"value": v, "count": int(counts.counts[i]), "threshold": text(thresholds.fractions[i])}
                    for i, v in enumerate(counts.values)
                ]
                for name, counts, thresholds in per_column
            },
        },
        choice=choice,
    )


def _counted_and_chosen(
    table: Microdata, wanted: Bucketize, say: Say
) -> tuple[Microdata, str, SensitiveStatistics, PairChoice]:
    """The table with its combinations in one column, that column, what pass 1 found, and the buckets."""
    table, column = compound.with_compound(table)
    say("counting the sensitive values (first pass)")
    statistics = sensitive_statistics(table.frame, column, table.keep, table.refuse, table.sensitive_columns)
    counts = PairCounts.of(statistics.counts, lambda combination: compound.parts_of(combination, 2))
    say(f"choosing buckets for {counts.n:,} records and {counts.m:,} combinations of sensitive values")
    choice = choose_buckets(counts, wanted, [column.name for column in table.columns.sensitive])
    solution = choice.pair.solution
    proven = account.proven(solution.solver, solution.status, solution.gap)
    say(f"{solution.setting} ({proven}); loss {solution.loss:,}")
    return table, column, statistics, choice


def _sensitive_table(table: Microdata, choice: PairChoice, sensitive: dict[str, str]) -> DataFrame:
    """st: bucket_id, both sensitive columns, count."""
    held = ((s.start, s.stop, [str(code) for code in s.codes], s.counts) for s in stretches(choice.pair.kinds))
    coded = generate.repeated_rows(table.frame.sparkSession, held, (BUCKET_ID, _CODE, COUNT), "int")
    texts = [compound.parts_of(combination, 2) for combination in choice.counts.combined.values]
    return project(with_values(coded, f"`{_CODE}`", texts, sensitive), [BUCKET_ID, *sensitive, COUNT])


def _grid(name: str, counts: SensitiveCounts, thresholds: Thresholds, most: int) -> Grid:
    """The values of one column that are protected least."""
    first = sorted(range(counts.m), key=lambda i: (-thresholds.fractions[i], -int(counts.counts[i])))[:most]
    rows = tuple(
        (
            str(counts.values[i]),
            f"{int(counts.counts[i]):,}",
            f"{float(counts.frequency(i)):.4%}",
            f"{float(thresholds.fractions[i]):.4%}",
        )
        for i in first
    )
    more = f"... and {counts.m - most:,} values with lower thresholds" if counts.m > most else ""
    return Grid((name, "records", "share of the table", "at most in any bucket"), rows, more)


def _words(choice: PairChoice, names: Sequence[str]) -> str:
    columns = zip(names, choice.counts.columns, choice.thresholds.columns, strict=True)
    return words.thresholds_of_columns(names, [guarantee_words(name, counts, fs) for name, counts, fs in columns])


def _guarantee(choice: PairChoice, column: str, sensitive: dict[str, str]) -> GuaranteePart:
    """Of combinations, with the words of all; then of each column by itself."""
    counts = choice.counts
    of_columns = [
        _part(name, kind, guarantee_words(name, own, fs), own, fs.fractions)
        for (name, kind), own, fs in zip(sensitive.items(), counts.columns, choice.thresholds.columns, strict=True)
    ]
    bounds = choice.thresholds.of_combinations(counts.codes)
    said, kind = _words(choice, list(sensitive)), type_of_combination(sensitive)
    return _part(column, kind, said, counts.combined, bounds).model_copy(update={"also": of_columns})


def _part(name: str, kind: str, said: str, counts: SensitiveCounts, bounds: Sequence[Fraction]) -> GuaranteePart:
    return GuaranteePart(
        model=words.F_PRIVACY,
        words=said,
        sensitive=name,
        sensitive_type=kind,
        values=[
            ValuePart(value=value, count=int(n), threshold=text(bound))
            for value, n, bound in zip(counts.values, counts.counts, bounds, strict=True)
        ],
    )
