"""A run that is killed at any line of the code that keeps the ledger: nobody out twice, nobody lost, and the next run needs no help.

The process ends at once, as by SIGKILL: nothing tidies up after it. The lines are those that a run, or an opening that settles what a dead
run left, really goes through, in the order in which it does.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from anonlib.errors import SpecError
from anonlib.release import ledger as ledgers
from anonlib.release import ledger_files, storage
from anonlib.release.ledger import new_ledger, open_ledger
from tests.pure.test_ledger_kills import KEY, known, out, run
from tests.thorough import THOROUGH

WATCHED = {str(Path(module.__file__)) for module in (ledgers, ledger_files, storage) if module.__file__}
SAMPLED = 4
"""About so many steps to die at where not all are tried."""
KILLED = 9


def killed_at(step: int, doing: Callable[[], object]) -> bool:
    """Do this in a process of its own, which is killed before its `step`th line. Whether it was, or had ended by then."""
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == KILLED
    passed = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal passed
        if frame.f_code.co_filename not in WATCHED:
            return None
        if event == "line":
            passed += 1
            if passed == step:
                os._exit(KILLED)
        return trace

    try:
        sys.settrace(trace)
        doing()
    finally:
        sys.settrace(None)
        os._exit(0)


def steps_of(doing: Callable[[], object]) -> list[int]:
    """The steps, counted from 1, at which it goes through a line for the first or for the last time; in this process."""
    first: dict[tuple[str, int], int] = {}
    last: dict[tuple[str, int], int] = {}
    passed = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal passed
        if frame.f_code.co_filename not in WATCHED:
            return None
        if event == "line":
            passed += 1
            place = (frame.f_code.co_filename, frame.f_lineno)
            first.setdefault(place, passed)
            last[place] = passed
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        doing()
    finally:
        sys.settrace(before)
    return sorted({*first.values(), *last.values()})


def tried(steps: list[int]) -> list[int]:
    """The steps to die at: all, or some of them, evenly spread."""
    return steps if THOROUGH else steps[:: len(steps) // SAMPLED]


def begun(home: Path) -> Path:
    """A ledger with one release, of persons 0 to 4."""
    home.mkdir()
    new_ledger(str(home / "ledger"), KEY)
    (home / "releases").mkdir()
    run(home, "first", range(5))
    return home


def opened(home: Path) -> ledgers.Ledger:
    return open_ledger(str(home / "ledger"), KEY)


def goes_on(home: Path) -> None:
    """Whoever is out is in the ledger, and the next run publishes everybody else, once."""
    assert known(opened(home)) == set(out(home))
    run(home, "third", range(12))
    assert out(home) == Counter(range(12))
    ledger = opened(home)
    ledger.check_files()
    ledger.check_releases(ledger.beside())


def test_a_run_that_is_killed_at_any_line(tmp_path: Path) -> None:
    whole = begun(tmp_path / "whole")
    steps = steps_of(lambda: run(whole, "second", range(10)))
    shown, killed = set(), 0
    for step in tried(steps):
        home = begun(tmp_path / str(step))
        killed += killed_at(step, lambda home=home: run(home, "second", range(10)))  # type: ignore[misc]
        shown.add((home / "releases" / "second").exists())
        goes_on(home)
    assert killed > SAMPLED / 2
    if THOROUGH:
        assert shown == {False, True}


@pytest.mark.parametrize("after", ["the entry", "the release"])
def test_an_opening_that_is_killed_at_any_line_while_it_settles(tmp_path: Path, after: str) -> None:
    """A run died behind its entry, or behind its release; and whoever opens the ledger next dies too."""

    def dead(home: Path) -> Path:
        process = os.fork()
        if process:
            os.waitpid(process, 0)
            return home
        publish = storage.publish

        def dies(*given: Any) -> None:
            if after == "the release":
                publish(*given)
            os._exit(KILLED)

        storage.publish = dies
        run(home, "second", range(10))
        os._exit(0)

    whole = dead(begun(tmp_path / "whole"))
    steps = steps_of(lambda: opened(whole))
    for step in tried(steps):
        home = dead(begun(tmp_path / str(step)))
        killed_at(step, lambda home=home: opened(home))  # type: ignore[misc]
        assert (home / "releases" / "second").exists() == (after == "the release")
        goes_on(home)


def test_a_ledger_whose_start_was_killed_at_any_line_is_started_again_or_there(tmp_path: Path) -> None:
    steps = steps_of(lambda: new_ledger(str(tmp_path / "whole"), KEY))
    for step in tried(steps):
        home = tmp_path / str(step)
        killed_at(step, lambda home=home: new_ledger(str(home), KEY))  # type: ignore[misc]
        if (home / ledgers.HEAD).exists():
            with pytest.raises(SpecError, match="a ledger is started once"):
                new_ledger(str(home), KEY)
        else:
            new_ledger(str(home), KEY)
        assert open_ledger(str(home), KEY).entries == ()
