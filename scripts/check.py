"""Run the checks, show what each says, and end with a summary: what ran, how long it took, what failed. Standard library only.

Test runs go three at a time. Each tells the CPU seconds of all its processes too, Java and Python workers among them: they say what a
run costs on any machine, however busy; wall seconds of two lanes cannot fall below half of their sum on two cores.

.venv/bin/python scripts/check.py lint       style, types, import contracts
.venv/bin/python scripts/check.py pure       the quick tests that need no Spark, in two runs that share the work
.venv/bin/python scripts/check.py all        these, the tests on the newest Spark, and on Spark 3.5 those that versions may change
.venv/bin/python scripts/check.py nightly    these, all tests on the newest Spark, and all of the engine's on Spark 3.5
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
NEWEST = ROOT / ".venv" / "bin"
SPARK_3_5 = ROOT / ".venv-spark35" / "bin"


@dataclass(frozen=True)
class Step:
    """One command: what it shows in the summary, the environment it runs in, its arguments."""

    title: str
    environment: Path
    command: tuple[str, ...]


STYLE = (
    Step("style (ruff check)", NEWEST, ("ruff", "check", ".")),
    Step("format (ruff format)", NEWEST, ("ruff", "format", "--check", ".")),
)
SHAPE = (
    Step("import contracts (import-linter)", NEWEST, ("lint-imports",)),
    Step("types (mypy)", NEWEST, ("mypy",)),
)
PYTEST = ("python", "-m", "pytest")
TOGETHER = ("--together", "{together}")
"""Runs that share their test modules through a new folder, made for each run of this program; see tests/together.py."""
ON_NEWEST = (*PYTEST, *TOGETHER, "-m", "spark and not slow", "tests")
ON_3_5 = ("tests/engine", "tests/contract")

# three at a time: a session of Spark plans most of the time and leaves half a core idle; what is short goes last, so that all end together
TESTS = (
    Step("Spark tests, newest Spark, one half", NEWEST, ON_NEWEST),
    Step("Spark tests, newest Spark, the rest", NEWEST, ON_NEWEST),
    Step("what versions may change, Spark 3.5", SPARK_3_5, (*PYTEST, "-m", "every_spark and not slow", *ON_3_5)),
    Step("tests that need no Spark", NEWEST, (*PYTEST, "-m", "not spark and not slow", "tests")),
)
WITHOUT_SPARK = (*PYTEST, *TOGETHER, "-m", "not spark and not slow and not long", "tests")
PURE = tuple(Step(f"quick tests without Spark, {part}", NEWEST, WITHOUT_SPARK) for part in ("one half", "the rest"))
NIGHTLY = (
    Step("all tests, newest Spark", NEWEST, PYTEST),
    Step(
        "all engine tests, Spark 3.5",
        SPARK_3_5,
        (*PYTEST, "-m", "spark and not slow", *ON_3_5),
    ),
)
GROUPS = {
    "lint": (STYLE, SHAPE),
    "pure": ((), PURE),
    "all": (STYLE, (*TESTS, *SHAPE)),
    "nightly": (STYLE, (*NIGHTLY, *SHAPE)),
}
"""name: (steps one after the other, steps `AT_ONCE` at a time)."""
AT_ONCE = 3
CPU_SECONDS = re.compile(r"CPU seconds of all processes: (\d+)")
"""As tests/conftest.py tells them at the end of a test run."""


@dataclass(frozen=True)
class Outcome:
    """How a step ended: its wall seconds, its CPU seconds where it told them, the last line it printed."""

    passed: bool
    seconds: float
    cpu: int | None
    last: str


def main() -> int:
    """Run a group to its end, whatever fails on the way; 0 when all of it passed."""
    one_by_one, side_by_side = GROUPS[sys.argv[1]]
    number = len(one_by_one) + len(side_by_side)
    outcomes: list[tuple[Step, Outcome]] = []
    started = time.monotonic()
    for place, step in enumerate(one_by_one, 1):
        print(f"\n[{place}/{number}] {step.title}: {' '.join(step.command)}", flush=True)
        outcomes.append((step, run(step, show)))
    with ThreadPoolExecutor(AT_ONCE) as pool, TemporaryDirectory() as together:
        running = []
        for place, step in enumerate(side_by_side, len(one_by_one) + 1):
            # the first is shown as it runs, the others when they are done: two streams at once cannot be read
            later: list[str] = []
            print(f"\n[{place}/{number}] {step.title}: {' '.join(step.command)}", flush=True)
            running.append((step, later, pool.submit(run, step, later.append if running else show, together)))
        for place, (step, later, ends) in enumerate(running, len(one_by_one) + 1):
            outcomes.append((step, ends.result()))
            if later:
                print(f"\n[{place}/{number}] {step.title}\n{''.join(later)}", end="", flush=True)
    print("\nSummary")
    for step, outcome in outcomes:
        cpu = "" if outcome.cpu is None else f"{outcome.cpu} CPU s"
        print(
            f"  {'passed' if outcome.passed else 'FAILED'}  {step.title:36} {outcome.seconds:6.0f} s {cpu:>10}   {outcome.last}"
        )
    whole, cpu = time.monotonic() - started, sum(outcome.cpu or 0 for _, outcome in outcomes)
    print(f"{'':10}{'all':36} {whole:6.0f} s {f'{cpu} CPU s' if cpu else '':>10}")
    failed = sum(not outcome.passed for _, outcome in outcomes)
    print(f"{len(outcomes) - failed} of {len(outcomes)} checks passed." + (f" {failed} FAILED." if failed else ""))
    return 1 if failed else 0


def show(line: str) -> None:
    """Pass a line on as it comes."""
    print(line, end="", flush=True)


def run(step: Step, tell: Callable[[str], None], together: str = "") -> Outcome:
    """Run one step to its end; every line of output is told as it comes. together : the folder of runs that share their work."""
    started, cpu = time.monotonic(), None
    last: deque[str] = deque(maxlen=1)
    program, *arguments = (word.format(together=together) for word in step.command)
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
        if spent := CPU_SECONDS.search(line):
            cpu = int(spent[1])
    return Outcome(running.wait() == 0, time.monotonic() - started, cpu, "".join(last)[:90])


def environment(folder: Path) -> dict[str, str]:
    """This process's environment, with the Java that suits the Spark in `folder`, and its programs first on the path."""
    find = [folder / "python", "-m", "anonlib.engine.java"]
    home = subprocess.run(find, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    path = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"
    # thousands of tests in several runs, and every worker of Spark's, read the same modules: compile each once, whatever the shell says
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "JAVA_HOME": home, "PATH": path, "PYTHONUNBUFFERED": "1"}


if __name__ == "__main__":
    sys.exit(main())
