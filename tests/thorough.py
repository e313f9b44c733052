"""How many random tables a property is tried on: fewer at every change, the full number where ANONLIB_THOROUGH is set (`make nightly`)."""

from __future__ import annotations

import os


def trials(full: int, usual: int = 500) -> int:
    """`full` where ANONLIB_THOROUGH is set, else at most `usual`."""
    return full if os.environ.get("ANONLIB_THOROUGH") else min(full, usual)
