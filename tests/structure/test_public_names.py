"""What editors and type checkers see of `anonlib` is what it has."""

from __future__ import annotations

import ast
import inspect
import runpy
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import anonlib
from anonlib.spec import METHODS


def stated() -> dict[str, str]:
    """{name: module} of what `anonlib/__init__.py` imports for type checkers alone."""
    tree = ast.parse(Path(anonlib.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    return {node.names[0].name: node.module or "" for node in block.body if isinstance(node, ast.ImportFrom)}


def test_every_stated_name_is_what_the_package_gives() -> None:
    for name, module in stated().items():
        assert getattr(anonlib, name) is getattr(import_module(module), name)
        assert name in dir(anonlib)


def test_every_method_has_its_verb() -> None:
    for name in METHODS:
        assert getattr(anonlib, name).__name__ == name


def test_editors_see_every_public_name() -> None:
    toy = {"runs"}  # of docs/contributing.md, whose copy of the tree has its verb and no line for editors
    assert set(stated()) | {"__version__"} | toy == set(dir(anonlib)) | toy


def test_no_verb_takes_what_it_does_not_know() -> None:
    for name in METHODS:
        kinds = {one.kind for one in inspect.signature(getattr(anonlib, name)).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds, name


@pytest.mark.slow
def test_a_type_checker_sees_a_wrong_call(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import anonlib\nanonlib.bucketize(3, nonsense=4)\nanonlib.nonsense\n", encoding="utf-8")
    root = Path(anonlib.__file__).resolve().parents[1]
    seen = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", str(wrong)], cwd=root, capture_output=True, text=True
    )
    assert seen.returncode == 1, seen.stdout + seen.stderr
    assert 'Unexpected keyword argument "nonsense" for "bucketize"' in seen.stdout
    assert 'incompatible type "int"; expected "DataFrame"' in seen.stdout
    assert 'Module has no attribute "nonsense"' in seen.stdout


def test_the_package_is_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["anonlib", "explain"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("anonlib", run_name="__main__")
    assert ended.value.code == 2
    assert "name the release spec once" in capsys.readouterr().err
