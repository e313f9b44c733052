"""What comes with the library beside its code is found, in a checkout and in a wheel; no link of the README leads nowhere on an index."""

from __future__ import annotations

import builtins
import importlib.util
import os
import re
import subprocess
import venv
from email.parser import Parser
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZipFile

import pytest
from setuptools.command.egg_info import FileList

from anonlib import __main__ as program
from anonlib import shipped
from anonlib.errors import SpecError
from tests.door import of_its_own, people, write_files

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\[[^\]\n]+\]\(([^)\s]+)\)")


def module_at(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_files_are_found_by_what_they_are_called() -> None:
    assert shipped.path_of("anonymize.py") == ROOT / "jobs" / "anonymize.py"
    assert (
        shipped.path_of("conf/spark/cluster.conf")
        == shipped.path_of("cluster.conf")
        == ROOT / "conf/spark/cluster.conf"
    )
    assert shipped.path_of("docs").is_dir()
    assert not {"jobs/demo.py", "jobs/stream_demo.py"} & set(shipped.names())
    with pytest.raises(SpecError, match=r"path: 'release\.yml': there is none; did you mean release\.yaml"):
        shipped.path_of("release.yml")
    with pytest.raises(SpecError, match=r"there is none; look under /.*, in jobs, conf, docs$"):
        shipped.path_of("zzzzzzzz")


def test_a_name_that_fits_two_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("conf/a/x.yaml", "conf/b/x.yaml"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).touch()
    monkeypatch.setattr(shipped, "root", lambda: tmp_path)
    with pytest.raises(SpecError, match=r"'x\.yaml': it fits conf/a/x\.yaml, conf/b/x\.yaml"):
        shipped.path_of("x.yaml")
    assert shipped.path_of("b/x.yaml") == tmp_path / "conf/b/x.yaml"


def test_setup_ships_what_is_looked_for() -> None:
    setup = module_at(ROOT / "setup.py")
    assert (setup.SHIPPED, setup.ENDINGS, setup.OF_A_CHECKOUT) == (
        shipped.SHIPPED,
        shipped.ENDINGS,
        shipped.OF_A_CHECKOUT,
    )
    assert sorted(path.relative_to(ROOT).as_posix() for path in setup.shipped_files(ROOT)) == shipped.names()


STRAY = (
    "conf/spark/master.key",
    "conf/id_rsa",
    "conf/.hidden.yaml",
    "conf/.kept/key.yaml",
    "conf/spark/kept.pem",
    "jobs/demo.py",
    "jobs/job.pyc",
    "docs/plot.svg",
)


def test_what_is_left_among_the_shipped_files_stays_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = module_at(ROOT / "setup.py")
    sources = ("jobs/job.py", "conf/spark/local.conf", "docs/page.md")
    for name in (*sources, *STRAY):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [path.relative_to(tmp_path).as_posix() for path in setup.shipped_files(tmp_path)] == [*sources]
    monkeypatch.setattr(shipped, "root", lambda: tmp_path)
    assert shipped.names() == sorted(sources)


@pytest.mark.parametrize("folder", sorted(shipped.SHIPPED))
def test_no_wheel_is_built_of_sources_without_what_is_shipped(tmp_path: Path, folder: str) -> None:
    setup = module_at(ROOT / "setup.py")
    for name in ("jobs/job.py", "conf/spark/local.conf", "docs/page.md"):
        if not name.startswith(folder):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
    with pytest.raises(FileNotFoundError, match=rf"{folder}: no file to ship; build from a checkout"):
        setup.shipped_files(tmp_path)


def test_a_source_archive_has_what_a_wheel_takes_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*shipped.names(), "README.md", "LICENSE", "CHANGELOG.md", *STRAY):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    archive = FileList()
    archive.findall()
    for line in (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines():
        archive.process_template_line(line)
    assert set(archive.files) >= {*shipped.names(), "README.md", "LICENSE"}
    assert not [name for name in archive.files if name.endswith((".key", ".pem", ".pyc", "id_rsa"))]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a checkout knows which files are its own")
def test_every_file_of_conf_is_shipped() -> None:
    listed = subprocess.run(["git", "ls-files", "conf"], cwd=ROOT, check=True, capture_output=True, text=True)
    assert set(listed.stdout.split()) <= set(shipped.names())


def test_no_link_of_the_readme_leads_nowhere_on_an_index() -> None:
    setup = module_at(ROOT / "setup.py")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert any(not target.startswith("http") for target in LINK.findall(readme))
    bare = setup.for_an_index(readme, None)
    assert all(re.match("https?:|#", target) for target in LINK.findall(bare))
    assert "guarantees (`docs/guarantees.md`)" in bare
    linked = setup.for_an_index(readme, "https://host/anonlib/blob/main")
    assert all(target.startswith(("http", "#")) for target in LINK.findall(linked))
    assert "(https://host/anonlib/blob/main/docs/spec.md)" in linked
    assert setup.for_an_index("[a](#b) [c](https://d)", None) == "[a](#b) [c](https://d)"
    assert setup.source_of('[project.urls]\nSource = "https://host/anonlib/"\n') == "https://host/anonlib/blob/main"
    assert setup.source_of("[project]\n") is None


def test_without_spark_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    genuine = builtins.__import__

    def no_spark(name: str, *rest: Any) -> Any:
        if name == "anonlib.cli":
            raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")
        return genuine(name, *rest)

    monkeypatch.setattr(builtins, "__import__", no_spark)
    assert program.main(["path", "anonymize.py"]) == 0
    assert capsys.readouterr().out == f"{ROOT / 'jobs' / 'anonymize.py'}\n"
    assert program.main(["run", "release.yaml"]) == 2
    assert "pip install 'anonlib[spark,java]'" in capsys.readouterr().err
    assert program.main(["path", "nowhere"]) == 2


@pytest.mark.slow
def test_a_wheel_in_an_empty_environment_runs_its_jobs(tmp_path: Path) -> None:
    wheel = module_at(ROOT / "scripts" / "build_wheel.py").build(tmp_path / "dist")
    with ZipFile(wheel) as archive:
        metadata = Parser().parsestr(
            archive.read(next(n for n in archive.namelist() if n.endswith("/METADATA"))).decode()
        )
    assert metadata["Author"]
    assert metadata["Keywords"]
    assert len(metadata.get_all("Classifier")) > 5
    assert all(re.match("https?:|#", target) for target in LINK.findall(metadata.get_payload()))

    # dependencies are those of this environment, on the path but not as a site folder: its editable anonlib stays out of sight
    empty = tmp_path / "empty"
    venv.create(empty, with_pip=True)
    python, home = empty / "bin" / "python", tmp_path / "home"
    home.mkdir()
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", str(wheel)], check=True)
    site = next(empty.glob("lib/python*/site-packages"))
    (site / "dependencies.pth").write_text(f"{Path(pytest.__file__).resolve().parents[1]}\n", encoding="utf-8")
    environment = {**of_its_own(), "PYSPARK_PYTHON": str(python), "PATH": f"{empty / 'bin'}:{os.environ['PATH']}"}
    del environment["PYTHONPATH"]

    def told(*command: str) -> str:
        ran = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout.strip()

    assert told("python", "-c", "import anonlib; print(anonlib.__file__)").startswith(str(site))
    job, example = told("anonlib", "path", "anonymize.py"), told("python", "-m", "anonlib", "path", "cluster.conf")
    assert Path(job) == site / "anonlib" / "share" / "jobs" / "anonymize.py"
    assert "spark.driver.memory" in Path(example).read_text(encoding="utf-8")
    assert (site / "anonlib" / "share" / "docs" / "spec.md").exists()

    blocked = "import sys; sys.modules['pyspark'] = None; from anonlib.__main__ import main; "
    assert told("python", "-c", f"{blocked} sys.exit(main(['path', 'anonymize.py']))") == job
    assert told("python", "-c", f"{blocked} sys.exit(main(['run', 'release.yaml']) - 2)") == ""

    write_files(home / "table", [people(60)])
    conf = home / "release.yaml"
    conf.write_text(
        "input: {path: table}\noutput: {path: release}\nmethod: {anatomy: {l: 3}}\n"
        "columns: {quasi_identifiers: [age, country], sensitive: illness, other: [note]}\n",
        encoding="utf-8",
    )
    assert "Published" in told("python", job, "--conf", str(conf))
    assert (home / "release" / "manifest.json").exists()
