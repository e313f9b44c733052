"""A stream through the public door: files arrive, `anonlib stream --once` shows what may be shown, exactly once, whatever happens."""

from __future__ import annotations

import io
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import anonlib
from anonlib.cli import main
from anonlib.engine import streaming
from anonlib.engine.failures import explained
from anonlib.engine.microdata import microdata
from anonlib.engine.told_domains import told_domains
from anonlib.errors import SpecError
from anonlib.release.streamed import CLASS_BITS, WINDOW_BITS
from anonlib.spec.load import parse_spec
from anonlib.streams import batch, checkpoint
from tests.door import KEY
from tests.reported import Page
from tests.thorough import cases, nightly

pytestmark = pytest.mark.spark

N, WINDOW, ADVANCE, K, T = 1000, 300, 100, 4, Fraction(3, 10)
ILLNESSES = ("asthma", "cold", "flu", "gout", "mumps")
WARDS = ("east", "north", "south")
SCHEMA = "at bigint, age int, ward string, illness string"
FIRST, LATE = 351, 3
"""Of the stream that the tests share: how many records arrive first, and when a record of the second go was due."""
STREAM_ID = "5a" * 16
"""The shared stream's own number, drawn in earnest, from which its choices follow: under some, the last record belongs to no class and
is held back for good."""
POLICY = {"quasi_identifiers": "keep", "sensitive": "drop"}


def arrivals(n: int = N, seed: int = 1) -> pa.Table:
    """n persons in the order of their arrival; which illnesses are common changes with time."""
    draw = np.random.default_rng(seed)
    common = np.repeat(draw.integers(0, 5, n // 50 + 1), 50)[:n]
    illness = np.where(draw.random(n) < 0.4, common, draw.integers(0, 5, n))
    return pa.table(
        {
            "at": pa.array(range(n), pa.int64()),
            "age": pa.array(np.clip(20 + 10 * illness + draw.integers(0, 30, n), 0, 99), pa.int32()),
            "ward": [WARDS[i] for i in draw.integers(0, 3, n)],
            "illness": [ILLNESSES[i] for i in illness],
        }
    )


def bad(**values: Any) -> pa.Table:
    """A record that arrives last, with other values."""
    table = arrivals(1)
    for name, value in ({"at": N} | values).items():
        kind = table.schema.field(name).type
        table = table.set_column(table.column_names.index(name), name, pa.array([value], kind))
    return table


ODD = ({"ward": "west"}, {"illness": None}, {"at": LATE})
"""Records that arrive with the second go: one outside the domains, one with a missing value, one late."""


def arrived() -> list[dict[str, Any]]:
    """The records of the shared stream that are to be published, as they arrived."""
    table = arrivals().to_pylist()
    return [*table[:FIRST], *bad(**ODD[2]).to_pylist(), *table[FIRST:]]


class Home:
    """A folder with a stream's input, spec, checkpoint and output."""

    def __init__(self, path: Path, capsys: Any = None) -> None:
        self.path, self._capsys, self._files = path, capsys, 0
        self.input, self.output, self.private = path / "in", path / "out", path / "private"
        self.input.mkdir(parents=True)

    def arrive(self, table: pa.Table, name: str | None = None) -> None:
        """A file of the table, newer than those before."""
        self._files += 1
        path = self.input / (name or f"part-{self._files:03d}.parquet")
        pq.write_table(table, path)

    def spec(self, **changes: Any) -> dict[str, Any]:
        base: dict[str, Any] = {
            "input": {"path": str(self.input)},
            "output": {"path": str(self.output)},
            "columns": {
                "quasi_identifiers": [{"name": "age", "type": "numeric"}, "ward"],
                "sensitive": "illness",
                "identifiers": ["at"],
            },
            "method": {"sabre": {"t": str(T), "k": K}},
            "random": {"key": "env:RELEASE_KEY"},
            "stream": {
                "window": WINDOW,
                "advance": ADVANCE,
                "order": "at",
                "checkpoint": str(self.private),
                "domains": {"age": {"low": 0, "high": 99}, "ward": list(WARDS), "illness": list(ILLNESSES)},
            },
        }
        for key, value in changes.items():
            if key in base["stream"] or key in ("shard", "outside", "files", "trigger"):
                base["stream"][key] = value
            else:
                base[key] = value
        return base

    def run(self, *options: str, **changes: Any) -> int:
        """`anonlib stream --once`: the exit code."""
        return main(["stream", self.conf(**changes), "--once", *options])

    def conf(self, **changes: Any) -> str:
        """The spec in a file."""
        path = self.path / "spec.yaml"
        path.write_text(yaml.safe_dump(self.spec(**changes)), encoding="utf-8")
        return str(path)

    def said(self) -> str:
        said = self._capsys.readouterr()
        return said.out + said.err

    def manifests(self) -> list[dict[str, Any]]:
        paths = sorted((self.output / "batches").glob("*.json")) if self.output.exists() else []
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]

    def rows(self) -> list[dict[str, Any]]:
        """All shown rows, as files that manifests name hold them."""
        names = [file["name"] for manifest in self.manifests() for file in manifest["files"].get("microdata", [])]
        return [row for name in names for row in pq.read_table(self.output / "microdata" / name).to_pylist()]

    def lies_there(self) -> set[str]:
        """Data files and manifests at the output."""
        return (
            {p.name for p in self.output.glob("*/*") if not p.name.startswith(".")} if self.output.exists() else set()
        )


@pytest.fixture
def home(tmp_path, capsys, monkeypatch, spark) -> Home:
    monkeypatch.setenv("RELEASE_KEY", KEY)
    return Home(tmp_path / "stream", capsys)


@dataclass(frozen=True)
class Attempt:
    """What a run came to. code : its exit code; said : its words on one line; lies_there : data files and manifests after it."""

    code: int
    said: str
    lies_there: set[str]


class Streamed(Home):
    """The stream that most tests share. attempts : its runs by name, see `streamed`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.attempts: dict[str, Attempt] = {}

    def attempt(self, name: str, *options: str, **changes: Any) -> None:
        said = io.StringIO()
        with redirect_stdout(said), redirect_stderr(said):
            code = self.run(*options, **{"missing": POLICY, **changes})
        self.attempts[name] = Attempt(code, " ".join(said.getvalue().split()), self.lies_there())

    def undo(self, number: int) -> None:
        """As a kill leaves it that strikes before Spark writes down that a batch is done."""
        commits = self.private / "spark" / "commits"
        assert (commits / str(number)).exists()
        for path in (commits / str(number), commits / f".{number}.crc"):
            path.unlink(missing_ok=True)


@contextmanager
def forged_windows() -> Iterator[None]:
    """The audit is told of windows that classes are far from."""
    right = batch.Batches._notes

    def forged(self: Any, played: Any) -> Any:
        notes = right(self, played)
        notes.windows.update({window: [WINDOW, 0, 0, 0, 0] for window in notes.windows})
        return notes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch.Batches, "_notes", forged)
        yield


@pytest.fixture(scope="module")
def streamed(tmp_path_factory, spark) -> Streamed:
    """A stream to whose end everything happens, in this order:

    forged     the first records arrive; classes are told from windows that they are far from
               the same again, as a streaming DataFrame: they are shown
    window, domains, schema       other settings, a value of another type, a file of another schema
    odd        the other records arrive, and odd ones; and it was killed before Spark wrote down that the first batch was done
    rest       the same again, where what is outside the domains is left out; the stream ends
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELEASE_KEY", KEY)
        patch.setattr(checkpoint, "secrets", SimpleNamespace(token_hex=lambda _: STREAM_ID))
        home, table = Streamed(tmp_path_factory.mktemp("streamed")), arrivals()
        home.arrive(table.slice(0, FIRST))
        with forged_windows():
            home.attempt("forged")
        arriving = spark.readStream.schema(SCHEMA).parquet(str(home.input))
        release = anonlib.stream(parse_spec(home.spec(missing=POLICY)), arriving)
        assert release.manifest.rows.published == len(home.rows()) > 0
        home.attempt("window", window=400)
        domains = {"age": {"low": 0, "high": "x"}, "ward": list(WARDS), "illness": list(ILLNESSES)}
        home.attempt("domains", domains=domains)
        home.arrive(arrivals(10).rename_columns(["at", "age", "ward", "disease"]), "other.parquet")
        home.attempt("schema")
        (home.input / "other.parquet").unlink()
        home.arrive(table.slice(FIRST))
        for number, values in enumerate(ODD):
            home.arrive(bad(**values), f"odd-{number}.parquet")
        home.undo(0)
        home.attempt("odd")
        home.attempt("rest", "--flush", outside="drop")
    return home


def by_class(rows: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    classes: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        classes.setdefault(row["ec_id"], []).append(row)
    return classes


def far(one: Counter[str], other: Counter[str]) -> Fraction:
    """Total variation, which is the earth mover's distance between values that are all equally far apart."""
    a, b = sum(one.values()), sum(other.values())
    return sum((max(Fraction(one[v], a) - Fraction(other[v], b), 0) for v in ILLNESSES), Fraction(0))


def test_every_record_comes_out_once_in_classes_close_to_their_window(streamed):
    rows, table = streamed.rows(), arrived()
    assert len(rows) == len(table) == N + 1
    come_out_once_in_classes_close_to_their_window(rows, table)


@pytest.mark.every_spark
def test_a_stream_on_an_older_spark(home, spark, monkeypatch):
    """In two goes to its end, audited against its windows."""
    if spark.version >= "4":
        pytest.skip("the stream that the other tests share shows more")
    monkeypatch.setattr(checkpoint, "secrets", SimpleNamespace(token_hex=lambda _: STREAM_ID))
    table = arrivals(450)
    home.arrive(table.slice(0, FIRST))
    assert home.run() == 0
    shown = len(home.rows())
    assert 0 < shown < FIRST
    home.arrive(table.slice(FIRST))
    assert home.run("--flush") == 0
    rows = home.rows()
    assert len(rows) == len(table)
    come_out_once_in_classes_close_to_their_window(rows, table.to_pylist())
    assert main(["audit", str(home.output), "--evidence", str(home.private)]) == 0


def come_out_once_in_classes_close_to_their_window(rows, table):
    assert Counter(row["illness"] for row in rows) == Counter(row["illness"] for row in table)
    last = max(row["ec_id"] >> CLASS_BITS for row in rows)
    for ec_id, members in by_class(rows).items():
        window = ec_id >> CLASS_BITS
        # the end of the stream has a window too, of the newest records
        held = table[-WINDOW:] if window == last else table[window * ADVANCE : window * ADVANCE + WINDOW]
        assert len(members) >= K
        assert far(Counter(r["illness"] for r in members), Counter(r["illness"] for r in held)) <= T
        (box,) = {(r["age_min"], r["age_max"], tuple(r["ward"])) for r in members}
        inside = [r for r in held if box[0] <= r["age"] <= box[1] and r["ward"] in box[2]]
        assert not Counter(r["illness"] for r in members) - Counter(r["illness"] for r in inside)


def test_batches_add_up_and_nothing_else_lies_there(streamed):
    manifests = streamed.manifests()
    counts = [manifest["stream"] for manifest in manifests]
    sums = {name: sum(of[name] for of in counts) for name in ("arrived", "missing", "outside", "late", "shown")}
    assert sums == {"arrived": N + 3, "missing": 1, "outside": 1, "late": 1, "shown": N + 1}
    assert [of["batch"] for of in counts] == [0, 1, 2]
    assert counts[-1]["waiting"] == 0
    named = {file["name"] for manifest in manifests for file in manifest["files"].get("microdata", [])}
    assert streamed.lies_there() == named | {f"{of['batch']:06d}.json" for of in counts}
    assert not list(streamed.output.parent.glob(".out.staging-stream/*"))
    assert not list((streamed.private / "work").glob("*"))
    assert all(manifest["audit"]["passed"] for manifest in manifests if manifest["rows"]["published"])
    assert not any(f'"{name}"' in json.dumps(manifests) for name in ("spread", "windows", "key"))


def test_the_private_folder_is_its_owners(streamed):
    assert streamed.private.stat().st_mode & 0o077 == 0
    assert json.loads((streamed.private / "stream.json").read_text())["output"] == str(streamed.output)


@pytest.mark.parametrize("with_more", cases(True, nightly=[False]))
def test_the_whole_stream_is_audited(streamed, capsys, with_more):
    capsys.readouterr()
    more = ["--evidence", str(streamed.private), "--original", str(streamed.input)] if with_more else []
    assert main(["audit", str(streamed.output), *more, "--json"]) == 0
    checks = {check["name"] for check in json.loads(capsys.readouterr().out)["checks"]}
    assert {"stream adds up", "one box per class", "k-anonymity", "files"} <= checks
    assert ("t-closeness" in checks) == with_more
    assert ("original: records in each class's box" in checks) == with_more


def test_the_whole_stream_is_queried(streamed, capsys):
    capsys.readouterr()
    out = str(streamed.output)
    assert main(["query", out, "illness = 'flu'", "--json"]) == 0
    flu = sum(row["illness"] == "flu" for row in arrived())
    assert json.loads(capsys.readouterr().out)["estimate"] == pytest.approx(flu)


def test_the_whole_stream_is_reported(streamed, tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "report.html"
    assert main(["report", str(streamed.output), "-o", str(out)]) == 0
    page, manifests = Page(out.read_text(encoding="utf-8")), streamed.manifests()
    assert page.words == [manifests[0]["guarantee"]["words"]]
    shown = sum(manifest["rows"]["published"] for manifest in manifests)
    assert f"published {shown:,}" in page.text
    assert f"{shown:,} records are in" in page.text
    for manifest in manifests:
        stream = manifest["stream"]
        assert f"{stream['batch']} {stream['shown']:,} {stream['waiting']:,} passed" in page.text


def test_explain_tells_what_windows_lose_and_writes_nothing(streamed, spark, capsys):
    capsys.readouterr()
    before = streamed.lies_there(), sorted(map(str, streamed.private.rglob("*")))
    assert main(["explain", streamed.conf(missing=POLICY, outside="drop"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["records"] == {"to_publish": N + 1, "missing": 1, "outside": 1}
    assert (told["window"], told["advance"], told["longest_delay"]) == (WINDOW, ADVANCE, WINDOW - 1)
    assert told["batches"] == len(streamed.manifests())
    (own,) = (trial for trial in told["trials"] if (trial["size"], trial["advance"]) == (WINDOW, ADVANCE))
    # what is told are the cases that the stream met: they follow from values and, but for how many stood by, not from the key
    assert (own["records"], sum(own["cases"].values())) == (N + 1, (N - WINDOW) // ADVANCE + 1)
    assert 0 < own["mean_delay"] < own["longest_delay"] < WINDOW
    assert 0 < own["loss"] < 1
    assert own["shown"] >= K * own["classes"] > 0
    sample = spark.read.schema(SCHEMA).parquet(str(streamed.input)).where("at < 400 AND age < 90")
    few = anonlib.explain(parse_spec(streamed.spec(shard="ward", outside="drop")), spark, sample)
    counts = Counter(row["ward"] for row in arrived() if row["at"] < 400 and row["age"] < 90)
    (largest, most), *_ = counts.most_common()
    assert few.facts["shards"] == {ward: counts[ward] for ward in WARDS}
    assert few.choice == ()
    assert f"cannot be told from {most} records of ward '{largest}': a window and an advance are 400" in few.summary
    assert few.grids[0].rows[0] == (largest, str(most), "0")
    with pytest.raises(SpecError, match="the DataFrame is a stream"):
        anonlib.explain(
            parse_spec(streamed.spec()), spark, spark.readStream.schema(SCHEMA).parquet(str(streamed.input))
        )
    assert (streamed.lies_there(), sorted(map(str, streamed.private.rglob("*")))) == before


@nightly
def test_the_whole_stream_is_evaluated(streamed, capsys):
    capsys.readouterr()
    out = str(streamed.output)
    assert main(["evaluate", out, "--original", str(streamed.input), "--queries", "50", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["measures"]["ail"] < 1


@nightly
def test_a_file_of_no_batch_is_found(streamed, tmp_path, capsys):
    copy = tmp_path / "copy"
    shutil.copytree(streamed.output, copy)
    (copy / "microdata" / "part-000099-00000.snappy.parquet").write_bytes(b"no table")
    assert main(["audit", str(copy), "--evidence", str(streamed.private)]) == 4
    assert "is in none of" in (said := capsys.readouterr().err) or "files" in said


def test_classes_far_from_their_windows_are_found(streamed, tmp_path, capsys):
    kept = tmp_path / "private"
    shutil.copytree(streamed.private / "evidence", kept / "evidence")
    path = sorted((kept / "evidence").glob("*.json"))[0]
    forged = json.loads(path.read_text())
    assert forged["windows"]
    forged["windows"] = {window: [WINDOW, 0, 0, 0, 0] for window in forged["windows"]}
    path.write_text(json.dumps(forged))
    assert main(["audit", str(streamed.output), "--evidence", str(kept)]) == 4
    assert "t-closeness" in capsys.readouterr().err


def test_a_batch_that_is_played_again_shows_the_same(streamed, capsys, monkeypatch):
    """As a kill leaves it: before the manifest, and between the manifest and the word that Spark has done."""
    monkeypatch.setenv("RELEASE_KEY", KEY)
    before, rows = streamed.lies_there(), sorted(map(repr, streamed.rows()))
    streamed.undo(2)
    assert streamed.run(missing=POLICY) == 0  # its manifest is there: nothing is shown again
    assert "batch 2 was shown before" in capsys.readouterr().err
    assert streamed.lies_there() == before
    streamed.undo(2)
    (streamed.output / "batches" / "000002.json").unlink()
    assert streamed.run(missing=POLICY) == 0
    assert streamed.lies_there() == before
    assert sorted(map(repr, streamed.rows())) == rows


BAD = [
    ({"ward": "west"}, "column 'ward': a record has a value outside the domain"),
    ({"age": 120}, "column 'age': a record has a value outside the domain"),
    ({"illness": "plague"}, "column 'illness': a record has a value outside the domain"),
    ({"illness": None}, "column 'illness': a record has no value (null or NaN) and missing.sensitive is error"),
    ({"age": None}, "column 'age': a record has a value outside the domain"),
    ({"at": None}, "column 'at': a record has no value, so that nobody knows when it arrived"),
]


class Coder:
    """Records as `coded` makes them codes, under one spec."""

    def __init__(self, home: Home, spark: Any, **changes: Any) -> None:
        self.spark, self.path, self.spec = spark, home.path / "table.parquet", parse_spec(home.spec(**changes))
        assert self.spec.stream is not None
        kinds = {"at": "bigint", "age": "int", "ward": "string", "illness": "string"}
        domains, values = told_domains(spark, self.spec.columns, self.spec.stream.domains, kinds)
        self.coding = streaming.Coding(domains, values, "at", self.spec.stream.shard, self.spec.stream.outside)

    def rows(self, table: pa.Table) -> list[dict[str, Any]]:
        """What becomes of a table as if it arrived."""
        pq.write_table(table, self.path)
        frame = self.spark.read.schema(SCHEMA).parquet(str(self.path)).coalesce(1)
        checked = microdata(frame, self.spec.columns, self.spec.missing)
        with explained("coding"):
            return [row.asDict() for row in streaming.coded(frame, checked, self.coding).collect()]


def test_what_becomes_of_a_record(home, spark):
    strict = Coder(home, spark)
    for values, sentence in BAD:
        with pytest.raises(SpecError) as refused:
            strict.rows(bad(**values))
        assert sentence in str(refused.value)
    dropping = {"outside": "drop", "missing": {"quasi_identifiers": "drop", "sensitive": "drop"}, "shard": "ward"}
    odd = pa.concat_tables([arrivals(2), *(bad(**values) for values, _ in BAD[:5])])
    rows = Coder(home, spark, **dropping).rows(odd)
    assert [row["fate"] for row in rows] == [0, 0, 2, 2, 2, 1, 1]
    first = arrivals(2).to_pylist()[0]
    wanted = {"due": 0, "s0": ILLNESSES.index(first["illness"]), "q0": first["age"], "q1": WARDS.index(first["ward"])}
    assert {name: rows[0][name] for name in wanted} == wanted
    assert rows[0]["shard"] == rows[0]["q1"]


def test_a_batch_that_fails_its_audit_is_not_shown(streamed):
    forged = streamed.attempts["forged"]
    assert (forged.code, forged.lies_there) == (4, set())
    assert "t-closeness" in forged.said
    assert "the stream stops before this batch" in forged.said
    assert "Traceback" not in forged.said


def test_what_is_refused_shows_nothing_and_the_stream_goes_on(streamed):
    first = {file["name"] for file in streamed.manifests()[0]["files"]["microdata"]} | {"000000.json"}
    sentences = {
        "window": "a stream with other settings: stream.window was 300 and is now 400",
        "domains": "stream.domains.age: 'x' is no value of type int",
        "schema": "other.parquet",
        "odd": BAD[0][1],
    }
    for name, sentence in sentences.items():
        refused = streamed.attempts[name]
        assert refused.code == 2
        assert sentence in refused.said, refused.said
        assert "Traceback" not in refused.said
        assert refused.lies_there == first
    rest = streamed.attempts["rest"]
    assert rest.code == 0
    assert "1 with a missing value, 1 outside the domains, 1 late" in rest.said
    of = streamed.manifests()[1]["stream"]
    assert (of["arrived"], of["missing"], of["outside"], of["late"]) == (N - FIRST + 3, 1, 1, 1)


@nightly
def test_files_of_another_schema_are_refused_whenever_they_arrive(home):
    """With a schema that the spec gives nobody looks into files before they are read: as a running stream meets those that arrive later."""
    source = {"path": str(home.input), "schema": SCHEMA}
    home.arrive(arrivals(350))
    assert home.run(input=source) == 0
    shown = home.lies_there()
    assert home.rows()
    later = arrivals(450).slice(350)
    for changed, sentence in (
        (later.rename_columns(["at", "age", "ward", "disease"]), "column 'illness': a record has no value"),
        (later.set_column(1, "age", later["age"].cast(pa.string())), "later.parquet"),
    ):
        home.arrive(changed, "later.parquet")
        home.said()
        assert home.run(input=source) == 2
        said = " ".join(home.said().split())
        assert sentence in said, said
        assert "Traceback" not in said
        assert home.lies_there() == shown
        (home.input / "later.parquet").unlink()
    wider = later.append_column("note", pa.array(["x"] * len(later)))
    home.arrive(wider, "later.parquet")
    assert home.run(input=source) == 0
    assert set(pq.read_schema(next(home.output.glob("microdata/*.parquet"))).names) == {
        "age_min", "age_max", "ward", "illness", "ec_id"
    }  # fmt: skip


@pytest.mark.slow
def test_shards_have_windows_of_their_own_and_csv_is_read(home):
    table = arrivals(900)
    names = ["age", "ward", "illness", "at"]
    lines = [",".join(str(row[name]) for name in names) for row in table.to_pylist()]
    (home.input / "part.csv").write_text("\n".join([",".join(names), *lines]))
    source = {
        "path": str(home.input),
        "format": "csv",
        "schema": "age INT, ward STRING, illness STRING, at BIGINT",
        "options": {"header": "true"},
    }
    assert home.run(input=source, shard="ward", window=200, advance=100) == 0
    rows = home.rows()
    of_ward = {ward: [r for r in table.to_pylist() if r["ward"] == ward] for ward in WARDS}
    assert rows
    for ec_id, members in by_class(rows).items():
        shard, window = ec_id >> (CLASS_BITS + WINDOW_BITS), (ec_id >> CLASS_BITS) & ((1 << WINDOW_BITS) - 1)
        assert {tuple(r["ward"]) for r in members} == {(WARDS[shard],)}
        held = of_ward[WARDS[shard]][window * 100 : window * 100 + 200]
        assert far(Counter(r["illness"] for r in members), Counter(r["illness"] for r in held)) <= T
    assert main(["audit", str(home.output), "--evidence", str(home.private)]) == 0


def test_a_stream_needs_its_own_command_and_a_stream(home, spark):
    assert home.run() == 2
    assert "input.path" in home.said()  # an empty folder has no schema
    conf = str(home.path / "spec.yaml")
    assert main(["run", conf]) == 2
    assert "stream: this spec is of a stream" in home.said()
    assert main(["stream", conf, "--flush"]) == 2
    assert "--flush: a stream that runs on has no end" in home.said()
    with pytest.raises(anonlib.SpecError, match="is no stream"):
        anonlib.stream(conf, spark.range(3))
