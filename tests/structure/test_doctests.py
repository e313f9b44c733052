"""The examples in docstrings of pure code run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

from tests.structure.test_imports import PURE


def modules() -> list[str]:
    found = []
    for name in PURE:
        found.append(name)
        found += [
            inner.name
            for inner in pkgutil.walk_packages(getattr(importlib.import_module(name), "__path__", []), f"{name}.")
        ]
    return found


@pytest.mark.parametrize("name", modules())
def test_docstring_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_there_are_examples_to_run() -> None:
    assert (
        sum(doctest.testmod(importlib.import_module(name)).attempted for name in ("anonlib.exact", "anonlib.sql")) >= 5
    )
