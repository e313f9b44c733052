"""SABRE_W on the census as a stream: Figures 15 and 16, what state costs, what delay tells. Kernels alone: NumPy on one core, no Spark.

    python -m benchmarks.stream [--data FOLDER] [--rows 120000] [--only advance,window,state,delay] [--incognito] [--plots FOLDER]

The folder that holds census_sal_500k is --data, else ANONLIB_DATA, else `../shared/data` beside the checkout. t = 0.35, k = 6, distance by
ranks of salary, as in the paper. AIL is the mean over all records that are shown. Every method is streamed alike: it forms the classes of
a window, and `anonlib.kernels.classes.sabre_window` says which are shown when.

    SABRE_W        what `anonlib stream` runs: sub-buckets treated alike
    as published   SABRE-AK in each window, which leaks by minimality; for comparison alone
    tMondrian, tIncognito (with --incognito: slow)

    advance   omega = 20,000, I = 1,000..20,000 (Figure 15)
    window    I = 5,000, omega = 10,000..50,000 (Figure 16)
    state     the state's bytes after every 100,000 records: flat, and by omega
    delay     whether a record's delay tells its value: chi-square of (advances waited, salary) among those that arrived together,
              beside what shuffled values give; for the table as it is, and for one whose salaries drift
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from anonlib.engine.codes import numbered
from anonlib.kernels.classes.equivalence_classes import TakeOut
from anonlib.kernels.classes.mondrian import mondrian
from anonlib.kernels.classes.sabre_window import Advance, Form, Records, Windows
from anonlib.methods.sabre_window import WindowClasses
from anonlib.methods.window_state import Kept, packed
from anonlib.privacy.class_requirements import AllOf, KAnonymity
from anonlib.privacy.t_closeness import GroundDistance, TCloseness
from anonlib.solvers.classes.ec_size_tree import choose
from anonlib.solvers.classes.full_domain_lattice import search
from benchmarks import machine
from benchmarks.baselines import Table, ail, census, combinations
from benchmarks.heterogeneous import plot

T, K = Fraction(35, 100), 6
KEY = bytes(range(3, 35))
BLOCK = 100_000


def forms(table: Table, distance: GroundDistance, incognito: bool) -> dict[str, Form]:
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

    methods: dict[str, Form] = {
        "SABRE_W": WindowClasses(tuple(table.domains), distance, K, KEY),
        "as published": as_published,
        "tMondrian": by_mondrian,
    }
    return methods | ({"tIncognito": by_incognito} if incognito else {})


@dataclass(frozen=True)
class Played:
    """What a stream came to. largest : bytes of state, by records arrived."""

    done: list[Advance]
    seconds: float
    shown: int
    loss: float
    classes: int
    state: dict[int, int]

    @property
    def cases(self) -> str:
        counts = Counter(advance.case for advance in self.done)
        return ", ".join(f"{counts[case]} {case}" for case in ("direct", "indirect", "nothing"))


def played(table: Table, windows: Windows) -> Played:
    """The whole table through the windows, as it arrives in pieces of one advance."""
    records = Records(tuple(table.columns), table.sensitive)
    state, done, seconds, sizes = windows.begin(table.columns), [], 0.0, {}
    for start in range(0, table.n, windows.advance):
        piece = records.taken(np.arange(start, min(start + windows.advance, table.n)))
        begun = time.perf_counter()
        advances, state = windows.advanced(state, piece)
        seconds += time.perf_counter() - begun
        done += advances
        if (start + windows.advance) % BLOCK < windows.advance:
            sizes[start + windows.advance] = len(packed(Kept(state, 0)))
    shown, loss, classes = 0, 0.0, 0
    for part in (advance.shown for advance in done if advance.shown is not None):
        own = np.unique(part.classes, return_inverse=True)[1].astype(np.int64)
        held = Table(list(part.records.columns), table.domains, part.records.sensitive, table.m)
        loss += ail(held, own) * held.n
        shown, classes = shown + held.n, classes + int(own.max()) + 1
    return Played(done, seconds, shown, loss / max(1, shown), classes, sizes)


def by_size(table: Table, sizes: list[tuple[int, int]], incognito: bool) -> Iterator[tuple[str, int, int, Played]]:
    distance = GroundDistance.ordered(table.counts.values)
    for size, advance in sizes:
        for name, form in forms(table, distance, incognito).items():
            yield name, size, advance, played(table, Windows(size, advance, K, distance, T, form))


def told(name: str, size: int, advance: int, it: Played) -> str:
    rate = it.shown / max(it.seconds, 1e-9)
    return (
        f"  omega {size:6,} I {advance:6,}  {name:12}  AIL {it.loss:.4f}  {it.seconds:7.2f} s  {rate:9,.0f} records/s  "
        f"{it.classes:7,} classes  {it.cases}"
    )


def figure(table: Table, sizes: list[tuple[int, int]], given: argparse.Namespace, x: str, title: str) -> Iterator[str]:
    losses: dict[str, list[tuple[float, float]]] = {}
    times: dict[str, list[tuple[float, float]]] = {}
    for name, size, advance, it in by_size(table, sizes, given.incognito):
        at = float(advance if x == "I" else size)
        losses.setdefault(name, []).append((at, it.loss))
        times.setdefault(name, []).append((at, it.seconds))
        yield told(name, size, advance, it)
    if given.plots is not None:
        plot(losses, title, x, "average information loss", given.plots / f"stream-{x}-ail.png")
        plot(times, title, x, "seconds", given.plots / f"stream-{x}-seconds.png")


def by_state(table: Table) -> Iterator[str]:
    distance = GroundDistance.ordered(table.counts.values)
    for size in (10_000, 20_000, 40_000):
        form = forms(table, distance, False)["SABRE_W"]
        it = played(table, Windows(size, 5_000, K, distance, T, form))
        held = ", ".join(f"{records:,}: {size_ / 1e6:.2f} MB" for records, size_ in it.state.items())
        yield f"  omega {size:6,} I  5,000  {held}"


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
            form = forms(stream, distance, False)["SABRE_W"]
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


def main() -> None:
    parser = argparse.ArgumentParser()
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ANONLIB_DATA", str(beside))))
    parser.add_argument("--rows", type=int, default=120_000)
    parser.add_argument("--only", default="advance,window,state,delay")
    parser.add_argument("--incognito", action="store_true")
    parser.add_argument("--plots", type=Path)
    given = parser.parse_args()
    asked = given.only.split(",")
    print(machine.facts())
    rows = np.random.default_rng(0).permutation(500_000)[: given.rows]
    table = census(given.data, "census_sal_500k", "salary_class", rows)
    by_advance = [(20_000, advance) for advance in (1_000, 2_000, 5_000, 10_000, 20_000)]
    by_window = [(size, 5_000) for size in (10_000, 20_000, 30_000, 40_000, 50_000)]
    parts = {
        "advance": ("Figure 15: by I", lambda: figure(table, by_advance, given, "I", "omega = 20,000")),
        "window": ("Figure 16: by omega", lambda: figure(table, by_window, given, "omega", "I = 5,000")),
        "state": ("The state, by records arrived", lambda: by_state(table)),
        "delay": ("What delay tells of a value", lambda: by_delay(table)),
    }
    for name, (title, lines) in parts.items():
        if name in asked:
            print(f"\n{title}: {table.n:,} rows, t = {float(T)}, k = {K}", flush=True)
            for line in lines():
                print(line, flush=True)


if __name__ == "__main__":
    main()
