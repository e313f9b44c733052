"""The glossary of `docs/walk.md` lists each word once, in order; `test_papers` holds it to the names of the code."""

from __future__ import annotations

from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "walk.md").read_text(encoding="utf-8")


def test_words_stand_once_and_in_order() -> None:
    lines = [line for line in PAGE.partition("## Words")[2].splitlines() if line.startswith("| ")][1:]
    words = [line.split(" | ")[0].removeprefix("| ") for line in lines]
    assert len(words) > 40
    assert words == sorted(set(words))
