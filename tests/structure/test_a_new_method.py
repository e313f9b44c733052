"""The toy method of docs/contributing.md, applied to a copy of the tree, costs six files and passes what every method passes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.thorough import some

ROOT = Path(__file__).resolve().parents[2]
PARTS = (
    "anonlib",
    "benchmarks",
    "conf",
    "docs",
    "jobs",
    "notebooks",
    "scripts",
    "tests",
    "README.md",
    "Makefile",
    "pyproject.toml",
    "CHANGELOG.md",
    "LICENSE",
)
WITHOUT_SPARK = some(
    ("spec_page", "readme", "conf", "papers", "public_names", "planted_faults_cover", "audit_borrows", "imports"),
    *("spec_page", "conf", "public_names", "planted_faults_cover"),
)
"""All of them nightly; at every change those that look at methods one by one."""


def diff() -> str:
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```diff\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return str(block)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The tree with the toy method in it."""
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(
                ROOT / part, tmp_path / part
            )  # and what is compiled already, which knows its source by its time
        else:
            shutil.copy(ROOT / part, tmp_path / part)
    applied = subprocess.run(
        ["git", "apply", "-"], cwd=tmp_path, input=diff(), text=True, capture_output=True, check=False
    )
    assert applied.returncode == 0, f"the diff of docs/contributing.md no longer applies: {applied.stderr}"
    return tmp_path


def run(folder: Path, *command: str) -> str:
    data = os.environ.get("ANONLIB_DATA", str(ROOT.parent / "shared" / "data"))
    environment = {**os.environ, "PYTHONPATH": str(folder), "ANONLIB_DATA": data, "ANONLIB_THOROUGH": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def test_a_method_costs_six_files() -> None:
    files = re.findall(r"^\+\+\+ b/(.*)$", diff(), re.MULTILINE)
    assert len(files) == 6
    assert not [file for file in files if file.startswith("tests/")]


@pytest.mark.long
def test_the_new_method_passes_the_suites_that_need_no_spark(copy: Path) -> None:
    run(copy, "ruff", "check", "anonlib")
    run(copy, "ruff", "format", "--check", "anonlib")
    suites = [f"tests/structure/test_{name}.py" for name in WITHOUT_SPARK]
    assert "passed" in run(copy, "pytest", "-q", "-p", "no:cacheprovider", "-m", "not spark and not slow", *suites)


@pytest.mark.slow
@pytest.mark.spark
def test_the_new_method_passes_every_contract_suite(copy: Path) -> None:
    told = run(copy, "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", "-k", "runs", "tests/contract")
    assert int(re.findall(r"(\d+) passed", told)[-1]) >= 15
