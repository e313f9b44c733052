"""How much a test run tries: fewer random tables and kinds at every change, all where ANONLIB_THOROUGH is set (`make nightly`)."""

from __future__ import annotations

import os
from collections.abc import Iterable


def trials(full: int, usual: int = 500) -> int:
    """`full` where ANONLIB_THOROUGH is set, else at most `usual`."""
    return full if os.environ.get("ANONLIB_THOROUGH") else min(full, usual)


def some(kinds: Iterable[str], *usual: str) -> list[str]:
    """All of `kinds` where ANONLIB_THOROUGH is set, else the `usual` ones."""
    everything = list(kinds)
    assert set(usual) <= set(everything)
    return everything if os.environ.get("ANONLIB_THOROUGH") else list(usual)
