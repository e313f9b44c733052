"""What a manifest may say it promises: the text that the audit's own numbers make, by the templates of `anonlib.words`. Pure.

The numbers are derived from the parameters, the counts and the published tables, never taken from the text; so a made-up sentence, another
column's name or a stronger number is found by comparing whole texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from anonlib import words
from anonlib.audit import arithmetic, nodes
from anonlib.audit.verdict import Check
from anonlib.errors import AnonlibError
from anonlib.exact import exact
from anonlib.release.manifest import GuaranteePart, Manifest

NAME = "guarantee in words"


def as_promised(part: GuaranteePart, expected: Callable[[], str], name: str = NAME) -> Check:
    """The guarantee's words are `expected`, which may fail to be computed (the manifest then says nothing that can be put in words)."""
    asked = "the sentences that the numbers make"
    try:
        wanted = expected()
    except (AnonlibError, ValueError, TypeError, KeyError, ArithmeticError, AttributeError, AssertionError) as problem:
        return Check(name, False, asked, f"nobody can tell what is promised: {type(problem).__name__} {problem}")
    if part.words == wanted:
        return Check(name, True, asked, f"{len(wanted):,} characters, the same")
    at = next((i for i, (a, b) in enumerate(zip(part.words, wanted, strict=False)) if a != b), None)
    at = min(len(part.words), len(wanted)) if at is None else at
    start = max(0, at - 20)
    return Check(
        name,
        False,
        asked,
        f"other words from character {at + 1:,} on",
        f"stated ...{part.words[start : at + 60]!r}, the numbers make ...{wanted[start : at + 60]!r}",
    )


def bucketized(
    part: GuaranteePart,
    thresholds: Sequence[Fraction],
    fake_values: int,
    listed: Mapping[int, int] | None = None,
    of_nodes: Sequence[tuple[str | None, Fraction]] | None = None,
) -> str:
    """F'-privacy, from the recomputed thresholds in the values' order; of equal ones the first is named.

    listed : {number of a value: buckets that list it}, where fakes were to follow the values' frequency
    of_nodes : those of the values' hierarchy that have a threshold, the strictest first; None where there is no hierarchy
    """
    named = list(zip((v.value for v in part.values), thresholds, strict=True))
    low, high = min(f for _, f in named), max(f for _, f in named)
    strictest = next(pair for pair in named if pair[1] == low)
    loosest = next(pair for pair in named if pair[1] == high)
    real_shares = (
        None
        if listed is None
        else arithmetic.real_shares_of_listings([(v.count, listed[i]) for i, v in enumerate(part.values)], fake_values)
    )
    return words.thresholds(part.sensitive, strictest, loosest, fake_values, real_shares, of_nodes)


def of_two_columns(each: Sequence[tuple[GuaranteePart, Sequence[Fraction]]]) -> str:
    """F'-privacy of two sensitive columns, from the recomputed thresholds of each."""
    return words.thresholds_of_columns(
        [part.sensitive for part, _ in each], [bucketized(part, fs, 0) for part, fs in each]
    )


def perturbed(
    column: str, part: GuaranteePart, rho1: Fraction, rho2: Fraction, protected: frozenset[str | None]
) -> str:
    """(rho1, rho2)-privacy of `column` (or of several, joined by "and"), from the requirement that the parameters and the counts give."""
    n = sum(v.count for v in part.values)
    unprotected = sorted((v for v in part.values if v.value not in protected), key=lambda v: -v.count)
    shares = [(v.value, Fraction(v.count, n)) for v in unprotected]
    return words.beliefs(column, rho1, rho2, len(protected), shares)


def of_columns(
    combined: str,
    columns: Sequence[str],
    subtables: Sequence[tuple[Sequence[str | None], Sequence[int], Fraction]],
) -> str:
    """The same for several columns perturbed as one: `subtables` are (values, counts, gamma), a value the text of a combination."""
    alone = []
    for k, column in enumerate(columns):
        largest = Fraction(0)
        for values, counts, gamma in subtables:
            number: dict[str | None, int] = {}
            group = [number.setdefault(taken_apart(v, len(columns))[k], len(number)) for v in values]
            largest = max(largest, arithmetic.belief_in_groups(counts, group, gamma))
        alone.append((column, largest))
    return words.beliefs_in_columns(combined, alone)


def taken_apart(text: str | None, columns: int) -> list[str | None]:
    """The texts of a combination's columns: joined by `|`, with a backslash before a `|` or backslash of a text; `\\0` for a null."""
    if text is None:
        raise ValueError("a combination of values has no text")
    parts: list[str | None] = [""]
    at = 0
    while at < len(text):
        here, after = text[at], text[at + 1 : at + 2]
        if here == "|":
            parts.append("")
        elif here == "\\" and after == "0":
            parts[-1] = None
        else:
            parts[-1] = (parts[-1] or "") + (after if here == "\\" else here)
        at += 2 if here == "\\" else 1
    if len(parts) != columns:
        raise ValueError(f"{text!r} is no combination of {columns} values")
    return parts


def generalized(manifest: Manifest, part: GuaranteePart, classes: bool) -> str:
    """What is promised of classes, or of matches, from the numbers asked (which follow from the parameters by a check of their own)."""
    asked = {name: exact(number) for name, number in part.asked.items()}
    parameters = manifest.method.parameters
    if manifest.method.name == "sabre":
        first = part is manifest.guarantee
        published = parameters.get("neighbours") is not None or parameters.get("refine") is False
        way = "published" if published else "refined" if parameters.get("refine") else "symmetric"
        k, known = int(asked["k"]) if first else 1, words.HOW_CLASSES_CAME.get(way)
        if manifest.stream is not None:
            stream = manifest.stream
            return words.closeness_in_windows(part.sensitive, part.distance, asked["t"], k, stream.window, stream.shard)
        return words.closeness(part.sensitive, part.distance, asked["t"], k, known)
    if classes:
        return words.classes(part.sensitive, asked, part.distance)
    if manifest.method.name == "nh":
        return words.rings(part.sensitive, _whole(asked["l"]))
    leaking = [name for name in words.LEAKING if parameters.get(name)]
    l = _whole(asked["l"]) if "l" in asked else None  # noqa: E741  (the field's name)
    remainder = None if l is not None else parameters.get("remainder")
    if others := [each.sensitive for each in (manifest.guarantee, *manifest.guarantee.also) if each is not part]:
        return words.matches_of_columns(part.sensitive, " and ".join(others), _whole(asked["l"]))
    own: list[words.Share] = []
    if parameters.get("thresholds"):
        of_values = nodes.thresholds_of(manifest)
        named = [v.value for v in part.values if v.value is not None and v.value in of_values]
        own = [*sorted(((v, of_values[v]) for v in named), key=lambda share: (share[1], share[0]))]
    return words.matches(part.sensitive, l, asked.get("beta"), leaking, remainder, own, nodes.promised(part))


def _whole(number: Any) -> int:
    if number.denominator != 1:
        raise ValueError(f"{number} is no whole number")
    return int(number.numerator)
