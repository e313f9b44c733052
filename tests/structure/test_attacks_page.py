"""The page on attacks says something of every attack on every layout, and nothing on it is above a promised bound. Reads the page."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anonlib.evaluation.attacks_registry import LAYOUTS, REGISTRY, Entry
from benchmarks import attacks
from benchmarks.attacks_page import (
    BEGIN,
    END,
    EVERY,
    Row,
    above_bounds,
    exceeded,
    filled,
    gathered,
    kept,
    read,
    shown,
    tables,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "attacks.md"
ROWS = read(PAGE.read_text(encoding="utf-8"))
COUNTED = ("re-identification", "homogeneity", "skewness", "posterior", "elimination")
"""Attacks that tell how many persons are above, wherever something is promised."""


def number(text: str) -> float:
    return float(text.replace(",", ""))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("entry", REGISTRY, ids=lambda entry: entry.name)
def test_every_attack_is_on_the_page_for_every_layout(entry: Entry, layout: str) -> None:
    releases = {name for name, (of, _) in attacks.RELEASES.items() if of == layout}
    found = [row for row in ROWS if entry.covers(row["attack"]) and row["layout"] == layout]
    assert found
    named = {row["release"] for row in found}
    assert named == {EVERY} or named == releases
    assert all(row["note"] for row in found)
    figures = [row for row in found if row["accuracy"]]
    if layout not in entry.on:
        assert figures == []
        assert found[0]["note"] == entry.elsewhere[layout]
    elif entry.name != "minimality":  # told in words
        assert figures


def test_no_row_is_of_an_attack_that_the_registry_does_not_have() -> None:
    assert [row for row in ROWS if not any(entry.covers(row["attack"]) for entry in REGISTRY)] == []


def test_nobody_is_above_a_bound_where_one_is_promised() -> None:
    bound = [row for row in ROWS if row["bound"]]
    assert {row["layout"] for row in bound} == set(LAYOUTS)
    assert {entry.name for entry in REGISTRY for row in bound if entry.covers(row["attack"])} >= set(COUNTED)
    for row in bound:
        assert row["above"] == "0" or (row["above"] == "" and row["attack"] not in COUNTED), row
        told = {name: number(row[name]) for name in ("accuracy", "persons")} | {"guarantee": number(row["bound"])}
        assert exceeded(told) is None, row


def test_where_nothing_is_promised_the_page_says_so_in_words() -> None:
    free = [row for row in ROWS if row["accuracy"] and not row["bound"]]
    assert free
    assert [row for row in free if "none promised" not in row["note"]] == []


PLAYED = {"accuracy": 0.1, "prior": 0.05, "guarantee": 0.1, "persons": 400, "above": 0, "largest": 0.1, "words": "w"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"above": 3}, "3 persons"),
        ({"largest": 0.1001}, "largest belief"),
        ({"accuracy": 0.17}, None),  # five standard errors are 0.075
        ({"accuracy": 0.18}, "accuracy"),
        ({"accuracy": 0.9, "above": 3, "guarantee": None}, None),
    ],
)
def test_what_is_above_a_bound_is_said(change: dict[str, float], words: str | None) -> None:
    told = {name: value for name, value in (PLAYED | change).items() if value is not None}
    found = above_bounds([Row("homogeneity", "classes", "sabre", told)])
    assert found == [] if words is None else found[0].startswith("homogeneity on sabre: ") and words in found[0]


def test_a_table_is_read_back_as_it_was_written() -> None:
    words = "1/(|g| - q) (a sample of 1,950)"
    rows = [
        Row("corruption, 1 known", "classes", "a", PLAYED | {"words": words, "singled out": 0.25}),
        Row("re-identification", "classes", "a", PLAYED),
        Row("posterior", "classes", "a", {"words": "nothing is perturbed"}),
        Row("posterior", "classes", "b", {"words": "nothing is perturbed"}),
        Row("minimality", "classes", "a", {"words": "one"}),
        Row("minimality", "classes", "b", {"words": "two"}),
    ]
    releases = {"a": "classes", "b": "classes"}
    lines = gathered([shown(row) for row in rows], releases)
    assert [(line["attack"], line["release"]) for line in lines] == [
        ("re-identification", "a"),
        ("posterior", EVERY),
        ("corruption, 1 known", "a"),
        ("minimality", "a"),
        ("minimality", "b"),
    ]
    page = filled(f"before\n{BEGIN}\nold | text\n{END}\nafter\n", tables(lines))
    assert page.startswith("before\n")
    assert page.endswith("after\n")
    assert "old" not in page
    assert read(page) == lines
    assert (
        lines[2] | {"persons": "400", "sampled": "1,950", "besides": "singled out 0.25", "note": "1/(|g| - q)"}
        == lines[2]
    )
    of_b = [("posterior", "nothing is perturbed"), ("minimality", "two")]
    assert [(line["attack"], line["note"]) for line in kept(page, releases, ["a"])] == of_b
    assert gathered([*kept(page, releases, ["b"]), *kept(page, releases, ["a"])], releases) == lines
    assert kept(page, releases, releases) == []
    with pytest.raises(ValueError, match="needs one line"):
        filled("no markers", [])


PEOPLE = pa.table(
    {
        "age": [30, 30, 30, 40, 40, 40],
        "education": [1, 1, 2, 2, 2, 2],
        "race": [1, 1, 1, 1, 1, 2],
        "occupation": [7, 8, 9, 7, 7, 7],
    }
)


def test_the_likeliest_group_is_large_enough_and_has_the_largest_share() -> None:
    """Six records: 3 of 3 who are 40 with education 2 have 7; no four agree in two columns."""
    assert attacks.likeliest(PEOPLE, 3) == ({"age": 40, "education": 2}, 7, 3, 3)
    assert attacks.likeliest(PEOPLE, 2) == attacks.likeliest(PEOPLE, 3)
    assert attacks.likeliest(PEOPLE, 4) == ({}, None, 1, 0)


NAME = "sabre, t = 0.3"


@pytest.mark.parametrize("above", [0, 2])
def test_a_page_is_written_only_where_no_attack_is_above_its_bound(above, tmp_path, monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    pq.write_table(PEOPLE, tmp_path / f"{attacks.TABLE}.parquet")
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    monkeypatch.setattr(attacks, "played", lambda *_: [Row("homogeneity", "classes", NAME, PLAYED | {"above": above})])
    monkeypatch.setattr("sys.argv", ["attacks", "--data", str(tmp_path), "--into", str(page)])
    if not above:
        attacks.main()
        assert f"| homogeneity | classes | {NAME} |" in page.read_text(encoding="utf-8")
        return
    with pytest.raises(SystemExit) as stopped:
        attacks.main()
    assert stopped.value.code == 1
    assert f"homogeneity on {NAME}: 2 persons" in capsys.readouterr().err
    assert page.read_text(encoding="utf-8") == f"{BEGIN}\n{END}\n"
