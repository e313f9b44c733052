"""Small domain randomization: publish every record, its sensitive value perturbed within a sub-table of few values.

Source: small domain randomization, sections 3 to 5 and appendix 10.7. The walk, with its cost for n records, m sensitive values and P
partitions:

    counts        pass 1 over the sensitive column; P m counts are shuffled, m values reach the driver
    sub-tables    driver, from counts alone, independent of n; Unsatisfiable names the weakest rho2          (Section 5, equations 9 to 14)
    microdata     pass 2: rank within value, keyed permutation, choice of the sub-table and perturbation in it;
                  a sort within partitions                                                                      (Equations 1, 4, 5, 10)
    operators     from the sub-tables; no pass over records

Two scans of the input; no shuffle of rows, unless pass 1 finds that the input's partitions differ in their sensitive values (then one, so
that a row's file says nothing); driver memory as `solvers.perturbation_partitioning` says. With `partitioning: whole` the table is one
sub-table: uniform perturbation, the baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.arrays import BoolArray
from anonlib.engine import compound, ranks
from anonlib.engine.columnar.columns import Packed, typed
from anonlib.engine.columnar.rewriting import Rewriting
from anonlib.engine.microdata import Microdata
from anonlib.engine.operators import operators_table
from anonlib.engine.order import arranged, files
from anonlib.engine.relational import with_columns
from anonlib.engine.statistics import SensitiveStatistics, sensitive_statistics
from anonlib.engine.tables import project, types
from anonlib.engine.values import with_values
from anonlib.errors import Unsatisfiable
from anonlib.exact import text
from anonlib.kernels.ranked.perturb import CODE_BITS
from anonlib.kernels.ranked.perturb import Perturb as PerturbKernel
from anonlib.methods import trade_offs
from anonlib.methods.recipe import Draft, Explanation, Grid, Run, Say
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.rho_privacy import RhoPrivacy, guarantee_words
from anonlib.privacy.subtables import SubTable, belief_in_groups, beliefs
from anonlib.release.manifest import GuaranteePart, RowsPart, SizePart, SolverPart, ValuePart
from anonlib.release.perturbed import DOMAIN, MICRODATA, OPERATORS, operator_types
from anonlib.solvers.subtables.perturbation_partitioning import Partitioning, solve, solve_whole
from anonlib.solvers.trade_offs.of_beliefs import note_of, of_rho2, offer
from anonlib.solvers.trade_offs.trade_off import TradeOff, with_offer
from anonlib.spec.layouts import SUBTABLE
from anonlib.spec.methods.perturb import Perturb
from anonlib.sql import quoted
from anonlib.words import RHO_PRIVACY, beliefs_in_columns, percent

_PACKED = "anonlib packed"


@dataclass(frozen=True)
class PerturbChoice:
    """counts : the sensitive values; protected : (m,) which of them rho2 bounds; partitioning : the sub-tables, and their error bound;
    uniform : without sub-tables, for comparison."""

    counts: SensitiveCounts
    protected: BoolArray
    partitioning: Partitioning
    uniform: Partitioning


def choose_subtables(counts: SensitiveCounts, wanted: Perturb) -> PerturbChoice:
    """The solver's answer, from counts alone. Raises Unsatisfiable."""
    asked = RhoPrivacy(wanted.rho1, wanted.rho2)
    uniform = solve_whole(counts, asked, wanted.delta)
    chosen = (
        uniform if wanted.partitioning == "whole" else solve(counts, asked, wanted.delta, wanted.merging or "search")
    )
    return PerturbChoice(counts, asked.protected(counts), chosen, uniform)


def perturb(table: Microdata, wanted: Perturb, run: Run) -> Draft:
    """Publish `table` under (rho1, rho2)-privacy."""
    table, column, statistics, choice = _counted_and_chosen(table, wanted, run.say)
    counts, subtables = statistics.counts, choice.partitioning.subtables
    sensitive = {name: types(table.frame)[name] for name in table.sensitive_columns}
    texts = _texts(counts, table)
    run.say("perturbing records within their sub-tables (second pass)")
    # packed: qi..., other..., packed
    kernel = PerturbKernel(subtables, run.key)
    packed = ranks.with_kernel(table.published, statistics, kernel, _PACKED)
    packed = project(packed, [*table.quasi_identifiers, *table.other, _PACKED])
    code = f"CAST({quoted(_PACKED)} & {(1 << CODE_BITS) - 1} AS INT)"
    subtable = f"CAST(shiftright({quoted(_PACKED)}, {CODE_BITS}) AS INT)"
    published = with_columns(with_values(packed, code, texts, sensitive), {SUBTABLE: subtable})
    names = [*table.quasi_identifiers, *table.other, *sensitive, SUBTABLE]
    by_rows = arranged(project(published, names), files(statistics.counts.n))
    microdata = run.stage(MICRODATA, by_rows, _by_columns(table, statistics, kernel, names))
    columns = operator_types(sensitive)
    rows = [_operator(i, t, texts) for i, t in enumerate(subtables)]
    operators = run.stage(OPERATORS, operators_table(table.frame, rows, columns, DOMAIN, sensitive))
    roles = {
        MICRODATA: {
            **dict.fromkeys(table.quasi_identifiers, "quasi_identifier"),
            **dict.fromkeys(table.other, "other"),
            **dict.fromkeys(sensitive, "sensitive"),
            SUBTABLE: SUBTABLE,
        },
        OPERATORS: {name: name for name in columns},
    }
    return Draft(
        layout="perturbed",
        tables={MICRODATA: microdata, OPERATORS: operators},
        records=MICRODATA,
        roles=roles,
        guarantee=_guarantee(table, column, wanted, choice),
        rows=RowsPart(input=statistics.input_rows, published=counts.n, dropped=statistics.dropped),
        solver=_solver_part(choice),
        utility={
            "mean_retention": subtables.mean_retention,
            "uniform_retention": choice.uniform.subtables.mean_retention,
            "error_bound": choice.partitioning.bound,
            "uniform_error_bound": choice.uniform.bound,
            "count_error": choice.partitioning.count_error,
            "uniform_count_error": choice.uniform.count_error,
        },
        partitions=statistics.partitions,
    )


def _by_columns(
    table: Microdata, statistics: SensitiveStatistics, kernel: PerturbKernel, names: list[str]
) -> Rewriting | None:
    """The same table made column by column; None where its values have no plain type for it."""
    values = typed(statistics.counts.values, types(table.frame)[table.sensitive])
    if len(table.sensitive_columns) > 1 or values is None:
        return None
    columns = Packed(table.sensitive, values, CODE_BITS, SUBTABLE)
    return Rewriting(table, statistics, kernel, tuple(names), columns, False)


def explain(table: Microdata, wanted: Perturb, say: Say) -> Explanation:
    """What `perturb` would choose and what rho2 costs: one scan for the counts, then the driver alone."""
    table, _, _, choice = _counted_and_chosen(table, wanted, say)
    say("trading the bound against what is retained")
    return explained_subtables(_words(table, wanted, choice), choice, of_rho2(choice.counts, wanted))


def _counted_and_chosen(
    table: Microdata, wanted: Perturb, say: Say
) -> tuple[Microdata, str, SensitiveStatistics, PerturbChoice]:
    """The table with its sensitive value in one column, that column, what pass 1 found, and the sub-tables."""
    table, column = compound.with_compound(table)
    say("counting the sensitive values (first pass)")
    statistics = sensitive_statistics(table.frame, column, table.keep, table.refuse, table.sensitive_columns)
    say(f"choosing sub-tables for {statistics.counts.n:,} records and {statistics.counts.m:,} sensitive values")
    try:
        choice = choose_subtables(statistics.counts, wanted)
    except Unsatisfiable as refusal:
        offered = offer(statistics.counts, wanted)
        raise Unsatisfiable(with_offer(str(refusal), offered)) from None
    say(_summary(choice))
    return table, column, statistics, choice


def _texts(counts: SensitiveCounts, table: Microdata) -> list[tuple[str | None, ...]]:
    """Of each value: the texts of the sensitive columns."""
    columns = len(table.sensitive_columns)
    return [(value,) if columns == 1 else compound.parts_of(value, columns) for value in counts.values]


def _words(table: Microdata, wanted: Perturb, choice: PerturbChoice) -> str:
    """The promise and, of several sensitive columns, what may be believed of each alone."""
    columns = table.sensitive_columns
    asked = RhoPrivacy(wanted.rho1, wanted.rho2)
    words = guarantee_words(compound.name(columns), asked, choice.counts, choice.protected)
    if len(columns) == 1:
        return words
    texts, alone = _texts(choice.counts, table), []
    for k, column in enumerate(columns):
        code = {value: i for i, value in enumerate(dict.fromkeys(row[k] for row in texts))}
        group = np.array([code[row[k]] for row in texts], dtype=np.int64)
        alone.append((column, belief_in_groups(choice.partitioning.subtables, group)))
    return beliefs_in_columns(words, alone)


def _operator(i: int, part: SubTable, texts: list[tuple[str | None, ...]]) -> tuple[Any, ...]:
    """A row of `operators/`, in the order of `operator_types`."""
    domain = [list(texts[code]) for code in part.codes.tolist()]
    gamma, kept = part.gamma, float(part.retention)
    return (i, part.size, domain, part.counts.tolist(), part.domain_size, float(gamma), text(gamma), kept)


def explained_subtables(words: str, choice: PerturbChoice, trade_off: TradeOff, most: int = 20) -> Explanation:
    """A choice of sub-tables in words and tables; the `most` largest are shown, and the `most` values that are protected least."""
    partitioning, counts = choice.partitioning, choice.counts
    values, hidden_values = _least_protected(choice, most)
    largest = sorted(enumerate(partitioning.subtables), key=lambda it: (-it[1].size, it[0]))[:most]
    rows = tuple(
        (
            str(i),
            f"{t.size:,}",
            f"{t.domain_size:,}",
            percent(t.rho1),
            f"{float(t.gamma):.3f}",
            f"{float(t.retention):.2%}",
        )
        for i, t in largest
    )
    hidden = len(partitioning.subtables) - len(rows)
    return Explanation(
        words=words,
        summary=_summary(choice) + trade_offs.sentence(trade_off, note_of(counts, partitioning)),
        grids=(
            *trade_offs.grids(trade_off),
            Grid(
                ("", "sub-tables", "mean retention", "error bound", "error of a count"),
                tuple(
                    (
                        name,
                        f"{len(p.subtables):,}",
                        f"{p.subtables.mean_retention:.2%}",
                        f"{p.bound:.4f}",
                        f"{p.count_error:,.1f}",
                    )
                    for name, p in (("chosen", partitioning), ("uniform perturbation", choice.uniform))
                ),
            ),
            Grid(
                ("sub-table", "records", "values", "most frequent protected", "gamma", "retention"),
                rows,
                f"... and {hidden:,} smaller ones" if hidden else "",
            ),
            Grid(
                ("value", "records", "share of the table", "believed at most"),
                values,
                f"... and {hidden_values:,} values that are believed less" if hidden_values else "",
            ),
        ),
        facts={
            "records": counts.n,
            "sensitive_values": counts.m,
            "protected_values": int(choice.protected.sum()),
            **_details(choice),
            "sub_tables": [
                {
                    "records": t.size,
                    "values": t.domain_size,
                    "rho1": text(t.rho1),
                    "gamma": text(t.gamma),
                    "retention": float(t.retention),
                }
                for t in partitioning.subtables
            ],
            "seconds": partitioning.seconds,
            **trade_offs.facts(trade_off),
        },
        choice=choice,
        trade_off=trade_off,
    )


def _least_protected(choice: PerturbChoice, most: int) -> tuple[tuple[tuple[str, ...], ...], int]:
    """The `most` values that may be believed most after the release, most first, and how many there are besides."""
    counts = choice.counts
    believed = beliefs(choice.partitioning.subtables, counts.m)
    first = sorted(range(counts.m), key=lambda i: (-believed[i], -int(counts.counts[i]), i))[:most]
    rows = tuple(
        (
            str(counts.values[i]),
            f"{int(counts.counts[i]):,}",
            f"{float(counts.frequency(i)):.4%}",
            percent(believed[i]) + ("" if choice.protected[i] else ", not protected (its share is above rho1)"),
        )
        for i in first
    )
    return rows, counts.m - len(rows)


def _summary(choice: PerturbChoice) -> str:
    partitioning, uniform = choice.partitioning, choice.uniform
    kept, before = partitioning.subtables.mean_retention, uniform.subtables.mean_retention
    number = len(partitioning.subtables)
    if partitioning.merging == "whole":
        return f"Uniform perturbation retains {kept:.2%} of the values; error bound {partitioning.bound:.4f}"
    return (
        f"{number:,} sub-table{'s' if number != 1 else ''} retain {kept:.2%} of the values on average (uniform perturbation {before:.2%}); "
        f"error bound {partitioning.bound:.4f} (merging neighbours {partitioning.neighbours:.4f}, uniform {uniform.bound:.4f})"
    )


def _details(choice: PerturbChoice) -> dict[str, Any]:
    partitioning = choice.partitioning
    return {
        "initial_groups": partitioning.groups,
        "balance": partitioning.balance,
        "merging": partitioning.merging,
        "error_bound": partitioning.bound,
        "error_bound_of_neighbours": partitioning.neighbours,
        "error_bound_of_uniform": partitioning.whole,
        "mean_retention": partitioning.subtables.mean_retention,
        "uniform_retention": choice.uniform.subtables.mean_retention,
        "count_error": partitioning.count_error,
        "count_error_of_uniform": choice.uniform.count_error,
    }


def _solver_part(choice: PerturbChoice) -> SolverPart:
    partitioning = choice.partitioning
    sizes = [t.size for t in partitioning.subtables]
    return SolverPart(
        name="perturbation partitioning" if partitioning.merging != "whole" else "uniform perturbation",
        status=partitioning.merging,
        setting=[SizePart(size=size, number=sizes.count(size)) for size in sorted(set(sizes))],
        unit="sub-tables",
        loss=round(partitioning.bound, 6),
        seconds=round(partitioning.seconds, 3),
        details=_details(choice),
    )


def _guarantee(table: Microdata, column: str, wanted: Perturb, choice: PerturbChoice) -> GuaranteePart:
    counts, kinds = choice.counts, types(table.frame)
    sensitive = {name: kinds[name] for name in table.sensitive_columns}
    # without a rho1 every value is protected: the largest share is the rho1 that says so
    rho1 = wanted.rho1 if wanted.rho1 is not None else Fraction(int(counts.counts.max()), counts.n)
    return GuaranteePart(
        model=RHO_PRIVACY,
        words=_words(table, wanted, choice),
        sensitive=column,
        sensitive_type=operator_types(sensitive)[DOMAIN].removeprefix("array<").removesuffix(">"),
        values=[
            ValuePart(
                value=value,
                count=int(counts.counts[i]),
                threshold=text(wanted.rho2) if choice.protected[i] else None,
            )
            for i, value in enumerate(counts.values)
        ],
        asked={"rho1": text(rho1), "rho2": text(wanted.rho2)},
    )
