"""The ledger's files: one step with the manifest whoever dies where, and whatever was done to them is seen. No Spark."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import fs

from anonlib.errors import SpecError
from anonlib.release import ledger as ledgers
from anonlib.release import ledger_runs, storage
from anonlib.release.ledger import Ledger, new_ledger, number_in, open_ledger
from anonlib.release.ledger_entry import Entry
from anonlib.release.ledger_files import Files

KEY = bytes.fromhex("dd7eba842bcdb39ba7f51ffb8518900642d7903dd740ec557ed00549a0841a7b")
OTHER_KEY = bytes.fromhex("9811d7763645e585c34b5f6f27a33181210af0a49e043a325ec21c1d67abcfaa")
COLUMNS = {"patient": "string"}


class Died(BaseException):
    """A run that ends at once: nothing tidies up after it."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "releases").mkdir()
    return tmp_path


def at(home: Path, key: bytes = KEY) -> Ledger:
    return open_ledger(str(home / "ledger"), key)


def persons_in(ledger: Ledger, number: int = 1, bytes_: bytes = b"persons") -> str:
    """A folder of persons of the ledger, as Spark writes it."""
    folder = ledger.new_folder()
    place = Path(ledger.path) / folder
    place.mkdir(parents=True)
    for k in range(number):
        (place / f"part-{k:05d}.parquet").write_bytes(bytes_ + bytes([k]))
    (place / "_SUCCESS").write_bytes(b"")
    (place / ".part-00000.parquet.crc").write_bytes(b"crc")
    return folder


def manifest(ledger: Ledger, name: str = "") -> str:
    return json.dumps({"ledger": {"id": ledger.id, "number": ledger.next_number, "persons": 3}, "name": name})


def publish(
    home: Path, name: str, die: Callable[[str], None] = lambda step: None, ledger: Ledger | None = None
) -> Entry:
    """A run from staging to the end; `die` is asked before each step, and may raise."""
    ledger = at(home) if ledger is None else ledger
    place = storage.place(str(home / "releases" / name))
    die("before staging")
    storage.begin(place)
    die("staged")
    folder = persons_in(ledger, 2)
    die("persons written")
    entry = ledger.enter(place, manifest(ledger, name), 3, folder, COLUMNS, [("flu", 2), (None, 1)])
    die("entered")
    storage.publish(place, manifest(ledger, name), ())
    die("published")
    ledger.settle(entry, "published")
    die("settled")
    return entry


STEPS = ("before staging", "staged", "persons written", "entered", "published", "settled")


def started(home: Path) -> None:
    new_ledger(str(home / "ledger"), KEY)


def dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever run made an entry, it is no more."""
    monkeypatch.setattr(ledger_runs, "still_runs", lambda entry: False)


def die_at(step: str) -> Callable[[str], None]:
    def die(here: str) -> None:
        if here == step:
            raise Died(step)

    return die


def test_a_ledger_is_started_once_and_opened_by_its_key(home):
    with pytest.raises(SpecError, match=r"there is none; start it once with `anonlib ledger .* --new"):
        at(home)
    started(home)
    ledger = at(home)
    assert (ledger.entries, ledger.persons, ledger.next_number, ledger.folders) == ((), 0, 1, [])
    with pytest.raises(SpecError, match="something lies there already"):
        started(home)
    with pytest.raises(SpecError, match=r"belongs to another ledger.key"):
        at(home, OTHER_KEY)
    assert KEY.hex() not in repr(ledger)


def test_three_releases_stand_in_it_as_they_were(home):
    started(home)
    for name in ("a", "b", "c"):
        publish(home, name)
    ledger = at(home)
    assert [(e.number, Path(e.path).name, e.persons, e.outcome) for e in ledger.entries] == [
        (1, "a", 3, "published"), (2, "b", 3, "published"), (3, "c", 3, "published")
    ]  # fmt: skip
    assert ledger.entries[2].values == (("flu", 2), (None, 1))
    assert ledger.entries[2].columns == (("patient", "string"),)
    assert [len(e.files) for e in ledger.entries] == [2, 2, 2]
    assert ledger.persons == 9
    ledger.check_files()
    ledger.check_releases(ledger.beside())


@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_dies_has_entered_nobody_unless_its_release_is_out(home, monkeypatch, step):
    """Nothing tidies up after it; the next opening finds out. Then the same release is made again, or is there."""
    started(home)
    publish(home, "first")
    with pytest.raises(Died):
        publish(home, "second", die_at(step))
    dead(monkeypatch)
    out = (home / "releases" / "second").exists()
    assert out == (step in ("published", "settled"))
    ledger = at(home)
    assert len(ledger.published) == (2 if out else 1)
    assert at(home).entries == ledger.entries
    ledger.check_files()
    ledger.check_releases(ledger.beside())
    if not out:
        third = publish(home, "second")
        assert third.number == (3 if step == "entered" else 2)
        assert len(at(home).published) == 2
    assert not [p for p in (home / "releases").iterdir() if "seized" in p.name]


def test_a_run_that_is_taken_for_dead_can_publish_nothing_any_more(home, monkeypatch):
    """It was only slow: it wakes up when another has settled its entry and published the same persons."""
    started(home)
    slow = at(home)
    place = storage.place(str(home / "releases" / "slow"))
    storage.begin(place)
    entry = slow.enter(place, manifest(slow), 3, persons_in(slow), COLUMNS, [])
    dead(monkeypatch)
    publish(home, "quick")
    with pytest.raises((SpecError, OSError)):
        storage.publish(place, manifest(slow), ())
    assert not slow.withdraw(entry)
    assert not (home / "releases" / "slow").exists()
    assert [Path(e.path).name for e in at(home).published] == ["quick"]


def test_of_two_runs_at_once_one_wins(home):
    started(home)
    first, second = at(home), at(home)
    publish(home, "first", ledger=first)
    with pytest.raises(
        SpecError, match=r"another run entered release 1 while this one was made.*nothing was published"
    ):
        publish(home, "second", ledger=second)
    assert not (home / "releases" / "second").exists()
    assert len(at(home).entries) == 1


def test_while_a_run_publishes_another_is_told_to_wait(home):
    started(home)
    with pytest.raises(Died):
        publish(home, "slow", die_at("entered"))  # this very process made the entry, and lives
    with pytest.raises(
        SpecError, match=r"another run \(process \d+ .*\) is publishing release 1 .* run again when it has ended"
    ):
        at(home)


def test_a_run_on_another_machine_is_given_time(home, monkeypatch):
    started(home)
    monkeypatch.setattr(ledger_runs.socket, "gethostname", lambda: "elsewhere")
    with pytest.raises(Died):
        publish(home, "slow", die_at("entered"))
    monkeypatch.undo()
    with pytest.raises(SpecError, match="on elsewhere, since"):
        at(home)
    monkeypatch.setattr(ledger_runs, "PATIENCE", -1)
    assert [e.outcome for e in at(home).entries] == ["void"]


def test_a_process_of_the_same_number_that_began_later_is_another():
    own = ledger_runs.this_process()
    assert own == ledger_runs._process(os.getpid())
    entry = Entry(
        1, "", "", "", 0, "", (), (), (), "", ledger_runs.socket.gethostname(), f"process {os.getpid()} 7", ""
    )
    assert not ledger_runs.still_runs(entry)
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    assert ledger_runs._process(gone) == "process 0"


def test_a_process_whose_exit_nobody_has_fetched_is_no_more():
    """Killed in a container whose first process fetches none, it keeps its number for as long as the container lives."""
    killed = os.fork()
    if killed == 0:
        os._exit(0)
    try:
        os.waitid(os.P_PID, killed, os.WEXITED | os.WNOWAIT)  # it has ended, and is left as it is
        os.kill(killed, 0)
        if Path(f"/proc/{killed}/stat").exists():
            assert ledger_runs._process(killed) == "process 0"
    finally:
        os.waitpid(killed, 0)


@pytest.mark.parametrize("step", ["_is_out", "settle"])
def test_an_opening_that_dies_while_it_finds_out_leaves_the_proof(home, monkeypatch, step):
    """The staging folder was taken away, and nobody has said so yet: the release was never shown, and nobody need be asked."""
    started(home)
    with pytest.raises(Died):
        publish(home, "r", die_at("entered"))
    dead(monkeypatch)
    asked = 0

    def dies(*_: object) -> bool:
        nonlocal asked
        asked += 1
        if step == "_is_out" and asked == 1:  # before it takes anything away
            return False
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(ledgers if step == "_is_out" else Ledger, step, dies)
        with pytest.raises(Died):
            at(home)
    assert [p.name for p in (home / "releases").iterdir()] != []
    assert [e.outcome for e in at(home).entries] == ["void"]
    assert list((home / "releases").iterdir()) == []
    publish(home, "r")
    assert at(home).persons == 3


def test_a_run_that_fails_and_cannot_say_so_is_settled_by_the_next(home, monkeypatch):
    """The disk is full: neither the release nor the entry's outcome can be written."""
    started(home)
    ledger = at(home)
    place = storage.place(str(home / "releases" / "r"))
    storage.begin(place)
    entry = ledger.enter(place, manifest(ledger), 3, persons_in(ledger), COLUMNS, [])

    def full(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(Files, "create", full)
        with pytest.raises(OSError, match="no space"):
            ledger.withdraw(entry)
    storage.discard(place)
    dead(monkeypatch)
    assert [e.outcome for e in at(home).entries] == ["void"]
    assert list((home / "releases").iterdir()) == []


def test_two_who_open_a_ledger_at_once_say_the_same(home, monkeypatch):
    """The second takes the staging folder away, and has settled the entry, between two steps of the first."""
    started(home)
    with pytest.raises(Died):
        publish(home, "r", die_at("entered"))
    dead(monkeypatch)
    seize = storage.seize

    def meanwhile(place: storage.Place) -> bool:
        monkeypatch.setattr(storage, "seize", seize)
        assert [e.outcome for e in at(home).entries] == ["void"]
        return seize(place)

    monkeypatch.setattr(storage, "seize", meanwhile)
    assert [e.outcome for e in at(home).entries] == ["void"]


def test_a_run_that_fails_withdraws_its_entry(home):
    started(home)
    ledger = at(home)
    place = storage.place(str(home / "releases" / "r"))
    storage.begin(place)
    entry = ledger.enter(place, manifest(ledger), 3, persons_in(ledger), COLUMNS, [])
    assert ledger.withdraw(entry) is False
    assert [e.outcome for e in at(home).entries] == ["void"]
    again = publish(home, "r")
    assert again.number == 2
    assert at(home).persons == 3


def test_a_run_that_fails_without_knowing_that_its_entry_is_made_withdraws_it(home):
    """A signal came between the entry and whoever was to be told of it."""
    started(home)
    ledger = at(home)
    place = storage.place(str(home / "releases" / "r"))
    ledger.abandon(place)  # nothing was entered
    storage.begin(place)
    ledger.enter(place, manifest(ledger), 3, persons_in(ledger), COLUMNS, [])
    other = storage.place(str(home / "releases" / "other"))
    ledger.abandon(other)  # it is none of its entries
    assert [e.outcome for e in open_ledger(ledger.path, KEY, settle=False).entries] == [""]
    ledger.abandon(place)
    assert [e.outcome for e in at(home).entries] == ["void"]
    ledger.abandon(place)
    assert [e.outcome for e in at(home).entries] == ["void"]


def test_a_run_that_fails_after_its_release_is_out_keeps_it(home):
    started(home)
    ledger = at(home)
    place = storage.place(str(home / "releases" / "r"))
    storage.begin(place)
    entry = ledger.enter(place, manifest(ledger), 3, persons_in(ledger), COLUMNS, [])
    storage.publish(place, manifest(ledger), ())
    assert ledger.withdraw(entry) is True
    assert [e.outcome for e in at(home).entries] == ["published"]


def test_where_a_release_went_when_its_run_died_is_for_a_steward_to_say(home, monkeypatch):
    """It was shown, and moved before anybody opened the ledger: it is not void, and not known to be out."""
    started(home)
    with pytest.raises(Died):
        publish(home, "r", die_at("published"))
    shutil.move(home / "releases" / "r", home / "archive")
    dead(monkeypatch)
    with pytest.raises(SpecError, match=r"nobody can tell from here whether somebody has seen it.*--void 1"):
        at(home)
    shutil.move(home / "archive", home / "releases" / "r")
    assert at(home).persons == 3
    with pytest.raises(Died):
        publish(home, "s", die_at("published"))
    shutil.rmtree(home / "releases" / "s")
    with pytest.raises(SpecError, match="--void 2"):
        at(home)
    ledgers.void(open_ledger(str(home / "ledger"), KEY, settle=False), 2)
    assert [e.outcome for e in at(home).entries] == ["published", "void"]
    with pytest.raises(SpecError, match="release 1 is not open: it is published"):
        ledgers.void(at(home), 1)
    with pytest.raises(SpecError, match="release 9 is not open: there is none"):
        ledgers.void(at(home), 9)


def test_a_release_that_is_out_is_not_voided(home):
    started(home)
    with pytest.raises(Died):
        publish(home, "r", die_at("published"))
    with pytest.raises(SpecError, match="its persons are out"):
        ledgers.void(open_ledger(str(home / "ledger"), KEY, settle=False), 1)


def test_a_release_whose_run_still_lives_is_not_voided(home):
    """On an object store it would be shown after all."""
    started(home)
    with pytest.raises(Died):
        publish(home, "r", die_at("entered"))
    with pytest.raises(SpecError, match=r"another run .* is publishing release 1"):
        ledgers.void(open_ledger(str(home / "ledger"), KEY, settle=False), 1)
    assert [e.outcome for e in open_ledger(str(home / "ledger"), KEY, settle=False).entries] == [""]


def test_looking_settles_nothing(home):
    started(home)
    with pytest.raises(Died):
        publish(home, "r", die_at("entered"))
    before = sorted(p for p in home.rglob("*"))
    ledger = open_ledger(str(home / "ledger"), KEY, settle=False)
    assert [e.outcome for e in ledger.entries] == [""]
    assert ledger.published == ()
    assert sorted(p for p in home.rglob("*")) == before


def test_whoever_only_looks_counts_a_release_that_lies_there(home):
    """Its run died before the outcome: that is no old copy of the ledger, and its persons are out."""
    started(home)
    with pytest.raises(Died):
        publish(home, "r", die_at("published"))
    before = sorted(p for p in home.rglob("*"))
    ledger = open_ledger(str(home / "ledger"), KEY, settle=False)
    assert ledger.persons == 3
    ledger.check_files()
    ledger.check_releases(ledger.beside() | storage.manifests_beside(storage.place(str(home / "releases" / "s"))))
    assert sorted(p for p in home.rglob("*")) == before


def test_a_ledger_that_was_moved_goes_on_where_it_is(home):
    started(home)
    publish(home, "a")
    shutil.move(home / "ledger", home / "moved")
    with pytest.raises(SpecError, match="there is none"):
        at(home)
    ledger = open_ledger(str(home / "moved"), KEY)
    ledger.check_files()
    assert ledger.persons == 3


def _rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="ascii")
    assert old in text
    path.write_text(text.replace(old, new), encoding="ascii")


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "the head is edited": (lambda ledger: _rewrite(ledger / "ledger.json", '"format": 1', '"format": 2'), "ledger.json was edited or cut"),
    "the head is cut": (lambda ledger: os.truncate(ledger / "ledger.json", 5), "ledger.json was edited or cut"),
    "the head is gone": (lambda ledger: (ledger / "ledger.json").unlink(), "there is none"),
    "an entry is edited": (
        lambda ledger: _rewrite(ledger / "entries/000001.json", '"persons": 3', '"persons": 2'),
        "entries/000001.json was edited or cut",
    ),
    "an entry is cut": (lambda ledger: os.truncate(ledger / "entries/000002.json", 90), "entries/000002.json was edited or cut"),
    "an entry in between is gone": (lambda ledger: (ledger / "entries/000001.json").unlink(), "its entry 1 is gone"),
    "the last entry is gone": (lambda ledger: (ledger / "entries/000003.json").unlink(), "its entry 3 is gone"),
    "two entries are swapped": (
        lambda ledger: [
            (ledger / "entries/000001.json").rename(ledger / "x"),
            (ledger / "entries/000002.json").rename(ledger / "entries/000001.json"),
            (ledger / "x").rename(ledger / "entries/000002.json"),
        ],
        "does not follow the entry before it",
    ),
    "an outcome is another's": (
        lambda ledger: shutil.copy(ledger / "entries/000001.outcome", ledger / "entries/000002.outcome"),
        "belongs to another entry",
    ),
    "an outcome is edited": (
        lambda ledger: _rewrite(ledger / "entries/000002.outcome", "published", "void"),
        "entries/000002.outcome was edited or cut",
    ),
    "all of the last release is gone": (
        lambda ledger: [p.unlink() for p in (ledger / "entries").glob("000003.*")],
        "number 3, which this ledger does not have: it is an old copy, was cut",
    ),
    "persons are gone": (lambda ledger: next((ledger / "persons").glob("000002-*/*.parquet")).unlink(), "is gone, and who stands in it"),
    "persons are cut": (
        lambda ledger: os.truncate(next((ledger / "persons").glob("000001-*/*.parquet")), 3),
        "was edited or cut (3 bytes, 8 were written)",
    ),
    "persons are edited": (
        lambda ledger: next((ledger / "persons").glob("000001-*/*.parquet")).write_bytes(b"Persons\0"),
        "was edited or cut",
    ),
    "persons are added": (
        lambda ledger: (next((ledger / "persons").glob("000003-*")) / "part-9.parquet").write_bytes(b"x"),
        "is none of its files",
    ),
    "started anew under the same key": (
        lambda ledger: [shutil.rmtree(ledger), new_ledger(str(ledger), KEY)],
        "number 1, which this ledger does not have",
    ),
}  # fmt: skip


def checked(home: Path) -> None:
    """As a run to `d` checks it."""
    ledger = at(home)
    ledger.check_files()
    beside = storage.manifests_beside(storage.place(str(home / "releases" / "d")))
    ledger.check_releases(ledger.beside() | beside)


@pytest.mark.parametrize("what", DAMAGE)
def test_what_was_done_to_a_ledger_is_seen(home, what):
    damage, words = DAMAGE[what]
    started(home)
    for name in ("a", "b", "c"):
        publish(home, name)
    damage(home / "ledger")
    with pytest.raises(SpecError) as caught:
        checked(home)
    assert words in str(caught.value)
    assert KEY.hex() not in str(caught.value)


def test_another_copy_of_a_ledger_that_went_on_is_seen(home):
    started(home)
    publish(home, "a")
    shutil.copytree(home / "ledger", home / "copy")
    publish(home, "b")
    copy = open_ledger(str(home / "copy"), KEY)
    publish(home, "c", ledger=copy)
    with pytest.raises(SpecError, match="number 2, which is another release here"):
        open_ledger(str(home / "copy"), KEY).check_releases(at(home).beside())


def test_a_release_that_was_moved_is_no_fault(home):
    started(home)
    publish(home, "a")
    shutil.move(home / "releases" / "a", home / "elsewhere")
    ledger = at(home)
    ledger.check_files()
    ledger.check_releases(ledger.beside())
    assert ledger.persons == 3


def test_what_dead_runs_left_is_removed_once_their_number_is_taken(home):
    started(home)
    with pytest.raises(Died):
        publish(home, "a", die_at("persons written"))
    publish(home, "a2")
    publish(home, "b")
    at(home)
    assert len(list((home / "ledger" / "persons").iterdir())) == 2


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"ledger": null}', '{"ledger": {"id": "x"}}', '{"ledger": 3}', "<html>"]
)
def test_what_is_no_manifest_of_a_ledger(text):
    assert number_in(text, "x") is None


@pytest.fixture
def object_store(home, monkeypatch):
    """A file system on which nothing is exclusive and nothing renames, played by a folder."""
    store = fs.SubTreeFileSystem(str(home), fs.LocalFileSystem())
    real = storage._remote
    monkeypatch.setattr(
        storage, "_remote", lambda path: (store, path.partition("://")[2]) if "://" in path else real(path)
    )
    return Files("mock://ledger")


def test_on_an_object_store_one_writer_gets_a_name(object_store, home):
    object_store.create("entries/1", b"first")
    with pytest.raises(FileExistsError):
        object_store.create("entries/1", b"second")
    assert object_store.read("entries/1") == b"first"
    assert object_store.names("entries") == ["1"]


def test_on_an_object_store_two_who_see_each_other_give_up(object_store, home):
    (home / "ledger" / "entries").mkdir(parents=True)
    (home / "ledger" / "entries" / f"1{ledgers_claim()}0000").write_bytes(b"")
    with pytest.raises(FileExistsError, match="claim"):
        object_store.create("entries/1", b"second")
    assert object_store.names("entries") == [f"1{ledgers_claim()}0000"]
    object_store.create("entries/2", b"another name is another matter")


def ledgers_claim() -> str:
    from anonlib.release.ledger_files import CLAIM

    return CLAIM


def test_a_ledger_on_an_object_store(object_store, home, monkeypatch):
    ledger = new_ledger("mock://ledger", KEY)
    place = storage.Place("mock://releases/r", "mock://releases/r")
    storage.begin(place)
    folder = persons_in(at(home))
    entry = ledger.enter(place, manifest(ledger), 3, folder, COLUMNS, [])
    dead(monkeypatch)
    with pytest.raises(SpecError, match="--void 1"):  # what is made at its own path cannot be taken away
        open_ledger("mock://ledger", KEY)
    storage.publish(place, manifest(ledger), ())
    assert open_ledger("mock://ledger", KEY).persons == 3
    assert entry.staging == entry.path
