"""IP Fig. 2 and SDR Fig. 6: how frequent occupations and degrees of education are."""

from __future__ import annotations

from benchmarks.figures.claims import below, within
from benchmarks.figures.figure import OCC, Claim, Figure, Measured, Panel, Row, Scale
from benchmarks.perturbation import counts_of

SENSITIVE = {"OCC": "occupation", "EDU": "education"}


def measure(scale: Scale) -> Measured:
    """Both figures, from the counts alone."""
    rows = []
    for panel, column in SENSITIVE.items():
        counts = counts_of(scale.path(OCC), column)
        rows += [Row(panel, "share", code, 100 * o / counts.n) for code, o in enumerate(counts.counts.tolist())]
        for x, share in enumerate((counts.counts.max() / counts.n, counts.counts.min() / counts.n)):
            rows.append(Row("ends", panel, x, 100 * share))
    return Measured.of(f"{OCC}, 100,000 records", rows)


PANELS = {
    "OCC": Panel("OCC: occupation", "value", "% of the records", "bar"),
    "EDU": Panel("EDU: education", "value", "% of the records", "bar"),
}


def _at(x: int):  # type: ignore[no-untyped-def]
    return lambda other: other == x


CLAIMS = (
    Claim("the most frequent occupation has 7.5 % of the records", within("ends", "OCC", 7.4, 7.6, _at(0))),
    Claim("the rarest has 0.18 % (within 0.02 points)", within("ends", "OCC", 0.16, 0.2, _at(1))),
    Claim(
        "the most frequent degree of education has 27.3 % (within 0.5 points)",
        within("ends", "EDU", 26.8, 27.8, _at(0)),
    ),
    Claim("education is much more skewed than occupation", below("ends", "OCC", "EDU", _at(0), 2)),
)

FIGURES = (
    Figure("IP-2", "IP", "Fig. 2", PANELS, CLAIMS, measure, 5, (OCC,)),
    Figure("SDR-6", "SDR", "Fig. 6", PANELS, CLAIMS[0:1] + CLAIMS[2:], measure, 5, (OCC,)),
)
