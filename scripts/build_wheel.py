"""Build the wheel from a clean copy of the sources, so that nothing left of an earlier build gets into it. Standard library only.

.venv/bin/python scripts/build_wheel.py dist      prints where the wheel lies
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("anonlib", "jobs", "conf", "docs", "pyproject.toml", "setup.py", "README.md", "LICENSE")


def build(into: Path) -> Path:
    """The wheel, in the folder `into`. By the setuptools of this environment, without a network. Raises CalledProcessError."""
    with TemporaryDirectory() as folder:
        clean = Path(folder) / "anonlib"
        clean.mkdir()
        for name in SOURCES:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, clean / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
            else:
                shutil.copy(source, clean)
        built = Path(folder) / "built"
        command = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--no-deps",
            "--no-build-isolation",
            "--disable-pip-version-check",
        ]
        subprocess.run([*command, "-q", "-w", str(built), str(clean)], check=True)
        into.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(next(built.glob("*.whl")), into))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("build_wheel: name the folder that the wheel goes to, e.g. dist")
    sys.stdout.write(f"{build(Path(sys.argv[1]))}\n")
