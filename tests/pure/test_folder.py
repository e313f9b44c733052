"""What lies in a folder and what may: made by hand, on a disk and behind PyArrow's interface of an object store; no session."""

from __future__ import annotations

import copy
import json
import uuid
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

from anonlib.audit.fields import nothing_else
from anonlib.audit.folder import column_list, look
from anonlib.audit.folder_judge import COLUMN_LIST, DATA_FILE, judge, named
from anonlib.release import storage
from anonlib.release.manifest import Manifest
from tests.footers import write_with_pairs

COLUMNS = {
    "qit": {"age": "int", "bucket_id": "bigint"},
    "st": {"bucket_id": "bigint", "illness": "string", "count": "bigint"},
}
ARROW = {"int": pa.int32(), "bigint": pa.int64(), "string": pa.string()}
JSON = {"int": "integer", "bigint": "long", "string": "string"}
FACTS: dict[str, Any] = {
    "anonlib_version": "0.1.0",
    "spark_version": "4.0.1",
    "layout": "bucketized",
    "method": {"name": "bucketize", "parameters": {"privacy": {"l": 2}, "solver": "two_size", "max_bucket_size": 50}},
    "guarantee": {
        "model": "F'-privacy",
        "words": "",
        "sensitive": "illness",
        "sensitive_type": "string",
        "values": [{"value": v, "count": n} for v, n in (("flu", 3), ("HIV", 2), ("gout", 1))],
    },
    "missing": {"quasi_identifiers": "keep", "sensitive": "error"},
    "rows": {"input": 6, "published": 6},
    "solver": {"name": "two_size", "status": "optimal", "setting": [{"size": 2, "number": 3}], "seconds": 0.1},
    "utility": {"msbs": 1.0},
    "audit": {"mode": "gate", "passed": True, "checks": []},
    "tables": {
        name: {
            "path": name,
            "format": "parquet",
            "rows": 6,
            "checksum": "x",
            "columns": [{"name": c, "type": t, "role": "quasi_identifier" if c == "age" else c} for c, t in columns.items()],
        }
        for name, columns in COLUMNS.items()
    },
    "splits": {"partitions": 2, "settings": {"spark.sql.files.maxPartitionBytes": "134217728b"}, "key_tag": "0f" * 16},
}  # fmt: skip


def spark_list(columns: dict[str, str]) -> str:
    listed = [{"name": c, "type": JSON[t], "nullable": True, "metadata": {}} for c, t in columns.items()]
    return json.dumps({"type": "struct", "fields": listed})


def part(number: int) -> str:
    return f"part-{number:05d}-{uuid.UUID(int=number + 7)}-c000.snappy.parquet"


def data_file(path: Path, columns: dict[str, str], rows: int = 3) -> None:
    pairs = {"org.apache.spark.version": "4.0.1", COLUMN_LIST: spark_list(columns)}
    schema = pa.schema([(c, ARROW[t]) for c, t in columns.items()])
    values = {"int": list(range(rows)), "bigint": list(range(rows)), "string": ["flu"] * rows}
    write_with_pairs(path, pa.table([values[t] for t in columns.values()], schema=schema), pairs)


def sums(file: Path, block: int = 512) -> None:
    """The checksum file that Hadoop leaves beside a file on a local disk."""
    data = file.read_bytes()
    held = b"crc\0" + block.to_bytes(4, "big")
    held += b"".join(zlib.crc32(data[i : i + block]).to_bytes(4, "big") for i in range(0, len(data), block))
    (file.parent / f".{file.name}.crc").write_bytes(held)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A release of two tables in two files each, as Spark leaves them on a local disk."""
    path = tmp_path / "bucket" / "release"
    for name, columns in COLUMNS.items():
        (path / name).mkdir(parents=True)
        for number in range(2):
            data_file(path / name / part(number), columns)
            sums(path / name / part(number))
        (path / name / "_SUCCESS").touch()
        (path / name / "._SUCCESS.crc").write_bytes(b"crc\0" + (512).to_bytes(4, "big"))
    manifest = Manifest.model_validate(FACTS)
    found = named(look(str(path), manifest), manifest)
    (path / "manifest.json").write_text(manifest.model_copy(update={"files": found}).to_json(), encoding="utf-8")
    return path


def failed(path: Path | str) -> dict[str, str]:
    manifest = Manifest.from_json(storage.read_manifest(str(path)))
    return {c.name: str(c.evidence) for c in judge(look(str(path), manifest), manifest) if not c.passed}


def test_a_release_as_it_is_published(release: Path) -> None:
    assert failed(release) == {}
    (release / "qit_$folder$").touch()
    (release / "qit" / "_started_123").touch()
    (release / "qit" / "_committed_123").write_text(json.dumps({"added": [part(0), part(1)], "removed": []}))
    assert failed(release) == {}


def test_the_same_on_an_object_store(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = fs.SubTreeFileSystem(str(release.parents[1]), fs.LocalFileSystem())
    monkeypatch.setattr(storage, "_remote", lambda path: (system, path.removeprefix("mock://")))
    assert failed("mock://bucket/release") == {}
    (release / "st" / "_original.parquet").write_text("x")
    (release / "notes").mkdir()
    found = failed("mock://bucket/release")
    assert set(found) == {"files", "footers", "data files as listed"}
    assert "st/_original.parquet" in found["files"]
    assert "notes" in found["files"]


def test_a_staging_area_is_looked_at_table_by_table(release: Path) -> None:
    """Working copies beside the tables are removed before publication, and `storage.publish` refuses what is left."""
    manifest = Manifest.model_validate(FACTS)
    (release / "input").mkdir()
    (release / "manifest.json").unlink()
    assert all(check.passed for check in judge(look(str(release), manifest, staged=True), manifest, staged=True))
    (release / "st" / "_notes").write_text("0: HIV")
    assert not all(check.passed for check in judge(look(str(release), manifest, staged=True), manifest, staged=True))


def test_a_committers_words_are_dropped_and_its_empty_mark_is_kept(release: Path) -> None:
    (release / "qit" / "_SUCCESS").write_text('{"hostname": "ward-7"}')
    storage.drop_committers_notes(storage.Place(str(release), str(release)), COLUMNS)
    assert not list((release / "qit").glob("*_SUCCESS*"))
    assert (release / "st" / "_SUCCESS").exists()
    assert failed(release) == {}


@pytest.mark.parametrize(
    "change",
    [lambda d: d + b"HIV", lambda d: d[:-4], lambda d: d[:-1] + bytes([d[-1] ^ 1]), lambda d: b"HIV", lambda d: b""],
)
def test_checksum_files_hold_checksums(release: Path, change: Any) -> None:
    file = release / "st" / f".{part(1)}.crc"
    file.write_bytes(change(file.read_bytes()))
    assert list(failed(release)) == ["files"]


@pytest.mark.parametrize(
    "name",
    [
        "part-00000-0b2f8f5e-3a1c-4a53-9d8e-2f1f6f6f0a11-c000.snappy.parquet",
        "part-00012-0b2f8f5e-3a1c-4a53-9d8e-2f1f6f6f0a11.c000.snappy.parquet",
        "part-00000-tid-8430193475-0b2f8f5e-3a1c-4a53-9d8e-2f1f6f6f0a11-47-1-c000.snappy.parquet",
        "part-00000-0b2f8f5e-3a1c-4a53-9d8e-2f1f6f6f0a11-c000.zstd.parquet",
        "part-00000-0b2f8f5e-3a1c-4a53-9d8e-2f1f6f6f0a11-c000.parquet",
        "part-00000-0b2f8f5e-3a1c-4a53-9d8e-2f1f6f6f0a11-c000.snappy-8d6e1d52-0b2f-4a53-9d8e-2f1f6f6f0a11.parquet",
        "part-00000-0b2f8f5e-3a1c-4a53-9d8e-2f1f6f6f0a11-c000.snappy.orc",
    ],
)
def test_names_of_sparks_and_its_committers(name: str) -> None:
    assert DATA_FILE.fullmatch(name)


@pytest.mark.parametrize(
    "name",
    [
        "part-00000-HIV.parquet",
        "part-HIV-c000.parquet",
        "_part-00000.parquet",
        "part-00000-c000.parquet.bak",
        "flu.parquet",
    ],
)
def test_names_with_words(name: str) -> None:
    assert not DATA_FILE.fullmatch(name)


NESTED = {
    "type": "struct",
    "fields": [
        {"name": "a.b", "type": "timestamp_ntz", "nullable": False, "metadata": {"comment": ""}},
        {"name": "d", "type": "decimal(12,2)", "nullable": True, "metadata": {}},
        {"name": "c", "type": "string", "nullable": True, "metadata": {"__COLLATIONS": {"c": "spark.UTF8_LCASE"}}},
        {
            "name": "m",
            "nullable": True,
            "metadata": {},
            "type": {
                "type": "map",
                "keyType": "string",
                "valueContainsNull": True,
                "valueType": {
                    "type": "array",
                    "containsNull": True,
                    "elementType": {
                        "type": "struct",
                        "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}],
                    },
                },
            },
        },
    ],
}  # fmt: skip


def test_sparks_list_of_columns_in_its_simple_names() -> None:
    assert column_list(json.dumps(NESTED)) == {
        "a.b": "timestamp_ntz",
        "d": "decimal(12,2)",
        "c": "string collate UTF8_LCASE",
        "m": "map<string,array<struct<x:bigint>>>",
    }


def test_the_default_collation_is_none() -> None:
    """Spark Connect writes it out for texts inside an array."""
    kind = {"type": "array", "elementType": "string collate UTF8_BINARY", "containsNull": True}
    columns = {"type": "struct", "fields": [{"name": "a", "type": kind, "nullable": True, "metadata": {}}]}
    assert column_list(json.dumps(columns)) == {"a": "array<string>"}


def inner(columns: Any) -> Any:
    return columns["fields"][3]["type"]["valueType"]["elementType"]


MORE = {
    "a comment": lambda c: c["fields"][1].update(metadata={"comment": "0: HIV"}),
    "metadata": lambda c: c["fields"][1].update(metadata={"x": ""}),
    "a comment on a nested field": lambda c: inner(c)["fields"][0].update(metadata={"comment": "0: HIV"}),
    "a field more of a column": lambda c: c["fields"][1].update(about="0: HIV"),
    "a field more of the list": lambda c: c.update(about="0: HIV"),
    "a field more of a type": lambda c: inner(c).update(about="0: HIV"),
    "a type that is none": lambda c: c["fields"][1].update(type="0: HIV"),
    "nullable that is none": lambda c: c["fields"][1].update(nullable="0: HIV"),
    "a collation that is none": lambda c: c["fields"][2].update(metadata={"__COLLATIONS": {"c": "0: HIV"}}),
    "a column twice": lambda c: c["fields"].append(c["fields"][0]),
    "no list": lambda c: c.clear(),
}  # fmt: skip


@pytest.mark.parametrize("kind", MORE)
def test_a_list_of_columns_that_says_more(kind: str) -> None:
    columns = copy.deepcopy(NESTED)
    MORE[kind](columns)
    assert column_list(json.dumps(columns)) is None


UNREADABLE = {"handling": "drop", "records": 2, "lengths": 1}
LINKAGES = {
    "details": lambda f: f["solver"].update(details={"0": "HIV"}),
    "details of another method": lambda f: f["solver"].update(details={"partitions": 7}),
    "nested details": lambda f: f["solver"].update(details={"matches": {"0": "HIV"}}),
    "a parameter that does not exist": lambda f: f["method"]["parameters"].update(linkage="0: HIV"),
    "a parameter that nobody asks for": lambda f: f["method"]["parameters"].update(solver="0: HIV"),
    "a parameter spelled in many ways": lambda f: f["method"]["parameters"].update(max_bucket_size="0050"),
    "a measure": lambda f: f["utility"].update({"0: HIV": 1.0}),
    "a number of the guarantee": lambda f: f["guarantee"].update(asked={"t": "0: HIV"}),
    "a number that buckets have none of": lambda f: f["guarantee"].update(asked={"t": "0.1415"}),
    "a number that nobody asked for": lambda f: f["guarantee"].update(achieved={"k": "1415"}),
    "another model": lambda f: f["guarantee"].update(model="t-closeness"),
    "a distance that nothing is promised of": lambda f: f["guarantee"].update(distance="ordered"),
    "a setting": lambda f: f["splits"]["settings"].update({"spark.sql.files.0": "HIV illness"}),
    "a setting's name": lambda f: f["splits"]["settings"].update({"0: HIV": "1"}),
    "a tag": lambda f: f["splits"].update(key_tag="0: HIV"),
    "a version": lambda f: f.update(spark_version="0: HIV"),
    "a policy": lambda f: f["missing"].update(sensitive="HIV"),
    "a status": lambda f: f["solver"].update(status="0 = HIV"),
    "files of no table": lambda f: f.update(files={"HIV": []}),
    "the folder of a table": lambda f: f["tables"]["qit"].update(path="st"),
    "a column that could not be read": lambda f: f.update(unreadable=UNREADABLE | {"cells": {"0: HIV": 1}}),
    "a column without text": lambda f: f.update(unreadable=UNREADABLE | {"undecodable": {"0: HIV": 1}}),
    "more cells than records": lambda f: f.update(unreadable=UNREADABLE | {"records": 1, "undecodable": {"illness": 2}}),
    "a name in no catalog": lambda f: f.update(catalog={"qit": "Ann has HIV"}),
    "a name for no table": lambda f: f.update(catalog={"ann": "a.b.hiv"}),
    "fewer than none": lambda f: f.update(unreadable=UNREADABLE | {"lengths": -1}),
}  # fmt: skip


def test_the_fields_of_a_manifest() -> None:
    assert nothing_else(Manifest.model_validate(FACTS)).passed
    counted = UNREADABLE | {"cells": {"age": 1}, "undecodable": {"illness": 2}}
    assert nothing_else(Manifest.model_validate(FACTS | {"unreadable": counted})).passed
    assert nothing_else(Manifest.model_validate(FACTS | {"catalog": {"qit": "my-lake.clinic.visits_qit"}})).passed


@pytest.mark.parametrize("kind", LINKAGES)
def test_a_linkage_among_the_fields_of_a_manifest(kind: str) -> None:
    facts = copy.deepcopy(FACTS)
    LINKAGES[kind](facts)
    assert not nothing_else(Manifest.model_validate(facts)).passed


def test_sub_tables_tell_of_all_columns_in_one_part() -> None:
    """What further parts would say of a perturbed release, nobody reads."""
    guarantee = FACTS["guarantee"] | {"model": "(rho1, rho2)-privacy"}
    method = {"name": "perturb", "parameters": {"rho2": "1/3"}}
    facts = FACTS | {"layout": "perturbed", "method": method, "utility": {}, "guarantee": guarantee}
    assert nothing_else(Manifest.model_validate(facts)).passed
    found = nothing_else(Manifest.model_validate(facts | {"guarantee": guarantee | {"also": [guarantee]}}))
    assert found.evidence == "guarantee.also: 1 more, and what is promised of all columns stands in one"
