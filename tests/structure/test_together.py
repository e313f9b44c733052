"""Runs that share their modules leave no test out and run none twice."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from types import SimpleNamespace

from tests.together import claimed

MODULES = {"tests/engine/test_a.py": 3, "tests/pure/test_a.py": 1, "tests/pure/test_b.py": 5, "tests/pure/test_c.py": 2}
ITEMS = [SimpleNamespace(path=Path(name), number=number) for name, tests in MODULES.items() for number in range(tests)]


def test_two_runs_in_turn_run_every_test_once_and_a_modules_tests_in_one_run(tmp_path: Path) -> None:
    runs: list[list[SimpleNamespace]] = [[], []]
    for both in zip_longest(*(claimed(ITEMS, tmp_path) for _ in runs)):
        for run, item in zip(runs, both, strict=True):
            if item is not None:
                run.append(item)
    assert sorted(map(id, runs[0] + runs[1])) == sorted(map(id, ITEMS))
    assert {item.path for item in runs[0]}.isdisjoint(item.path for item in runs[1])
    assert all(runs)
    assert list(claimed(ITEMS, tmp_path)) == []  # who comes last finds nothing left


def test_tests_of_a_module_that_others_stand_between_are_run_all_the_same(tmp_path: Path) -> None:
    mixed = [ITEMS[0], ITEMS[3], ITEMS[1]]
    assert list(claimed(mixed, tmp_path)) == mixed
