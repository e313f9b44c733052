"""All figures and tables of the papers that show measurements: those that are drawn, and why the others are not."""

from __future__ import annotations

from benchmarks.figures import (
    frequencies,
    gb,
    gb_queries,
    hg,
    hg_queries,
    sabre,
    sabre_queries,
    sabre_stream,
    sdr_queries,
    sdr_tables,
)
from benchmarks.figures.figure import Figure

MODULES = (gb, gb_queries, frequencies, sdr_tables, sdr_queries, hg, hg_queries, sabre, sabre_queries, sabre_stream)
ORDER = ("GB", "IP", "SDR", "HG", "SABRE")


def _place(figure: Figure) -> tuple[int, bool, int]:
    kind, _, number = figure.item.partition(" ")
    return ORDER.index(figure.paper), kind != "Table", int(number)


FIGURES: dict[str, Figure] = {
    figure.name: figure for figure in sorted((f for module in MODULES for f in module.FIGURES), key=_place)
}
"""By name, in the papers' order. What was measured of each lies in `benchmarks.figures.store:FOLDER`."""

NOT_DRAWN: dict[tuple[str, str], str] = {
    ("HG", "Fig. 10"): "all of it is beside PrivBayes, whose package is not among the benchmarks' requirements",
}
"""(paper, item) -> why."""
