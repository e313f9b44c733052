"""Where releases lie: the whole of one, or nothing; local disks here, and an object store that cannot rename played by a folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from pyarrow import fs

from anonlib.errors import AnonlibError, SpecError
from anonlib.release import storage
from anonlib.release.manifest import FILE_NAME

TABLES = ("qit", "st")


def staged(place: storage.Place, *names: str) -> None:
    for name in names:
        folder = Path(place.table(name))
        folder.mkdir()
        (folder / "part-0.parquet").write_bytes(b"rows")


def test_nothing_is_visible_until_everything_is(tmp_path):
    place = storage.place(str(tmp_path / "release"))
    assert not any(tmp_path.iterdir())  # looking creates nothing
    storage.begin(place)
    staged(place, *TABLES)
    assert not (tmp_path / "release").exists()
    with pytest.raises(SpecError, match="holds no release"):
        storage.read_manifest(str(tmp_path / "release"))
    storage.publish(place, "{}", TABLES)
    assert {p.name for p in tmp_path.iterdir()} == {"release"}
    assert {p.name for p in (tmp_path / "release").iterdir()} == {*TABLES, FILE_NAME}
    assert storage.read_manifest(str(tmp_path / "release")) == "{}"


def test_unaudited_tables_are_their_owners_alone_and_a_release_follows_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        place = storage.place(str(tmp_path / "release"))
        storage.begin(place)
        assert stat.S_IMODE(Path(place.staging).stat().st_mode) == 0o700
        storage.publish(place, "{}", ())
        assert stat.S_IMODE((tmp_path / "release").stat().st_mode) == 0o750
    finally:
        os.umask(before)


def test_a_discarded_run_leaves_nothing(tmp_path):
    place = storage.place(str(tmp_path / "deep" / "release"))
    storage.begin(place)
    staged(place, *TABLES)
    storage.discard(place)
    assert list((tmp_path / "deep").iterdir()) == []
    storage.discard(place)  # again: nothing to do, nothing raised


def test_of_two_runs_for_one_path_the_second_is_refused_and_the_first_stays(tmp_path):
    path = str(tmp_path / "release")
    first, second = storage.place(path), storage.place(path)
    for place in (first, second):
        storage.begin(place)
    storage.publish(first, "first", ())
    with pytest.raises(SpecError, match="already holds a release"):
        storage.publish(second, "second", ())
    storage.discard(second)
    assert storage.read_manifest(path) == "first"
    assert {p.name for p in tmp_path.iterdir()} == {"release"}


@pytest.mark.parametrize(("inside", "words"), [(FILE_NAME, "already holds a release"), ("notes.txt", "is not empty")])
def test_a_path_that_is_taken(tmp_path, inside, words):
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / inside).write_text("{}", encoding="utf-8")
    with pytest.raises(SpecError, match=words):
        storage.place(str(tmp_path / "release"))


def test_an_empty_folder_is_not_taken(tmp_path):
    (tmp_path / "release").mkdir()
    place = storage.place(str(tmp_path / "release"))
    storage.begin(place)
    storage.publish(place, "{}", ())
    assert storage.read_manifest(str(tmp_path / "release")) == "{}"


def test_working_copies_are_removed_or_stop_the_publication(tmp_path):
    place = storage.place(str(tmp_path / "release"))
    storage.begin(place)
    staged(place, *TABLES, "input")
    with pytest.raises(AnonlibError, match="holds input, which cannot be removed and must not be published"):
        storage.publish(place, "{}", TABLES)
    storage.remove(place, "input")
    storage.publish(place, "{}", TABLES)


def test_what_an_interrupted_run_left_is_named_and_in_nobodys_way(tmp_path):
    path = str(tmp_path / "release")
    killed = storage.place(path)
    storage.begin(killed)
    staged(killed, "qit")
    again = storage.place(path)
    assert storage.leftovers(again) == [killed.staging]
    storage.begin(again)
    storage.publish(again, "{}", ())
    assert Path(killed.staging, "qit").exists()
    assert storage.leftovers(storage.place(str(tmp_path / "other"))) == []


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("releases/census/", f"file://{os.getcwd()}/releases/census"),
        ("/data/x", "file:///data/x"),
        ("file:/data/x", "file:///data/x"),
        ("file:///data/x", "file:///data/x"),
        ("s3://bucket/x/", "s3://bucket/x"),
        ("hdfs://nn:8020/x", "hdfs://nn:8020/x"),
        ("dbfs:/releases/x", "dbfs:/releases/x"),
        ("/dbfs/releases/x", "dbfs:/releases/x"),
        ("dbfs:/Volumes/c/s/v", "/Volumes/c/s/v"),
        ("/Volumes/c/s/v", "/Volumes/c/s/v"),
    ],
)
def test_one_path_for_spark_and_for_python(given, meant):
    assert storage.spark_path(given) == meant


def test_a_file_system_that_the_driver_cannot_reach():
    with pytest.raises(SpecError, match="cannot reach this file system"):
        storage.place("nosuch://bucket/x")


# --- a store that cannot rename ------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path, monkeypatch):
    """ "mock://bucket/..." is a folder behind pyarrow's file system interface, as S3 or GCS are."""
    (tmp_path / "bucket").mkdir()
    system = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(storage, "_remote", lambda path: (system, path.removeprefix("mock://")))
    return tmp_path / "bucket"


def stored(store: Path, *names: str) -> None:
    for name in names:
        (store / "release" / name).mkdir()
        (store / "release" / name / "part-0").write_bytes(b"rows")


def test_a_store_shows_a_release_when_its_manifest_is_there(store):
    place = storage.place("mock://bucket/release")
    assert place.staging == place.path
    storage.begin(place)
    stored(store, *TABLES)
    with pytest.raises(SpecError, match="holds no release"):
        storage.read_manifest(place.path)
    storage.publish(place, "{}", TABLES)
    assert storage.read_manifest(place.path) == "{}"
    assert {p.name for p in (store / "release").iterdir()} == {*TABLES, FILE_NAME}
    with pytest.raises(SpecError, match="already holds a release"):
        storage.place(place.path)


def test_a_failed_run_on_a_store_leaves_nothing(store):
    place = storage.place("mock://bucket/release")
    storage.begin(place)
    stored(store, *TABLES)
    storage.discard(place)
    assert not (store / "release").exists()


def test_what_a_killed_run_left_on_a_store_is_cleared_and_nothing_else_is(store):
    killed = storage.place("mock://bucket/release")
    storage.begin(killed)
    stored(store, "qit", "input")
    again = storage.place("mock://bucket/release")
    storage.begin(again)
    assert {p.name for p in (store / "release").iterdir()} == {storage.STAGING_MARK}
    (store / "thesis").mkdir()
    (store / "thesis" / "draft.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(SpecError, match="is not empty"):
        storage.place("mock://bucket/thesis")


def test_a_working_copy_on_a_store_stops_the_publication(store):
    place = storage.place("mock://bucket/release")
    storage.begin(place)
    stored(store, *TABLES, "input")
    with pytest.raises(AnonlibError, match="holds input"):
        storage.publish(place, "{}", TABLES)
    storage.remove(place, "input")
    storage.publish(place, "{}", TABLES)
