"""Runs that share their modules leave no test out and run none twice."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from types import SimpleNamespace

from tests.together import claimed

MODULES = {"tests/engine/test_a.py": 3, "tests/pure/test_a.py": 1, "tests/pure/test_b.py": 5, "tests/pure/test_c.py": 2}


def stand_ins(modules: dict[str, int], *sharing: str) -> list[SimpleNamespace]:
    """Stand-ins for the tests of modules; the last one of each module in `sharing` asks for a fixture that is dear."""
    mark = SimpleNamespace(args=("dear",))
    return [
        SimpleNamespace(
            path=Path(name),
            get_closest_marker=lambda _, has=name in sharing and number == tests - 1: mark if has else None,
        )
        for name, tests in modules.items()
        for number in range(tests)
    ]


ITEMS = stand_ins(MODULES)


def in_turn(items: list[SimpleNamespace], folder: Path) -> list[list[SimpleNamespace]]:
    """What two runs claim that ask for a test in turn."""
    runs: list[list[SimpleNamespace]] = [[], []]
    for both in zip_longest(*(claimed(items, folder) for _ in runs)):
        for run, item in zip(runs, both, strict=True):
            if item is not None:
                run.append(item)
    return runs


def test_two_runs_in_turn_run_every_test_once_and_a_modules_tests_in_one_run(tmp_path: Path) -> None:
    runs = in_turn(ITEMS, tmp_path)
    assert sorted(map(id, runs[0] + runs[1])) == sorted(map(id, ITEMS))
    assert {item.path for item in runs[0]}.isdisjoint(item.path for item in runs[1])
    assert all(runs)
    assert list(claimed(ITEMS, tmp_path)) == []  # who comes last finds nothing left


def test_tests_of_a_module_that_others_stand_between_are_run_all_the_same(tmp_path: Path) -> None:
    mixed = [ITEMS[0], ITEMS[3], ITEMS[1]]
    assert list(claimed(mixed, tmp_path)) == mixed


def test_modules_that_share_what_is_dear_are_run_by_one_run(tmp_path: Path) -> None:
    first, *_, last = MODULES
    items = stand_ins(MODULES, first, last)
    runs = in_turn(items, tmp_path)
    assert sorted(map(id, runs[0] + runs[1])) == sorted(map(id, items))
    of_first, of_last = (
        {number for number, run in enumerate(runs) for item in run if item.path == Path(name)} for name in (first, last)
    )
    assert of_first == of_last
    assert len(of_first) == 1
    assert all(runs)
