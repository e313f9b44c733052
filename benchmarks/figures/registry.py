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


UNMEASURED: tuple[str, ...] = (
    "GB-6",
    "GB-7",
    "HG-6",
    "HG-7",
    "HG-9",
    "SABRE-12",
    "SABRE-15",
    "SABRE-16",
    "SABRE-17",
    "SABRE-18",
)
"""Their code is there; their rows are not yet."""
EVERY = sorted((figure for module in MODULES for figure in module.FIGURES), key=_place)
FIGURES: dict[str, Figure] = {figure.name: figure for figure in EVERY if figure.name not in UNMEASURED}
"""By name, in the papers' order."""

NOT_DRAWN: dict[tuple[str, str], str] = {
    ("HG", "Fig. 10"): "all of it is beside PrivBayes, whose package is not among the benchmarks' requirements",
    **{(figure.paper, figure.item): "its rows are not measured yet" for figure in EVERY if figure.name in UNMEASURED},
}
"""(paper, item) -> why."""
