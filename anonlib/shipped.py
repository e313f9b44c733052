"""What comes with the library beside its code: jobs for spark-submit, example specs, settings of Spark, the pages of the docs.

In a checkout they lie beside the package, in an installed one in its folder `share`.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from anonlib.errors import SpecError

PACKAGE = Path(__file__).resolve().parent
SHIPPED = {"jobs": "*.py", "conf": "**/*", "docs": "*.md"}
"""Folders, and which of their files."""
ENDINGS = (".conf", ".cron", ".csv", ".json", ".md", ".py", ".sh", ".yaml", ".yml")
"""What a file is called that is shipped: no other is, so that a key or an archive left among them stays where it is."""
OF_A_CHECKOUT = ("demo.py", "stream_demo.py")
"""Jobs that write beside the sources, and so are not shipped."""


def root() -> Path:
    """The folder that `jobs`, `conf` and `docs` lie in."""
    share = PACKAGE / "share"
    return share if share.is_dir() else PACKAGE.parent


def names() -> list[str]:
    """Every shipped file, as a path below `root`."""
    found = [
        path.relative_to(root()).as_posix()
        for folder, pattern in SHIPPED.items()
        for path in (root() / folder).glob(pattern)
        if path.is_file() and is_shipped(path.relative_to(root()))
    ]
    return sorted(found)


def is_shipped(path: Path) -> bool:
    """Whether a file that fits a pattern of SHIPPED is one: by its ending, not hidden, no job of a checkout. path : below `root`"""
    return (
        path.suffix in ENDINGS
        and path.name not in OF_A_CHECKOUT
        and not any(part.startswith(".") for part in path.parts)
    )


def path_of(name: str) -> Path:
    """Where a shipped file or folder lies. name : a path below `root`, or the end of one that no other has, e.g. "anonymize.py".

    Raises SpecError, with names that are near, for an unknown or an ambiguous one.
    """
    if name in SHIPPED:
        return root() / name
    ending = [each for each in names() if each == name or each.endswith(f"/{name}")]
    if name in ending or len(ending) == 1:
        return root() / (name if name in ending else ending[0])
    if ending:
        raise SpecError(f"path: {name!r}: it fits {', '.join(ending)}; write one of them")
    near = get_close_matches(name, [each.rpartition("/")[2] for each in names()])
    hint = f"did you mean {' or '.join(near)}?" if near else f"look under {root()}, in {', '.join(SHIPPED)}"
    raise SpecError(f"path: {name!r}: there is none; {hint}")
