"""SDR Fig. 2 to 5: the error of point queries on perturbed and bucketized tables, and seconds to make those."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anonlib.arrays import BoolArray, Float64Array
from anonlib.evaluation.evaluation import RelativeErrors
from anonlib.evaluation.point_workload import point_workload, selective
from anonlib.privacy.rho_privacy import RhoPrivacy
from anonlib.solvers.buckets import anatomy
from anonlib.solvers.subtables.perturbation_partitioning import solve, solve_whole
from benchmarks.figures.claims import below, close, every, of_each, rises, steady, within, within_times
from benchmarks.figures.figure import OCC, Claim, Figure, Finding, Measured, Panel, Row, Rows, Scale, timed
from benchmarks.figures.frequencies import SENSITIVE
from benchmarks.figures.releases import Bucketized, Coded, PerturbedTable, eligible
from benchmarks.point_workload import LEVELS, SELECTIVITIES

RHO1 = {"OCC": Fraction(1, 13), "EDU": Fraction(1, 30)}
HARDEST = {"OCC": 6, "EDU": 10}
METHODS = ("PP", "UP", "Anatomy")
RAW = "PP, Eq. 7"
SIZES = (20_000, 40_000, 60_000, 80_000, 100_000)
SECONDS_SIZES = (100_000, 200_000, 300_000, 400_000, 500_000)


@dataclass(frozen=True, eq=False)
class Asked:
    """Conditions, each asked with every value: which records meet them, and true counts, (C, m)."""

    table: Coded
    met: list[dict[str, tuple[int, ...]]]
    actual: Float64Array

    @staticmethod
    def of(table: Coded, name: str, conditions: int) -> Asked:
        sensitive = SENSITIVE[name]
        drawn = point_workload({**table.domains, sensitive: table.values}, sensitive, conditions)
        own = [dict(query.accepted) for query in drawn.queries[:: table.m]]
        actual = [np.bincount(table.sensitive[table.meeting(each)], minlength=table.m) for each in own]
        return Asked(table, own, np.array(actual, dtype=np.float64))

    def conditions(self, table: Coded) -> Iterator[BoolArray]:
        return (table.meeting(each) for each in self.met)


def estimated(asked: Asked, name: str, level: int) -> dict[str, Float64Array]:
    """{method: (C, m)}: of "PP" what `Release.count` says, of RAW equation (7) alone, of the others as the paper has them."""
    table, wanted = asked.table, RhoPrivacy(RHO1[name], Fraction(1, level))
    found = {}
    perturbed = PerturbedTable.of(table, solve(table.counts, wanted).subtables)
    found["PP"], found[RAW] = perturbed.estimates(asked.conditions(table))
    whole = PerturbedTable.of(table, solve_whole(table.counts, wanted).subtables)
    found["UP"] = whole.estimates(asked.conditions(table))[1]
    kept = eligible(table, level)
    buckets = Bucketized.of(kept, anatomy.solve(kept.counts, level))
    found["Anatomy"] = np.array([buckets.of_each(met) for met in asked.conditions(kept)])
    return found


def _title(selectivity: float) -> str:
    return f"s = {selectivity:.1%}"


def errors_of(name: str) -> Callable[[Scale], Measured]:
    """Fig. 2 and 4."""

    def measure(scale: Scale) -> Measured:
        conditions = 200
        table = Coded.read(scale.path(OCC), SENSITIVE[name])
        whole = Asked.of(table, name, conditions)
        rows = [row for level in LEVELS[name] for row in _rows(whole, name, level, level, "")]
        mixed = np.random.default_rng(3).permutation(table.n)
        for size in SIZES:
            part = Asked.of(table.taken(mixed[:size]), name, conditions)
            rows += _rows(part, name, HARDEST[name], size, ", by |T|")
        return Measured.of(f"{OCC}, 100,000 records, and random parts of it; {conditions} conditions", rows)

    return measure


def _rows(asked: Asked, name: str, level: int, x: float, more: str) -> Iterator[Row]:
    for method, counts in estimated(asked, name, level).items():
        for selectivity in SELECTIVITIES:
            actual = selective(asked.actual.ravel(), asked.table.n, selectivity)
            error = RelativeErrors.of(actual, counts.ravel()).average
            yield Row(_title(selectivity) + more, method, x, 100 * error)


POINTS = 250


def scatter(scale: Scale) -> Measured:
    """Fig. 3: queries that at least 0.1 % of the records meet, some of them drawn."""
    asked = Asked.of(Coded.read(scale.path(OCC), SENSITIVE["OCC"]), "OCC", 200)
    actual = asked.actual.ravel()
    kept = np.flatnonzero(actual >= SELECTIVITIES[0] * asked.table.n)
    kept = np.sort(np.random.default_rng(4).permutation(kept)[:POINTS])
    rows = [
        Row(method, "queries", actual[q], counts.ravel()[q])
        for method, counts in estimated(asked, "OCC", 6).items()
        for q in kept.tolist()
    ]
    return Measured.of(f"{OCC}, 100,000 records, L = 6, s = 0.1 %; {len(kept)} queries drawn", rows)


def nearer(panel: str, other: str):  # type: ignore[no-untyped-def]
    """The points of one panel lie nearer to the diagonal than those of the other: by their mean distance over x."""

    def off(rows: Rows, of: str) -> float:
        return float(np.mean([abs(row.y - row.x) / row.x for row in rows if row.panel == of]))

    def check(rows: Rows) -> Finding:
        one, two = off(rows, panel), off(rows, other)
        return Finding(one < two, f"{panel} {one:.1%} off on average, {other} {two:.1%}")

    return check


def seconds(scale: Scale) -> Measured:
    """Fig. 5: from codes in memory to codes that are published, the solver included."""
    rows = []
    for name, sensitive in SENSITIVE.items():
        table, level = Coded.read(scale.path(OCC), sensitive), HARDEST[name]
        wanted = RhoPrivacy(RHO1[name], Fraction(1, level))
        for size in SECONDS_SIZES:
            own = table.taken(np.arange(size) % table.n)
            rows += [Row(name, method, size, spent) for method, spent in _timed(own, wanted, level)]
    return Measured.of(f"{OCC}, its 100,000 records once to five times; NumPy on one core, no files", rows)


def _timed(table: Coded, wanted: RhoPrivacy, level: int) -> Iterator[tuple[str, float]]:
    def bucketized() -> Bucketized:
        kept = eligible(table, level)
        return Bucketized.of(kept, anatomy.solve(kept.counts, level))

    ways: dict[str, Callable[[], object]] = {
        "PP": lambda: PerturbedTable.of(table, solve(table.counts, wanted).subtables),
        "UP": lambda: PerturbedTable.of(table, solve_whole(table.counts, wanted).subtables),
        "Anatomy": bucketized,
    }
    for method, way in ways.items():
        yield method, timed(way)[1]


BY_L = tuple(_title(s) for s in SELECTIVITIES)
BY_SIZE = tuple(f"{title}, by |T|" for title in BY_L)
PANELS = {title: Panel(title, "L", "average relative error, %") for title in BY_L} | {
    title: Panel(title, "records", "average relative error, %") for title in BY_SIZE
}

FIGURES = (
    Figure(
        "SDR-2",
        "SDR",
        "Fig. 2",
        PANELS,
        (
            Claim(
                "sub-tables (PP) err less than uniform perturbation (UP), at every L and selectivity",
                of_each(below, BY_L, RAW, "UP"),
            ),
            Claim("they err less than Anatomy, at every L and selectivity", of_each(below, BY_L, RAW, "Anatomy")),
            Claim(
                "so they do at every table size",
                every(of_each(below, BY_SIZE, RAW, "UP"), of_each(below, BY_SIZE, RAW, "Anatomy")),
            ),
            Claim("their error falls as L decreases", of_each(rises, BY_L, RAW)),
            Claim("Anatomy's hardly changes with L (by a quarter at most)", of_each(steady, BY_L, "Anatomy", 1.25)),
        ),
        errors_of("OCC"),
        90,
        (OCC,),
    ),
    Figure(
        "SDR-3",
        "SDR",
        "Fig. 3",
        {method: Panel(method, "true answer", "estimate", "points") for method in (RAW, "UP", "Anatomy")},
        (
            Claim("estimates of sub-tables lie nearer to the diagonal than those of UP", nearer(RAW, "UP")),
            Claim("and nearer than those of Anatomy", nearer(RAW, "Anatomy")),
        ),
        scatter,
        20,
        (OCC,),
    ),
    Figure(
        "SDR-4",
        "SDR",
        "Fig. 4",
        PANELS,
        (
            Claim(
                "PP is UP here: one sub-table is best (same errors within a tenth)",
                of_each(close, BY_L, RAW, "UP", 0.1),
            ),
            Claim(
                "Anatomy errs far more, at every L and selectivity (twice)",
                of_each(below, BY_L, RAW, "Anatomy", factor=2),
            ),
            Claim("and at every table size (more at all)", of_each(below, BY_SIZE, RAW, "Anatomy")),
        ),
        errors_of("EDU"),
        60,
        (OCC,),
    ),
    Figure(
        "SDR-5",
        "SDR",
        "Fig. 5",
        {name: Panel(f"{name}: {column}", "records", "CPU seconds") for name, column in SENSITIVE.items()},
        (
            Claim("PP takes no more than 30 seconds at any size", of_each(within, tuple(SENSITIVE), "PP", 0, 30)),
            Claim("as long as UP does (three times at most)", of_each(within_times, tuple(SENSITIVE), "PP", "UP", 3)),
            Claim(
                "as long as Anatomy does (three times at most)",
                of_each(within_times, tuple(SENSITIVE), "PP", "Anatomy", 3),
            ),
            Claim("Anatomy is faster than PP on EDU", below("EDU", "Anatomy", "PP")),
        ),
        seconds,
        60,
        (OCC,),
    ),
)
