"""The tables of `docs/attacks.md`: written from what attacks told, held against the bounds, and read back. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anonlib.evaluation.attacks_registry import REGISTRY

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


Line = dict[str, str]
"""A row of the table: texts by column of `HEAD`, `note` in words."""


@dataclass(frozen=True)
class Row:
    """What one attack told of one release. told : as `Evaluation.attacks` has it"""

    attack: str
    layout: str
    release: str
    told: Mapping[str, Any]


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


def shown(row: Row) -> Line:
    """A row as texts by column; an attack without figures has a note alone. What the words say of a sample has a column."""
    told, words = row.told, row.told["words"]
    figures = {
        "persons": ("persons", "{:,.0f}"),
        "accuracy": ("accuracy", "{:.4f}"),
        "prior": ("prior", "{:.4f}"),
        "bound": ("guarantee", "{:.4f}"),
        "above": ("above", "{:,.0f}"),
    }
    texts = {column: form.format(told[name]) for column, (name, form) in figures.items() if name in told}
    sample = SAMPLE.search(words)
    texts["sampled"] = sample[1] if sample else ""
    texts["besides"] = "; ".join(f"{name} {_short(value)}" for name, value in told.items() if name not in LEFT_OUT)
    texts |= {"attack": row.attack, "layout": row.layout, "release": row.release, "note": SAMPLE.sub("", words)}
    return {column: texts.get(column, "") for column in HEAD}


def _short(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,.0f}" if value == round(value) else f"{value:.4g}"


def gathered(lines: Sequence[Line], releases: Mapping[str, str]) -> list[Line]:
    """In the order of the registry; what is not played, with the same words on all releases of a layout, once.

    releases : {name: layout} of all, in the order in which they are listed
    """
    attacks = list(dict.fromkeys(line["attack"] for line in lines))
    layouts, names = list(dict.fromkeys(releases.values())), [EVERY, *releases]
    said: dict[tuple[str, str], set[str]] = {}
    for line in lines:
        said.setdefault((line["attack"], line["layout"]), set()).add("" if line["accuracy"] else line["note"])
    once = {key for key, words in said.items() if len(words) == 1 and words != {""}}
    merged = (line | {"release": EVERY} if (line["attack"], line["layout"]) in once else line for line in lines)
    found = {(line["attack"], line["layout"], line["release"]): line for line in merged}

    def place(line: Line) -> tuple[int, ...]:
        entry = next(k for k, one in enumerate(REGISTRY) if one.covers(line["attack"]))
        at = layouts.index(line["layout"]), names.index(line["release"]), attacks.index(line["attack"])
        return (entry, *at)

    return sorted(found.values(), key=place)


def tables(lines: Sequence[Line]) -> list[str]:
    """The table, and below it the notes, numbered as they first occur."""
    notes = list(dict.fromkeys(line["note"] for line in lines))
    numbered = [line | {"note": str(notes.index(line["note"]) + 1)} for line in lines]
    return [
        _cells(HEAD),
        "|" + "---|" * len(HEAD),
        *(_cells(line.values()) for line in numbered),
        "",
        "Notes: what is promised, or why there are no figures.",
        "",
        *(f"{place}. {text}" for place, text in enumerate(notes, 1)),
    ]


def _cells(texts: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("|", r"\|") for text in texts) + " |"


def filled(page: str, lines: Iterable[str]) -> str:
    """The page with what stands between its markers replaced. Raises ValueError as `between_markers`."""
    return between_markers(page, lines, BEGIN, END)


def between_markers(page: str, lines: Iterable[str], begin: str, end: str) -> str:
    """The page with what stands between two markers replaced.

    Raises ValueError where it has not exactly one of each, in order.
    """
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise ValueError(f"the page needs one line {begin} and after it one line {end}")
    before, _, rest = page.partition(begin)
    return "\n".join([before + begin, "", *lines, "", end]) + rest.partition(end)[2]


def read(page: str) -> list[Line]:
    """The rows of the table of attacks on a page, each with its note in words. Raises KeyError where a note is missing."""
    between = page.partition(BEGIN)[2].partition(END)[0]
    notes = dict(re.findall(r"^(\d+)\. (.*)$", between, re.MULTILINE))
    lines = []
    for text in between.splitlines():
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", text)[1:-1]]
        if len(cells) == len(HEAD) and cells[0] not in ("---", HEAD[0]):
            line = dict(zip(HEAD, cells, strict=True))
            lines.append(line | {"note": notes[line["note"]]})
    return lines


def kept(page: str, releases: Mapping[str, str], anew: Iterable[str]) -> list[Line]:
    """The rows on a page of those `releases` ({name: layout}) that are not made `anew`; what was said of all of a layout, of each."""
    wanted = [name for name in releases if name not in set(anew)]
    return [
        line | {"release": name}
        for line in read(page)
        for name in wanted
        if releases[name] == line["layout"] and line["release"] in (name, EVERY)
    ]
