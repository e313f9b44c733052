"""The tables of `docs/attacks.md`: written from what attacks told, held against the bounds, and read back. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from anonlib.evaluation.attacks_registry import REGISTRY, Entry

BEGIN, END = "<!-- benchmarks.attacks: begin -->", "<!-- benchmarks.attacks: end -->"
HEAD = ("attack", "layout", "release", "persons", "sampled", "accuracy", "prior", "bound", "above", "besides", "note")
EVERY = "all"
"""Stands for the releases of a layout where the same is said of all of them."""
SAMPLE = re.compile(r" \((?:of )?a sample of ([\d,]+)\)")
LEFT_OUT = (
    "accuracy",
    "prior",
    "guarantee",
    "persons",
    "above",
    "largest",
    "words",
    "known",
    "allowed of one person",
    "of the sample",
)
"""What has a column of its own, or is said elsewhere on the page."""
ERRORS = 5
"""A measured accuracy may be above its bound by as many standard errors: chance does so once in three million."""


@dataclass(frozen=True)
class Row:
    """What one attack told of one release. told : as `Evaluation.attacks` has it"""

    attack: str
    layout: str
    release: str
    told: Mapping[str, Any]

    @property
    def played(self) -> bool:
        """Whether there are figures."""
        return "accuracy" in self.told

    @property
    def entry(self) -> Entry:
        """Of the registry."""
        return next(one for one in REGISTRY if one.covers(self.attack))


def exceeded(told: Mapping[str, Any]) -> str | None:
    """In words how an attack is above the bound that is promised, or None.

    No person may be above, and no belief, exactly. An accuracy is measured where beliefs are not, so it gets `ERRORS` standard errors.
    """
    bound = told.get("guarantee")
    if bound is None:
        return None
    if told.get("above"):
        return f"{told['above']:,.0f} persons are believed to have some value with more than is promised for it"
    if told.get("largest", 0) > bound * (1 + 1e-12):
        return f"the largest belief is {told['largest']:.6f}, promised {bound:.6f}"
    persons = told.get("of the sample", told.get("persons")) or 1
    if told["accuracy"] > bound + ERRORS * (bound * (1 - bound) / persons) ** 0.5:
        return f"the accuracy is {told['accuracy']:.4f}, promised {bound:.4f}"
    return None


def above_bounds(rows: Iterable[Row]) -> list[str]:
    """A sentence for each attack that is above its bound."""
    found = [(row, exceeded(row.told)) for row in rows]
    return [f"{row.attack} on {row.release}: {words}" for row, words in found if words]


def gathered(rows: Sequence[Row]) -> list[Row]:
    """In the order of the registry; what is not played, with the same words on all releases of a layout, once."""
    layouts = list(dict.fromkeys(row.layout for row in rows))
    releases = [EVERY, *dict.fromkeys(row.release for row in rows)]
    attacks = list(dict.fromkeys(row.attack for row in rows))
    entries = [entry.name for entry in REGISTRY]
    said: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        said.setdefault((row.attack, row.layout), set()).add("" if row.played else row.told["words"])
    once = {key for key, words in said.items() if len(words) == 1 and words != {""}}
    found = {
        (row.attack, row.layout, row.release): row
        for row in (replace(r, release=EVERY) if (r.attack, r.layout) in once else r for r in rows)
    }
    return sorted(
        found.values(),
        key=lambda row: (
            entries.index(row.entry.name),
            layouts.index(row.layout),
            releases.index(row.release),
            attacks.index(row.attack),
        ),
    )


@dataclass
class Notes:
    """What is promised or why nothing is played, numbered as it first occurs."""

    texts: list[str] = field(default_factory=list)

    def number(self, words: str) -> int:
        """Of these words, from 1; what they say of a sample has a column."""
        text = SAMPLE.sub("", words)
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text) + 1

    def lines(self) -> list[str]:
        return [f"{place}. {text}" for place, text in enumerate(self.texts, 1)]


def line(row: Row, notes: Notes) -> str:
    """One row of the table; an attack without figures has a note alone."""
    told = row.told
    figures = {
        "persons": lambda n: f"{n:,.0f}",
        "sampled": lambda n: n,
        "accuracy": lambda x: f"{x:.4f}",
        "prior": lambda x: f"{x:.4f}",
        "guarantee": lambda x: f"{x:.4f}",
        "above": lambda n: f"{n:,.0f}",
    }
    sample = SAMPLE.search(told["words"])
    known = {**told, "sampled": sample[1]} if sample else told
    shown = [write(known[name]) if name in known else "" for name, write in figures.items()]
    besides = [f"{name} {_short(value)}" for name, value in told.items() if name not in LEFT_OUT]
    return _cells([row.attack, row.layout, row.release, *shown, "; ".join(besides), str(notes.number(told["words"]))])


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,.0f}" if value == round(value) else f"{value:.4g}"


def _cells(texts: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("|", r"\|") for text in texts) + " |"


def tables(rows: Sequence[Row]) -> list[str]:
    """The table and below it the notes."""
    notes = Notes()
    lines = [line(row, notes) for row in gathered(rows)]
    return [
        _cells(HEAD),
        "|" + "---|" * len(HEAD),
        *lines,
        "",
        "Notes: what is promised, or why there are no figures.",
        "",
        *notes.lines(),
    ]


def filled(page: str, lines: Iterable[str]) -> str:
    """The page with what stands between its markers replaced.

    Raises ValueError where it has not exactly one of each, in order.
    """
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise ValueError(f"the page needs one line {BEGIN} and after it one line {END}")
    before, _, rest = page.partition(BEGIN)
    return "\n".join([before + BEGIN, "", *lines, "", END]) + rest.partition(END)[2]


def read(page: str) -> tuple[list[dict[str, str]], dict[str, str]]:
    """(the rows of the table of attacks by column, the notes by number) of a page."""
    between = page.partition(BEGIN)[2].partition(END)[0]
    rows = []
    for text in between.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", text)[1:-1]]
        if len(cells) == len(HEAD) and cells[0] not in ("---", HEAD[0]):
            rows.append(dict(zip(HEAD, cells, strict=True)))
    return rows, dict(re.findall(r"^(\d+)\. (.*)$", between, re.MULTILINE))
