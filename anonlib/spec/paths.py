"""Paths as people write them: the home folder for `~`, and a sentence for what would otherwise be taken as it stands.

A shell replaces `~` and variables, a YAML file does not: `~/release` was a folder named `~`. What no file system can hold (a NUL, a
name of more than 255 bytes) is refused before anything is read.
"""

from __future__ import annotations

import os
import re
from typing import Annotated, Any

from pydantic import BeforeValidator

from anonlib.errors import SpecError
from anonlib.spec.part import Faults, fault, read_text, shown

LONGEST_NAME = 255
"""Bytes of a file's or folder's name, on every common file system."""
_VARIABLE = re.compile(r"(?:^|/)\$\w|\$\{|\$\(")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/*)")
_ONE_SLASH = ("file", "dbfs")
"""Schemes whose paths may begin with one slash."""


def read_path(value: Any) -> str:
    """A path, its `~` replaced by the home folder. Raises Faults for what no file system takes as it was meant."""
    path = read_text(value)
    if "\0" in path:
        raise fault(f"{shown(path)} has a character (NUL) that no path can have; take it out")
    if _VARIABLE.search(path):
        raise fault(
            f"{shown(path)} has a variable in it, and variables are not replaced here; write the path itself (only ~ for the home folder "
            "and, of an output, {date} are known)"
        )
    path = _home(path)
    if longest := next((name for name in path.split("/") if len(name.encode(errors="replace")) > LONGEST_NAME), None):
        raise fault(
            f"a name in it is {len(longest.encode(errors='replace')):,} bytes long ({longest[:20]}...), and file systems take "
            f"{LONGEST_NAME}; shorten it"
        )
    return path


def read_output_path(value: Any) -> str:
    """The same of a place that is written to from Python, which would take `hdfs:/x` for a folder `hdfs:`."""
    path = read_path(value)
    scheme = _SCHEME.match(path)
    if scheme and scheme[1].lower() not in _ONE_SLASH and len(scheme[2]) < 2:
        raise fault(f"{shown(path)} has no two slashes behind its scheme; write {scheme[1]}://{path[scheme.end() :]}")
    if path.endswith("://"):
        raise fault(f"{shown(path)} names no place; write what stands behind the scheme")
    return path


def _home(path: str) -> str:
    if not path.startswith("~"):
        return path
    home = os.path.expanduser(path)
    if home.startswith("~"):
        raise fault(
            f"{shown(path)}: nobody here has this home folder; write the path itself, or ./{path} for a folder of that name"
        )
    return home


def plain_path(value: Any, name: str) -> str:
    """The same of a path that comes as an argument, `name`; a `pathlib.Path` is one. Raises SpecError."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name}: {shown(value)} is not a path; give text, or a pathlib.Path")
    try:
        return read_path(os.fspath(value))
    except Faults as problem:
        raise SpecError(f"{name}: {problem}") from None


InputPath = Annotated[str, BeforeValidator(read_path)]
OutputPath = Annotated[str, BeforeValidator(read_output_path)]
