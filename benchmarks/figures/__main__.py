"""Every figure and table of the papers that our data allow, measured, judged and drawn into `docs/figures`.

    python -m benchmarks.figures [--only NAME ...] [--full] [--drawn-only] [--data FOLDER] [--folder FOLDER] [--page PAGE]

A NAME is as in the table it prints: GB-3, SDR-T1, HG-2. Beside each drawing its rows lie as JSON; verdicts on the page are recomputed
from those, so that `--drawn-only` draws and writes all of it again without measuring. A figure whose table is not there says "no data"
and keeps the rows of an earlier run, if any. The folder that holds the tables is --data, else ANONLIB_DATA, else `../shared/data` beside
the checkout; --folder is docs/figures and --page docs/papers-figures.md unless given.

Without --full samples are smaller: all of it takes some ten minutes on one free core. NumPy alone; Spark is not started. Seconds are of
this machine and differ from run to run; the rest is drawn under fixed seeds.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from pathlib import Path

from benchmarks import machine
from benchmarks.figures import drawing, store
from benchmarks.figures.figure import Figure, Scale
from benchmarks.figures.page import Shown, written
from benchmarks.figures.registry import FIGURES, NOT_DRAWN

ROOT = Path(__file__).resolve().parents[2]


def measured(figure: Figure, scale: Scale, folder: Path) -> str:
    """Measure a figure and store its rows; how long it took, or why it was not measured."""
    lacking = [table for table in figure.needs if not scale.path(table).exists()]
    if lacking:
        return f"no data: needs {', '.join(lacking)} in {scale.data}"
    started = time.monotonic()
    try:
        found = figure.measure(scale)
    except SystemExit:  # what is missing has been said
        return "no data"
    store.write(figure, found, folder)
    seconds = time.monotonic() - started
    beyond = "" if scale.full or seconds <= figure.budget else f", budget {figure.budget:.0f} s"
    return f"{seconds:.1f} s{beyond}"


def said(shown: Shown) -> list[str]:
    """The verdict of a figure, and its claims that do not hold."""
    against = [
        f"    does not hold: {claim.words} ({finding.measured})"
        for claim, finding in zip(shown.figure.claims, shown.findings, strict=False)
        if not finding.holds
    ]
    return [f"  {shown.figure.name:9} {shown.verdict}", *against]


def parsed() -> argparse.Namespace:
    beside = ROOT.parent / "shared" / "data"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=list(FIGURES), default=list(FIGURES))
    parser.add_argument("--full", action="store_true", help="the papers' sizes where the tables have them: hours")
    parser.add_argument("--drawn-only", action="store_true", help="measure nothing: draw and write what is stored")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ANONLIB_DATA", beside)))
    parser.add_argument("--folder", type=Path, default=store.FOLDER)
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "papers-figures.md")
    return parser.parse_args()


def main() -> None:
    given = parsed()
    scale, started = Scale(given.data, given.full), time.monotonic()
    print(machine.facts())
    for name in given.only:
        figure = FIGURES[name]
        outcome = "" if given.drawn_only else measured(figure, scale, given.folder)
        shown = Shown(figure, store.read(figure, given.folder))
        if shown.measured is not None:
            drawing.draw(figure, shown.measured, given.folder / f"{name}.svg")
        print("\n".join([f"{figure.paper} {figure.item}: {outcome}", *said(shown)]), flush=True)
    every = [Shown(figure, store.read(figure, given.folder)) for figure in FIGURES.values()]
    given.page.write_text(written(given.page.read_text(encoding="utf-8"), every, NOT_DRAWN), encoding="utf-8")
    verdicts = Counter(one.verdict for one in every)
    told = ", ".join(f"{number} {word}" for word, number in sorted(verdicts.items()))
    print(f"\n{told}; {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
