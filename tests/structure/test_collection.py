"""All tests are found: a folder whose tests are no longer collected would otherwise pass in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import COLLECTED

TESTS = Path(__file__).resolve().parents[1]
AT_LEAST = {"pure": 160, "structure": 150, "engine": 80, "contract": 50, "statistical": 40, "papers": 30}
"""Tests per folder, slow ones included. Raise a number when tests are added; lower one only with a reason."""


def test_every_folder_has_its_tests(pytestconfig: pytest.Config) -> None:
    if [Path(argument).resolve() for argument in pytestconfig.args] != [TESTS]:
        pytest.skip("only a run of all tests (`pytest tests`) collects all of them")
    collected = pytestconfig.stash[COLLECTED]
    short = {folder: (collected[folder], least) for folder, least in AT_LEAST.items() if collected[folder] < least}
    assert short == {}, f"(collected, at least): {short}"
