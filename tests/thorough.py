"""How much a test run tries: fewer random tables and kinds at every change, all where ANONLIB_THOROUGH is set (`make nightly`)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

THOROUGH = bool(os.environ.get("ANONLIB_THOROUGH"))
nightly = pytest.mark.skipif(not THOROUGH, reason="nightly: set ANONLIB_THOROUGH")
"""Marks a test that runs where ANONLIB_THOROUGH is set alone: others at every change try the same code in fewer ways."""


def trials(full: int, usual: int = 150) -> int:
    """How many random tables: `full` where ANONLIB_THOROUGH is set, else at most `usual`."""
    return full if THOROUGH else min(full, usual)


def cases(*usual: Any, nightly: Iterable[Any] = ()) -> list[Any]:
    """Parameters of a test: those of `nightly` too where ANONLIB_THOROUGH is set."""
    return [*usual, *(nightly if THOROUGH else ())]


def some(kinds: Iterable[str], *usual: str) -> list[str]:
    """All of `kinds` where ANONLIB_THOROUGH is set, else the `usual` ones."""
    everything = list(kinds)
    assert set(usual) <= set(everything)
    return everything if THOROUGH else list(usual)
