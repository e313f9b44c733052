"""Runs of one ledger in processes of their own, two at once, killed at any moment: nobody out twice, nobody lost. No Spark."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from anonlib.errors import SpecError
from anonlib.release import storage
from anonlib.release.ledger import Ledger, new_ledger, open_ledger
from tests.thorough import trials

KEY = bytes.fromhex("dd7eba842bcdb39ba7f51ffb8518900642d7903dd740ec557ed00549a0841a7b")
COLUMNS = {"patient": "string"}
PERSONS = "part-0.parquet"


def known(ledger: Ledger) -> set[int]:
    return {
        person
        for entry in ledger.published
        for person in json.loads((Path(ledger.path) / entry.folder / PERSONS).read_text(encoding="ascii"))
    }


def run(home: Path, name: str, wanted: range) -> None:
    """Publish those of `wanted` who are not out, as `anonlib.workflow` does: a folder of persons, the entry, the release, the outcome."""
    ledger = open_ledger(str(home / "ledger"), KEY)
    ledger.check_files()
    place = storage.place(str(home / "releases" / name))
    ledger.check_releases(ledger.beside() | storage.manifests_beside(place))
    new = sorted({*wanted} - known(ledger))
    storage.begin(place)
    folder = ledger.new_folder()
    (Path(ledger.path) / folder).mkdir(parents=True)
    (Path(ledger.path) / folder / PERSONS).write_text(json.dumps(new), encoding="ascii")
    text = json.dumps({"ledger": {"id": ledger.id, "number": ledger.next_number}, "persons": new})
    try:
        entry = ledger.enter(place, text, len(new), folder, COLUMNS, [])
        try:
            storage.publish(place, text, ())
        except BaseException:
            if not ledger.withdraw(entry):
                raise
        ledger.settle(entry, "published")
    except BaseException:
        storage.discard(place)
        raise


def begun(home: Path, name: str, wanted: range) -> int:
    """`run` in a process of its own; exit code 2 for a clear error, 1 for any other."""
    process = os.fork()
    if process:
        return process
    code = 1
    try:
        run(home, name, wanted)
        code = 0
    except SpecError:
        code = 2
    finally:
        os._exit(code)


def out(home: Path) -> Counter[int]:
    """How often each person is out, by the releases themselves."""
    texts = [path.read_text(encoding="utf-8") for path in (home / "releases").glob("[!.]*/manifest.json")]
    return Counter(person for text in texts for person in json.loads(text)["persons"])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(trials(20, 2)))
def test_two_runs_at_once_and_one_of_them_killed(tmp_path, seed):
    """Both want the same persons; of a pair one goes by a new path, the other by that or by one that may be taken."""
    chance = random.Random(seed)
    new_ledger(str(tmp_path / "ledger"), KEY)
    (tmp_path / "releases").mkdir()
    began = time.perf_counter()
    run(tmp_path, "first", range(5))
    lasts = time.perf_counter() - began
    codes: Counter[int] = Counter()
    for month in range(15):
        wanted = range(5 * month, 5 * month + 10)
        names = [f"m{month}", chance.choice((f"m{month}", f"again-{month}", f"m{max(month - 1, 0)}"))]
        pair = [begun(tmp_path, name, wanted) for name in names]
        time.sleep(chance.random() * 1.5 * lasts)
        os.kill(pair[0], signal.SIGKILL)
        codes.update(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in pair)
        seen = out(tmp_path)
        assert max(seen.values()) == 1, month
        assert known(open_ledger(str(tmp_path / "ledger"), KEY)) == set(seen), month
    assert codes[1] == 0
    run(tmp_path, "last", range(100))
    assert out(tmp_path) == Counter(range(100))
    ledger = open_ledger(str(tmp_path / "ledger"), KEY)
    ledger.check_files()
    ledger.check_releases(ledger.beside())
    assert codes[-signal.SIGKILL] > 0, "none was killed before it ended"
