"""What the command line shows: consoles, and results as a reader wants them. No file is read or written here."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.markup import escape as _escape
from rich.table import Table

from anonlib import increments
from anonlib.evaluation.evaluation import Evaluation
from anonlib.evaluation.risks import RiskMeasures
from anonlib.exact import exact
from anonlib.methods.recipe import Explanation, Grid
from anonlib.release import account
from anonlib.release.ledger_report import LedgerReport
from anonlib.release.manifest import Manifest, NodePart, SolverPart
from anonlib.release.opened import Release
from anonlib.reports.worth import risk_lines
from anonlib.streams.run import Streamed

out = Console()
"""Results."""
err = Console(stderr=True, highlight=False)
"""Messages and progress."""
MEASURES = {
    "msbs": "Mean squared bucket size",
    "gcp": "Certainty penalty (GCP)",
    "ail": "Information loss (AIL)",
    "retention": "Mean retention",
}
"""How the measures of an evaluation are called to a reader; others stand under their own names."""


def print_json(result: Any) -> None:
    """A result as one line of JSON, whatever the width of the terminal."""
    sys.stdout.write(json.dumps(result, ensure_ascii=False, default=str) + "\n")


def show_release(release: Release) -> None:
    """A release that was just published: its promise, rows, solver, bounds and audit, and where to look next."""
    manifest = release.manifest
    out.print(f"\n[bold]Published[/] {_escape(release.path)}", soft_wrap=True)
    words = "\n".join(part.words for part in account.promises(manifest))
    out.print(f"\n[bold]The guarantee[/]\n{_escape(words)}")
    out.print(f"\n[bold]Rows[/]      {account.rows_line(manifest.rows)}")
    if manifest.persons is not None:
        out.print(f"[bold]Persons[/]   {increments.in_words(manifest.persons)}")
    for line in _solver_lines(manifest.solver):
        out.print(line)
    _show_bounds(manifest)
    _show_worst(manifest)
    _show_nodes(manifest)
    checks = manifest.audit.checks
    state = {True: "[green]passed[/]", False: "[red]FAILED[/]", None: "off"}[manifest.audit.passed]
    out.print(f"[bold]Audit[/]     {state}, {sum(c.passed for c in checks)} of {len(checks)} checks")
    for name, part in manifest.tables.items():
        known = f", {_escape(release.catalog[name])} in the catalog" if name in release.catalog else ""
        out.print(f"[bold]Table[/]     {name}/ {part.rows:,} rows, {part.checksum}{known}", soft_wrap=True)
    out.print(
        f'\nLook next: {_escape(release.path)}/manifest.json, or ask: anonlib query {_escape(release.path)} "..."\n',
        soft_wrap=True,
    )


def _show_bounds(manifest: Manifest) -> None:
    """What was asked and achieved, and what the release is worth."""
    for name, line in account.bounds_lines(manifest):
        out.print(f"[bold]{_escape(name):9}[/] {_escape(line)}")
    if manifest.utility:
        measures = ", ".join(f"{name} {value:,.4g}" for name, value in manifest.utility.items())
        out.print(f"[bold]Utility[/]   {_escape(measures)}")


def show_stream(streamed: Streamed) -> None:
    """What a stream has shown so far, and what waits or was left out."""
    manifest = streamed.release.manifest
    part = manifest.stream
    assert part is not None
    out.print(f"\n[bold]Shown[/]     {_escape(streamed.release.path)}", soft_wrap=True)
    out.print(f"\n[bold]The guarantee[/]\n{_escape(manifest.guarantee.words)}")
    out.print(
        f"\n[bold]Records[/]   {part.arrived:,} arrived = {part.shown:,} shown + {part.waiting:,} waiting + {part.missing:,} with a "
        f"missing value + {part.outside:,} outside the domains; {part.late:,} came late"
    )
    out.print(f"[bold]Batches[/]   {part.batches:,}, {len(streamed.shown):,} of them by this run")
    _show_bounds(manifest)
    out.print(
        f"\nLook next: {_escape(streamed.release.path)}/batches, or ask: anonlib audit {_escape(streamed.release.path)}\n",
        soft_wrap=True,
    )


def _solver_lines(solver: SolverPart, most: int = 8) -> list[str]:
    """What was chosen: how many of each size, and what is proven about the choice."""
    parts = [f"{part.number:,} of {part.size:,}" for part in solver.setting[:most]]
    total = sum(part.number for part in solver.setting)
    more = f", and {len(solver.setting) - most:,} sizes more" if len(solver.setting) > most else ""
    lines = [f"[bold]{solver.unit.capitalize():9}[/] {total:,}: {', '.join(parts)}{more}" if parts else "", ""]
    how = _escape(account.chosen_line(solver))
    lines[1] = f"[bold]Solver[/]    {how}" if solver.loss is None else f"[bold]Loss[/]      {solver.loss:,} ({how})"
    return [line for line in lines if line]


def _show_worst(manifest: Manifest, most: int = 5) -> None:
    """The values whose largest share in a bucket comes nearest to their threshold."""
    parts = manifest.guarantee.also if manifest.layout == "bucketized" else account.promises(manifest)
    parts = parts or [manifest.guarantee]
    measured = [
        (f"{part.sensitive}: {v.value}" if len(parts) > 1 else str(v.value), v)
        for part in parts
        for v in part.values
        if v.achieved is not None and v.threshold is not None
    ]
    tight = sorted(measured, key=lambda it: exact(it[1].achieved or "0") / exact(it[1].threshold or "1"), reverse=True)[
        :most
    ]
    if not tight:
        return
    grid = Table("value", "records", "asked: at most", "achieved", box=None, pad_edge=False)
    for name, v in tight:
        grid.add_row(
            _escape(name),
            f"{v.count:,}",
            f"{float(exact(v.threshold or '1')):.4%}",
            f"{float(exact(v.achieved or '0')):.4%}",
        )
    out.print(grid)


def _show_nodes(manifest: Manifest, most: int = 5) -> None:
    """Nodes of the values' hierarchy: those with a threshold, the nearest to it first, then those that most buckets tell."""
    measured = [node for node in manifest.guarantee.nodes if node.achieved is not None]

    def rank(node: NodePart) -> tuple[bool, Fraction, int]:
        reached = Fraction(0) if node.threshold is None else exact(node.achieved or "0") / exact(node.threshold)
        return node.threshold is None, -reached, -(node.telling or 0)

    if not measured:
        return
    alone = "buckets of nothing else" if manifest.layout == "bucketized" else "records that match nothing else"
    grid = Table("node", "records", "asked: at most", "achieved", alone, box=None, pad_edge=False)
    for node in sorted(measured, key=rank)[:most]:
        grid.add_row(
            _escape(node.node),
            f"{node.count:,}",
            "none" if node.threshold is None else f"{float(exact(node.threshold)):.4%}",
            f"{float(exact(node.achieved or '0')):.4%}",
            f"{node.telling or 0:,}",
        )
    out.print(grid)
    if len(measured) > most:
        out.print(f"... and {len(measured) - most:,} nodes")


def show_groups(asked: dict[str, Any], groups: list[dict[str, Any]], as_json: bool) -> None:
    """A row for each group of a grouped count; with `as_json` beside what was `asked`."""
    if as_json:
        print_json({**asked, "groups": groups})
        return
    grid = Table(*(groups[0] if groups else ()), box=None, pad_edge=False)
    for row in groups:
        grid.add_row(*[_escape(f"{cell:,.1f}" if isinstance(cell, float) else str(cell)) for cell in row.values()])
    out.print(grid)


def show_checks(checks: list[dict[str, Any]]) -> None:
    """A row for each check of an audit."""
    grid = Table("", "check", "asked", "found", "evidence", box=None, pad_edge=False)
    for check in checks:
        mark = "[green]passed[/]" if check["passed"] else "[red]FAILED[/]"
        grid.add_row(mark, *[_escape(str(check[k] or "")) for k in ("name", "asked", "achieved", "evidence")])
    out.print(grid)


def show_ledger(path: str, report: LedgerReport) -> None:
    """A row for each release of a ledger, and how many persons it knows."""
    grid = Table("release", "entered", "persons", "", "path", "its manifest", box=None, pad_edge=False)
    for line in report.lines:
        grid.add_row(str(line.number), line.time, f"{line.persons:,}", line.outcome, _escape(line.path), line.manifest)
    out.print(f"\n[bold]Ledger[/] {_escape(path)} ({report.id})", soft_wrap=True)
    out.print(grid)
    out.print(f"{report.persons:,} persons in {report.releases:,} releases\n")


def show_evaluation(evaluation: Evaluation) -> None:
    """Measures, errors by group, risks and attacks."""
    errors = evaluation.errors
    out.print(
        "\n" + "\n".join(f"[bold]{_escape(MEASURES.get(k, k)):26}[/]{v:,.4g}" for k, v in evaluation.measures.items())
    )
    out.print(
        f"[bold]Relative error[/]            average {errors.average:.2%}, median {errors.median:.2%} over {errors.queries:,} queries "
        f"({errors.dropped:,} with a true count of 0 left out)\n",
        soft_wrap=True,
    )
    if evaluation.risks is not None:
        _show_risks(evaluation.risks)
    grid = Table(evaluation.grouped_by, "queries", "average", "median", box=None, pad_edge=False)
    for group, part in evaluation.by_group.items():
        grid.add_row(_escape(str(group)), f"{part.queries:,}", f"{part.average:.2%}", f"{part.median:.2%}")
    out.print(grid)
    if evaluation.attacks:
        _show_attacks(evaluation.attacks)


def _show_risks(risks: RiskMeasures) -> None:
    """Of finding a person's row, as other tools give them."""
    grid = Table("risk of finding a row", "", box=None, pad_edge=False)
    for name, figure in risk_lines(risks):
        grid.add_row(name, figure)
    out.print(grid)
    out.print("")


def _show_attacks(attacks: Mapping[str, Mapping[str, Any]]) -> None:
    """A line for each attack with figures, then what was promised, or why it was not played, in words."""
    grid = Table("attack", "accuracy", "prior", "bound", "largest belief", "persons", "above", box=None, pad_edge=False)
    for name, one in attacks.items():
        if "accuracy" in one:
            shares = [f"{one[k]:.2%}" if k in one else "-" for k in ("accuracy", "prior", "guarantee", "largest")]
            grid.add_row(_escape(name), *shares, *(f"{one[k]:,.0f}" if k in one else "-" for k in ("persons", "above")))
    out.print("")
    out.print(grid)
    for name, one in attacks.items():
        known = ("accuracy", "prior", "guarantee", "largest", "persons", "above", "words")
        more = ", ".join(
            f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in one.items() if k not in known
        )
        words = "; ".join(part for part in (str(one.get("words", "")), more) if part)
        out.print(f"  [bold]{_escape(name)}[/]: {_escape(words)}", soft_wrap=True)


def show_explanation(explanation: Explanation) -> None:
    """The promise that would be given, what would be chosen for it, and at what price."""
    out.print(f"\n[bold]The guarantee[/]\n{_escape(explanation.words)}\n")
    for grid in explanation.grids:
        _show_grid(grid)
    out.print(f"{_escape(explanation.summary)}\n")


def _show_grid(grid: Grid) -> None:
    table = Table(*grid.columns, box=None, pad_edge=False)
    for row in grid.rows:
        table.add_row(*[_escape(text) for text in row])
    out.print(table)
    if grid.more:
        out.print(_escape(grid.more))
    out.print()
