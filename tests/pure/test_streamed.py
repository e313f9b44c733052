"""Where a stream's batches lie, what its checkpoint refuses, and batches added up; no Spark."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from anonlib.errors import SpecError
from anonlib.release import streamed
from anonlib.release.manifest import FilePart, Manifest
from anonlib.streams.checkpoint import Checkpoint, claimed
from tests import paper

SETTINGS = {"stream.window": 20, "columns": {"sensitive": ["illness"]}}


def batch(
    number: int, counts: dict[str, int], t: str = "1/5", k: int = 4, id: str = "0" * 32, **stream: Any
) -> Manifest:
    """The manifest of a batch that shows two classes."""
    halves = [{v: c // 2 for v, c in counts.items()}, {v: c - c // 2 for v, c in counts.items()}]
    _, found = paper.generalized(halves, {"k": Fraction(2), "t": Fraction(1, 2)}, method="sabre")
    found["guarantee"]["achieved"] |= {"t": t, "k": str(k)}
    found["audit"] = {"mode": "gate", "passed": True, "checks": []}
    shown = sum(counts.values())
    found["stream"] = {
        "id": id, "batch": number, "window": 20, "advance": 10, "values": sorted(counts), "arrived": shown, "shown": shown, **stream,
    }  # fmt: skip
    of = paper.stating(found)
    name = streamed.shown_name(number, "part-00000-12ab.c000.snappy.parquet")
    return of.model_copy(update={"files": {"microdata": [FilePart(name=name, size=5)]}})


def empty(number: int, arrived: int) -> Manifest:
    full = batch(number, {"flu": 4}, values=["cold", "flu"])
    tables = {"microdata": full.tables["microdata"].model_copy(update={"rows": 0, "checksum": f"xxh64sum:{0:016x}"})}
    rows = full.rows.model_copy(update={"input": 0, "published": 0})
    stream = full.stream.model_copy(update={"arrived": arrived, "shown": 0}) if full.stream else None
    guarantee = full.guarantee.model_copy(update={"values": [], "achieved": {}})
    more = {"tables": tables, "rows": rows, "stream": stream, "guarantee": guarantee, "files": {}, "utility": {}}
    return full.model_copy(update=more)


def test_batches_add_up():
    one, other = (
        batch(1, {"cold": 6, "flu": 4}, "1/5", 5, arrived=30),
        batch(2, {"flu": 8}, "1/4", 4, values=["cold", "flu"], missing=1, late=2),
    )
    whole = streamed.union([empty(0, 7), one, other])
    assert (whole.rows.input, whole.rows.published) == (18, 18)
    assert {v.value: v.count for v in whole.guarantee.values} == {"cold": 6, "flu": 12}
    assert whole.guarantee.achieved == {"k": "4", "t": "0.25"}
    assert whole.stream is not None
    of = whole.stream
    assert (of.batch, of.batches, of.arrived, of.missing, of.late, of.shown) == (None, 3, 45, 1, 2, 18)
    assert of.waiting == 45 - 1 - 18
    assert [f.name for f in whole.files["microdata"]] == [
        "part-000001-00000.snappy.parquet",
        "part-000002-00000.snappy.parquet",
    ]
    assert whole.utility["classes"] == 4
    weighted = (one.utility["gcp"] * 10 + other.utility["gcp"] * 8) / 18
    assert whole.utility["gcp"] == pytest.approx(weighted)
    total = sum(int(m.tables["microdata"].checksum.removeprefix("xxh64sum:"), 16) for m in (one, other)) % (1 << 64)
    assert whole.tables["microdata"].checksum == f"xxh64sum:{total:016x}"
    assert whole.tables["microdata"].rows == sum(m.tables["microdata"].rows for m in (one, other))


def test_batches_that_promise_other_things_are_none():
    one = batch(0, {"flu": 4})
    for change in ({"window": 40}, {"advance": 20}, {"shard": "age"}, {"values": ["cold", "flu"]}):
        with pytest.raises(SpecError, match=r"batch 1 has another (window|list of sensitive values) than the first"):
            streamed.union([one, batch(1, {"flu": 4}, **change)])
    weaker = one.guarantee.model_copy(update={"asked": {"k": "2", "t": "1"}})
    assert one.guarantee.asked != weaker.asked
    with pytest.raises(SpecError, match="another promise"):
        streamed.union([one, batch(1, {"flu": 4}).model_copy(update={"guarantee": weaker})])


def test_batches_of_two_streams_are_none():
    with pytest.raises(SpecError, match="not those of one stream"):
        streamed.union([batch(0, {"flu": 4}), batch(1, {"flu": 4}, id="1" * 32)])
    with pytest.raises(SpecError, match="no batch"):
        streamed.union([])


def test_a_batch_is_shown_when_its_manifest_is_there(tmp_path):
    place = streamed.Place(str(tmp_path / "out"))
    streamed.take_place(place)
    assert os.stat(place.staging).st_mode & 0o077 == 0
    for _ in range(2):  # a batch that is played again writes the same names
        staged = Path(place.staging) / "000007" / "microdata"
        staged.mkdir(parents=True)
        for name in ("part-00000-ab.c000.snappy.parquet", "part-00001-ab.c000.snappy.parquet", "_SUCCESS", ".x.crc"):
            (staged / name).write_text(name)
        assert not streamed.is_shown(place.path, 7)
        manifest = batch(7, {"flu": 4})
        streamed.show(place, 7, manifest.to_json())
        assert streamed.is_shown(place.path, 7)
        held = {str(p.relative_to(place.path)) for p in Path(place.path).rglob("*") if p.is_file()}
        assert held == {
            "batches/000007.json",
            "microdata/part-000007-00000.snappy.parquet",
            "microdata/part-000007-00001.snappy.parquet",
        }
        assert streamed.batch_numbers(place.path) == [7]
        assert streamed.read_batches(place.path, [7]) == [manifest]
        streamed.drop(f"{place.staging}/000007")
        (tmp_path / "out" / "batches" / "000007.json").unlink()
    streamed.drop(f"{place.staging}/000007")  # nothing there is no fault
    (tmp_path / "out" / "batches" / "000003.json").write_text("{}")
    with pytest.raises(SpecError, match=r"batches/000003\.json cannot be read"):
        streamed.read_batches(place.path, [3])


def begun(tmp_path: Path, key: bytes | None = None) -> Checkpoint:
    return claimed(str(tmp_path / "private"), str(tmp_path / "out"), SETTINGS, key)


def shown(tmp_path: Path, number: int, id: str) -> None:
    place = streamed.Place(str(tmp_path / "out"))
    streamed.take_place(place)
    streamed.show(place, number, batch(number, {"flu": 4}, id=id).to_json())


def test_a_stream_goes_on_with_its_own_checkpoint_and_key(tmp_path):
    first = begun(tmp_path)
    assert not first.begun
    assert (tmp_path / "private").stat().st_mode & 0o077 == 0
    assert (tmp_path / "private" / "key").stat().st_mode & 0o077 == 0
    assert first.key.hex() not in repr(first)
    again = begun(tmp_path)
    assert again.begun
    assert (again.id, again.key) == (first.id, first.key)
    assert begun(tmp_path, bytes(range(32))).key == bytes(range(32))
    again.keep_evidence(3, {"windows": {"5": [1, 2]}})
    assert streamed.json_texts(again.below("evidence")) == {"000003.json": {"windows": {"5": [1, 2]}}}


def test_a_named_key_is_not_kept(tmp_path):
    begun(tmp_path, bytes(range(32)))
    assert not (tmp_path / "private" / "key").exists()
    assert bytes(range(32)).hex() not in (tmp_path / "private" / "stream.json").read_text()


def test_what_does_not_belong_together_is_refused(tmp_path):
    def refused(words: str, settings: Any = SETTINGS, output: str = "out", private: str = "private") -> None:
        with pytest.raises(SpecError, match=words):
            claimed(str(tmp_path / private), str(tmp_path / output), settings, None)

    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("x")
    refused("is not empty, and what lies there is no stream", output="full")
    refused("is not empty, and no stream's", private="full")
    id = begun(tmp_path).id
    refused("other settings: stream.window was 20 and is now 30", settings={**SETTINGS, "stream.window": 30})
    refused("other settings: more was an empty value and is now 1", settings={**SETTINGS, "more": 1})
    refused("is that of the stream at", output="elsewhere")
    offsets = tmp_path / "private" / "spark" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "0").write_text("v1")
    shown(tmp_path, 0, id)
    assert begun(tmp_path).id == id
    refused("holds the batches of a stream whose checkpoint is not at", private="fresh")
    commits = tmp_path / "private" / "spark" / "commits"
    commits.mkdir(parents=True)
    (commits / "0").write_text("v1")
    (commits / ".0.crc").write_text("x")
    assert begun(tmp_path).id == id
    (commits / "1").write_text("v1")
    refused("has lost batch 1")
    shown(tmp_path, 1, "f" * 32)
    refused("holds batches of another stream")
    settings = json.loads((tmp_path / "private" / "stream.json").read_text())
    (tmp_path / "private" / "stream.json").write_text(json.dumps(settings | {"version": 2}))
    refused("is of format 2")
    (tmp_path / "private" / "stream.json").write_text("{")
    refused("cannot be read")


def test_a_lost_key_is_refused(tmp_path):
    begun(tmp_path)
    (tmp_path / "private" / "key").unlink()
    with pytest.raises(SpecError, match="its key cannot be read"):
        begun(tmp_path)
