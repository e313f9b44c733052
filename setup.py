"""Packaging: metadata is declared in pyproject.toml; here, what a wheel holds beside code, and the README that an index shows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
SHIPPED = {"jobs": "*.py", "conf": "**/*", "docs": "*.md"}
ENDINGS = (".conf", ".cron", ".csv", ".json", ".md", ".py", ".sh", ".yaml", ".yml")
"""As in anonlib/shipped.py, which finds them again."""
OF_A_CHECKOUT = ("demo.py", "stream_demo.py")


class WithShared(build_py):
    """Copies jobs, examples, settings and docs into the package, as `anonlib/share`; an editable install finds them where they are."""

    def run(self) -> None:
        super().run()
        if getattr(self, "editable_mode", False):
            return
        for path in shipped_files(ROOT):
            target = Path(self.build_lib) / "anonlib" / "share" / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def shipped_files(root: Path) -> list[Path]:
    """The files that a wheel takes from the sources in `root`. Raises FileNotFoundError when one of the folders has none of them."""
    shipped = []
    for folder, pattern in SHIPPED.items():
        files = [
            path
            for path in sorted((root / folder).glob(pattern))
            if path.is_file() and _is_shipped(path.relative_to(root))
        ]
        if not files:
            raise FileNotFoundError(
                f"{root / folder}: no file to ship; build from a checkout, or a source archive that has {folder}/"
            )
        shipped += files
    return shipped


def _is_shipped(path: Path) -> bool:
    return (
        path.suffix in ENDINGS
        and path.name not in OF_A_CHECKOUT
        and not any(part.startswith(".") for part in path.parts)
    )


def for_an_index(readme: str, source: str | None) -> str:
    """The README as a package index shows it, where nothing lies beside it: links to files lead to `source`, without one they are text.

    source : address of the repository's files on the web, e.g. https://host/owner/anonlib/blob/main; headings and addresses stay
    """

    def linked(match: re.Match[str]) -> str:
        label, target = match[1], match[2]
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        if source is not None:
            return f"[{label}]({source}/{target})"
        return label if label == target else f"{label} (`{target}`)"

    return re.sub(r"\[([^\]\n]+)\]\(([^)\s]+)\)", linked, readme)


def source_of(pyproject: str) -> str | None:
    """The address that pyproject.toml has under [project.urls] for Source, with the branch that links lead to; None without one."""
    urls = pyproject.partition("[project.urls]")[2].partition("\n[")[0]
    stated = re.search(r'^Source = "(.*?)/?"', urls, re.MULTILINE)
    return f"{stated[1]}/blob/main" if stated else None


if __name__ == "__main__":
    setup(
        cmdclass={"build_py": WithShared},
        long_description=for_an_index(
            (ROOT / "README.md").read_text(encoding="utf-8"),
            source_of((ROOT / "pyproject.toml").read_text(encoding="utf-8")),
        ),
        long_description_content_type="text/markdown",
    )
