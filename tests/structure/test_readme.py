"""What the README and the docs show, runs: commands exist with their options, YAML loads, Python and SQL run, links lead somewhere."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import typer

import anonlib
from anonlib.cli import app
from anonlib.shipped import path_of
from anonlib.spec import METHODS
from anonlib.spec.load import parse_spec
from anonlib.spec.yaml_text import parse_yaml

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
COMMANDS: Any = typer.main.get_command(app)
MINIMAL: dict[str, Any] = {
    "input": {"path": "data/table.parquet"},
    "output": {"path": "releases/table"},
    "columns": {"quasi_identifiers": ["age"], "sensitive": "disease"},
    "method": {"anatomy": {"l": "2"}},
}
"""What a fragment of a spec is completed with."""
OTHER_PROGRAMS = ("zip",)


def blocks(language: str, pages: list[Path] = PAGES) -> list[Any]:
    """The fenced blocks of a language, as test parameters named by page and place."""
    found = []
    for page in pages:
        texts = re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        found += [pytest.param(text, id=f"{page.stem}-{place}") for place, text in enumerate(texts, 1)]
    return found


def shell_lines() -> list[Any]:
    lines = []
    for block in blocks("bash"):
        for line in block.values[0].splitlines():
            if words := shlex.split(line, comments=True):
                lines.append(pytest.param(words, id=f"{block.id}: {' '.join(words)}"[:70]))
    return lines


def parses(command: str, arguments: list[str]) -> None:
    """Raises unless `anonlib command arguments` would start."""
    assert command in COMMANDS.commands, f"there is no anonlib {command}"
    COMMANDS.commands[command].make_context(command, list(arguments))


@pytest.mark.parametrize("words", shell_lines())
def test_a_command_exists_with_its_options(words: list[str]) -> None:
    program, *arguments = words
    if program == "anonlib":
        parses(arguments[0], arguments[1:])
    elif program == "make":
        assert set(arguments) <= makefile_targets()
    elif program == "pip":
        extras = re.search(r"anonlib\[(.*)\]", " ".join(arguments))
        assert set(extras[1].split(",") if extras else []) <= extras_of_the_package()
    elif program == "spark-submit":
        arguments = [re.sub(r"^\$\(anonlib path (.*)\)$", lambda of: str(path_of(of[1])), word) for word in arguments]
        place = next(i for i, word in enumerate(arguments) if "jobs/" in word)
        job = (ROOT / arguments[place]).read_text(encoding="utf-8")
        command = re.search(r'main\(\["(\w+)"', job)
        assert command is not None
        parses(command[1], arguments[place + 1 :])
        assert all((ROOT / word).exists() for word in arguments[:place] if word.startswith("conf/"))
    else:
        assert program in OTHER_PROGRAMS, f"nothing here checks {program}"


def makefile_targets() -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def extras_of_the_package() -> set[str]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    return set(re.findall(r"^(\w+) = \[", section, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"`make (\w+)`", text)) <= makefile_targets()
    assert set(re.findall(r"`anonlib (\w+)", text)) <= set(COMMANDS.commands)
    paths = re.findall(r"`((?:jobs|conf|docs|notebooks|tests|anonlib|benchmarks)/[\w./-]*)`", text)
    assert [path for path in paths if "NAME" not in path and not (ROOT / path).exists()] == []
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("http"):
            continue
        file, _, heading = target.partition("#")
        linked = page.parent / file if file else page
        assert linked.exists(), target
        if heading:
            headings = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in [re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in headings]


def test_the_readme_lists_every_page() -> None:
    listed = set(re.findall(r"\(docs/(\w+(?:-\w+)*\.md)\)", README.read_text(encoding="utf-8")))
    of_methods = {f"{name.replace('_', '-')}.md" for name in METHODS}  # docs/NAME.md, as the README says
    assert listed >= {page.name for page in PAGES if page != README} - of_methods


@pytest.mark.parametrize("text", blocks("yaml"))
def test_a_yaml_block_is_a_spec(text: str) -> None:
    parse_spec(MINIMAL | parse_yaml(text), base_dir=ROOT)


@pytest.mark.parametrize("text", blocks("python"))
def test_a_python_block_compiles_and_imports_what_exists(text: str) -> None:
    compile(text, "page", "exec")
    imports = [line for line in text.splitlines() if re.match(r"(import|from) anonlib", line)]
    exec("\n".join(imports), {})
    used = set(re.findall(r"\banonlib\.(\w+)\(", text))
    assert [name for name in used if not hasattr(anonlib, name)] == []


def picture() -> tuple[dict[int, int], dict[int, int]]:
    """Rows per bucket in `qit`, and records per bucket in `st`, as the README draws them."""
    drawn = blocks("text", [README])[0].values[0]
    qit = Counter(int(b) for b in re.findall(r"(?:--->)?\s+\d\d\s+[FM]\s+(\d)(?:\s|$)", drawn, re.MULTILINE))
    st: Counter[int] = Counter()
    for bucket, count in re.findall(r"(\d)\s+(?:flu|asthma|HIV|cancer)\s+(\d)$", drawn, re.MULTILINE):
        st[int(bucket)] += int(count)
    return dict(qit), dict(st)


@pytest.mark.spark
def test_the_readmes_python_runs_and_gives_what_it_draws(spark, capsys) -> None:  # type: ignore[no-untyped-def]
    names: dict[str, Any] = {}
    for block in blocks("python", [README]):
        exec(compile(block.values[0], "README.md", "exec"), names)
    assert "at most its threshold: from 0.25 (25.00 %) for 'HIV' to 0.5 (50.00 %)" in capsys.readouterr().out
    release = names["release"]
    asked_in_yaml = parse_spec(parse_yaml(blocks("yaml", [README])[0].values[0]), base_dir=ROOT).method
    assert asked_in_yaml.to_public_dict() == dict(
        release.manifest.method.parameters
    )  # so the YAML publishes this table too
    rows_of = Counter(row["bucket_id"] for row in release.tables["qit"].collect())
    drawn_qit, drawn_st = picture()
    assert drawn_qit == drawn_st
    assert sorted(rows_of.values()) == sorted(drawn_qit.values())

    release.tables["qit"].createOrReplaceTempView("qit")
    release.tables["st"].createOrReplaceTempView("st")
    others = [page for page in PAGES if page.stem != "analyst"]  # see tests/engine/test_groups.py
    query, on_operators, on_boxes = [block.values[0] for block in blocks("sql", others)]
    estimate = spark.sql(query).collect()[0]["estimate"]
    held = {row["bucket_id"]: row["count"] for row in release.tables["st"].where("disease = 'flu'").collect()}
    young = [row["bucket_id"] for row in release.tables["qit"].where("age BETWEEN 30 AND 40").collect()]
    assert len(young) == 2
    by_hand = sum(held.get(bucket, 0) / rows_of[bucket] for bucket in young)
    assert float(estimate or 0) == pytest.approx(by_hand)

    # with gamma = 4 over three values and 3 over two, half of the records keep theirs and 1/6 or 1/4 get each value by chance: of six
    # records with two flus two show it, of four with two flus two; sub-table 2 never had it
    shown = [(35, "flu", 0)] * 2 + [(40, "HIV", 0)] * 3 + [(30, "cold", 0), (41, "flu", 0), (35, "cold", 2)]
    shown += [(31, "flu", 1), (38, "cold", 1), (39, "cold", 1), (32, "flu", 1), (29, "flu", 1)]
    spark.createDataFrame(shown, "age int, disease string, subtable int").createOrReplaceTempView("microdata")
    operators = [
        (0, ["HIV", "cold", "flu"], 3, 4.0, 0.5),
        (1, ["cold", "flu"], 2, 3.0, 0.5),
        (2, ["cold"], 1, 1.0, 1.0),
    ]
    layout = "subtable int, domain array<string>, domain_size int, gamma double, retention double"
    spark.createDataFrame(operators, layout).createOrReplaceTempView("operators")
    assert float(spark.sql(on_operators).collect()[0]["estimate"]) == pytest.approx(4)

    boxes = [(20, 29, "flu"), (25, 34, "flu"), (30, 40, "flu"), (35, 44, "HIV"), (40, 40, "flu"), (20, 59, "flu")]
    spark.createDataFrame(boxes, "age_min int, age_max int, disease string").createOrReplaceTempView("microdata")
    assert float(spark.sql(on_boxes).collect()[0]["estimate"]) == pytest.approx(5 / 10 + 1 + 1 + 11 / 40)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("run a.yaml --no-such-option", "(?i)no such option"),
        ("audit", "(?i)missing"),
        ("no-such-command", "there is no anonlib no-such-command"),
    ],
)
def test_a_wrong_command_would_be_found(words: str, message: str) -> None:
    command, *arguments = words.split()
    with pytest.raises(Exception, match=message):
        parses(command, arguments)
