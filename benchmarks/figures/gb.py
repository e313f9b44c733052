"""GB Fig. 3, 4, 6, 7: what l-diversity would need, sizes of buckets, and seconds of the solvers. From counts alone."""

from __future__ import annotations

from collections.abc import Iterator

from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.f_privacy import FPrivacy
from anonlib.solvers.buckets import choose, two_size
from benchmarks import solvers
from benchmarks.figures.claims import below, close, every, falls, of_each, rises, steady, within
from benchmarks.figures.figure import OCC, Claim, Figure, Measured, Panel, Row, Scale, timed
from benchmarks.figures.frequencies import SENSITIVE
from benchmarks.perturbation import counts_of
from benchmarks.utility import LARGEST, OFFSET, SOLVERS, anatomy_setting

THETAS = (2, 4, 8, 16, 32)
LABEL = {"none": "no pruning", "loss": "loss pruning", "full": "full pruning"}
TABLES = tuple(SENSITIVE)


def needed_l(scale: Scale) -> Measured:
    """Fig. 3."""
    rows = []
    for panel, column in SENSITIVE.items():
        counts = counts_of(scale.path(OCC), column)
        possible = counts.n // int(counts.counts.max())
        for theta in THETAS:
            needed = FPrivacy.linear(theta, OFFSET).thresholds(counts).equivalent_l
            rows += [Row(panel, "l needed", theta, needed), Row(panel, "largest l possible", theta, possible)]
    return Measured.of(f"{OCC}, 100,000 records", rows)


def bucket_sizes(scale: Scale) -> Measured:
    """Fig. 4."""
    seconds = scale.pick(20, 60)
    rows = []
    for panel, column in SENSITIVE.items():
        counts = counts_of(scale.path(OCC), column)
        for theta in THETAS:
            thresholds = FPrivacy.linear(theta, OFFSET).thresholds(counts)
            for name, solver in SOLVERS.items():
                limit = seconds if solver == "optimal" else None
                found = choose.solve(counts, thresholds, solver, LARGEST, limit)
                rows.append(Row(panel, name, theta, found.setting.msbs))
            rows.append(Row(panel, "Anatomy", theta, anatomy_setting(counts.n, min(thresholds.fractions)).msbs))
    return Measured.of(f"{OCC}, 100,000 records; Optimal within {seconds} s", rows)


def seconds_by_size(scale: Scale) -> Measured:
    """Fig. 6."""
    limit = scale.pick(10, 60)
    rows = [
        row
        for panel, column in SENSITIVE.items()
        for n in range(100_000, 500_001, 100_000)
        for row in _seconds(panel, n, solvers.counts_of(solvers.shape(scale.data, column), n), limit)
    ]
    return Measured.of(f"{_whose(scale)}, scaled to each size; Optimal within {limit} s", rows)


def seconds_by_values(scale: Scale) -> Measured:
    """Fig. 7."""
    limit, factors = scale.pick((10, (2, 4, 8)), (60, (2, 4, 8, 16, 32, 64)))
    rows = [
        row
        for panel, column in SENSITIVE.items()
        for factor in factors
        for row in _seconds(
            panel,
            factor,
            solvers.scaled(solvers.counts_of(solvers.shape(scale.data, column), 500_000), factor),
            limit,
        )
    ]
    return Measured.of(f"{_whose(scale)}, scaled to 500,000 records; Optimal within {limit} s", rows)


def _whose(scale: Scale) -> str:
    return f"shares of {OCC}" if scale.path(OCC).exists() else "generated shares"


def _seconds(panel: str, x: float, counts: SensitiveCounts, limit: float) -> Iterator[Row]:
    table = solvers.seen(counts)
    for pruning, name in LABEL.items():
        each = [timed(lambda pruning=pruning: two_size.solve(table, pruning))[1] for _ in range(2)]  # type: ignore[misc]
        yield Row(panel, name, x, min(each))
    thresholds = FPrivacy.linear(solvers.THETA, solvers.OFFSET).thresholds(counts)
    yield Row(panel, "Optimal", x, timed(lambda: choose.solve(counts, thresholds, "optimal", LARGEST, limit))[1])


def _panels(x: str, y: str, log_y: bool = False) -> dict[str, Panel]:
    return {name: Panel(f"{name}: {column}", x, y, "line", True, log_y) for name, column in SENSITIVE.items()}


FIGURES = (
    Figure(
        "GB-3",
        "GB",
        "Fig. 3",
        _panels("theta", "l"),
        (
            Claim(
                "on occupations no release has the l that is needed at theta = 2 to 16",
                below("OCC", "largest l possible", "l needed", lambda theta: theta < 32),
            ),
            Claim(
                "at theta = 32 one has it, as l is below 14 there",
                within("OCC", "l needed", 1, 13, lambda theta: theta == 32),
            ),
            Claim("on education none has, at any theta", below("EDU", "largest l possible", "l needed")),
        ),
        needed_l,
        5,
        (OCC,),
    ),
    Figure(
        "GB-4",
        "GB",
        "Fig. 4",
        _panels("theta", "mean squared bucket size", True),
        (
            Claim(
                "Anatomy's buckets are much larger than all others (their mean square at least twice)",
                every(*(of_each(below, TABLES, name, "Anatomy", factor=2) for name in SOLVERS)),
            ),
            Claim(
                "TwoSize approximates Optimal well (within 10 %)",
                of_each(close, TABLES, "TwoSize", "Optimal", 0.1),
            ),
            Claim("MultiSize does (within 10 %)", of_each(close, TABLES, "MultiSize", "Optimal", 0.1)),
        ),
        bucket_sizes,
        60,
        (OCC,),
    ),
    Figure(
        "GB-6",
        "GB",
        "Fig. 6",
        {
            name: Panel(f"{name}: {column}", "records", "CPU seconds", "line", False, True)
            for name, column in SENSITIVE.items()
        },
        (
            Claim(
                "full pruning takes less time than loss pruning, that less than none",
                every(
                    of_each(below, TABLES, "full pruning", "loss pruning"),
                    of_each(below, TABLES, "loss pruning", "no pruning"),
                ),
            ),
            Claim(
                "with full pruning time stays constant in |T| (within a factor 2)",
                of_each(steady, TABLES, "full pruning", 2),
            ),
            Claim("with loss pruning it grows", of_each(rises, TABLES, "loss pruning")),
            Claim("Optimal takes less time than no pruning", of_each(below, TABLES, "Optimal", "no pruning")),
        ),
        seconds_by_size,
        120,
    ),
    Figure(
        "GB-7",
        "GB",
        "Fig. 7",
        _panels("times as many values", "CPU seconds", True),
        (
            Claim("Optimal takes much longer with more values (ten times)", of_each(rises, TABLES, "Optimal", 10)),
            Claim(
                "with loss and full pruning time grows little (five times at most)",
                every(*(of_each(steady, TABLES, name, 5) for name in ("loss pruning", "full pruning"))),
            ),
            Claim("without pruning it falls", of_each(falls, TABLES, "no pruning")),
        ),
        seconds_by_values,
        120,
    ),
)
