"""SABRE_W on the census as a stream: Figures 15 and 16, what state costs, what delay tells. Kernels alone: NumPy on one core, no Spark.

    python -m benchmarks.stream [--data FOLDER] [--rows 120000] [--only advance,window,state,delay] [--plots FOLDER]

The folder that holds census_sal_500k is --data, else ANONLIB_DATA, else `../shared/data` beside the checkout. Its rows come in random
order; beyond its 500,000 they come again, in another order. t = 0.35, k = 6, distance by ranks of salary, as in the paper. AIL is the
mean over all records that are shown; seconds are of CPU. Every method is streamed alike: it forms the classes of a window, and
`anonlib.kernels.classes.sabre_window` says which are shown when. With --plots each figure is drawn into the folder as SVG.

    SABRE_W        what `anonlib stream` runs: sub-buckets treated alike
    as published   SABRE-AK in each window, which leaks by minimality; for comparison alone
    tMondrian      Mondrian whose cuts keep t-closeness
    tIncognito     full-domain generalization, the best that keeps it

    advance   omega = 20,000, I = 1,000..20,000 (Figure 15)
    window    I = 5,000, omega = 10,000..50,000 (Figure 16)
    state     the state's bytes and the time of SABRE_W at every tenth of the rows: flat, and by omega (I = omega / 2)
    delay     whether a record's delay tells its value: chi-square of (advances waited, salary) among those that arrived together,
              beside what shuffled values give; for the table as it is, and for one whose salaries drift

`benchmarks.stream_jobs` measures whole streams on Spark.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from anonlib.engine.codes import numbered
from anonlib.kernels.classes.equivalence_classes import TakeOut
from anonlib.kernels.classes.mondrian import mondrian
from anonlib.kernels.classes.sabre_window import Advance, Form, Records, State, Windows
from anonlib.methods.sabre_window import WindowClasses
from anonlib.methods.window_state import Kept, packed
from anonlib.privacy.class_requirements import AllOf, KAnonymity
from anonlib.privacy.t_closeness import GroundDistance, TCloseness
from anonlib.solvers.classes.ec_size_tree import choose
from anonlib.solvers.classes.full_domain_lattice import search
from benchmarks import machine
from benchmarks.baselines import Table, ail, census, combinations
from benchmarks.missing import missing

T, K = Fraction(35, 100), 6
KEY = bytes(range(3, 35))


def forms(table: Table, distance: GroundDistance) -> dict[str, Form]:
    """{method: how it forms the classes of a window}."""

    def asked(sensitive: np.ndarray, t: Fraction) -> AllOf:
        close = TCloseness(distance, np.bincount(sensitive, minlength=table.m), t)
        return AllOf((KAnonymity(K), close))

    def by_mondrian(columns, sensitive, t, window):  # type: ignore[no-untyped-def]
        return mondrian(columns, table.domains, sensitive, table.m, asked(sensitive, t))

    def by_incognito(columns, sensitive, t, window):  # type: ignore[no-untyped-def]
        own = Table(list(columns), table.domains, sensitive, table.m)
        found = search(combinations(own), own.domains, asked(sensitive, t)).classes[numbered(own.columns)]
        return np.unique(found, return_inverse=True)[1].astype(np.int64)

    def as_published(columns, sensitive, t, window):  # type: ignore[no-untyped-def]
        close = TCloseness(distance, np.bincount(sensitive, minlength=table.m), t)
        buckets, tree = choose(close, K)
        requirement = asked(sensitive, t)
        kernel = TakeOut(tuple(table.domains), (table.m,), buckets.bucket_of, tree, "approximate", requirement, KEY)
        own = kernel(columns, [sensitive], np.zeros(len(sensitive), dtype=np.int64), window)
        return np.unique(own, return_inverse=True)[1].astype(np.int64)

    return {
        "SABRE_W": WindowClasses(tuple(table.domains), distance, K, KEY),
        "as published": as_published,
        "tMondrian": by_mondrian,
        "tIncognito": by_incognito,
    }


@dataclass(frozen=True)
class Played:
    """What a stream came to. seconds : of CPU."""

    done: list[Advance]
    seconds: float
    shown: int
    loss: float
    classes: int

    @property
    def cases(self) -> str:
        counts = Counter(advance.case for advance in self.done)
        return ", ".join(f"{counts[case]} {case}" for case in ("direct", "indirect", "nothing"))


def pieces(table: Table, windows: Windows) -> Iterator[tuple[int, list[Advance], State, float]]:
    """The whole table through the windows, as it arrives in pieces of one advance: (records so far, advances, state, CPU seconds)."""
    records, state = Records(tuple(table.columns), table.sensitive), windows.begin(table.columns)
    for start in range(0, table.n, windows.advance):
        stop = min(start + windows.advance, table.n)
        piece = records.taken(np.arange(start, stop))
        begun = time.process_time()
        advances, state = windows.advanced(state, piece)
        yield stop, advances, state, time.process_time() - begun


def played(table: Table, windows: Windows) -> Played:
    done, seconds = [], 0.0
    for _, advances, _, taken in pieces(table, windows):
        done += advances
        seconds += taken
    shown, loss, classes = 0, 0.0, 0
    for part in (advance.shown for advance in done if advance.shown is not None):
        own = np.unique(part.classes, return_inverse=True)[1].astype(np.int64)
        held = Table(list(part.records.columns), table.domains, part.records.sensitive, table.m)
        loss += ail(held, own) * held.n
        shown, classes = shown + held.n, classes + int(own.max()) + 1
    return Played(done, seconds, shown, loss / max(1, shown), classes)


def by_size(table: Table, sizes: list[tuple[int, int]]) -> Iterator[tuple[str, int, int, Played]]:
    distance = GroundDistance.ordered(table.counts.values)
    for size, advance in sizes:
        for name, form in forms(table, distance).items():
            yield name, size, advance, played(table, Windows(size, advance, K, distance, T, form))


def told(name: str, size: int, advance: int, it: Played) -> str:
    rate = it.shown / max(it.seconds, 1e-9)
    return (
        f"  omega {size:6,} I {advance:6,}  {name:12}  AIL {it.loss:.4f}  {it.seconds:7.2f} s  {rate:9,.0f} records/s  "
        f"{it.classes:7,} classes  {it.cases}"
    )


Curves = dict[str, list[tuple[float, float]]]


def figure(table: Table, sizes: list[tuple[int, int]], plots: Path | None, name: str, title: str) -> Iterator[str]:
    """The methods at each (omega, I), as lines; drawn as stream-NAME.svg over the one of both that is not always the same."""
    losses: Curves = {}
    times: Curves = {}
    for method, size, advance, it in by_size(table, sizes):
        at = float(advance if name == "advance" else size)
        losses.setdefault(method, []).append((at, it.loss))
        times.setdefault(method, []).append((at, it.seconds))
        yield told(method, size, advance, it)
    if plots is not None:
        x = {"advance": "I, records of an advance", "window": "omega, records of a window"}[name]
        panels = {"average information loss": losses, "seconds of CPU": times}
        draw(panels, f"{title}: {table.n:,} rows", x, plots / f"stream-{name}.svg")


def draw(panels: Mapping[str, Curves], title: str, x: str, path: Path) -> None:
    """Curves side by side as an SVG, the same for the same figures."""
    try:
        import matplotlib
    except ImportError:
        raise missing("drawing needs matplotlib: pip install matplotlib") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "stream"}):
        whole, axes = pyplot.subplots(1, len(panels), figsize=(10, 4))
        for axis, (y, curves) in zip(axes, panels.items(), strict=True):
            for (name, points), marker in zip(curves.items(), "os^v", strict=False):
                axis.plot(*zip(*points, strict=True), marker=marker, label=name)
            axis.set(xlabel=x, ylabel=y, ylim=(0, None))
        axes[0].legend()
        whole.suptitle(title)
        whole.tight_layout()
        whole.savefig(path, metadata={"Date": None})
        pyplot.close(whole)


def by_state(table: Table, sizes: Sequence[int]) -> Iterator[str]:
    """A line for each tenth of the rows: nothing of a stream is kept here but its state."""
    distance = GroundDistance.ordered(table.counts.values)
    for size in sizes:
        form = forms(table, distance)["SABRE_W"]
        tenth, mark, most, seconds, since, largest = table.n // 10, 1, 0, 0.0, 0, 0
        for arrived, _, state, taken in pieces(table, Windows(size, size // 2, K, distance, T, form)):
            held = len(packed(Kept(state, 0)))
            most, largest, seconds = max(most, held), max(largest, held), seconds + taken
            if arrived >= mark * tenth:
                yield (
                    f"  omega {size:6,} I {size // 2:6,}  {arrived:10,} records  state at most {most / 1e6:6.3f} MB  "
                    f"{(arrived - since) / max(seconds, 1e-9):8,.0f} records/s"
                )
                mark, most, seconds, since = arrived // tenth + 1, 0, 0.0, arrived
        yield f"  omega {size:6,}: {largest / size:.1f} bytes of state for each record of a window, at most"


def drifting(table: Table) -> Table:
    """The same records in another order: half of them by salary, so that what is common changes with time."""
    draw = np.random.default_rng(4)
    key = np.where(draw.random(table.n) < 0.5, table.sensitive / table.m, draw.random(table.n))
    order = np.argsort(key + draw.normal(0, 0.02, table.n), kind="stable")
    return Table([column[order] for column in table.columns], table.domains, table.sensitive[order], table.m)


def dependence(waited: np.ndarray, value: np.ndarray, block: np.ndarray, m: int) -> float:
    """Chi-square of (advances waited, value) within the records that arrived together, summed."""
    total = 0.0
    for one in np.unique(block):
        chosen = block == one
        cells = np.zeros((int(waited.max()) + 1, m))
        np.add.at(cells, (waited[chosen], value[chosen]), 1)
        expected = np.outer(cells.sum(axis=1), cells.sum(axis=0)) / cells.sum()
        kept = expected > 0
        total += float(((cells[kept] - expected[kept]) ** 2 / expected[kept]).sum())
    return total


def by_delay(table: Table) -> Iterator[str]:
    distance = GroundDistance.ordered(table.counts.values)
    for what, stream in (("as it is", table), ("drifting", drifting(table))):
        for size, advance in ((20_000, 5_000), (20_000, 20_000)):
            form = forms(stream, distance)["SABRE_W"]
            it = played(stream, Windows(size, advance, K, distance, T, form))
            parts = [(a, a.shown) for a in it.done if a.shown is not None]
            number = np.concatenate([shown.number for _, shown in parts])
            waited = np.concatenate([(a.arrived - shown.number - 1) // advance for a, shown in parts])
            value, block = stream.sensitive[number], number // advance
            real = dependence(waited, value, block, stream.m)
            draw, chance = np.random.default_rng(0), []
            for _ in range(40):
                mixed = value.copy()
                for one in np.unique(block):
                    at = np.flatnonzero(block == one)
                    mixed[at] = mixed[draw.permutation(at)]
                chance.append(dependence(waited, mixed, block, stream.m))
            mean, spread = float(np.mean(chance)), float(np.std(chance))
            apart = (real - mean) / spread if spread else 0.0
            yield (
                f"  {what:9} omega {size:6,} I {advance:6,}  chi-square {real:10,.0f}  by chance {mean:10,.0f} +- {spread:6,.0f}  "
                f"{apart:+6.1f} standard deviations  ({it.cases})"
            )


def rows_of(table_rows: int, asked: int) -> np.ndarray:
    """Which rows arrive: each once in random order, then all again in another."""
    draw, times = np.random.default_rng(0), -(-asked // table_rows)
    return np.concatenate([draw.permutation(table_rows) for _ in range(times)])[:asked]


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.stream")
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ANONLIB_DATA", str(beside))))
    parser.add_argument("--rows", type=int, default=120_000)
    parser.add_argument("--only", default="advance,window,state,delay")
    parser.add_argument("--windows", type=lambda s: [int(p) for p in s.split(",")], default=[10_000, 20_000, 40_000])
    parser.add_argument("--plots", type=Path)
    given = parser.parse_args()
    asked = given.only.split(",")
    print(machine.facts())
    if not (given.data / "census_sal_500k.parquet").exists():
        raise missing(f"there is no census_sal_500k in {given.data}; give --data or set ANONLIB_DATA")
    table = census(given.data, "census_sal_500k", "salary_class", rows_of(500_000, given.rows))
    by_advance = [(20_000, advance) for advance in (1_000, 2_000, 5_000, 10_000, 20_000)]
    by_window = [(size, 5_000) for size in (10_000, 20_000, 30_000, 40_000, 50_000)]
    parts = {
        "advance": ("Figure 15: by I", lambda: figure(table, by_advance, given.plots, "advance", "omega = 20,000")),
        "window": ("Figure 16: by omega", lambda: figure(table, by_window, given.plots, "window", "I = 5,000")),
        "state": ("The state, by records arrived", lambda: by_state(table, given.windows)),
        "delay": ("What delay tells of a value", lambda: by_delay(table)),
    }
    for name, (title, lines) in parts.items():
        if name in asked:
            print(f"\n{title}: {table.n:,} rows, t = {float(T)}, k = {K}", flush=True)
            for line in lines():
                print(line, flush=True)


if __name__ == "__main__":
    main()
