"""The file of a report: where it may lie, and how it is written. A report never lies in a release: what is there is published."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path

from anonlib.errors import SpecError
from anonlib.reports.charts import check_installed


def default_path(release: str) -> Path:
    """`NAME.report.html` in the current folder, for a release at `.../NAME`.

    >>> str(default_path("s3a://lake/releases/census/"))
    'census.report.html'
    """
    return Path(f"{release_name(release)}.report.html")


def release_name(release: str) -> str:
    """The last part of a release's path; the rest may say more about a house than its releases do."""
    return re.split(r"[/\\]", release.rstrip("/\\"))[-1] or "release"


def check(path: Path, release: str) -> None:
    """Raises SpecError unless a report of the release at `release` can be written at `path`, and AnonlibError without matplotlib."""
    check_installed()
    wanted = Path(os.path.realpath(path))
    inside = Path(os.path.realpath(re.sub(r"^file:/+", "/", release)))
    if wanted == inside or inside in wanted.parents:
        raise SpecError(
            f"-o {path}: lies in the release, and what lies there is published; write the report to another folder"
        )
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(path)):
        raise SpecError(f"-o {path}: a report is written to a local file; give a path without a scheme")
    if path.is_dir() or not wanted.parent.is_dir():
        raise SpecError(f"-o {path}: no file can be written there; give the name of a file in a folder that exists")


def write(path: Path, html: str, private: bool) -> None:
    """Write a report in one step, whole or not at all. private : for its owner alone, where it was made with the original.

    Raises SpecError when it cannot be written.
    """
    name = ""
    try:
        file, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.resolve().parent)
        with open(file, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(html)
        os.chmod(name, 0o600 if private else 0o666 & ~_umask())
        os.replace(name, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(name)
        raise SpecError(f"-o {path}: cannot be written ({error.strerror}); choose another path") from None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
