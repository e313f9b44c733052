"""Reads the tables of the docs, and looks for the tests and benchmarks that they name."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
BENCHMARK = re.compile(r"`python -m benchmarks\.(\w+)([^`]*)`")


def text_of(page: str) -> str:
    """The text of `docs/PAGE`."""
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of every row of the one table below the heading of `docs/PAGE` that begins with `## HEADING`, without head and rule."""
    (section,) = re.findall(
        rf"^## {re.escape(heading)}\b.*?\n(.*?)(?=^## |\Z)", text_of(page), re.MULTILINE | re.DOTALL
    )
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def shown(cell: str) -> bool:
    """Whether a cell names a test or a benchmark."""
    return bool(TEST.search(cell) or BENCHMARK.search(cell))


def not_there(text: str) -> list[str]:
    """What a text names and nobody can run: tests, benchmarks, and their options and choices."""
    return [*_tests_not_there(text), *_benchmarks_not_there(text)]


def _tests_not_there(text: str) -> list[str]:
    return [
        f"{path}::{name}"
        for path, name in TEST.findall(text)
        if not (ROOT / path).exists() or (name and f"\ndef {name}(" not in _source(path))
    ]


def _benchmarks_not_there(text: str) -> list[str]:
    faults: list[str] = []
    for name, arguments in BENCHMARK.findall(text):
        path = f"benchmarks/{name}/__main__.py"
        if not (ROOT / path).exists():
            path = f"benchmarks/{name}.py"
        if not (ROOT / path).exists() or '__name__ == "__main__"' not in _source(path):
            faults.append(path)
            continue
        words = re.split(r"[ ,]+", arguments.strip()) if arguments.strip() else []
        told = [word for word in words if re.match(r"--|[A-Za-z]\w*$", word)]  # numbers and paths are anybody's
        faults += [f"{path} {word}" for word in told if not _offers(_source(path), word)]
    return faults


def _offers(source: str, word: str) -> bool:
    """An option is declared; a choice is a word of its own in a string, be it alone or in a list with commas."""
    if word.startswith("--"):
        return f'add_argument("{word}"' in source or re.search(rf'add_argument\(\s*"{word}"', source) is not None
    return re.search(rf'(?:"|,){word}(?:"|,)', source) is not None or f"def {word}(" in source


@cache
def _source(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")
