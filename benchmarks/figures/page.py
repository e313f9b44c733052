"""What was measured, as cells and a table of `docs/papers-figures.md`. Pure: the page's text in, its text out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.attacks_page import between_markers
from benchmarks.figures.figure import NO_DATA, Figure, Finding, Measured, findings, verdict

BEGIN, END = "<!-- benchmarks.figures: begin -->", "<!-- benchmarks.figures: end -->"
COLUMN = "drawn here"
HEAD = ("figure", "the paper says", "here", "the numbers that decide", "measured on")


@dataclass(frozen=True)
class Shown:
    """A figure with what was measured of it, if anything was."""

    figure: Figure
    measured: Measured | None

    @property
    def findings(self) -> list[Finding]:
        """Of each claim; none without rows."""
        return [] if self.measured is None else findings(self.figure, self.measured.rows)

    @property
    def verdict(self) -> str:
        """In a word."""
        return verdict([finding.holds for finding in self.findings])

    @property
    def cell(self) -> str:
        """The verdict, and a link to the drawing."""
        if self.measured is None:
            return f"{NO_DATA}: not measured yet ({', '.join(self.figure.needs) or 'needs no table'})"
        held = sum(finding.holds for finding in self.findings)
        return f"**{self.verdict}**, {held} of {len(self.findings)} claims: [{self.figure.name}](figures/{self.figure.name}.svg)"


def written(page: str, shown: Iterable[Shown], not_drawn: Mapping[tuple[str, str], str]) -> str:
    """The page with its cells and its table of claims replaced.

    Raises ValueError where a row of the page is of a figure that is neither shown nor said not to be drawn, or the markers are not there.
    """
    every = list(shown)
    cells = {(one.figure.paper, one.figure.item): one.cell for one in every}
    cells |= {key: f"not drawn: {why}" for key, why in not_drawn.items()}
    lines = [*_summary(every, len(not_drawn)), "", *_claims(every)]
    return between_markers(_with_cells(page, cells), lines, BEGIN, END)


def _with_cells(page: str, cells: Mapping[tuple[str, str], str]) -> str:
    paper, lines = "", []
    for line in page.splitlines():
        if heading := re.match(r"## (\w+)", line):
            paper = heading[1]
        row = re.match(r"\| ((?:Fig\.|Table) \d+) \|", line)
        if row and line.count(" | ") == 5:
            if (paper, row[1]) not in cells:
                raise ValueError(f"{paper} {row[1]} is on the page, and nothing is said of it here")
            line = line.rpartition(" | ")[0] + f" | {cells[paper, row[1]]} |"
        lines.append(line)
    return "\n".join(lines) + "\n"


def _summary(shown: list[Shown], not_drawn: int) -> list[str]:
    counts = Counter(one.verdict for one in shown)
    told = ", ".join(f"{number} {word}" for word, number in sorted(counts.items()))
    return [f"Of {len(shown) + not_drawn} figures and tables: {told}; not drawn {not_drawn}."]


def _claims(shown: list[Shown]) -> list[str]:
    lines = [_row(HEAD), "|" + "---|" * len(HEAD)]
    for one in shown:
        for claim, finding in zip(one.figure.claims, one.findings, strict=False):
            held = "holds" if finding.holds else "**does not**"
            settings = one.measured.settings if one.measured else ""
            item = f"{one.figure.paper} {one.figure.item}"
            lines.append(_row((item, claim.words, held, finding.measured, settings)))
    return lines


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
