"""Pieces of HTML from plain text. Whatever comes in as `str` is data and is escaped; what is built here is `Markup`. Pure."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import NewType

Markup = NewType("Markup", str)
"""Text that is HTML already."""
LONGEST = 120
"""Characters of a value or a name that are shown; the middle of a longer one is left out."""
NO_MARKS: Mapping[str, str] = {}
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Kinds of characters that show nothing, turn the direction of what follows, or are no characters at all."""


def legible(value: object, longest: int = LONGEST) -> str:
    """A value or a name as plain text of at most `longest` characters: what cannot be seen is spelt out, a missing value is named.

    >>> legible(None), legible("a\\tb"), legible("abcdefghij", 7), legible("")
    ('(missing)', 'a\\\\u0009b', 'abc…hij', '(empty)')
    """
    if value is None:
        return "(missing)"
    whole = str(value)
    if not whole.strip():
        return "(empty)" if not whole else f"({len(whole)} blanks)"
    if len(whole) > longest:
        half = (longest - 1) // 2
        whole = f"{whole[:half]}…{whole[-half:]}"
    return "".join(_spelt(character) for character in whole)


def _spelt(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN:
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def escaped(text: str) -> Markup:
    """Text as HTML, in an element or in a quoted attribute."""
    return Markup(html.escape(text, quote=True))


def element(name: str, *inside: Markup, **attributes: str) -> Markup:
    """<name attributes>inside</name>. Names of attributes: `class_` is class, `aria_label` is aria-label."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value)}"' for key, value in attributes.items() if value
    )
    return Markup(f"<{name}{written}>{''.join(inside)}</{name}>")


def paragraph(text: str, class_: str = "") -> Markup:
    """A paragraph of plain text."""
    return element("p", escaped(text), class_=class_)


def joined(parts: Iterable[Markup]) -> Markup:
    """Pieces one after another."""
    return Markup("\n".join(parts))


def items(texts: Iterable[str]) -> Markup:
    """A list with a bullet for each text."""
    return element("ul", *(element("li", escaped(text)) for text in texts))


def table(
    caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, marks: Mapping[str, str] = NO_MARKS
) -> Markup:
    """A table of texts that scrolls by itself where it is too wide, by keyboard too. The first cell of a row is its header.

    left  : so many columns from the first hold text, which stands on the left; numbers after them on the right
    marks : {whole cell: class that colours it}
    """
    place = ["" if i < left else "number" for i in range(len(head))]
    top = element("tr", *(element("th", escaped(h), scope="col", class_=c) for h, c in zip(head, place, strict=True)))
    body = joined(
        element(
            "tr",
            element("th", _cell(first, marks), scope="row"),
            *(element("td", _cell(cell, marks), class_=c) for cell, c in zip(rest, place[1:], strict=True)),
        )
        for first, *rest in rows
    )
    inner = element("table", element("caption", escaped(caption)), element("thead", top), element("tbody", body))
    return element("div", inner, class_="wide", role="region", tabindex="0", aria_label=caption)


def _cell(cell: str, marks: Mapping[str, str]) -> Markup:
    return element("span", escaped(cell), class_=marks[cell]) if cell in marks else escaped(cell)


def figure(chart: Markup, caption: str, numbers: Markup | None = None) -> Markup:
    """A chart with a sentence of how to read it and, folded away, its numbers."""
    folded = (
        element("details", element("summary", escaped("The numbers of this chart")), numbers) if numbers else Markup("")
    )
    return element("figure", chart, element("figcaption", escaped(caption)), folded)


def in_words(name: str) -> str:
    """A name of code as words: "max_bucket_size" is "max bucket size"."""
    return re.sub(r"[_\s]+", " ", name).strip()
