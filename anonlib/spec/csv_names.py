"""Whether the first line of a CSV can be the names of its columns: a record taken for names would put its cells into a draft. Pure.

A name has letters and says what a column holds; numbers, dates, marks and identifiers are what a record holds. A record of words alone
cannot be told from names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from anonlib.errors import SpecError

_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_CELLS = {
    "a mark of a missing value": r"[?.-]{1,3}|#?n/a|nan|null",
    "a truth value": r"true|false",
    "a date or a time": r"(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2(?:\d{2}|\d{4}))(?:[t ]\d{1,2}:\d{2}.*)?"
    r"|\d{1,2}:\d{2}(?::\d{2}.*)?"
    rf"|\d{{1,2}}[-. ]*{_MONTH}[-., ]*\d{{2,4}}|{_MONTH} \d{{1,2}},? \d{{4}}",
    "a number": r"[-+]?[$€£]?(?:\d[\d,.' ]*|\.\d+)(?:e[-+]?\d+)? ?[%$€£]?|[<>]=? ?\d.*",
    "an address": r"[^\s@]+@[^\s@]+|(?:https?://|www\.)\S+",
    "like an identifier": r"[a-z]{0,4}[-_ /#]?\d{5,}[a-z]?|(?=.*\d)[0-9a-f]{16,}"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?!_)(?=.*\d)[\W\d_]+",
}
"""{what it is: how a cell of a record is written, in lower case}, the first that fits named."""


def check_names(cells: Sequence[str | None], where: str) -> None:
    """Raises SpecError, without the cell itself, where one of `cells` is empty, stands twice (in any case), or is written as a value is."""
    names = [(cell or "").lstrip("\ufeff").strip().lower() for cell in cells]
    for i, name in enumerate(names):
        if fault := _fault(name, names[:i]):
            raise SpecError(
                f"{where}: cell {i + 1} of its first line is {fault}, so that line looks like a record and not like the names of columns, "
                "of which a draft is made; put a line of names on top of it, or, where these are the names, change that one to a word"
            )


def _fault(name: str, before: Sequence[str]) -> str | None:
    if not name:
        return "empty"
    if name in before:
        return f"the same as cell {before.index(name) + 1}"
    return next((kind for kind, pattern in _CELLS.items() if re.fullmatch(pattern, name)), None)
