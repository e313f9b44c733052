"""What the docs say is in the code is there: every `module:name` on every page. Of the five papers every numbered statement has a row with
code and evidence that exist, every contradiction has figures that stand on a page, every figure a row that says what measures it."""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

from tests.pages import not_there, rows, shown, text_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DIFF = re.compile(r"^```diff\n.*?^```$", re.MULTILINE | re.DOTALL)  # names what is not there yet
NAME = re.compile(r"`(anonlib(?:\.\w+)*)(?::([\w.]+))?`")
FIGURE = re.compile(r"(?<![\w.,])\.?\d+(?:[.,]\d+)*")
TEXTS = {
    "GB": "generalized-bucketization.txt",
    "IP": "inferential-privacy.txt",
    "SDR": "small-domain-randomization.txt",
    "HG": "heterogeneous-beta-likeness.txt",
    "SABRE": "sabre-t-closeness.txt",
}
NUMBERED: dict[str, dict[str, int]] = {
    "GB": {"Definition": 5, "Theorem": 2, "Lemma": 7, "Corollary": 2, "Remark": 1, "Algorithm": 4, "Eq.": 19},
    "IP": {"Definition": 6, "Theorem": 4, "Lemma": 8, "Corollary": 3, "Remark": 3, "Algorithm": 2, "Eq.": 16},
    "SDR": {"Definition": 3, "Theorem": 5, "Lemma": 2, "Corollary": 1, "Eq.": 18},
    "HG": {"Definition": 6, "Theorem": 7, "Lemma": 2, "Corollary": 1, "Problem": 3, "Algorithm": 3, "Eq.": 7},
    "SABRE": {"Definition": 7, "Theorem": 6, "Lemma": 4},
}
"""How many of each kind a paper has; all of them are numbered from 1."""
SABRE_ALGORITHMS = ("SABRE", "SABRE_W", "bucketCat", "bucketNum", "split", "ECSize", "dichotomize", "takeOut")
FIGURES = {
    "GB": [f"Fig. {n}" for n in range(3, 8)],
    "IP": ["Fig. 2"],
    "SDR": [*(f"Table {n}" for n in range(1, 4)), *(f"Fig. {n}" for n in range(2, 7))],
    "HG": [f"Fig. {n}" for n in range(2, 12)],
    "SABRE": [f"Fig. {n}" for n in range(10, 20)],
}
"""Those that show measurements; the others show notation, settings and examples."""


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


def of(paper: str) -> list[list[str]]:
    return rows("papers.md", paper)


def numbered(cell: str, kind: str) -> list[int]:
    """The numbers of, say, "Eq. 7, 8, 9"."""
    lists = re.findall(rf"(?<!\w){re.escape(kind)} (\d+(?:, \d+)*)", cell)
    return [int(number) for numbers in lists for number in numbers.split(", ")]


@pytest.mark.parametrize("paper", [*NUMBERED, "Baselines"])
def test_every_row_names_code_and_what_shows_it_or_says_that_it_is_absent(paper: str) -> None:
    for row in of(paper):
        item, _, code, evidence = row
        assert NAME.search(code) or code.startswith("absent: "), item
        assert shown(evidence) or evidence.startswith("absent: "), item
        assert not not_there(code + evidence), item


@pytest.mark.parametrize(("paper", "kind"), [(paper, kind) for paper, kinds in NUMBERED.items() for kind in kinds])
def test_every_number_of_a_paper_has_one_row(paper: str, kind: str) -> None:
    told = [number for item, *_ in of(paper) for number in numbered(item, kind)]
    assert sorted(told) == list(range(1, NUMBERED[paper][kind] + 1))


def test_every_algorithm_of_sabre_has_one_row() -> None:
    told = [re.split(", ", item.removeprefix("Algorithm ")) for item, *_ in of("SABRE") if item.startswith("Algorithm")]
    assert Counter(name for names_ in told for name in names_) == Counter(SABRE_ALGORITHMS)


@pytest.mark.parametrize("paper", NUMBERED)
def test_the_numbers_are_those_of_the_paper_s_text(paper: str) -> None:
    text = paper_text(paper)
    for kind in ("Definition", "Theorem", "Lemma", "Corollary", "Remark", "Problem", "Algorithm"):
        plural = {"Lemma": "Lemmas", "Corollary": "Corollaries"}.get(kind, f"{kind}s")
        met = {int(number) for number in re.findall(rf"\b(?:{kind}|{plural})\s+(\d+)\b", text)}
        assert met == set(range(1, NUMBERED[paper].get(kind, 0) + 1)), kind
    if paper == "SABRE":
        assert [name for name in SABRE_ALGORITHMS if name.removesuffix("_W") not in text] == []


def paper_text(paper: str) -> str:
    """The paper as text; skips the test where it is not on this machine."""
    folder = Path(os.environ.get("ANONLIB_PAPERS", ROOT.parent / "shared" / "papers"))
    path = folder / TEXTS[paper]
    if not path.exists():
        pytest.skip(f"needs {path} (set ANONLIB_PAPERS to the folder that holds the papers as text)")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("row", of("Where measurements contradict"), ids=lambda row: row[0][:40])
def test_a_contradiction_has_its_figures_from_a_page_and_a_command(row: list[str]) -> None:
    _, measured, command, link = row
    assert shown(command)
    assert not not_there(command)
    (page,) = re.findall(r"\]\(([\w-]+\.md)\)", link)
    told = set(FIGURE.findall(text_of(page)))
    assert FIGURE.findall(measured)
    assert [figure for figure in FIGURE.findall(measured) if figure not in told] == []


@pytest.mark.parametrize("paper", FIGURES)
def test_every_figure_of_a_paper_has_one_row_that_says_what_measures_it(paper: str) -> None:
    cells = rows("papers-figures.md", paper)
    assert [figure for figure, *_ in cells] == FIGURES[paper]
    for figure, _, command, state, beside, drawn in cells:
        assert state in ("measured", "in part", "not measured"), figure
        assert shown(command) == (state != "not measured"), figure
        assert not not_there(command + beside), figure
        assert beside, figure
        assert drawn.startswith(("**", "not drawn: ", "no data: ")), figure


def test_what_nobody_can_run_is_noticed() -> None:
    assert not_there("`tests/pages.py`, `python -m benchmarks.sabre --only t qi --plots docs/plots`") == []
    assert not_there("`tests/pages.py::test_nothing`") == ["tests/pages.py::test_nothing"]
    assert not_there("`tests/nowhere.py`, `python -m benchmarks.data`") == ["tests/nowhere.py::", "benchmarks/data.py"]
    assert not_there("`python -m benchmarks.sabre --only fanout`") == ["benchmarks/sabre.py fanout"]
    assert not_there("`python -m benchmarks.solvers --only t`")[0] == "benchmarks/solvers.py --only"
