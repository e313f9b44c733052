"""A benchmark that lacks a table or a package says so and ends; `python -m benchmarks` goes on with the next."""

from __future__ import annotations

import sys

EXIT_CODE = 3


def missing(sentence: str) -> SystemExit:
    """Tell what is missing and how to get it, and give the exit to raise."""
    print(sentence, file=sys.stderr)
    return SystemExit(EXIT_CODE)
