"""GB Fig. 5: the error of count queries on bucketized tables, by theta."""

from __future__ import annotations

import numpy as np

from anonlib.evaluation.evaluation import RelativeErrors
from anonlib.evaluation.workloads import in_workload
from anonlib.privacy.f_privacy import FPrivacy
from anonlib.solvers.buckets import choose
from benchmarks.figures.claims import curve, every, of_each, short, within
from benchmarks.figures.figure import OCC, Claim, Figure, Finding, Measured, Panel, Row, Rows, Scale
from benchmarks.figures.frequencies import SENSITIVE
from benchmarks.figures.gb import TABLES, THETAS
from benchmarks.figures.releases import Bucketized, Coded
from benchmarks.utility import LARGEST, OFFSET, SOLVERS


def measure(scale: Scale) -> Measured:
    """Even mixtures of buckets, as the paper estimates."""
    queries, limit = scale.pick((300, 20), (5_000, 60))
    rows = [row for panel in TABLES for row in _errors(panel, scale, queries, limit)]
    return Measured.of(f"{OCC}, 100,000 records; {queries:,} queries; Optimal within {limit} s", rows)


def _errors(panel: str, scale: Scale, queries: int, limit: float) -> list[Row]:
    sensitive = SENSITIVE[panel]
    table = Coded.read(scale.path(OCC), sensitive)
    workload = in_workload({**table.domains, sensitive: table.values}, sensitive, queries)
    releases = {}
    for theta in THETAS:
        thresholds = FPrivacy.linear(theta, OFFSET).thresholds(table.counts)
        for name, solver in SOLVERS.items():
            seconds = limit if solver == "optimal" else None
            solution = choose.solve(table.counts, thresholds, solver, LARGEST, seconds)
            releases[name, theta] = Bucketized.of(table, solution)
    actual = np.zeros(len(workload.queries))
    estimated = {key: np.zeros(len(workload.queries)) for key in releases}
    for q, query in enumerate(workload.queries):
        met, asked = table.meeting(query.accepted), list(query.accepted[sensitive])
        actual[q] = np.isin(table.sensitive[met], asked).sum()
        for key, release in releases.items():
            estimated[key][q] = release.of_each(met)[asked].sum()
    return [
        Row(panel, name, theta, 100 * RelativeErrors.of(actual, estimated[name, theta]).average)
        for name, theta in releases
    ]


def near(panel: str, name: str, reference: str, points: float):  # type: ignore[no-untyped-def]
    """`name` errs at most `points` percentage points more than `reference`, at every theta."""

    def check(rows: Rows) -> Finding:
        one, other = curve(rows, panel, name), curve(rows, panel, reference)
        worst = max(one, key=lambda x: one[x] - other[x])
        told = f"{panel}: {name} {short(one[worst])} %, {reference} {short(other[worst])} % at {short(worst)}"
        return Finding(one[worst] - other[worst] <= points, told)

    return check


FIGURES = (
    Figure(
        "GB-5",
        "GB",
        "Fig. 5",
        {
            name: Panel(f"{name}: {column}", "theta", "average relative error, %", "line", True)
            for name, column in SENSITIVE.items()
        },
        (
            Claim(
                "counts are off by slightly over 10 % at most (11 %)",
                every(*(of_each(within, TABLES, name, 0, 11) for name in SOLVERS)),
            ),
            Claim("MultiSize loses no more than 2 points to Optimal", of_each(near, TABLES, "MultiSize", "Optimal", 2)),
            Claim("TwoSize loses no more than 2 points to MultiSize", of_each(near, TABLES, "TwoSize", "MultiSize", 2)),
        ),
        measure,
        120,
        (OCC,),
    ),
)
