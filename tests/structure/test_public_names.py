"""What editors and type checkers see of `anonlib` is what it has."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

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
