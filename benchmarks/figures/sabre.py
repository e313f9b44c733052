"""SABRE Fig. 10 to 14: information loss, real closeness and seconds by t, quasi-identifiers, table size and k. Kernels alone."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache

from anonlib.errors import AnonlibError
from benchmarks.figures.claims import below, every, falls, rises, steady, steeper, within, within_times
from benchmarks.figures.figure import SAL, Claim, Figure, Measured, Panel, Row, Scale, timed
from benchmarks.sabre import Table, census, measured, methods

TS = ("0.15", "0.25", "0.35", "0.45", "0.55")
T, K = Fraction("0.35"), 6
SABRES = ("SABRE-AK", "SABRE-KNN")
MONDRIANS = ("tMondrian strict", "tMondrian relaxed")
OTHERS = (*MONDRIANS, "tIncognito")
Point = tuple[float, Table, Fraction, int]


def records_of(scale: Scale) -> int:
    """Of the default table; the paper has 100,000."""
    return int(scale.pick(5_000, 100_000))


@cache
def sampled(scale: Scale, records: int, attributes: int = 7) -> Table:
    """A random sample of the table with salaries."""
    return census(scale.path(SAL), records, attributes)


def series(points: Iterable[Point]) -> list[Row]:
    """Loss, closeness and seconds of every method; where a method cannot keep the promise it has no point."""
    rows = []
    for x, table, t, k in points:
        for method, make in methods(incognito=True).items():
            try:
                classes, seconds = timed(lambda make=make, args=(table, t, k): make(*args))  # type: ignore[misc]
            except AnonlibError:
                continue
            figure, _ = measured(table, lambda classes=classes: classes)  # type: ignore[misc]
            for panel, y in (("loss", figure.ail), ("closeness", figure.closeness), ("seconds", seconds)):
                rows.append(Row(panel, method, x, y))
    return rows


@cache
def by_t(scale: Scale) -> tuple[Row, ...]:
    """Fig. 10 and 13 (a)."""
    table = sampled(scale, records_of(scale))
    return tuple(series((float(t), table, Fraction(t), K) for t in TS))


@cache
def by_attributes(scale: Scale) -> tuple[Row, ...]:
    """Fig. 11 and 13 (b)."""
    records = records_of(scale)
    return tuple(series((d, sampled(scale, records, d), T, K) for d in (3, 4, 5, 6, 7)))


def figure_10(scale: Scale) -> Measured:
    """Loss and seconds by t."""
    return _measured(scale, (row for row in by_t(scale) if row.panel != "closeness"), f"k = {K}")


def figure_11(scale: Scale) -> Measured:
    """Loss and seconds by the number of quasi-identifiers."""
    return _measured(scale, (row for row in by_attributes(scale) if row.panel != "closeness"), f"t = 0.35, k = {K}")


def figure_12(scale: Scale) -> Measured:
    """Loss and seconds by table size."""
    records = records_of(scale)
    rows = series((c * records, sampled(scale, c * records), T, K) for c in (1, 2, 3, 4, 5))
    return Measured.of(
        f"{records:,} to {5 * records:,} records of {SAL}; t = 0.35, k = {K}",
        (row for row in rows if row.panel != "closeness"),
    )


def figure_13(scale: Scale) -> Measured:
    """Real closeness by t and by the number of quasi-identifiers."""
    rows = [row._replace(panel="by t") for row in by_t(scale) if row.panel == "closeness"]
    rows += [Row("by t", "t", float(t), float(t)) for t in TS]
    rows += [row._replace(panel="by QI") for row in by_attributes(scale) if row.panel == "closeness"]
    return _measured(scale, rows, f"k = {K}")


def figure_14(scale: Scale) -> Measured:
    """Loss and seconds by k."""
    table = sampled(scale, records_of(scale))
    rows = series((k, table, T, k) for k in (2, 6, 10, 20, 50))
    return _measured(scale, (row for row in rows if row.panel != "closeness"), "t = 0.35")


def _measured(scale: Scale, rows: Iterable[Row], more: str) -> Measured:
    return Measured.of(f"{records_of(scale):,} records of {SAL}; {more}", rows)


def each_below(panel: str, lower: Iterable[str], upper: Iterable[str]):  # type: ignore[no-untyped-def]
    """Each of the first below each of the second, at every x."""
    return every(*(below(panel, one, other) for one in lower for other in upper))


def _panels(x: str) -> dict[str, Panel]:
    return {
        "loss": Panel("average information loss", x, "AIL"),
        "seconds": Panel("seconds of CPU", x, "seconds", "line", False, True),
    }


LESS_THAN_MONDRIAN = Claim(
    "SABRE loses less than tMondrian (either of two variants)", each_below("loss", SABRES, MONDRIANS)
)
LESS_THAN_INCOGNITO = Claim("it loses less than tIncognito", each_below("loss", SABRES, ("tIncognito",)))

FIGURES = (
    Figure(
        "SABRE-10",
        "SABRE",
        "Fig. 10",
        _panels("t"),
        (
            LESS_THAN_MONDRIAN,
            LESS_THAN_INCOGNITO,
            Claim("all lose less as t grows", every(*(falls("loss", name) for name in (*SABRES, *OTHERS)))),
            Claim("KNN loses slightly less than AK, or as much", within_times("loss", "SABRE-KNN", "SABRE-AK", 1.001)),
            Claim(
                "AK takes as long as tMondrian (three times at most)",
                every(*(within_times("seconds", "SABRE-AK", name, 3) for name in MONDRIANS)),
            ),
            Claim(
                "AK and tMondrian are far faster than KNN and tIncognito (ten times)",
                every(
                    *(
                        below("seconds", fast, slow, factor=10)
                        for fast in ("SABRE-AK", *MONDRIANS)
                        for slow in ("SABRE-KNN", "tIncognito")
                    )
                ),
            ),
        ),
        figure_10,
        120,
        (SAL,),
    ),
    Figure(
        "SABRE-11",
        "SABRE",
        "Fig. 11",
        _panels("quasi-identifiers"),
        (
            LESS_THAN_MONDRIAN,
            LESS_THAN_INCOGNITO,
            Claim(
                "tMondrian's and tIncognito's loss grows more with quasi-identifiers than SABRE's",
                every(*(steeper("loss", other, one) for other in OTHERS for one in SABRES)),
            ),
            Claim("AK is the fastest, tMondrian second", each_below("seconds", ("SABRE-AK",), MONDRIANS)),
            Claim("KNN is the slowest", each_below("seconds", ("SABRE-AK", *OTHERS), ("SABRE-KNN",))),
        ),
        figure_11,
        120,
        (SAL,),
    ),
    Figure(
        "SABRE-12",
        "SABRE",
        "Fig. 12",
        _panels("records"),
        (
            LESS_THAN_MONDRIAN,
            LESS_THAN_INCOGNITO,
            Claim(
                "table size hardly changes the loss of SABRE and tMondrian (by a quarter at most)",
                every(*(steady("loss", name, 1.25) for name in (*SABRES, *MONDRIANS))),
            ),
            Claim("time grows with the table", every(*(rises("seconds", name) for name in (*SABRES, *OTHERS)))),
            Claim(
                "AK and tMondrian are the fastest at every size",
                each_below("seconds", ("SABRE-AK", *MONDRIANS), ("SABRE-KNN", "tIncognito")),
            ),
        ),
        figure_12,
        240,
        (SAL,),
    ),
    Figure(
        "SABRE-13",
        "SABRE",
        "Fig. 13",
        {
            "by t": Panel("real closeness", "t", "largest distance of a class"),
            "by QI": Panel("real closeness, t = 0.35", "quasi-identifiers", "largest distance of a class"),
        },
        (
            Claim(
                "the real distance of all is below t",
                every(
                    *(within_times("by t", name, "t", 1) for name in (*SABRES, *OTHERS)),
                    *(within("by QI", name, 0, 0.35) for name in (*SABRES, *OTHERS)),
                ),
            ),
            Claim(
                "that of SABRE is below tMondrian's",
                every(each_below("by t", SABRES, MONDRIANS), each_below("by QI", SABRES, MONDRIANS)),
            ),
            Claim(
                "that of tIncognito is too",
                every(each_below("by t", ("tIncognito",), MONDRIANS), each_below("by QI", ("tIncognito",), MONDRIANS)),
            ),
        ),
        figure_13,
        10,
        (SAL,),
    ),
    Figure(
        "SABRE-14",
        "SABRE",
        "Fig. 14",
        _panels("k"),
        (
            LESS_THAN_MONDRIAN,
            LESS_THAN_INCOGNITO,
            Claim(
                "SABRE and tMondrian lose more as k grows",
                every(*(rises("loss", name) for name in (*SABRES, *MONDRIANS))),
            ),
        ),
        figure_14,
        120,
        (SAL,),
    ),
)
