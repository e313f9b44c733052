"""Every figure of the papers is drawn from measured rows or says why not; what the page says of it follows from those rows. Reads files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, product
from pathlib import Path

import pytest

from benchmarks.figures import claims, store
from benchmarks.figures.figure import (
    CONTRADICTED,
    IN_PART,
    NO_DATA,
    REPRODUCED,
    Claim,
    Figure,
    Finding,
    Measured,
    Panel,
    Row,
    findings,
    verdict,
)
from benchmarks.figures.page import BEGIN, END, Shown, written
from benchmarks.figures.registry import FIGURES, NOT_DRAWN
from tests.pages import text_of
from tests.structure.test_papers import FIGURES as IN_THE_PAPERS

FOLDER = Path(store.FOLDER)
READ = {name: store.read(figure) for name, figure in FIGURES.items()}
STORED = {name: measured for name, measured in READ.items() if measured is not None}
"""Of a figure that is not among them the page says so."""


def test_every_figure_of_the_papers_is_measured_here_or_says_why_not() -> None:
    here = [(figure.paper, figure.item) for figure in FIGURES.values()]
    assert len(set(here)) == len(here)
    assert set(here).isdisjoint(NOT_DRAWN)
    assert {*here, *NOT_DRAWN} == {(paper, item) for paper, items in IN_THE_PAPERS.items() for item in items}


@pytest.mark.parametrize("name", STORED)
def test_a_figure_has_its_rows_its_drawing_and_claims_that_its_rows_decide(name: str) -> None:
    figure, measured = FIGURES[name], STORED[name]
    assert (FOLDER / f"{name}.svg").stat().st_size < 120_000
    assert {row.panel for row in measured.rows} >= set(figure.panels)
    assert len(findings(figure, measured.rows)) == len(figure.claims) > 0


def test_nothing_lies_in_the_folder_that_no_figure_drew() -> None:
    assert len(STORED) >= 20
    assert {path.stem for path in FOLDER.iterdir()} == set(STORED)


def test_the_page_says_what_the_rows_say() -> None:
    page = text_of("papers-figures.md")
    assert page == written(page, [Shown(figure, READ[name]) for name, figure in FIGURES.items()], NOT_DRAWN)


SHAPES = (lambda at: 1.0, lambda at: 1 + at / 100, lambda at: 1 - at / 100, lambda at: 10.0**at, lambda at: 1 + at % 2)
"""Of a curve at its first, second, ... x: flat, rising, falling, steep, uneven."""


def planted_rows(rows: tuple[Row, ...]) -> Iterator[list[Row]]:
    """Rows at the same x with other y: some curves, or panels, of one shape and far below or above the others, which have another."""
    places = {x: at for at, x in enumerate(sorted({row.x for row in rows}))}
    yield [row._replace(y=row.x) for row in rows]
    for panel in sorted({row.panel for row in rows}):
        yield [row._replace(y=row.x if row.panel == panel else 2 * row.x) for row in rows]
        yield [row._replace(y=1.0 if row.panel == panel else 2.0) for row in rows]
    names = sorted({row.curve for row in rows})
    for own, rest, factor in product(SHAPES, SHAPES, (1e-3, 1.0, 1e3)):
        for group in chain.from_iterable(combinations(names, size) for size in range(5)):
            yield [
                row._replace(y=factor * own(places[row.x]) if row.curve in group else rest(places[row.x]))
                for row in rows
            ]


@pytest.mark.parametrize("name", STORED)
def test_every_claim_could_come_out_otherwise(name: str) -> None:
    measured = STORED[name]
    for claim in FIGURES[name].claims:
        here = claim.check(measured.rows).holds
        assert any(claim.check(rows).holds != here for rows in planted_rows(measured.rows)), claim.words


UP = [Row("", "a", x, x) for x in (1.0, 2.0, 4.0)]
ROWS = [*UP, *(Row("", "b", x, 3 * x) for x in (1.0, 2.0, 4.0)), *(Row("", "flat", x, 5.0) for x in (1.0, 2.0, 4.0))]
ROWS += [Row("other", "a", 1, 9.0), Row("", "down", 1, 4.0), Row("", "down", 2, 2.0)]


@pytest.mark.parametrize(
    ("check", "holds", "told"),
    [
        (claims.below("", "a", "b"), True, "3 of 3; a 1, b 3 at 1"),
        (claims.below("", "a", "b", factor=3), False, "0 of 3"),
        (claims.below("", "a", "flat", lambda x: x < 4, 2), True, "2 of 2"),
        (claims.below("", "flat", "b"), False, "2 of 3; flat 5, b 3 at 1"),
        (claims.within_times("", "b", "a", 3.001), True, "3 of 3"),
        (claims.within_times("", "b", "a", 2.9), False, "0 of 3"),
        (claims.close("", "b", "a", 2), True, "b 3, a 1 at 1"),
        (claims.close("", "b", "a", 1.9), False, "b 12, a 4 at 4"),
        (claims.close("", "b", "a", 0, 8), True, "b 12, a 4 at 4"),
        (claims.within("", "a", 1, 4), True, "a 1 to 4"),
        (claims.within("", "a", 1, 3), False, "a 1 to 4"),
        (claims.within("", "a", 1, 3, lambda x: x < 3), True, "a 1 to 2"),
        (claims.falls("", "down"), True, "down 4 at 1, 2 at 2"),
        (claims.falls("", "down", 2), False, "down 4 at 1"),
        (claims.falls("", "flat"), False, "flat 5 at 1"),
        (claims.rises("", "a", 3.9), True, "a 1 at 1, 4 at 4"),
        (claims.rises("", "a", 4), False, "a 1 at 1"),
        (claims.rises("", "flat"), False, "flat 5 at 1"),
        (claims.steady("", "a", 4), True, "a 1 to 4"),
        (claims.steady("", "a", 3.9), False, "a 1 to 4"),
        (claims.steeper("", "b", "a", 2.9), True, "b by 9, a by 3"),
        (claims.steeper("", "b", "a", 3), False, "b by 9, a by 3"),
        (claims.across("", "other", "a"), True, "a 2.333 (), 9 (other) on average"),
        (claims.across("other", "", "a"), False, "a 9 (other), 2.333 () on average"),
        (claims.every(claims.rises("", "a"), claims.rises("", "b")), True, "a 1 at 1, 4 at 4"),
        (claims.every(claims.rises("", "a"), claims.rises("", "flat")), False, "flat 5 at 1"),
        (claims.of_each(claims.rises, ("", ""), "a"), True, "a 1 at 1"),
    ],
)
def test_a_check_says_both(check: claims.Check, holds: bool, told: str) -> None:
    found = check(ROWS)
    assert found.holds == holds
    assert found.measured.startswith(told)


def test_a_claim_of_a_curve_that_was_not_measured_is_a_fault() -> None:
    for check in (claims.below("", "a", "c"), claims.within("", "a", 0, 1, lambda x: x > 9), claims.falls("none", "a")):
        with pytest.raises(KeyError):
            check(ROWS)


@pytest.mark.parametrize(
    ("held", "word"),
    [([True, True], REPRODUCED), ([False], CONTRADICTED), ([True, False], IN_PART), ([], NO_DATA)],
)
def test_a_verdict_is_of_all_claims(held: list[bool], word: str) -> None:
    assert verdict(held) == word


def planted(holds: bool, needs: tuple[str, ...] = ()) -> Figure:
    claim = Claim("it rises | or so", lambda rows: Finding(holds, "1 to 2"))
    measure = lambda scale: Measured.of("two records", UP)  # noqa: E731
    return Figure("GB-9", "GB", "Fig. 9", {"": Panel("t", "x", "y")}, (claim,), measure, 1, needs)


PAGE = f"""## GB: a paper

| figure | what | command | today | beside | drawn here |
|---|---|---|---|---|---|
| Fig. 9 | w | none | not measured | b | stale |
| Fig. 10 | w | none | not measured | b | stale |

## Claims

{BEGIN}
stale
{END}
"""


def test_a_page_gets_its_cells_and_its_claims_and_keeps_the_rest() -> None:
    why = {("GB", "Fig. 10"): "no table has it"}
    held = Shown(planted(True), Measured("two records", tuple(UP)))
    page = written(PAGE, [held], why)
    assert "| Fig. 9 | w | none | not measured | b | **reproduced**, 1 of 1 claims: [GB-9](figures/GB-9.svg) |" in page
    assert "| Fig. 10 | w | none | not measured | b | not drawn: no table has it |" in page
    assert r"| GB Fig. 9 | it rises \| or so | holds | 1 to 2 | two records |" in page
    assert "Of 2 figures and tables: 1 reproduced; not drawn 1." in page
    assert "stale" not in page
    assert written(page, [held], why) == page
    against = written(page, [Shown(planted(False), held.measured)], why)
    assert "**contradicted**, 0 of 1 claims" in against
    assert "| **does not** |" in against
    assert "no data: not measured yet (census) |" in written(page, [Shown(planted(True, ("census",)), None)], why)
    with pytest.raises(ValueError, match=r"GB Fig\. 10 is on the page"):
        written(PAGE, [held], {})
    with pytest.raises(ValueError, match="one line"):
        written(PAGE.replace(END, ""), [held], why)


def test_without_tables_what_needs_none_is_measured_and_the_rest_keeps_its_rows(tmp_path, monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    from benchmarks.figures import __main__ as command

    page, folder = tmp_path / "page.md", tmp_path / "figures"
    page.write_text(text_of("papers-figures.md"), encoding="utf-8")
    places = ["--data", str(tmp_path), "--folder", str(folder), "--page", str(page)]
    monkeypatch.setattr("sys.argv", ["figures", "--only", "SDR-T1", "HG-2", *places])
    command.main()
    told = capsys.readouterr().out
    assert "HG Fig. 2: no data: needs census_occ_100k in " in told
    assert "SDR-T1    reproduced" in told
    first = (folder / "SDR-T1.svg").read_bytes()
    assert {path.name for path in folder.iterdir()} == {"SDR-T1.json", "SDR-T1.svg"}
    assert store.read(FIGURES["SDR-T1"], folder) == STORED["SDR-T1"]
    assert "no data: not measured yet (census_occ_100k) |" in page.read_text(encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["figures", "--drawn-only", "--only", "SDR-T1", *places])
    command.main()
    assert (folder / "SDR-T1.svg").read_bytes() == first
