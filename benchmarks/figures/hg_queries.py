"""HG Fig. 8, 9 and 11 without PrivBayes: range queries on boxes, and what naive Bayes learns from them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache

from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.queries.cells import Cells
from anonlib.solvers.matching.match_partitions import Bucketing
from benchmarks.baselines import Table
from benchmarks.figures.boxes import Boxes, ends, median_error, naive_bayes, range_queries
from benchmarks.figures.claims import across, below, every, falls, steady
from benchmarks.figures.figure import COIL, OCC, Claim, Figure, Measured, Panel, Row, Scale
from benchmarks.figures.hg_tables import coil, first
from benchmarks.heterogeneous import NAMES, burel, graphs

BETAS = tuple(Fraction(beta) for beta in range(1, 6))
BETA = Fraction(3)
SELECTIVITIES = (0.05, 0.1, 0.15, 0.2, 0.25)
METHODS = (*NAMES.values(), "BuReL")


def betas_of(scale: Scale) -> tuple[Fraction, ...]:
    """Three of five at the smaller size."""
    return BETAS if scale.full else BETAS[::2]


@cache
def table_of(scale: Scale, name: str) -> Table:
    """As the figures take them: the first records of each."""
    records = scale.pick(1_000, 10_000)
    return first(scale, records) if name == OCC else coil(scale, records)


@cache
def releases(scale: Scale, name: str, beta: Fraction) -> dict[str, Boxes]:
    """{method: what it publishes}: the whole table matched in one piece, and BuReL's classes."""
    table = table_of(scale, name)
    promised = Bucketing(None, BetaLikeness(beta, table.counts.counts))
    found = {}
    for matching, called in NAMES.items():
        parts = [(graph.boxes, graph.shown) for graph in graphs(table, promised, matching, None, False)]
        found[called] = Boxes.of_records(parts, table.domains, table.m)
    classes = burel(table, beta, False)
    return found | {"BuReL": Boxes.of_classes(table.columns, table.domains, table.sensitive, table.m, classes)}


def errors_of(name: str) -> Callable[[Scale], Measured]:
    """Fig. 8 and 9."""

    def measure(scale: Scale) -> Measured:
        queries = scale.pick(2_000, 10_000)
        table = table_of(scale, name)
        points = Boxes.of_points(table.columns, table.domains, table.sensitive, table.m)
        most = min(6, len(table.columns))
        asked = [("beta", float(beta), beta, 0.1, 3) for beta in betas_of(scale)]
        asked += [("lambda", float(d), BETA, 0.1, d) for d in range(1, most + 1)]
        asked += [("selectivity", s, BETA, s, 3) for s in SELECTIVITIES]
        rows = []
        for panel, x, beta, selectivity, dimensions in asked:
            drawn = range_queries(table.domains, table.m, queries, selectivity, dimensions)
            for method, published in releases(scale, name, beta).items():
                rows.append(Row(panel, method, x, median_error(points, published, drawn)))
        return Measured.of(f"the first {table.n:,} records of {name}, in one piece; {queries:,} queries", rows)

    return measure


def guesses(scale: Scale) -> Measured:
    """Fig. 11 (a) and (b)."""
    table = table_of(scale, OCC)
    points = Boxes.of_points(table.columns, table.domains, table.sensitive, table.m)
    cells = [Cells.of(d, e) for d, e in zip(table.domains, ends(table.columns, table.domains), strict=True)]
    rows = [
        Row(panel, method, float(beta), naive_bayes(points, published, cells, laplace))
        for beta in betas_of(scale)
        for method, published in releases(scale, OCC, beta).items()
        for panel, laplace in (("plain", False), ("laplace", True))
    ]
    prior = 100 * table.counts.counts.max() / table.n
    rows += [
        Row(panel, "most frequent value", float(beta), prior)
        for panel in ("plain", "laplace")
        for beta in betas_of(scale)
    ]
    return Measured.of(f"the first {table.n:,} records of {OCC}, in one piece; without PrivBayes", rows)


def _error_figure(name: str, item: str, table: str, budget: float) -> Figure:
    y = "median relative error, %"
    return Figure(
        name,
        "HG",
        item,
        {
            "beta": Panel("(a) by beta", "beta", y),
            "lambda": Panel("(b) by lambda, beta = 3", "lambda", y),
            "selectivity": Panel("(c) by selectivity, beta = 3", "selectivity", y),
        },
        (
            Claim(
                "(a) errors of the three ways fall as beta grows", every(*(falls("beta", way) for way in METHODS[:3]))
            ),
            Claim(
                "(a) they err less than BuReL at every beta",
                every(*(below("beta", way, "BuReL") for way in METHODS[:3])),
            ),
            Claim("(b) and with any lambda", every(*(below("lambda", way, "BuReL") for way in METHODS[:3]))),
            Claim("(c) and at any selectivity", every(*(below("selectivity", way, "BuReL") for way in METHODS[:3]))),
            Claim("(c) errors fall as selectivity grows", every(*(falls("selectivity", way) for way in METHODS[:3]))),
        ),
        errors_of(table),
        budget,
        (table,),
    )


FIGURES = (
    _error_figure("HG-8", "Fig. 8", OCC, 120),
    _error_figure("HG-9", "Fig. 9", COIL, 120),
    Figure(
        "HG-11",
        "HG",
        "Fig. 11",
        {
            "plain": Panel("(a) naive Bayes", "beta", "guessed right, %"),
            "laplace": Panel("(b) with Laplace's correction", "beta", "guessed right, %"),
        },
        (
            Claim(
                "(a) on heterogeneous tables what is guessed hardly depends on beta (by a quarter at most)",
                every(*(steady("plain", way, 1.25) for way in METHODS[:3])),
            ),
            Claim("(a) from HG no more is guessed than from BuReL", below("plain", "HG", "BuReL", factor=0.9999)),
            Claim("(b) nor with the correction", below("laplace", "HG", "BuReL", factor=0.9999)),
            Claim("(b) the correction helps to guess from BuReL's", across("plain", "laplace", "BuReL")),
        ),
        guesses,
        60,
        (OCC,),
    ),
)
