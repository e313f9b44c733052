"""HG Fig. 2 to 7: information loss and seconds by l, beta, quasi-identifiers, table size, partition size and skew. Kernels alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache

from anonlib.kernels.hilbert import hilbert_positions
from anonlib.kernels.matching.ring_generalization import rings
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.solvers.matching.match_partitions import Bucketing
from benchmarks.baselines import Table, gcp, gcp_of_matches
from benchmarks.figures.claims import below, curve, every, falls, of_each, rises, short, steady, within_times
from benchmarks.figures.figure import OCC, SAL, Claim, Figure, Finding, Measured, Panel, Row, Rows, Scale, timed
from benchmarks.figures.hg_tables import KINDS, drawn, first, of_kind, some, with_attributes
from benchmarks.heterogeneous import NAMES, burel, matched

L, BETA = 10, Fraction(3)
SKEWS = (0.5, 0.7, 0.9)
SKEWED_L = 5
"""Under l = 10, the paper's, no release exists where theta is 0.7 or more: one value has more than a tenth of the records."""
Cell = tuple[str, float, float]
"""A method's name, GCP, seconds."""


def under_l(table: Table, l: int, size: int | None = None) -> Iterator[Cell]:  # noqa: E741
    """The three ways to match, and ring generalization along the curve."""
    for matching, name in NAMES.items():
        (loss, *_), seconds = timed(lambda m=matching: matched(table, Bucketing(l, None), m, size, False))  # type: ignore[misc]
        yield name, loss, seconds
    loss, seconds = timed(lambda: _nh(table, l))
    yield "NH", loss, seconds


def _nh(table: Table, l: int) -> float:  # noqa: E741
    curve = hilbert_positions(table.columns, table.domains)
    return gcp_of_matches(table, rings(curve, table.sensitive, l).matches(l))


def under_beta(table: Table, beta: Fraction, size: int | None = None) -> Iterator[Cell]:
    """The three ways to match, and BuReL as published."""
    promised = Bucketing(None, BetaLikeness(beta, table.counts.counts))
    for matching, name in NAMES.items():
        (loss, *_), seconds = timed(lambda m=matching: matched(table, promised, m, size, False))  # type: ignore[misc]
        yield name, loss, seconds
    classes, seconds = timed(lambda: burel(table, beta, False))
    yield "BuReL", gcp(table, classes), seconds


def _rows(panel: str, x: float, cells: Iterable[Cell], seconds: bool = True) -> Iterator[Row]:
    for name, loss, spent in cells:
        yield Row(panel, name, x, loss)
        if seconds:
            yield Row(f"{panel}, seconds", name, x, spent)


def by_l(scale: Scale) -> Measured:
    """Fig. 2."""
    records, ls = scale.pick((1_000, (2, 4, 6, 8, 10)), (10_000, tuple(range(2, 11))))
    census = first(scale, records)
    rows = [
        row
        for kind in KINDS
        for l in ls  # noqa: E741
        for row in _rows(kind, l, under_l(of_kind(kind, census), l), seconds=False)
    ]
    return Measured.of(f"the first {records:,} records of {OCC}, in one piece", rows)


def by_attributes(scale: Scale) -> Measured:
    """Fig. 3."""
    records = scale.pick(1_000, 10_000)
    census = first(scale, records)
    rows = [
        row
        for kind in KINDS
        for number in range(1, 8)
        for row in _rows(kind, number, under_l(with_attributes(of_kind(kind, census), number), L), seconds=False)
    ]
    return Measured.of(f"the first {records:,} records of {OCC}, in one piece; l = {L}", rows)


@cache
def by_size(scale: Scale) -> Measured:
    """Fig. 4 and 5."""
    sizes, whole, pieces, parts, skewed = scale.pick(
        ((500, 1_000, 2_000), 500, 4_000, (500, 1_000, 2_000), 1_000),
        ((1_000, 2_000, 5_000, 10_000, 20_000), 1_000, 100_000, (500, 1_000, 2_000, 5_000), 10_000),
    )
    rows: list[Row] = []
    for records in sizes:
        table = some(scale, records)
        rows += _rows("size", records, under_l(table, L))
        own = ((f"{name}, p = {whole}", loss, spent) for name, loss, spent in under_l(table, L, whole) if name != "NH")
        rows += _rows("size", records, own)
    table = some(scale, pieces)
    for size in parts:
        rows += _rows("partition", size, under_l(table, L, size))
    census = first(scale, skewed)
    for theta in SKEWS:
        rows += _rows("skew", theta, under_l(drawn(census, theta), SKEWED_L))
    return Measured.of(
        f"(a) {sizes[0]:,} to {sizes[-1]:,} records of {SAL}, l = {L}; (b) {pieces:,} of them; "
        f"(c) the first {skewed:,} of {OCC}, Zipf values, l = {SKEWED_L}",
        rows,
    )


def part_of(seconds: bool):  # type: ignore[no-untyped-def]
    """Fig. 4 is the losses of `by_size`, Fig. 5 its seconds."""

    def measure(scale: Scale) -> Measured:
        whole = by_size(scale)
        return Measured.of(whole.settings, (row for row in whole.rows if row.panel.endswith(", seconds") == seconds))

    return measure


def by_beta(scale: Scale) -> Measured:
    """Fig. 6."""
    records, betas = scale.pick((1_000, (1, 3, 5)), (10_000, (1, 2, 3, 4, 5)))
    census = first(scale, records)
    rows = [
        row
        for kind in KINDS
        for beta in betas
        for row in _rows(kind, beta, under_beta(of_kind(kind, census), Fraction(beta)), seconds=False)
    ]
    return Measured.of(f"the first {records:,} records of {OCC}, in one piece", rows)


def at_beta(scale: Scale) -> Measured:
    """Fig. 7."""
    sizes, skewed = scale.pick(((250, 500, 1_000), 500), ((1_000, 2_000, 5_000, 10_000, 20_000), 10_000))
    rows = [row for records in sizes for row in _rows("size", records, under_beta(some(scale, records), BETA))]
    census = first(scale, skewed)
    for theta in SKEWS:
        rows += _rows("skew", theta, under_beta(drawn(census, theta), BETA), seconds=False)
    return Measured.of(
        f"(a, b) {sizes[0]:,} to {sizes[-1]:,} records of {SAL}; (c) the first {skewed:,} of {OCC}, Zipf values", rows
    )


def more_than(panel: str, upper: str, lower: str, times: float):  # type: ignore[no-untyped-def]
    """Somewhere `upper` is `times` as much as `lower` or more; at the last x, where the paper looks."""

    def check(rows: Rows) -> Finding:
        one, other = curve(rows, panel, upper), curve(rows, panel, lower)
        x = max(one)
        told = f"{upper} {short(one[x])}, {lower} {short(other[x])} at {short(x)}: {one[x] / other[x]:.2f} times"
        return Finding(one[x] >= times * other[x], told)

    return check


def _gap_grows(panel: str, upper: str, lower: str):  # type: ignore[no-untyped-def]
    def check(rows: Rows) -> Finding:
        one, other = curve(rows, panel, upper), curve(rows, panel, lower)
        ratio = {x: one[x] / other[x] for x in one}
        start, end = min(ratio), max(ratio)
        told = f"{panel}: {upper} over {lower} {ratio[start]:.2f} at {short(start)}, {ratio[end]:.2f} at {short(end)}"
        return Finding(ratio[end] > ratio[start], told)

    return check


def _last_below(panel: str, name: str):  # type: ignore[no-untyped-def]
    """In partitions the method takes less time than on the whole table, at the last x."""

    def check(rows: Rows) -> Finding:
        (pieces,) = {row.curve for row in rows if row.panel == panel and row.curve.startswith(f"{name}, p = ")}
        one, other = curve(rows, panel, pieces), curve(rows, panel, name)
        x = max(one)
        return Finding(one[x] < other[x], f"{pieces} {short(one[x])}, {name} {short(other[x])} at {short(x)}")

    return check


def _first_within(panel: str, name: str, other: str, times: float):  # type: ignore[no-untyped-def]
    """At the first x `name` is at most `times` as much as `other`."""

    def check(rows: Rows) -> Finding:
        one, two = curve(rows, panel, name), curve(rows, panel, other)
        x = min(one)
        return Finding(one[x] <= times * two[x], f"{name} {short(one[x])}, {other} {short(two[x])} at {short(x)}")

    return check


def _panels(x: str, log_x: bool = False) -> dict[str, Panel]:
    return {kind: Panel(name, x, "GCP", "line", log_x) for kind, name in KINDS.items()}


MATCHED = tuple(NAMES.values())
FIGURES = (
    Figure(
        "HG-2",
        "HG",
        "Fig. 2",
        _panels("l"),
        (
            *(
                Claim(f"on {name} HG's boxes are smaller than NH's at every l", below(kind, "HG", "NH"))
                for kind, name in KINDS.items()
            ),
            Claim("HG's gain over NH grows with l", of_each(_gap_grows, KINDS, "NH", "HG")),
            Claim(
                "on CENSUS and Zipf NH loses some three times as much at l = 10 (2.5)",
                of_each(more_than, ("census", "zipf"), "NH", "HG", 2.5),
            ),
        ),
        by_l,
        150,
        (OCC,),
    ),
    Figure(
        "HG-3",
        "HG",
        "Fig. 3",
        _panels("quasi-identifiers"),
        (
            Claim(
                "on CENSUS the three ways lose less than NH with any number of quasi-identifiers",
                every(*(below("census", name, "NH") for name in MATCHED)),
            ),
            Claim("on Zipf with more than 3", every(*(below("zipf", name, "NH", lambda d: d > 3) for name in MATCHED))),
            Claim(
                "on Uniform with more than 6",
                every(*(below("uniform", name, "NH", lambda d: d > 6) for name in MATCHED)),
            ),
            Claim("on CENSUS the loss drops as there are more", falls("census", "HG")),
        ),
        by_attributes,
        120,
        (OCC,),
    ),
    Figure(
        "HG-4",
        "HG",
        "Fig. 4",
        {
            "size": Panel("(a) by table size", "records", "GCP", "line", True),
            "partition": Panel("(b) by partition size", "records a partition", "GCP", "line", True),
            "skew": Panel("(c) by skew", "theta of Zipf", "GCP"),
        },
        (
            Claim(
                "(a) the three ways lose less than NH at every size",
                every(*(below("size", name, "NH") for name in MATCHED)),
            ),
            Claim("(b) smaller partitions lose more", falls("partition", "HG")),
            Claim("(b) yet less than NH", every(*(below("partition", name, "NH") for name in MATCHED))),
            Claim("(c) HG is resilient to skew (by a quarter at most)", steady("skew", "HG", 1.25)),
            Claim("(c) NH loses more as theta grows", rises("skew", "NH")),
            Claim("(c) NH loses four times as much as HG at 0.9 (3.5)", more_than("skew", "NH", "HG", 3.5)),
        ),
        part_of(seconds=False),
        200,
        (OCC, SAL),
    ),
    Figure(
        "HG-5",
        "HG",
        "Fig. 5",
        {
            "size, seconds": Panel("(a) by table size", "records", "CPU seconds", "line", True, True),
            "partition, seconds": Panel(
                "(b) by partition size", "records a partition", "CPU seconds", "line", True, True
            ),
            "skew, seconds": Panel("(c) by skew", "theta of Zipf", "CPU seconds", "line", False, True),
        },
        (
            Claim(
                "(a) partitions take less time than the whole table, at the largest size",
                every(*(_last_below("size, seconds", name) for name in MATCHED)),
            ),
            Claim("(b) time falls with partition size", rises("partition, seconds", "HG")),
            Claim(
                "(b) down to that of NH (twice at most at the smallest)",
                _first_within("partition, seconds", "HG", "NH", 2),
            ),
            Claim(
                "(c) is stable over skew (by half at most)",
                every(*(steady("skew, seconds", name, 1.5) for name in MATCHED)),
            ),
        ),
        part_of(seconds=True),
        200,
        (OCC, SAL),
    ),
    Figure(
        "HG-6",
        "HG",
        "Fig. 6",
        _panels("beta"),
        (
            *(
                Claim(f"on {name} HG's boxes are smaller than BuReL's at every beta", below(kind, "HG", "BuReL"))
                for kind, name in KINDS.items()
            ),
            Claim("all lose less as beta grows", every(*(of_each(falls, KINDS, name) for name in (*MATCHED, "BuReL")))),
            Claim(
                "SG and GR follow HG with a slight gap (a fifth at most)",
                every(*(of_each(within_times, KINDS, name, "HG", 1.2) for name in ("SG", "GR"))),
            ),
        ),
        by_beta,
        150,
        (OCC,),
    ),
    Figure(
        "HG-7",
        "HG",
        "Fig. 7",
        {
            "size": Panel("(a) by table size", "records", "GCP", "line", True),
            "size, seconds": Panel("(b) by table size", "records", "CPU seconds", "line", True, True),
            "skew": Panel("(c) by skew", "theta of Zipf", "GCP"),
        },
        (
            Claim("(a) the gap to BuReL grows with the table", _gap_grows("size", "BuReL", "HG")),
            Claim("(b) BuReL takes less time", every(*(below("size, seconds", "BuReL", name) for name in MATCHED))),
            Claim("(c) more skew loses more", every(rises("skew", "HG"), rises("skew", "BuReL"))),
            Claim(
                "(c) HG loses less than BuReL, by a third at 0.5",
                every(below("skew", "HG", "BuReL"), _first_within("skew", "HG", "BuReL", 0.75)),
            ),
        ),
        at_beta,
        120,
        (OCC, SAL),
    ),
)
