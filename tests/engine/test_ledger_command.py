"""`anonlib ledger`: what it shows, what it refuses, and that it starts no Spark."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anonlib import cli, increments
from anonlib.cli import main
from anonlib.errors import SpecError
from anonlib.release import ledger_runs, storage
from anonlib.release.ledger import open_ledger
from anonlib.spec.load import parse_spec
from tests.door import KEY, OTHER_KEY, key_file

pytestmark = pytest.mark.spark  # the command line imports it


@pytest.fixture
def ledger(tmp_path, monkeypatch, capsys):
    """A ledger with one release, of three persons."""
    monkeypatch.setenv("LEDGER_KEY", OTHER_KEY)
    monkeypatch.setattr(cli, "session", lambda **_: pytest.fail("Spark was asked for"))
    assert main(["ledger", str(tmp_path / "ledger"), "--key", "env:LEDGER_KEY", "--new"]) == 0
    entered(tmp_path, "january")
    capsys.readouterr()
    return tmp_path / "ledger"


def entered(home, name, persons=3, shown=True):
    opened = open_ledger(str(home / "ledger"), bytes.fromhex(OTHER_KEY))
    folder = opened.new_folder()
    (home / "ledger" / folder).mkdir(parents=True)
    table = pa.table({"person": [bytes([k] * 16) for k in range(3)]})
    pq.write_table(table, home / "ledger" / folder / "part-0.parquet")
    place = storage.place(str(home / name))
    storage.begin(place)
    text = json.dumps({"ledger": {"id": opened.id, "number": opened.next_number}})
    entry = opened.enter(place, text, persons, folder, {"patient": "string"}, [])
    if shown:
        storage.publish(place, text, ())
        opened.settle(entry, "published")


def asked(capsys, ledger, *more, key="env:LEDGER_KEY"):
    code = main(["ledger", str(ledger), "--key", key, *more])
    said = capsys.readouterr()
    return code, said.out, " ".join(said.err.split())


def test_it_shows_releases_and_persons(ledger, capsys):
    code, out, _ = asked(capsys, ledger)
    assert code == 0
    assert "3 persons in 1 releases" in out
    code, out, _ = asked(capsys, ledger, "--json")
    told = json.loads(out)
    assert (told["persons"], told["passed"], told["releases"][0]["manifest"]) == (3, True, "the same")


def test_a_key_from_a_file(ledger, capsys, tmp_path):
    path = key_file(tmp_path, OTHER_KEY)
    assert asked(capsys, ledger, key=f"file:{path}")[0] == 0
    path.chmod(0o644)
    code, _, err = asked(capsys, ledger, key=f"file:{path}")
    assert code == 2
    assert "chmod 600" in err
    assert "allow_open_key_file" not in err  # a command has no such key


def test_what_it_refuses(ledger, capsys, monkeypatch):
    for arguments, key, words in (
        (["--new"], "env:LEDGER_KEY", "something lies there already"),
        (["--new", "--void", "1"], "env:LEDGER_KEY", "--new and --void"),
        (["--void", "1"], "env:LEDGER_KEY", "release 1 is not open: it is published"),
        ([], OTHER_KEY, "--key: write where the ledger's key lies"),
        ([], "env:NO_SUCH_KEY", "--key: the environment variable NO_SUCH_KEY is not set"),
    ):
        code, _, err = asked(capsys, ledger, *arguments, key=key)
        assert code == 2
        assert words in err
        assert OTHER_KEY not in err
    monkeypatch.setenv("LEDGER_KEY", KEY)
    code, _, err = asked(capsys, ledger)
    assert code == 2
    assert "belongs to another ledger.key" in err
    assert main(["ledger", str(ledger)]) == 2
    assert "--key: missing" in capsys.readouterr().err


def test_what_disagrees_is_exit_4(ledger, capsys):
    path = ledger.parent / "january" / "manifest.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("}", " }"), encoding="utf-8")
    code, out, err = asked(capsys, ledger, "--json")
    assert code == 4
    assert json.loads(out)["releases"][0]["manifest"] == "edited"
    assert "another release here" in err
    path.write_text(text, encoding="utf-8")
    file = next(ledger.glob("persons/*/*.parquet"))
    file.write_bytes(file.read_bytes() + b"x")
    code, _, err = asked(capsys, ledger)
    assert code == 4
    assert "was edited or cut" in err


@pytest.mark.parametrize("path", ["{date}", "{date}/visits", "visits-{date}/of/{date}"])
def test_a_ledger_from_a_backup_is_held_against_the_releases_of_all_days(ledger, path):
    """The second release lies beside neither the first nor the one to come."""
    home = ledger.parent
    asked = {
        "input": {"path": str(home / "input")},
        "output": {"path": str(home / "lake" / path)},
        "columns": {"quasi_identifiers": ["age"], "sensitive": "illness", "person": "patient"},
        "ledger": {"path": str(ledger), "key": "env:LEDGER_KEY"},
        "method": {"anatomy": {"l": 3}},
    }
    spec = parse_spec(asked)
    today = storage.place(increments.dated(spec.output).path)
    shutil.copytree(ledger, home / "backup")
    entered(home, "lake/" + path.replace("{date}", "2026-02-01"))
    assert increments.opened(spec, today).persons == 6
    shutil.rmtree(ledger)
    (home / "backup").rename(ledger)
    with pytest.raises(SpecError, match="number 2, which this ledger does not have"):
        increments.opened(spec, today)


def test_persons_are_counted(ledger, capsys):
    """Written wrong from the start: what the entry says is not what its files hold."""
    entered(ledger.parent, "february", persons=4)
    code, _, err = asked(capsys, ledger)
    assert code == 4
    assert "release 2 entered 4 persons, its files hold 3" in err


def test_a_release_that_was_moved(ledger, capsys):
    shutil.move(ledger.parent / "january", ledger.parent / "archive")
    code, out, _ = asked(capsys, ledger, "--json")
    assert code == 0
    assert json.loads(out)["releases"][0]["manifest"] == "not there (moved?)"


def test_a_release_that_nobody_has_seen_is_voided_on_a_stewards_word(ledger, capsys, monkeypatch):
    entered(ledger.parent, "february", shown=False)
    shutil.rmtree(next(ledger.parent.glob(".february.staging-*")))
    monkeypatch.setattr(ledger_runs, "still_runs", lambda entry: False)
    code, _, err = asked(capsys, ledger)
    assert code == 2
    assert "--void 2" in err
    code, out, _ = asked(capsys, ledger, "--void", "2", "--json")
    assert code == 0
    assert [release["outcome"] for release in json.loads(out)["releases"]] == ["published", "void"]
