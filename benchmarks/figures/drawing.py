"""Rows as an SVG: a panel beside the other, the same bytes for the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.figures.figure import Figure, Measured, Panel
from benchmarks.missing import missing

MARKERS = "os^vDxP*<>"
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "figures",
    "font.size": 8,
    "axes.titlesize": 8,
    "lines.markersize": 4,
    "lines.linewidth": 1,
    "legend.frameon": False,
    "legend.fontsize": 7,
}


def draw(figure: Figure, measured: Measured, path: Path) -> None:
    """Write the SVG. Raises SystemExit without matplotlib, saying so."""
    try:
        import matplotlib
    except ImportError:
        raise missing("drawing needs matplotlib: pip install matplotlib") from None
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(STYLE):
        columns = min(3, len(figure.panels))
        lines = -(-len(figure.panels) // columns)
        canvas = Canvas(figsize=(max(4.2, 3.2 * columns), 2.7 * lines), layout="constrained")
        parts = canvas.subplots(lines, columns, squeeze=False).ravel()
        for axes, (name, panel) in zip(parts, figure.panels.items(), strict=False):
            _panel(axes, panel, [row for row in measured.rows if row.panel == name])
        for axes in parts[len(figure.panels) :]:
            axes.set_axis_off()
        path.parent.mkdir(parents=True, exist_ok=True)
        canvas.savefig(path, metadata={"Date": None})


def _panel(axes: Any, panel: Panel, rows: list[Any]) -> None:
    curves: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        curves.setdefault(row.curve, []).append((row.x, row.y))
    for number, (name, points) in enumerate(curves.items()):
        x, y = zip(*sorted(points), strict=True)
        if panel.kind == "bar":
            axes.bar(x, y, label=name, width=0.8)
        elif panel.kind == "points":
            axes.plot(x, y, ".", markersize=2, label=name)
        else:
            axes.plot(x, y, marker=MARKERS[number % len(MARKERS)], label=name)
    axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
    if panel.log_x:
        axes.set_xscale("log", base=2)
        ticks = sorted({row.x for row in rows})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    if panel.log_y:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    if panel.kind == "points":
        most = max(axes.get_xlim()[1], axes.get_ylim()[1])
        axes.plot([0, most], [0, most], color="black", linewidth=0.5)
    axes.legend()
