"""What only somebody who holds the original table can tell: counts beside the truth, their errors, attacks. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anonlib.reports import charts
from anonlib.reports.bins import selectivity_bins
from anonlib.reports.facts import Beside, Facts
from anonlib.reports.markup import Markup, figure, in_words, joined, legible, paragraph, table
from anonlib.reports.numbers import measure, percent
from anonlib.reports.records import MEASURES

POINTS = 60
"""Counts in a chart at most."""
SECRET = (
    "This part was computed from the original table. It is not part of the release and is not anonymized: keep it where the original "
    "may be kept."
)


def estimates(facts: Facts) -> Markup:
    """Counts for people, estimated beside true."""
    beside = facts.beside
    assert beside is not None
    if not beside.answers:
        return paragraph("No column has few enough values to count by.")
    answers = sorted(beside.answers, key=lambda a: a.truth)
    inside = sum(min(a.low, a.estimate) <= a.truth <= max(a.high, a.estimate) for a in answers)
    step = max(1, -(-len(answers) // POINTS))
    chosen = answers[::-1][::step]
    rows = [
        (legible(a.asked), f"{a.truth:,.0f}", f"{a.estimate:,.1f}", f"{a.low:,.1f} to {a.high:,.1f}") for a in chosen
    ]
    says = f"{inside:,} of {len(answers):,} intervals hold the true count."
    return figure(
        charts.estimates_beside_truth(chosen, says),
        f"Counts by {legible(beside.counted)}, as somebody would ask for them: the nearer a point is to the dashed line, the better is the "
        f"estimate; the line through it is where the release says that the true count lies. {says}",
        table("Counts estimated and true", ("count of", "true", "estimated", "interval"), rows),
    )


def errors(facts: Facts) -> Markup:
    """How far random count queries are off."""
    beside = facts.beside
    assert beside is not None
    workload = beside.workload
    bins = selectivity_bins(workload.actual, workload.estimated, workload.records)
    if not workload.queries - workload.dropped:
        return paragraph(f"None of {workload.queries:,} random counts met a record.")
    summary = paragraph(
        f"Of {workload.queries:,} random counts, half are off by less than {percent(workload.median)} of the true count "
        f"({percent(workload.average)} on average)."
        + (
            f" {workload.dropped:,} that are truly 0, or too small to be asked, are left out."
            if workload.dropped
            else ""
        )
    )
    measures = table(
        "Measures",
        ("", "figure"),
        [(MEASURES.get(n, legible(in_words(n))), measure(v)) for n, v in beside.measures.items()],
    )
    if len(bins) < 2:
        return joined([summary, measures])
    rows = [(name, f"{number:,}", percent(half), percent(most)) for name, number, half, most in bins]
    says = (
        f"The median error is {rows[0][2]} for counts of {bins[0][0]} of the records, {rows[-1][2]} for {bins[-1][0]}"
    )
    head = ("share of the records counted", "queries", "half are within", "9 of 10 are within")
    return joined(
        [
            summary,
            figure(
                charts.errors_by_selectivity(bins, says),
                "Counts of few records are rougher than counts of many. How far estimates are off, by the share of the records that a "
                "count is of.",
                table("Errors by selectivity", head, rows),
            ),
            measures,
        ]
    )


def attacks(facts: Facts) -> Markup:
    """What an adversary gains, each attack beside what he knew before and what is promised."""
    beside = facts.beside
    assert beside is not None
    if not beside.attacks:
        return paragraph("No attack was played.")
    played = played_attacks(beside)
    rows = [
        (
            legible(name),
            percent(one["prior"]),
            percent(one["accuracy"]),
            percent(one["guarantee"]) if "guarantee" in one else "none promised",
            percent(one["largest"]) if "largest" in one else "-",
            f"{one['above']:,}" if "above" in one else "-",
        )
        for name, one in played.items()
    ]
    head = ("attack", "right before", "right with the release", "bound", "largest belief", "persons above the bound")
    words = [(legible(name), legible(one.get("words", ""), 500)) for name, one in beside.attacks.items()]
    chart = [(name, one["prior"], one["accuracy"], one.get("guarantee")) for name, one in played.items()]
    says = "; ".join(f"{row[0]}: {row[1]} before, {row[2]} with the release" for row in rows)
    return joined(
        [
            paragraph(
                "Each attack is played on persons of the original table: how often is somebody's guess right, who knows the columns "
                "that others may know? Before: without the release, from how common each value is. A bound limits what may be believed of "
                "any one person; attacks without one learn what holds for many people. Re-identification alone "
                "guesses a person's row, not a value."
            ),
            figure(
                charts.attacks_beside_bounds(chart, says),
                "Empty rings: right without the release. Full dots: right with it. Upright bars: the bound that is promised. A dot far to "
                "the right of its ring means that the release helps that guess much. A bound is about one person and one protected value "
                "at a time: that it is kept is told by 0 persons above it. A dot may lie beyond it where common "
                "values are not protected.",
            )
            if chart
            else Markup(""),
            table("Attacks", head, rows),
            table("What each attack is up against, or why it was not played", ("attack", ""), words, left=2),
        ]
    )


def played_attacks(beside: Beside) -> Mapping[str, Mapping[str, Any]]:
    """Those with figures."""
    return {name: one for name, one in beside.attacks.items() if "accuracy" in one}
