"""One release per method and session, which the suites read, copy, damage, and make again in other sessions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from anonlib import workflow
from anonlib.spec import load_spec
from tests.contract import tables
from tests.contract.cluster import cluster
from tests.contract.elsewhere import ONE_FILE_EACH
from tests.contract.gathered import Gathered, gathered
from tests.contract.methods import asked, elsewhere, in_depth, publishes_other
from tests.door import Outcome, cut, key_file, multiset, of_its_own, write_files

__all__ = ["cluster"]

ROOT = Path(__file__).resolve().parents[2]


def pytest_itemcollected(item: pytest.Item) -> None:
    """The releases of all methods are made by one of several runs; see `tests.together`."""
    if "releases" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.one_run("releases"))


@contextmanager
def settings(spark: Any, changed: Mapping[str, str]) -> Iterator[None]:
    """A session's settings for the duration."""
    before = {name: spark.conf.get(name, None) for name in changed}
    try:
        for name, value in changed.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, was in before.items():
            spark.conf.unset(name) if was is None else spark.conf.set(name, was)


class Releases:
    """A table of all kinds of values in five files, one of them empty, and a release of it by each method, made on first use.

    table, names : see `tests.contract.tables.of_all_kinds`; source : the files
    of(method)   : what was published, to be read or copied
    seen(method) : what its audit beside the original saw
    """

    def __init__(self, spark: Any, home: Path) -> None:
        self.spark, self.home = spark, home
        self.table, self.names = tables.of_all_kinds()
        first, second, *more = cut(self.table, 4)
        self.source = write_files(home / "input", [first, self.table.slice(0, 0), second, *more])
        self.key = key_file(home)
        self.of = cache(self._of)
        self.seen = cache(self._seen)

    def quasi_identifiers(self, method: str) -> list[dict[str, str]]:
        """Those that a method is given, as a spec names them."""
        kinds = (*tables.NUMERIC, *tables.CATEGORICAL) if in_depth(method) else ("age", "timestamp", "words")
        return [{"name": self.names[k], "type": "numeric" if k in tables.NUMERIC else "categorical"} for k in kinds]

    def spec(self, method: str, output: Path) -> dict[str, Any]:
        """A release spec for the table; columns that are no quasi-identifiers are published where the method has a place for them."""
        quasi = self.quasi_identifiers(method)
        rest = [c for c in self.table.column_names if c != "illness" and c not in {q["name"] for q in quasi}]
        beside = "other" if publishes_other(method) else "identifiers"
        return {
            "input": {"path": str(self.source)},
            "output": {"path": str(output)},
            "columns": {"quasi_identifiers": quasi, "sensitive": "illness", beside: rest},
            "method": asked(method),
            "random": {"key": f"file:{self.key}"},
        }

    def written(self, method: str, folder: Path, name: str) -> Path:
        """The spec in a file, for a release `name` in `folder`."""
        path = folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(self.spec(method, folder / name), allow_unicode=True), encoding="utf-8")
        return path

    def _of(self, method: str) -> Outcome:
        with settings(self.spark, ONE_FILE_EACH):
            workflow.run(load_spec(self.written(method, self.home, method)), self.spark)
        return Outcome(0, "", "", self.home / method).published()

    def _seen(self, method: str) -> Gathered:
        return gathered(self.spark, self.of(method).output, self.original())

    def elsewhere(self, kind: str) -> dict[str, dict[str, Any]]:
        """{method: what is told of its release, made again in a session of another kind, and its `release`}; see `elsewhere.py`."""
        folder = self.home / kind
        folder.mkdir()
        confs = [str(self.written(method, folder, method)) for method in elsewhere(kind)]
        done = subprocess.run(
            [sys.executable, "-m", "tests.contract.elsewhere", kind, *confs], env=of_its_own(), cwd=ROOT,
            capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        told = json.loads(done.stdout.strip().splitlines()[-1])
        return {method: told[method] | {"release": Outcome(0, "", "", folder / method)} for method in elsewhere(kind)}

    def same(self, method: str, other: Outcome) -> None:
        """Asserts that another release of the method holds the same rows, as written and by the audit's checksums."""
        first, other = self.of(method), other.published()
        assert other.manifest.tables == first.manifest.tables
        assert other.manifest.splits.partitions == first.manifest.splits.partitions
        for name, part in first.manifest.tables.items():
            columns = [column.name for column in part.columns]
            assert multiset(other.table(name), *columns) == multiset(first.table(name), *columns)

    def original(self) -> Any:
        """The table as a DataFrame."""
        return self.spark.read.parquet(str(self.source))


@pytest.fixture(scope="session")
def releases(spark, tmp_path_factory):
    """See `Releases`."""
    return Releases(spark, tmp_path_factory.mktemp("releases"))
