"""docs/spec.md, or the page of a method, lists every key of the release spec, no other, with its default and its choices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic.fields import FieldInfo

from anonlib.spec import METHODS, ReleaseSpec
from anonlib.spec.method import Method
from anonlib.spec.part import Part

DOCS = Path(__file__).resolve().parents[2] / "docs"
REQUIRED_BY_YAML = ("input", "output")  # only a spec built in Python may lack them


def page_of(method: str) -> Path:
    """The page that a method may have for itself."""
    return DOCS / f"{method.replace('_', '-')}.md"


def documented() -> dict[str, tuple[str, str]]:
    """{key path: (default as printed, what it says)} of the table on docs/spec.md, and on pages that are called after a method."""
    pages = [DOCS / "spec.md", *(page for name in METHODS if (page := page_of(name)).exists())]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    rows = re.findall(
        r"^\| `((?:input|output|columns|persons|ledger|missing|method|random|audit|stream)[^`]*)` \| ([^|]*) \| (.*) \|$",
        text,
        re.MULTILINE,
    )
    assert len({key for key, _, _ in rows}) == len(rows), "a key is listed twice"
    return {key: (default.strip(), words) for key, default, words in rows}


def parts_in(annotation: Any) -> list[type[Part]]:
    """The parts that an annotation speaks of, e.g. QuasiIdentifier in tuple[QuasiIdentifier, ...]."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return [annotation]
    return [part for inner in get_args(annotation) for part in parts_in(inner)]


def choices_in(annotation: Any) -> tuple[str, ...]:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(choice for inner in get_args(annotation) for choice in choices_in(inner))


def fields(part: type[Part], above: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """(key path, field) of everything that can be written in a part."""
    for name, field in part.model_fields.items():
        path = above + (field.alias or name)
        yield path, field
        for inner in parts_in(field.annotation):
            if inner is Method:
                continue
            within = {tuple: "[]", dict: ".NAME"}.get(get_origin(field.annotation) or object, "")
            yield from fields(inner, f"{path}{within}.")


def all_fields() -> dict[str, FieldInfo | None]:
    found: dict[str, FieldInfo | None] = dict(fields(ReleaseSpec))
    for name, method in METHODS.items():
        found[f"method.{name}"] = None
        found |= dict(fields(method, f"method.{name}."))
    return found


def printed_default(path: str, field: FieldInfo | None) -> str:
    if field is None:
        return "-"
    if field.is_required() or path in REQUIRED_BY_YAML:
        return "required"
    if field.default_factory is not None:
        return "`{}`"
    default = field.default
    if default is None:
        return "-"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return "`[]`" if default == () else f"`{default}`"


def test_every_key_is_documented_and_none_is_invented() -> None:
    assert sorted(documented()) == sorted(all_fields())


@pytest.mark.parametrize("path", sorted(all_fields()))
def test_default_and_choices_are_as_documented(path: str) -> None:
    field = all_fields()[path]
    default, words = documented().get(path, ("", ""))
    assert default == printed_default(path, field)
    if field is not None and not parts_in(field.annotation) and not path.endswith("sensitive[].type"):
        section = documented()["missing"][1] if path.startswith("missing.") else words
        assert [choice for choice in choices_in(field.annotation) if f"`{choice}`" not in section] == []
