"""All tests are found: a folder whose tests are no longer collected would otherwise pass in silence."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

AT_LEAST = {"pure": 160, "structure": 150, "engine": 80, "contract": 50}
"""Tests per folder, slow ones included. Raise a number when tests are added; lower one only with a reason."""


def test_every_folder_has_its_tests() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found = Counter(re.findall(r"^tests/(\w+)/\S+::", done.stdout, re.MULTILINE))
    short = {folder: (found[folder], least) for folder, least in AT_LEAST.items() if found[folder] < least}
    assert short == {}, f"(found, at least): {short}"
