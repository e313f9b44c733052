"""SABRE beside its baselines: information loss, real closeness and seconds over t, attributes, records and k (as in Fig. 10 to 14).

    python -m benchmarks.sabre [--data FOLDER] [--only t qi n k tight outliers] [--records 100000] [--plots FOLDER] [--no-incognito]

The census table is `census_sal_500k` with `salary_class` sensitive and the hierarchies that SABRE was tested with; the folder that holds
it is --data, else ANONLIB_DATA, else `../shared/data` beside the checkout. Records are samples without replacement under a fixed seed.

What is timed is the work on records itself, one core, from codes in memory to classes: the same functions that the tasks run, cut into
partitions of 100,000 records as the jobs cut them. `benchmarks.sabre_jobs` times whole jobs on Spark.

    SABRE-AK, SABRE-KNN   as published: D + U <= t, nearest records along the Hilbert curve or exactly
    default               classes of the same number of records of every sub-bucket
    refined               split on while the true distance allows it; leaks by minimality, as SABRE as published and Mondrian do
    tMondrian             normalised spans, any attribute, tight boxes; cuts between values (strict) or at the median record (relaxed)
    tIncognito            full-domain recoding, tight boxes
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from anonlib.domains import CategoricalDomain, Domain, NumericDomain, generalized_certainty_penalty, penalty_of_runs
from anonlib.errors import AnonlibError
from anonlib.evaluation.attacks_minimality import minimality
from anonlib.hierarchy import Hierarchy, parse_hierarchy, read_hierarchy
from anonlib.kernels.classes.equivalence_classes import TakeOut, scaled
from anonlib.kernels.classes.halving import Records, information_loss
from anonlib.kernels.classes.mondrian import mondrian
from anonlib.kernels.hilbert import hilbert_positions
from anonlib.methods.sabre import halving, symmetric
from anonlib.privacy.class_requirements import KAnonymity, all_of
from anonlib.privacy.ec_sizes import Partitions
from anonlib.privacy.sub_buckets import JointValues
from anonlib.privacy.t_closeness import GroundDistance, TCloseness
from anonlib.solvers.classes.ec_size_tree import choose
from anonlib.solvers.classes.full_domain_lattice import Combinations, search
from anonlib.solvers.classes.kd_cut import kd_tree
from anonlib.solvers.classes.sabre_buckets import bucketize
from anonlib.solvers.classes.sub_buckets import pack
from benchmarks import machine
from benchmarks.missing import missing

HERE = Path(__file__).resolve().parents[1]
PARTITION = 100_000
KEY = bytes(range(32))


@dataclass(frozen=True, eq=False)
class Table:
    """Codes of a sample: columns, domains, sensitive codes, and the distance between sensitive values."""

    columns: list[np.ndarray]
    domains: tuple[Domain, ...]
    sensitive: np.ndarray
    distance: GroundDistance

    @property
    def n(self) -> int:
        return len(self.sensitive)

    def close(self, t: Fraction) -> TCloseness:
        return TCloseness(self.distance, np.bincount(self.sensitive, minlength=self.distance.m), t)


def census_hierarchies() -> dict[str, Hierarchy]:
    """As the paper's experiments have them; gender and race know only "any"."""
    flat = {"gender": range(1, 3), "race": range(1, 10)}
    found = {name: parse_hierarchy("".join(f"{v},any\n" for v in values)) for name, values in flat.items()}
    for name in ("marital_status", "work_class", "country"):
        found[name] = read_hierarchy(HERE / "conf" / "hierarchies" / f"census_{name}.csv")
    return found


def census(path: Path, records: int, attributes: int = 7, flat: bool = False) -> Table:
    """A sample of a census table; its last column is sensitive."""
    table = pq.read_table(path)
    n = table.num_rows
    rows = np.sort(np.random.default_rng(1).permutation(n)[: min(records, n)])
    names, trees = table.column_names[:7][:attributes], census_hierarchies()
    columns: list[np.ndarray] = []
    domains: list[Domain] = []
    for name in names:
        values = table[name].to_numpy()
        if name in trees:
            tree = trees[name]
            leaf = dict(zip(map(int, tree.labels[: tree.leaves]), range(tree.leaves), strict=True))
            columns.append(np.array([leaf[int(v)] for v in values[rows]], dtype=np.int64))
            domains.append(CategoricalDomain(name, tree.labels[: tree.leaves], tree))
        else:
            columns.append(values[rows].astype(np.int64))
            domains.append(NumericDomain(name, float(values.min()), float(values.max())))
    texts, codes = np.unique(table.column(table.num_columns - 1).to_numpy()[rows], return_inverse=True)
    distance = GroundDistance.flat(len(texts)) if flat else GroundDistance.ordered([str(v) for v in texts])
    return Table(columns, tuple(domains), codes.astype(np.int64), distance)


def published(table: Table, t: Fraction, k: int, neighbours: str) -> np.ndarray:
    """SABRE's own classes, in partitions cut by exact ranks."""
    of = table.close(t)
    buckets, tree = choose(of, k)
    curve = hilbert_positions(table.columns, table.domains)
    bucket = buckets.bucket_of[table.sensitive]
    order = np.lexsort((curve, bucket))
    rank = np.empty(table.n, dtype=np.int64)
    rank[order] = np.arange(table.n)
    rank -= (np.cumsum(buckets.sizes) - buckets.sizes)[bucket]
    partition, node = Partitions(tree, PARTITION).locate(bucket, rank)
    kernel = TakeOut(table.domains, (of.distance.m,), buckets.bucket_of, tree, neighbours, of, KEY)
    return by_partition(table, partition, lambda c, s, here, p: kernel(c, [s], node[here], p))


def default(table: Table, t: Fraction, k: int) -> np.ndarray:
    """Classes of the same number of records of every sub-bucket, in one piece."""
    of, joint = table.close(t), JointValues.single(table.close(t).table)
    kernel = symmetric(table.domains, [of], joint, pack([of], joint, k), k, KEY)
    return kernel(table.columns, [table.sensitive], np.zeros(table.n, dtype=np.int64), 0)


def refined(table: Table, t: Fraction, k: int) -> np.ndarray:
    """Split on while the true distance allows it."""
    of = table.close(t)
    kernel = halving(table.domains, [of], k)
    zeros = np.zeros(table.n, dtype=np.int64)
    return by_partition(table, cut(table, of), lambda c, s, here, p: kernel(c, [s], zeros[here], p))


def t_mondrian(table: Table, t: Fraction, k: int, strict: bool) -> np.ndarray:
    requirement = all_of([KAnonymity(k), table.close(t)])
    m = table.distance.m
    return by_partition(
        table,
        cut(table, requirement),
        lambda c, s, here, p: mondrian(c, table.domains, s, m, requirement, strict),
    )


def t_incognito(table: Table, t: Fraction, k: int) -> np.ndarray:
    key = np.stack([*table.columns, table.sensitive], axis=1)
    cells, record, count = np.unique(key, axis=0, return_inverse=True, return_counts=True)
    combinations, of = np.unique(cells[:, :-1], axis=0, return_inverse=True)
    given = Combinations(tuple(combinations.T), of.ravel(), cells[:, -1], count, table.distance.m)
    chosen = search(given, table.domains, all_of([KAnonymity(k), table.close(t)]))
    return chosen.classes[of.ravel()][record.ravel()]


def cut(table: Table, requirement) -> np.ndarray:
    """The partition of each record, by quasi-identifiers alone, as the jobs cut."""
    if table.n < 2 * PARTITION:
        return np.zeros(table.n, dtype=np.int64)
    tree = kd_tree(table.columns, table.domains, np.ones(table.n, dtype=np.int64), PARTITION)
    leaf = tree.leaf_of(table.columns)
    m = table.distance.m
    counts = np.bincount(leaf * m + table.sensitive, minlength=tree.leaves * m).reshape(-1, m)
    return tree.merged(counts, requirement)[leaf]


def by_partition(table: Table, partition: np.ndarray, kernel: Callable) -> np.ndarray:
    classes, number = np.empty(table.n, dtype=np.int64), 0
    for p in range(int(partition.max()) + 1):
        here = np.flatnonzero(partition == p)
        own = kernel([column[here] for column in table.columns], table.sensitive[here], here, p)
        classes[here] = number + own
        number += int(own.max()) + 1
    return classes


@dataclass(frozen=True)
class Figure:
    """One method's classes on one table: loss, real closeness, how many classes, the smallest, seconds."""

    ail: float
    gcp: float
    closeness: float
    classes: int
    smallest: int
    seconds: float


def measured(table: Table, make: Callable[[], np.ndarray]) -> tuple[Figure, np.ndarray]:
    started = time.monotonic()
    classes = make()
    seconds = time.monotonic() - started
    number, each = int(classes.max()) + 1, np.arange(table.n)
    sizes = np.bincount(classes)
    records = Records(table.columns, table.domains, [table.sensitive], [table.distance.m], table.sensitive, each)
    loss = information_loss(records, each, classes, number)
    order = np.argsort(classes, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    penalties = [
        np.repeat(penalty_of_runs(d, c[order], bounds), sizes)
        for c, d in zip(table.columns, table.domains, strict=True)
    ]
    m = table.distance.m
    counts = np.bincount(classes * m + table.sensitive, minlength=number * m).reshape(number, m)
    return Figure(
        float((loss * sizes).sum() / table.n / len(table.columns)),
        generalized_certainty_penalty(penalties),
        float(table.close(Fraction(1)).farthest(counts)),
        number,
        int(sizes.min()),
        seconds,
    ), classes


def methods(incognito: bool) -> dict[str, Callable[[Table, Fraction, int], np.ndarray]]:
    found: dict[str, Callable[[Table, Fraction, int], np.ndarray]] = {
        "SABRE-AK": lambda table, t, k: published(table, t, k, "approximate"),
        "SABRE-KNN": lambda table, t, k: published(table, t, k, "exact"),
        "default": default,
        "refined": refined,
        "tMondrian strict": lambda table, t, k: t_mondrian(table, t, k, True),
        "tMondrian relaxed": lambda table, t, k: t_mondrian(table, t, k, False),
    }
    return found | ({"tIncognito": t_incognito} if incognito else {})


def series(
    name: str, points: Sequence[tuple[str, Table, Fraction, int]], incognito: bool
) -> dict[str, dict[str, Figure]]:
    """{method: {point: figure}}, printed as it comes."""
    print(f"\n{name}")
    found: dict[str, dict[str, Figure]] = {}
    for label, table, t, k in points:
        for method, make in methods(incognito).items():
            try:
                figure, _ = measured(table, lambda m=make, args=(table, t, k): m(*args))
            except AnonlibError as error:
                print(f"  {label:>9}  {method:<18} {error}")
                continue
            found.setdefault(method, {})[label] = figure
            print(
                f"  {label:>9}  {method:<18} AIL {figure.ail:.4f}  GCP {figure.gcp:.4f}  closeness {figure.closeness:.4f}  "
                f"{figure.classes:7,} classes of {figure.smallest:,} or more  {figure.seconds:7.1f} s",
                flush=True,
            )
    return found


def outliers(path: Path, records: int) -> None:
    """How often the outermost record of a class has the value, or the bucket, it seems to."""
    print("\nguessing the outermost record of a class (t = 0.35, k = 6): right, beside right by chance")
    table, t = census(path, records), Fraction("0.35")
    bucket_of = bucketize(table.close(t)).bucket_of
    points = scaled(table.columns, table.domains)
    for method, make in methods(incognito=False).items():
        classes = make(table, t, 6)
        for what, codes in (("bucket", bucket_of[table.sensitive]), ("value", table.sensitive)):
            attack = minimality(classes, points, codes, np.bincount(codes))
            print(f"  {method:<18} {what:<7} {attack.accuracy:.4f}  {attack.prior:.4f}", flush=True)


def plot(folder: Path, name: str, axis: str, found: dict[str, dict[str, Figure]]) -> None:
    """AIL, closeness and seconds of every method over the points."""
    from matplotlib.figure import Figure as Chart

    chart = Chart(figsize=(13, 3.8), layout="constrained")
    parts = chart.subplots(1, 3)
    for part, what, title in zip(
        parts, ("ail", "closeness", "seconds"), ("average information loss", "real closeness", "seconds"), strict=True
    ):
        for (method, points), mark in zip(found.items(), "os^vDx", strict=False):
            part.plot(list(points), [getattr(figure, what) for figure in points.values()], marker=mark, label=method)
        part.set(title=title, xlabel=axis, ylim=(0, None) if what != "seconds" else None)
    parts[2].set(yscale="log", ylim=(0.01, None))
    parts[0].legend(fontsize="small")
    folder.mkdir(parents=True, exist_ok=True)
    chart.savefig(folder / f"{name}.png", dpi=110)
    print(f"  {folder / f'{name}.png'}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.sabre")
    default = os.environ.get("ANONLIB_DATA", str(HERE.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=Path(default))
    parser.add_argument("--only", nargs="*", default=["t", "qi", "n", "k", "tight", "outliers"])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--plots", type=Path)
    parser.add_argument("--no-incognito", action="store_true")
    asked = parser.parse_args()
    path = asked.data / "census_sal_500k.parquet"
    if not path.exists():
        raise missing(f"there is no {path}; give --data or set ANONLIB_DATA to the folder that holds it")
    print(machine.facts())
    t, n, incognito = Fraction("0.35"), asked.records, not asked.no_incognito
    runs: dict[str, tuple[str, Callable[[], list[tuple[str, Table, Fraction, int]]]]] = {
        "t": ("t", lambda: [(s, census(path, n), Fraction(s), 6) for s in ("0.15", "0.25", "0.35", "0.45", "0.55")]),
        "qi": ("quasi-identifiers", lambda: [(str(d), census(path, n, d), t, 6) for d in (3, 4, 5, 6, 7)]),
        "n": (
            "records",
            lambda: [(f"{c}00k", census(path, c * n), t, 6) for c in (1, 2, 3, 4, 5)],
        ),
        "k": ("k", lambda: [(str(k), census(path, n), t, k) for k in (2, 6, 10, 20, 50)]),
        "tight": (
            "t, every salary as far as any other",
            lambda: [(s, census(path, n, flat=True), Fraction(s), 6) for s in ("0.15", "0.25", "0.35", "0.45", "0.55")],
        ),
    }
    for name, (axis, points) in runs.items():
        if name in asked.only:
            found = series(f"over {axis}", points(), incognito)
            if asked.plots:
                plot(asked.plots, f"sabre-{name}", axis, found)
    if "outliers" in asked.only:
        outliers(path, n)


if __name__ == "__main__":
    main()
