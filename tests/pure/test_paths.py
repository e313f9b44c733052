"""Paths as people write them, and stores that do not answer."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from anonlib import increments
from anonlib.errors import SpecError
from anonlib.release import remote, storage
from anonlib.spec.load import parse_spec
from anonlib.spec.paths import plain_path
from anonlib.spec.table_names import plain_table_name

COLUMNS = {"quasi_identifiers": ["age"], "sensitive": "illness"}


def asked(**changes):
    base = {
        "input": {"path": "data/t.parquet"},
        "output": {"path": "releases/t"},
        "columns": COLUMNS,
        "method": {"anatomy": {"l": 2}},
    }
    return parse_spec(base | changes)


def test_the_home_folder_wherever_a_spec_names_a_path(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    spec = asked(input={"path": "~/t.parquet"}, output={"path": "~/release"})
    assert (spec.input.path, spec.output.path) == (f"{tmp_path}/t.parquet", f"{tmp_path}/release")
    (tmp_path / "h.csv").write_text("flu,any\n", encoding="utf-8")
    columns = {"quasi_identifiers": [{"name": "age", "hierarchy": "~/h.csv"}], "sensitive": "illness"}
    assert asked(columns=columns).columns.quasi_identifiers[0].hierarchy is not None
    assert plain_path(Path("~/release"), "path") == f"{tmp_path}/release"
    with pytest.raises(SpecError, match="overlaps with the input"):
        asked(input={"path": "~/t"}, output={"path": f"{tmp_path}/t/release"})


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("$HOME/release", "variables are not replaced"),
        ("data/${DAY}/x", "variables are not replaced"),
        ("a\0b", "NUL"),
        ("r/" + "x" * 256, "256 bytes long"),
        ("r/" + "é" * 128, "256 bytes long"),
        ("~nobody-of-this-name/x", "nobody here has this home folder"),
    ],
)
def test_a_path_that_is_none(path, words):
    for changes in ({"input": {"path": path}}, {"output": {"path": path}}, {"output": {"path": "r", "evidence": path}}):
        with pytest.raises(SpecError, match=words):
            asked(**changes)


def test_an_output_whose_scheme_lacks_a_slash():
    with pytest.raises(SpecError, match=r"write hdfs://x"):
        asked(output={"path": "hdfs:/x"})
    with pytest.raises(SpecError, match="names no place"):
        asked(output={"path": "s3://"})
    assert asked(input={"path": "hdfs:/x"}).input.path == "hdfs:/x"  # Spark reads it from its default store
    assert asked(output={"path": "file:/tmp/x{date}$y"}).output.path == "file:/tmp/x{date}$y"


def test_a_table_of_a_catalog_stands_beside_a_path():
    with pytest.raises(SpecError, match=r"output.table: a release is a folder.*; give path too, e.g. output: \{path: "):
        asked(output={"table": "main.clinic.release"})
    for name in ("visits", "clinic.visits", "my-lake.my-clinic.visits_2026", "clinic.visits_{date}"):
        path = "r/{date}" if "{" in name else "r"
        assert asked(output={"path": path, "table": name}).output.table == name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.b.c.d", "is no table's name; write catalog.schema.name"),
        ("a..b", "is no table's name"),
        ("clinic.my-visits", "is no table's name"),
        ("clinic.`visits`", "is no table's name"),
        ("clinic.visits; DROP TABLE x", "is no table's name"),
        ("{date}.visits", "is no table's name"),
        ("clinic." + "v" * 101, "more than 100 characters"),
        ("clinic.visits_{date}", "in only one of path and table"),
    ],
)
def test_a_table_that_no_catalog_takes(name, words):
    with pytest.raises(SpecError, match=words) as caught:
        asked(output={"path": "r", "table": name})
    assert str(caught.value).startswith("output.table: ")


def test_a_day_of_a_table_and_of_an_argument():
    output = increments.dated(asked(output={"path": "r/{date}", "table": "clinic.visits_{date}"}).output)
    assert output.table == f"clinic.visits_{output.path.removeprefix('r/').replace('-', '_')}"
    assert len(output.table) == len("clinic.visits_2026_11_29")
    assert plain_table_name("a.b", "TABLE") == "a.b"
    with pytest.raises(SpecError, match=r"TABLE: \{date\} is for a spec"):
        plain_table_name("a.b_{date}", "TABLE")
    with pytest.raises(SpecError, match=r"TABLE: 'a b' is no table's name"):
        plain_table_name("a b", "TABLE")


def test_databricks_paths_elsewhere():
    with pytest.raises(SpecError, match="on Databricks alone"):
        storage.place("dbfs:/releases/x")


def test_a_store_that_does_not_answer(monkeypatch):
    released = threading.Event()
    monkeypatch.setattr(remote, "PATIENCE", 0.05)
    monkeypatch.setattr(remote, "_from_uri", lambda _: released.wait(30))
    begun = time.monotonic()
    with pytest.raises(SpecError, match=r"output.path 'gs://b/x': this file system did not answer within 0 s"):
        storage.place("gs://b/x")
    assert time.monotonic() - begun < 10
    released.set()


def test_a_store_that_fails_in_its_own_words(monkeypatch):
    class Broken:
        def get_file_info(self, _: str) -> None:
            raise RuntimeError("no token\nat line 1")

    monkeypatch.setattr(remote, "_from_uri", lambda _: (Broken(), "x"))
    with pytest.raises(SpecError, match=r"cannot reach this file system \(no token\)"):
        storage.place("abfss://c@a.dfs.core.windows.net/x")
