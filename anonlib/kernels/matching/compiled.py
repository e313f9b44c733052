"""Whether graphs of matches are large enough for compiled loops, and Numba is there to compile them."""

from __future__ import annotations

import importlib
from functools import lru_cache
from types import ModuleType

WORTH = 100_000_000
"""Pairs of records from which on compiled loops are asked for: some five seconds of work, beside which Numba's start counts little."""


def loops(pairs: int) -> ModuleType | None:
    """`anonlib.kernels.matching.loops`, compiled, where so many pairs of records are compared; None where that does not pay, or without a
    Numba that can be imported: it refuses a NumPy newer than itself, and uncompiled loops would take a hundred times as long as NumPy."""
    return _compiled() if pairs >= WORTH else None


@lru_cache(maxsize=1)
def _compiled() -> ModuleType | None:
    try:
        importlib.import_module("numba")  # here, since it takes half a second
    except (
        ImportError,
        OSError,
        AttributeError,
    ):  # OSError: its LLVM cannot be loaded; AttributeError: it looks for what NumPy has no more
        return None
    return importlib.import_module("anonlib.kernels.matching.loops")
