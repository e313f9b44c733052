"""The public door, as a data steward uses it: a table in files, a YAML spec, `anonlib run`, an exit code and a sentence."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from anonlib.cli import main
from anonlib.release.manifest import Manifest

KEY = "dd7eba842bcdb39ba7f51ffb8518900642d7903dd740ec557ed00549a0841a7b"
OTHER_KEY = "9811d7763645e585c34b5f6f27a33181210af0a49e043a325ec21c1d67abcfaa"
VALUES = ("asthma", "cold", "flu", "gout", "HIV", "mumps")
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m \
-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Queries over a handful of rows end before the second compiler and a parallel collector pay for themselves. Without the second compiler
Java keeps 48 MB for compiled code alone, throws out what a run of many plans needs again, and spends 7 % of its time on sweeping.
Twenty thousand classes of Spark's are loaded unverified: a tenth of what a session costs to start.
"""


def of_its_own(**more: str) -> dict[str, str]:
    """The environment of a Python process with a session of its own: this checkout, the release key, a quick Java."""
    own = {
        "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
        "RELEASE_KEY": KEY,
        "PYSPARK_PYTHON": sys.executable,
        "JAVA_TOOL_OPTIONS": QUICK_JAVA,
    }
    return {**os.environ, **own, **more}


def people(n: int = 60, values: Sequence[Any] = VALUES) -> pa.Table:
    """n persons: age, country, note (7 times their number), illness in turn out of `values`."""
    return pa.table(
        {
            "age": pa.array([20 + (7 * i) % 50 for i in range(n)], pa.int32()),
            "country": [("Peru", "Österreich", "中国")[i % 3] for i in range(n)],
            "note": pa.array(range(0, 7 * n, 7), pa.int64()),
            "illness": [values[i % len(values)] for i in range(n)],
        }
    )


def with_column(table: pa.Table, name: str, values: Any, kind: pa.DataType | None = None) -> pa.Table:
    """`table` with the column `name` replaced (in its place) or added."""
    column = pa.array(values, kind)
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)


def key_file(folder: Path, key: str = KEY) -> Path:
    """A file with the release key, for its owner alone."""
    path = folder / "key"
    path.touch(mode=0o600)
    path.write_text(key, encoding="ascii")
    return path


def write_files(folder: Path, parts: Iterable[pa.Table]) -> Path:
    """A Parquet folder with one file per part, in order."""
    folder.mkdir(parents=True)
    for number, part in enumerate(parts):
        pq.write_table(part, folder / f"part-{number:03d}.parquet")
    return folder


def cut(table: pa.Table, files: int) -> list[pa.Table]:
    """`table` in `files` nearly equal runs of rows."""
    edges = [len(table) * k // files for k in range(files + 1)]
    return [table.slice(a, b - a) for a, b in pairwise(edges)]


@dataclass(frozen=True)
class Outcome:
    """What a run left: exit code, standard output and error, and where the release should lie."""

    code: int
    out: str
    err: str
    output: Path

    @property
    def sentence(self) -> str:
        """What the user is told went wrong."""
        return self.err.split("anonlib: ", 1)[-1].strip() if "anonlib: " in self.err else ""

    @property
    def manifest(self) -> Manifest:
        return Manifest.from_json((self.output / "manifest.json").read_text(encoding="utf-8"))

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of a published table, read without Spark; instants in UTC."""
        return self.arrow(name).to_pylist()

    def arrow(self, name: str) -> pa.Table:
        """The same as an Arrow table: what is written of it reads as the types it was published with."""
        table = pq.read_table(self.output / name, coerce_int96_timestamp_unit="us")
        for column in self.manifest.tables[name].columns:
            if column.type == "timestamp":  # Spark's INT96 does not tell an instant from a local time
                at = table.column_names.index(column.name)
                instants = table.column(at).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
                table = table.set_column(at, column.name, instants)
        return table

    def published(self) -> Outcome:
        """Asserts that there is a whole release and nothing beside it."""
        assert self.code == 0, self.err
        names = {p.name for p in self.output.iterdir() if not p.name.startswith(".")}
        assert names == {*self.manifest.tables, "manifest.json"}
        assert not staging(self.output)
        return self

    def refused(self, code: int, *words: str) -> Outcome:
        """Asserts the exit code, a sentence that has all `words`, and that nothing is visible."""
        assert self.code == code, (self.code, self.err)
        for word in words:
            assert word in self.sentence, f"{word!r} is not in: {self.sentence}"
        assert "Traceback" not in self.err
        assert "unexpected" not in self.sentence
        assert not self.output.exists()
        assert not staging(self.output)
        return self


def staging(output: Path) -> list[Path]:
    """Staging folders beside the output path."""
    return [p for p in output.parent.iterdir() if p.name.startswith(f".{output.name}.staging-")]


class Door:
    """Writes tables and specs below `home` and calls the command line."""

    def __init__(self, spark: Any, home: Path, capsys: Any, monkeypatch: Any) -> None:
        self.spark, self.home, self._capsys, self._runs = spark, home, capsys, 0
        monkeypatch.setenv("RELEASE_KEY", KEY)
        monkeypatch.setenv("OTHER_KEY", OTHER_KEY)

    def input(self, table: pa.Table | Iterable[pa.Table], name: str = "input", files: int = 2) -> Path:
        """The table as a Parquet folder of `files` files (or of the given parts)."""
        parts = cut(table, files) if isinstance(table, pa.Table) else list(table)
        return write_files(self.home / name, parts)

    def spec(self, source: Any, output: str = "release", **changes: Any) -> dict[str, Any]:
        """A spec as a mapping: 3-diverse buckets for `people`; `changes` replace its top-level keys."""
        columns = {
            "quasi_identifiers": [{"name": "age", "type": "numeric"}, "country"],
            "sensitive": "illness",
            "other": ["note"],
        }
        base = {
            "input": source if isinstance(source, Mapping) else {"path": str(source)},
            "output": {"path": str(self.home / output)},
            "columns": columns,
            "method": bucketize(l=3),
            "random": {"key": "env:RELEASE_KEY"},
        }
        return base | changes

    def run(self, table: Any, output: str = "release", *, command: str = "run", **changes: Any) -> Outcome:
        """`anonlib run` on a table (an Arrow table or parts, else a path or input mapping)."""
        if isinstance(table, (pa.Table, list)):
            table = self.input(table, f"input-{self._runs + 1}")
        return self.run_spec(self.spec(table, output, **changes), output, command=command)

    def run_spec(self, spec: Mapping[str, Any], output: str = "release", *, command: str = "run") -> Outcome:
        """`anonlib run` on a spec given as a mapping; it is written to spec-1.yaml, spec-2.yaml, ..."""
        self._runs += 1
        conf = self.home / f"spec-{self._runs}.yaml"
        conf.write_text(yaml.safe_dump(dict(spec), allow_unicode=True), encoding="utf-8")
        return self.call(command, str(conf), output=output)

    def call(self, *arguments: str, output: str = "release") -> Outcome:
        """The command line with these arguments."""
        self._capsys.readouterr()
        code = main(list(arguments))
        said = self._capsys.readouterr()
        return Outcome(code, said.out, said.err, self.home / output)

    def audit(self, output: Path, original: Path | None = None) -> tuple[int, list[dict[str, Any]]]:
        """`anonlib audit --json`: the exit code and the checks."""
        more = [] if original is None else ["--original", str(original)]
        found = self.call("audit", str(output), *more, "--json")
        return found.code, json.loads(found.out)["checks"] if found.out else []


def bucketize(solver: str = "two_size", max_bucket_size: int = 20, **privacy: Any) -> dict[str, Any]:
    """The method part of a spec; `fake_values`, `avoid_negative_associations` and `mix_companions` go beside the privacy part."""
    own = ("fake_values", "avoid_negative_associations", "mix_companions")
    beside = {k: privacy.pop(k) for k in own if k in privacy}
    return {"bucketize": {"privacy": privacy, "solver": solver, "max_bucket_size": max_bucket_size, **beside}}


def counted(rows: Iterable[Mapping[str, Any]], column: str) -> Counter[Any]:
    """How often each value stands in a column, or as often as `count` says in `st`."""
    found: Counter[Any] = Counter()
    for row in rows:
        found[row[column]] += row.get("count", 1)
    return found


def multiset(rows: Iterable[Mapping[str, Any]], *names: str) -> Counter[str]:
    """The rows' columns `names` as a multiset; nulls and nested values count too."""
    return Counter(repr([row[name] for name in names]) for row in rows)
