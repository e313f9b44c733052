"""Whether two paths share files: links, `..`, relative paths, schemes of one store, and the patterns that Spark reads (`m*`, `{a,b}`)."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from itertools import islice

_GLOB = re.compile(r"[*?\[{]")
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "wasb": "wasbs"}
MOST_MATCHES = 100_000
"""Matches of a local pattern that are followed one by one, for links; the pattern itself is compared whatever it matches."""


def overlap(pattern: str, path: str) -> bool:
    """Whether something that `pattern` reads is `path`, lies in it, or has it inside.

    pattern : a path as Spark takes it, with its patterns; path : one place, taken literally
    Looks at the local file system for links, at no other.
    """
    target = _place(path, literal=True)
    return any(_meet(_place(one), target) or _linked(one, target) for one in _alternatives(_slashes(pattern)))


def nested(one: str, other: str) -> bool:
    """Whether two paths, taken literally, are one folder, or one lies in the other."""
    return _meet_literally(_place(one, literal=True), _place(other, literal=True))


def _meet_literally(one: list[str], other: list[str]) -> bool:
    """Whether one of two lists of path components begins with the other."""
    return all(a == b for a, b in zip(one, other, strict=False))


def _meet(pattern: list[str], path: list[str]) -> bool:
    """Component by component, as far as both go: one is then the other, or the folder of it."""
    return all(_matches(part, name) for part, name in zip(pattern, path, strict=False))


def _matches(part: str, name: str) -> bool:
    """Whether a component of a pattern matches a name."""
    if not _GLOB.search(part) and "\\" not in part:
        return part == name
    escaped = re.sub(r"\\(.)", lambda match: f"[{match.group(1)}]", part).replace("[^", "[!")
    return fnmatch.fnmatchcase(name, escaped)


def _linked(pattern: str, target: list[str]) -> bool:
    """A match of a local pattern may be a link to elsewhere."""
    if not _GLOB.search(pattern) or not _is_local(pattern):
        return False
    matches = glob.iglob(_local(pattern).replace("[^", "[!"))
    return any(_meet_literally(_place(match, literal=True), target) for match in islice(matches, MOST_MATCHES))


def _place(path: str, literal: bool = False) -> list[str]:
    """The path's components, the store first; of a local one, links are followed as far as no pattern stands before them."""
    path = _slashes(path)
    if not _is_local(path):
        scheme, _, rest = path.partition(":")
        store, *parts = [part for part in rest.split("/") if part not in ("", ".")] or [""]
        return [f"{_SAME_STORE.get(scheme.lower(), scheme.lower())}://{store}", *_without_dots(parts)]
    parts = os.path.abspath(_local(path)).split("/")[1:]
    fixed = (
        len(parts)
        if literal
        else next((i for i, part in enumerate(parts) if re.search(r"[*?\[{\\]", part)), len(parts))
    )
    return [part for part in os.path.realpath("/" + "/".join(parts[:fixed])).split("/") if part] + parts[fixed:]


def _without_dots(parts: list[str]) -> list[str]:
    """The components with `..` resolved."""
    kept: list[str] = []
    for part in parts:
        if part != "..":
            kept.append(part)
        elif kept:
            kept.pop()
    return kept


def _slashes(path: str) -> str:
    """Databricks' paths as the mounted ones; one spelling of a local URI."""
    if path.startswith("dbfs:/Volumes/"):
        return path.removeprefix("dbfs:")
    if path.startswith("dbfs:/"):
        return "/dbfs/" + path.removeprefix("dbfs:/").lstrip("/")
    return path


def _is_local(path: str) -> bool:
    return path.lower().startswith("file:") or not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", path)


def _local(path: str) -> str:
    return "/" + path[len("file:") :].lstrip("/") if path.lower().startswith("file:") else path


def _alternatives(pattern: str) -> list[str]:
    """`a{b,c}d` is abd and acd, innermost braces first."""
    braces = re.search(r"(?<!\\)\{([^{}]*)\}", pattern)
    if braces is None:
        return [pattern]
    return [
        whole
        for choice in braces.group(1).split(",")
        for whole in _alternatives(pattern[: braces.start()] + choice + pattern[braces.end() :])
    ]
