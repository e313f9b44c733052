"""SDR Tables 1 to 3: what is retained, and the sub-tables that retain it. From counts alone."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from anonlib.privacy.rho_privacy import RhoPrivacy, retention
from anonlib.solvers.subtables.perturbation_partitioning import Partitioning, solve, solve_whole
from benchmarks.figures.claims import below, close, every
from benchmarks.figures.figure import OCC, Claim, Figure, Measured, Panel, Row, Scale
from benchmarks.perturbation import PAPER, counts_of

GAMMA = 5
TABLE_1 = {77: 5, 70: 5, 50: 7, 14: 22, 9: 31, 7: 36, 6: 40, 2: 67}
"""Domain size -> retention in %."""
TABLE_3 = {
    "initial groups": (17, 18, 19, 20, 20),
    "sub-tables": (15, 8, 10, 11, 12),
    "mean m": (15.0, 20.9, 17.3, 17, 18.4),
    "mean gamma": (2.6, 2.7, 2.6, 2.6, 2.8),
}
"""By 100,000 to 500,000 records."""
RHO1 = Fraction(1, 13)


def table_1(scale: Scale) -> Measured:
    """Needs no table."""
    rows = [Row("", "the paper", m, percent) for m, percent in TABLE_1.items()]
    rows += [Row("", "here", m, 100 * float(retention(m, Fraction(GAMMA)))) for m in TABLE_1]
    return Measured.of(f"gamma = {GAMMA}", rows)


def table_2(scale: Scale) -> Measured:
    """Uniform perturbation and the paper's merging of neighbours."""
    counts = counts_of(scale.path(OCC), "occupation")
    rows = []
    for level, (uniform, partitioned) in PAPER.items():
        asked = RhoPrivacy(RHO1, Fraction(1, level))
        rows += [Row("", "UP, the paper", level, uniform), Row("", "PP, the paper", level, partitioned)]
        rows.append(Row("", "UP", level, _retained(solve_whole(counts, asked))))
        rows.append(Row("", "PP", level, _retained(solve(counts, asked, merging="neighbours"))))
        rows.append(Row("", "PP, our search", level, _retained(solve(counts, asked))))
    return Measured.of(f"{OCC}, 100,000 records where the paper has 300,000", rows)


def _retained(found: Partitioning) -> float:
    """In %, the mean over sub-tables, as the paper has it."""
    return 100 * float(np.mean([float(part.retention) for part in found.subtables]))


OF: dict[str, Callable[[Partitioning], float]] = {
    "initial groups": lambda found: found.groups,
    "sub-tables": lambda found: len(found.subtables),
    "mean m": lambda found: float(np.mean([part.domain_size for part in found.subtables])),
    "mean gamma": lambda found: float(np.mean([float(part.gamma) for part in found.subtables])),
}


def table_3(scale: Scale) -> Measured:
    """At 100,000 records, which is all that we have."""
    counts = counts_of(scale.path(OCC), "occupation")
    found = solve(counts, RhoPrivacy(RHO1, Fraction(1, 6)), merging="neighbours")
    rows = [Row(what, "the paper", 100_000 * k, y) for what, line in TABLE_3.items() for k, y in enumerate(line, 1)]
    rows += [Row(what, "here", counts.n, of(found)) for what, of in OF.items()]
    return Measured.of(f"{OCC}, 100,000 records; the other sizes need records that the table has not", rows)


FIGURES = (
    Figure(
        "SDR-T1",
        "SDR",
        "Table 1",
        {"": Panel("gamma = 5", "values of the domain", "retention, %")},
        (Claim("retention is that of the table, to the percent", close("", "here", "the paper", 0, 0.5)),),
        table_1,
        1,
    ),
    Figure(
        "SDR-T2",
        "SDR",
        "Table 2",
        {"": Panel("retention by L (rho2 = 1 / L)", "L", "retention, %")},
        (
            Claim(
                "uniform perturbation retains what the table says, to the digit",
                close("", "UP", "UP, the paper", 0, 0.051),
            ),
            Claim("sub-tables retain what the table says (within 10 %)", close("", "PP", "PP, the paper", 0.1)),
            Claim("that is 2.5 times as much as uniform perturbation and more", below("", "UP", "PP", factor=2.5)),
        ),
        table_2,
        10,
        (OCC,),
    ),
    Figure(
        "SDR-T3",
        "SDR",
        "Table 3",
        {what: Panel(what, "records", what) for what in TABLE_3},
        (
            Claim("17 initial groups at 100,000 records", close("initial groups", "here", "the paper", 0)),
            Claim(
                "15 sub-tables there, of 15.0 values and with a gamma of 2.6 on average (within 10 %)",
                every(*(close(what, "here", "the paper", 0.1) for what in list(TABLE_3)[1:])),
            ),
        ),
        table_3,
        10,
        (OCC,),
    ),
)
