"""Every benchmark in turn, to the end, whatever fails on the way: ratios and machine facts (hours at full size).

python -m benchmarks [NAME ...]

A benchmark whose table or package is not on this machine says so and is left out. Exit code 1 when another one failed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.missing import EXIT_CODE

HERE = Path(__file__).resolve().parent


def names() -> list[str]:
    """Of the modules here that are programs."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(HERE.glob("[!_]*.py"))}
    return [name for name, text in texts.items() if '__name__ == "__main__"' in text]


def main() -> int:
    outcomes: list[tuple[str, str, float]] = []
    for name in sys.argv[1:] or names():
        print(f"\nbenchmarks.{name}", flush=True)
        started = time.monotonic()
        code = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=HERE.parent, check=False).returncode
        outcome = {0: "ran", EXIT_CODE: "left out"}.get(code, "FAILED")
        outcomes.append((name, outcome, time.monotonic() - started))
    print("\nSummary")
    for name, outcome, seconds in outcomes:
        print(f"  {outcome:8}  {name:20} {seconds:6.0f} s")
    return int(any(outcome == "FAILED" for _, outcome, _ in outcomes))


if __name__ == "__main__":
    sys.exit(main())
