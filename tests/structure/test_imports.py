"""Arrows between packages point one way, and pure code needs no Spark: kept by a machine, and shown to be kept."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
PURE = next(contract["source_modules"] for contract in CONTRACTS if contract["name"] == "pure code never sees Spark")

IMPORT_ALL = """
import importlib, pkgutil, sys

class NoSpark:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "py4j"):
            raise ImportError(f"{name} was imported")

sys.meta_path.insert(0, NoSpark())
importlib.import_module("anonlib")
found = []
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    found.append(name)
    for inner in pkgutil.walk_packages(getattr(module, "__path__", []), name + "."):
        importlib.import_module(inner.name)
        found.append(inner.name)
print(len(found))
"""


def import_without_spark(*names: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *names], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.long
def test_pure_code_imports_where_there_is_no_spark() -> None:
    done = import_without_spark(*PURE)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= len(PURE)


def test_the_java_finder_imports_where_there_is_no_spark() -> None:
    done = import_without_spark("anonlib.engine.java")
    assert done.returncode == 0, done.stderr


def test_the_block_on_spark_does_block() -> None:
    done = import_without_spark("anonlib.engine.relational")
    assert done.returncode != 0
    assert "ImportError: pyspark" in done.stderr


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command; lint_imports_command()",
        "--no-cache",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "anonlib", tmp_path / "anonlib", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_import_contracts_are_kept(copy: Path) -> None:
    pytest.importorskip("importlinter")
    done = lint(copy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(CONTRACTS)} kept, 0 broken" in done.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("exact.py", "import pyspark.sql", "pure code never sees Spark"),
        ("spec/load.py", "from anonlib.privacy import counts", "arrows point one way"),
        ("audit/verdict.py", "from anonlib import solvers", "the auditor borrows nothing from what it audits"),
        ("audit/published.py", "from anonlib.privacy import counts", "the auditor borrows nothing from what it audits"),
        ("audit/form.py", "from anonlib.engine import relational", "pure code never sees Spark"),
        (
            "methods/sabre.py",
            "from anonlib.methods.baselines import classes",
            "a published method builds on no baseline",
        ),
        ("methods/__init__.py", "def later():\n    import pyspark", "only the engine imports Spark"),
    ],
)
def test_a_contract_that_is_broken_is_noticed(copy: Path, module: str, line: str, contract: str) -> None:
    pytest.importorskip("importlinter")
    path = copy / "anonlib" / module
    path.write_text(path.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    done = lint(copy)
    assert done.returncode != 0
    assert any(contract in text and "BROKEN" in text for text in done.stdout.splitlines()), done.stdout
