"""SABRE Fig. 17 to 19: range queries, cells of a data cube, and hierarchies over salaries. Kernels alone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np

from anonlib.hierarchy import Hierarchy, hierarchy_of
from anonlib.privacy.t_closeness import GroundDistance
from anonlib.queries.cells import Cells
from benchmarks.figures.boxes import Boxes, cube_divergence, ends, median_error, range_queries
from benchmarks.figures.claims import below, curve, every, falls, rises
from benchmarks.figures.figure import SAL, Claim, Figure, Finding, Measured, Panel, Row, Rows, Scale
from benchmarks.figures.sabre import MONDRIANS, OTHERS, SABRES, TS, K, T, each_below, records_of, sampled
from benchmarks.sabre import Table, measured, methods

FANOUTS = (2, 3, 4, 5, 7, 8, 10, 25, 50)
LEVEL = 2


@cache
def published(table: Table, t: Fraction) -> dict[str, Boxes]:
    """{method: its boxes}."""
    found = {}
    for name, make in methods(incognito=True).items():
        if name in (*SABRES, *OTHERS):
            _, classes = np.unique(make(table, t, K), return_inverse=True)
            found[name] = Boxes.of_classes(table.columns, table.domains, table.sensitive, table.distance.m, classes)
    return found


def points_of(table: Table) -> Boxes:
    """The records themselves."""
    return Boxes.of_points(table.columns, table.domains, table.sensitive, table.distance.m)


def errors(scale: Scale) -> Measured:
    """Fig. 17."""
    records, queries = records_of(scale), scale.pick(1_000, 10_000)
    whole = sampled(scale, records)
    asked = [("lambda", d, whole, T, 0.1, d) for d in range(1, 7)]
    asked += [("QI", d, sampled(scale, records, d), T, 0.1, 3) for d in (3, 4, 5, 6, 7)]
    asked += [("t", float(t), whole, Fraction(t), 0.1, 3) for t in TS]
    asked += [("selectivity", s, whole, T, s, 3) for s in (0.05, 0.1, 0.15, 0.2, 0.25)]
    rows = []
    for panel, x, table, t, selectivity, dimensions in asked:
        drawn = range_queries(table.domains, table.distance.m, queries, selectivity, dimensions)
        points = points_of(table)
        for name, boxes in published(table, t).items():
            rows.append(Row(panel, name, x, median_error(points, boxes, drawn)))
    return Measured.of(f"{records:,} records of {SAL}; {queries:,} queries; k = {K}", rows)


def divergences(scale: Scale) -> Measured:
    """Fig. 18."""
    records = records_of(scale)
    whole = sampled(scale, records)
    asked = [("t", float(t), whole, Fraction(t), LEVEL) for t in TS]
    asked += [("level", level, whole, T, level) for level in (1, 2)]
    asked += [("QI", d, sampled(scale, records, d), T, LEVEL) for d in (3, 4, 5, 6, 7)]
    asked += [("size", c * records, sampled(scale, c * records), T, LEVEL) for c in (1, 2, 3)]
    rows = []
    for panel, x, table, t, level in asked:
        cells = [Cells.of(d, e) for d, e in zip(table.domains, ends(table.columns, table.domains), strict=True)]
        points = points_of(table)
        for name, boxes in published(table, t).items():
            rows.append(Row(panel, name, x, cube_divergence(points, boxes, cells, level)))
    return Measured.of(f"{records:,} to {3 * records:,} records of {SAL}; k = {K}; nats, levels 1 and 2", rows)


def tree(leaves: int, fanout: int) -> Hierarchy:
    """Over leaves 0 .. leaves - 1 in order: `fanout` neighbours under a node, and so on up to the root."""
    rows = [[str(leaf)] for leaf in range(leaves)]
    width, level = fanout, 1
    while width < leaves:
        for leaf, row in enumerate(rows):
            row.append(f"level {level}, {leaf // width}")
        width, level = width * fanout, level + 1
    for row in rows:
        row.append("any")
    return hierarchy_of(rows)


def fanouts(scale: Scale) -> Measured:
    """Fig. 19."""
    table = sampled(scale, records_of(scale))
    m, rows = table.distance.m, []
    for fanout in FANOUTS:
        distance = GroundDistance.hierarchical(tree(m, fanout), [str(code) for code in range(m)])
        under = replace(table, distance=distance)
        for name, make in methods(incognito=False).items():
            if name in SABRES:
                rows.append(Row("", name, fanout, measured(under, lambda m=make, u=under: m(u, T, K))[0].ail))  # type: ignore[misc]
    return Measured.of(f"{table.n:,} records of {SAL}; t = 0.35, k = {K}", rows)


def uneven(panel: str, names: tuple[str, ...]):  # type: ignore[no-untyped-def]
    """Each curve both rises and falls between neighbouring points."""

    def check(rows: Rows) -> Finding:
        steps = {name: np.diff(list(curve(rows, panel, name).values())) for name in names}
        told = "; ".join(f"{name} rises {(d > 0).sum()} times, falls {(d < 0).sum()}" for name, d in steps.items())
        return Finding(all((d > 0).any() and (d < 0).any() for d in steps.values()), told)

    return check


BY_QUERIES = ("lambda", "QI", "t", "selectivity")
BY_CELLS = ("t", "level", "QI", "size")

FIGURES = (
    Figure(
        "SABRE-17",
        "SABRE",
        "Fig. 17",
        {
            "lambda": Panel("(a) by lambda", "lambda", "median relative error, %"),
            "QI": Panel("(b) by quasi-identifiers", "quasi-identifiers", "median relative error, %"),
            "t": Panel("(c) by t", "t", "median relative error, %"),
            "selectivity": Panel("(d) by selectivity", "selectivity", "median relative error, %"),
        },
        (
            Claim("SABRE errs less than tMondrian", every(*(each_below(p, SABRES, MONDRIANS) for p in BY_QUERIES))),
            Claim("and less than tIncognito", every(*(each_below(p, SABRES, ("tIncognito",)) for p in BY_QUERIES))),
            Claim(
                "an order of magnitude less than tIncognito (eight times, at t = 0.35)",
                every(*(below("t", name, "tIncognito", lambda t: t == 0.35, 8) for name in SABRES)),
            ),
            Claim("(a) errors grow with lambda", every(*(rises("lambda", name) for name in SABRES))),
            Claim("(b) with quasi-identifiers", every(*(rises("QI", name) for name in SABRES))),
            Claim("(c) fall as t grows", every(*(falls("t", name) for name in SABRES))),
            Claim("(d) and as selectivity does", every(*(falls("selectivity", name) for name in SABRES))),
        ),
        errors,
        180,
        (SAL,),
    ),
    Figure(
        "SABRE-18",
        "SABRE",
        "Fig. 18",
        {
            "t": Panel("(a) by t", "t", "KL divergence, nats"),
            "level": Panel("(b) by level", "level", "KL divergence, nats"),
            "QI": Panel("(c) by quasi-identifiers", "quasi-identifiers", "KL divergence, nats"),
            "size": Panel("(d) by table size", "records", "KL divergence, nats"),
        },
        (
            Claim("SABRE diverges less than tMondrian", every(*(each_below(p, SABRES, MONDRIANS) for p in BY_CELLS))),
            Claim("and less than tIncognito", every(*(each_below(p, SABRES, ("tIncognito",)) for p in BY_CELLS))),
            Claim("(a) divergence falls as t grows", every(*(falls("t", name) for name in (*SABRES, *OTHERS)))),
            Claim("(b) is less at lower levels", every(*(rises("level", name) for name in (*SABRES, *OTHERS)))),
            Claim(
                "(d) and falls slightly with the table", every(*(falls("size", name) for name in (*SABRES, *OTHERS)))
            ),
        ),
        divergences,
        240,
        (SAL,),
    ),
    Figure(
        "SABRE-19",
        "SABRE",
        "Fig. 19",
        {"": Panel("hierarchies over 50 salaries", "fan-out", "AIL")},
        (
            Claim("a smaller fan-out tends to lose less: 2 less than 50", every(*(rises("", name) for name in SABRES))),
            Claim("loss does not change uniformly with fan-out", uneven("", SABRES)),
        ),
        fanouts,
        60,
        (SAL,),
    ),
)
