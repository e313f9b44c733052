"""How many values a perturbed release keeps, over the bound that is asked: small sub-tables beside uniform perturbation.

From the counts of the sensitive values alone; no record moves. Source: small domain randomization, table 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from anonlib.errors import AnonlibError, Unsatisfiable
from anonlib.exact import text
from anonlib.privacy.counts import SensitiveCounts
from anonlib.privacy.rho_privacy import RhoPrivacy
from anonlib.solvers.subtables.perturbation_partitioning import solve, solve_whole


@dataclass(frozen=True)
class RetentionPoint:
    """What one rho2 allows: the share of values retained and the error bound, with sub-tables and (`uniform`) without."""

    rho2: Fraction
    subtables: int
    retention: float
    uniform_retention: float
    error_bound: float
    uniform_error_bound: float


def retention_by_rho2(
    counts: SensitiveCounts,
    rho2s: Sequence[int | str | Fraction],
    rho1: int | str | Fraction | None = None,
    delta: Fraction = Fraction(1, 20),
) -> tuple[RetentionPoint, ...]:
    """A point for each rho2 that can be kept, in ascending order; those that cannot are left out.

    Raises Unsatisfiable when none can. Cost: one run of the solver each.
    """
    points: list[RetentionPoint] = []
    refused: Unsatisfiable | None = None
    for rho2 in sorted(RhoPrivacy.of(r).rho2 for r in rho2s):
        asked = RhoPrivacy.of(rho2, rho1)
        try:
            partitioned, uniform = solve(counts, asked, delta), solve_whole(counts, asked, delta)
        except Unsatisfiable as error:
            refused = error
            continue
        kept, before = partitioned.subtables.mean_retention, uniform.subtables.mean_retention
        points.append(RetentionPoint(rho2, len(partitioned.subtables), kept, before, partitioned.bound, uniform.bound))
    if not points and refused is not None:
        raise refused
    return tuple(points)


def retention_chart(points: Sequence[RetentionPoint], path: str | None = None, title: str = "") -> Any:
    """A matplotlib figure of retention and error bound by rho2; written to `path` (its ending names the format) if one is given.

    Raises AnonlibError without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise AnonlibError("charts need matplotlib: pip install 'anonlib[evaluate]'") from None
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    kept, bound = figure.subplots(1, 2)
    at = [float(p.rho2) for p in points]
    for name, mark, retained, errors in (
        ("sub-tables", "o-", [p.retention for p in points], [p.error_bound for p in points]),
        (
            "uniform perturbation",
            "s--",
            [p.uniform_retention for p in points],
            [p.uniform_error_bound for p in points],
        ),
    ):
        kept.plot(at, [100 * r for r in retained], mark, label=name)
        bound.plot(at, errors, mark, label=name)
    kept.set_ylabel("values retained (%)")
    bound.set_ylabel("error bound")
    bound.set_yscale("log")
    for axes in (kept, bound):
        axes.set_xlabel("rho2: what may be believed at most")
        axes.set_xscale("log")
        axes.set_xticks(at, [text(p.rho2) for p in points], rotation=45)
        axes.minorticks_off()
        axes.set_ylim(bottom=0 if axes is kept else None)
        axes.legend(frameon=False)
    figure.suptitle(title)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
