"""Whether graphs of matches are large enough for compiled loops, and Numba is there to compile them."""

from __future__ import annotations

import importlib
import importlib.util
from functools import lru_cache
from types import ModuleType

WORTH = 100_000_000
"""Pairs of records from which on compiled loops are asked for: some five seconds of work, beside which Numba's start counts little."""


def loops(pairs: int) -> ModuleType | None:
    """`anonlib.kernels.matching.loops`, compiled, where so many pairs of records are compared; None where that does not pay, or without
    Numba."""
    return _compiled() if pairs >= WORTH else None


@lru_cache(maxsize=1)
def _compiled() -> ModuleType | None:
    if importlib.util.find_spec("numba") is None:
        return None
    return importlib.import_module("anonlib.kernels.matching.loops")  # here, since importing Numba takes half a second
