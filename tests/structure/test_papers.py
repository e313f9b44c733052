"""What the docs say is in the code is there: every `module:name` on every page, and every numbered item of the papers' method."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAPERS = ROOT / "docs" / "papers.md"
DIFF = re.compile(r"^```diff\n.*?^```$", re.MULTILINE | re.DOTALL)  # names what is not there yet
NAME = re.compile(r"`(anonlib(?:\.\w+)*)(?::([\w.]+))?`")


def names() -> list[tuple[str, str, str]]:
    found = {
        (page.name, module, name)
        for page in PAGES
        for module, name in NAME.findall(DIFF.sub("", page.read_text(encoding="utf-8")))
    }
    return sorted(found)


@pytest.mark.parametrize(("page", "module", "name"), names(), ids=lambda part: part)
def test_a_name_on_a_page_is_in_the_code(page: str, module: str, name: str) -> None:
    try:
        found = import_module(module)
    except ImportError:  # `anonlib.api.bucketize` written with dots only
        above, _, last = module.rpartition(".")
        found = getattr(import_module(above), last)
    reduce(getattr, name.split(".") if name else [], found)


def test_every_row_of_the_papers_page_names_code() -> None:
    rows = [line for line in PAPERS.read_text(encoding="utf-8").splitlines() if re.match(r"\| (GB|IP|XT)", line)]
    assert len(rows) >= 20
    assert [row for row in rows if not NAME.search(row)] == []


def numbered(kind: str) -> set[int]:
    """The numbers of, say, "Eq. 7, 8, 9" in the first column of the page's table."""
    cells = re.findall(r"^\| ([^|]*) \|", PAPERS.read_text(encoding="utf-8"), re.MULTILINE)
    lists = [found for cell in cells for found in re.findall(rf"{kind} (\d+(?:, \d+)*)", cell)]
    return {int(number) for found in lists for number in found.split(", ")}


def test_no_algorithm_and_no_equation_is_forgotten() -> None:
    assert numbered("Algorithm") == {1, 2, 3, 4}
    assert numbered(r"Eq\.") == set(range(1, 20))
    assert {1, 2} <= numbered("Lemma")
    assert {1, 2, 3, 5} <= numbered("Definition")
