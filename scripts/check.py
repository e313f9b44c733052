"""Run the checks, show what each says, and end with a summary: what ran, how long it took, what failed. Standard library only.

Test runs go two at a time.

.venv/bin/python scripts/check.py lint       style, types, import contracts
.venv/bin/python scripts/check.py all        these, all tests on the newest Spark, and on Spark 3.5 those that versions may change
.venv/bin/python scripts/check.py nightly    these, all tests on the newest Spark, and all of the engine's on Spark 3.5
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEWEST = ROOT / ".venv" / "bin"
SPARK_3_5 = ROOT / ".venv-spark35" / "bin"


@dataclass(frozen=True)
class Step:
    """One command: what it shows in the summary, the environment it runs in, its arguments."""

    title: str
    environment: Path
    command: tuple[str, ...]


LINT = (
    Step("style (ruff check)", NEWEST, ("ruff", "check", ".")),
    Step("format (ruff format)", NEWEST, ("ruff", "format", "--check", ".")),
    Step("types of the pure code (mypy)", NEWEST, ("mypy",)),
    Step("import contracts (import-linter)", NEWEST, ("lint-imports",)),
)
TESTS = (
    Step("engine tests, newest Spark", NEWEST, ("python", "-m", "pytest", "-m", "spark and not slow", "tests/engine")),
    Step(
        "other tests, newest Spark",
        NEWEST,
        ("python", "-m", "pytest", "-m", "spark and not slow", "--ignore=tests/engine", "tests"),
    ),
    Step("tests that need no Spark", NEWEST, ("python", "-m", "pytest", "-m", "not spark and not slow", "tests")),
    Step(
        "what versions may change, Spark 3.5",
        SPARK_3_5,
        ("python", "-m", "pytest", "-m", "every_spark and not slow", "tests/engine", "tests/contract"),
    ),
)
NIGHTLY = (
    Step("all tests, newest Spark", NEWEST, ("python", "-m", "pytest")),
    Step(
        "all engine tests, Spark 3.5",
        SPARK_3_5,
        ("python", "-m", "pytest", "-m", "spark and not slow", "tests/engine", "tests/contract"),
    ),
)
GROUPS = {"lint": (LINT, ()), "all": (LINT, TESTS), "nightly": (LINT, NIGHTLY)}
"""name: (steps one after the other, steps two at a time, the longest first): one Spark session leaves half of two cores idle."""
AT_ONCE = 2


def main() -> int:
    """Run a group to its end, whatever fails on the way; 0 when all of it passed."""
    one_by_one, side_by_side = GROUPS[sys.argv[1]]
    number = len(one_by_one) + len(side_by_side)
    outcomes = []
    for place, step in enumerate(one_by_one, 1):
        print(f"\n[{place}/{number}] {step.title}: {' '.join(step.command)}", flush=True)
        outcomes.append((step, *run(step, show)))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = []
        for place, step in enumerate(side_by_side, len(one_by_one) + 1):
            # the first is shown as it runs, the others when they are done: two streams at once cannot be read
            later: list[str] = []
            print(f"\n[{place}/{number}] {step.title}: {' '.join(step.command)}", flush=True)
            running.append((step, later, pool.submit(run, step, later.append if running else show)))
        for place, (step, later, outcome) in enumerate(running, len(one_by_one) + 1):
            outcomes.append((step, *outcome.result()))
            if later:
                print(f"\n[{place}/{number}] {step.title}\n{''.join(later)}", end="", flush=True)
    print("\nSummary")
    for step, passed, seconds, last in outcomes:
        print(f"  {'passed' if passed else 'FAILED'}  {step.title:34} {seconds:6.0f} s   {last}")
    failed = sum(not passed for _, passed, _, _ in outcomes)
    print(f"{len(outcomes) - failed} of {len(outcomes)} checks passed." + (f" {failed} FAILED." if failed else ""))
    return 1 if failed else 0


def show(line: str) -> None:
    """Pass a line on as it comes."""
    print(line, end="", flush=True)


def run(step: Step, tell: Callable[[str], None]) -> tuple[bool, float, str]:
    """(passed, seconds, the last line it printed); every line of output is told as it comes."""
    started = time.monotonic()
    last: deque[str] = deque(maxlen=1)
    program, *arguments = step.command
    running = subprocess.Popen(
        [str(step.environment / program), *arguments],
        cwd=ROOT,
        env=environment(step.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    for line in running.stdout or ():
        tell(line)
        if line.strip():
            last.append(line.strip().strip("= "))
    return running.wait() == 0, time.monotonic() - started, "".join(last)[:90]


def environment(folder: Path) -> dict[str, str]:
    """This process's environment, with the Java that suits the Spark in `folder`, and its programs first on the path."""
    find = [folder / "python", "-m", "anonlib.engine.java"]
    home = subprocess.run(find, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    path = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "JAVA_HOME": home, "PATH": path, "PYTHONUNBUFFERED": "1"}


if __name__ == "__main__":
    sys.exit(main())
