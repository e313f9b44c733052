"""SABRE Fig. 15 and 16: classes of a window over a stream, by I and by omega. Kernels alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.baselines import census
from benchmarks.figures.claims import below, falls, rises
from benchmarks.figures.figure import SAL, Claim, Figure, Measured, Panel, Row, Scale
from benchmarks.stream import by_size, rows_of

PUBLISHED = "as published"
"""SABRE-AK in each window, as in the paper; "SABRE_W" is what `anonlib stream` runs."""


def by(name: str, small: Sequence[tuple[int, int]], full: Sequence[tuple[int, int]]) -> Callable[[Scale], Measured]:
    """Loss and CPU seconds at each (omega, I), by the one that `name` names."""

    def measure(scale: Scale) -> Measured:
        records, sizes = scale.pick((10_000, small), (120_000, full))
        table = census(scale.data, SAL, "salary_class", rows_of(500_000, records))
        rows = []
        for method, omega, advance, played in by_size(table, list(sizes)):
            x = advance if name == "I" else omega
            rows += [Row("loss", method, x, played.loss), Row("seconds", method, x, played.seconds)]
        fixed = f"omega = {sizes[0][0]:,}" if name == "I" else f"I = {sizes[0][1]:,}"
        return Measured.of(f"{records:,} records of {SAL} in random order; {fixed}, t = 0.35, k = 6", rows)

    return measure


def _panels(x: str) -> dict[str, Panel]:
    return {
        "loss": Panel("average information loss", x, "AIL"),
        "seconds": Panel("seconds of CPU", x, "seconds", "line", False, True),
    }


LESS = (
    Claim("SABRE loses less than tMondrian", below("loss", PUBLISHED, "tMondrian")),
    Claim("and less than tIncognito", below("loss", PUBLISHED, "tIncognito")),
    Claim("it takes less time than tIncognito", below("seconds", PUBLISHED, "tIncognito")),
)

FIGURES = (
    Figure(
        "SABRE-15",
        "SABRE",
        "Fig. 15",
        _panels("I, records of an advance"),
        (*LESS, Claim("time falls as I grows", falls("seconds", PUBLISHED))),
        by(
            "I",
            [(2_000, advance) for advance in (250, 500, 1_000, 2_000)],
            [(20_000, advance) for advance in (1_000, 2_000, 5_000, 10_000, 20_000)],
        ),
        90,
        (SAL,),
    ),
    Figure(
        "SABRE-16",
        "SABRE",
        "Fig. 16",
        _panels("omega, records of a window"),
        (*LESS, Claim("time rises with omega", rises("seconds", PUBLISHED))),
        by(
            "omega",
            [(omega, 500) for omega in (1_000, 2_000, 3_000, 4_000, 5_000)],
            [(omega, 5_000) for omega in (10_000, 20_000, 30_000, 40_000, 50_000)],
        ),
        90,
        (SAL,),
    ),
)
