"""Every attack of the registry on a release of every kind, as one Markdown table.

    python -m benchmarks.attacks                              the first 10,000 census records
    python -m benchmarks.attacks --into docs/attacks.md       the same, written between the page's markers
    python -m benchmarks.attacks --only "anatomy, l = 10"     one release; with --into the rows of the others stay as they are

The table is `census_occ_100k` with occupation sensitive and seven quasi-identifiers. The folder that holds it is --data, else ANONLIB_DATA,
else `../shared/data` beside the checkout. The release key is fixed, so that the figures can be had again; a key that stands in a program
is for benchmarks only. Minutes at 10,000 records.

A row's "above" counts the persons who are believed to have some value with more than the promise allows for *that* value; the bound that is
printed is the largest over the values. Where an attack is above a promised bound, that is said on standard error, the exit code is 1, and
no page is written.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import anonlib
from anonlib.engine.session import session
from anonlib.evaluation.attacks import differential_inference
from anonlib.evaluation.attacks_registry import BUCKETIZED, CLASSES, MATCHED, PERTURBED
from anonlib.privacy.f_privacy import FPrivacy
from benchmarks.attacks_page import Row, above_bounds, filled, gathered, kept, shown, tables
from benchmarks.missing import missing

TABLE, SENSITIVE = "census_occ_100k", "occupation"
NUMERIC = ("age", "education")
KEY = "ANONLIB_BENCHMARK_KEY"
ALIKE = 0.02
"""Of the records must look alike at least, for the demonstration with noisy counts."""

Publish = Callable[..., Any]
WITH_FAKES = partial(anonlib.bucketize, privacy=FPrivacy.l_diversity(10), fake_values=2)
SABRE_AK = partial(anonlib.sabre, t="0.3", neighbours="approximate", allow_minimality_leak=True)

RELEASES: Mapping[str, tuple[str, Publish]] = {
    "bucketize, l = 10": (BUCKETIZED, partial(anonlib.bucketize, privacy=FPrivacy.l_diversity(10))),
    "bucketize, theta = 8": (BUCKETIZED, partial(anonlib.bucketize, privacy=FPrivacy.linear(theta=8, offset="0.02"))),
    "bucketize, l = 10, 2 fakes": (BUCKETIZED, WITH_FAKES),
    "bucketize, l = 10, 2 fakes, defended": (BUCKETIZED, partial(WITH_FAKES, avoid_negative_associations=True)),
    "anatomy, l = 10": (BUCKETIZED, partial(anonlib.anatomy, l=10)),
    "sabre, t = 0.3": (CLASSES, partial(anonlib.sabre, t="0.3")),
    "sabre as published, t = 0.3": (CLASSES, SABRE_AK),
    "mondrian, k = 10, l = 4": (CLASSES, partial(anonlib.mondrian, k=10, frequency_l=4)),
    "burel, beta = 3": (CLASSES, partial(anonlib.burel, beta=3)),
    "heterogeneous, l = 10": (MATCHED, partial(anonlib.heterogeneous, l=10)),
    "heterogeneous, beta = 3": (MATCHED, partial(anonlib.heterogeneous, beta=3)),
    "perturb, rho2 = 1/3": (PERTURBED, partial(anonlib.perturb, rho1="1/13", rho2="1/3")),
}
"""{name: (layout, how it is published)}. "defended" avoids negative associations."""


def records_of(data: Path, number: int) -> pa.Table:
    """The first records of the census table."""
    return pq.read_table(data / f"{TABLE}.parquet").slice(0, number)


def columns(names: Iterable[str]) -> list[Any]:
    """The quasi-identifiers, with what is counted and what is named."""
    return [
        {"name": name, "type": "numeric" if name in NUMERIC else "categorical"} for name in names if name != SENSITIVE
    ]


def likeliest(table: pa.Table, least: int) -> tuple[dict[str, Any], Any, int, int]:
    """({two quasi-identifiers: their values}, a sensitive value, how many look so, how many of these have it): of all such groups with
    `least` records or more the one with the largest share of one value."""
    best: tuple[dict[str, Any], Any, int, int] = ({}, None, 1, 0)
    for pair in combinations([name for name in table.column_names if name != SENSITIVE], 2):
        sizes = table.group_by(list(pair), use_threads=False).aggregate([([], "count_all")]).to_pylist()
        alike = {tuple(row[name] for name in pair): row["count_all"] for row in sizes}
        for row in table.group_by([*pair, SENSITIVE], use_threads=False).aggregate([([], "count_all")]).to_pylist():
            looks = tuple(row[name] for name in pair)
            if alike[looks] >= least and row["count_all"] * best[2] > best[3] * alike[looks]:
                best = (dict(zip(pair, looks, strict=True)), row[SENSITIVE], alike[looks], row["count_all"])
    return best


def noisy_counts(table: pa.Table) -> list[str]:
    """Theorem 2 on the census records: a table of epsilon, and the ratio of two noisy counts."""
    looks, value, x, y = likeliest(table, round(ALIKE * len(table)))
    if not looks:
        return ["Noisy counts: too few records look alike in any two columns."]
    overall = sum(v == value for v in table[SENSITIVE].to_pylist()) / len(table)
    named = " and ".join(f"{name} {held}" for name, held in looks.items())
    lines = [
        f"Noisy counts of the same records: {x:,} have {named}, {y:,} of these {SENSITIVE} {value}, a share of {y / x:.4f}; of all "
        f"records {overall:.4f} have it.",
        "",
        "| epsilon | mean of Y/X | by Theorem 2 | standard deviation | by Theorem 2 |",
        "|---|---|---|---|---|",
    ]
    for epsilon in (1.0, 0.5, 0.1):
        told = differential_inference(x, y, epsilon, overall).detail
        deviations = [float(told[name]) ** 0.5 for name in ("variance", "expected variance")]
        means = f"{told['mean']:.4f} | {told['expected mean']:.4f}"
        lines.append(f"| {epsilon:g} | {means} | {deviations[0]:.4f} | {deviations[1]:.4f} |")
    return lines


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("ANONLIB_DATA", "../shared/data"))
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--only", nargs="*", choices=RELEASES, default=list(RELEASES), metavar="RELEASE")
    parser.add_argument("--into", type=Path, help="a page with the markers, which the table is written between")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def played(given: argparse.Namespace, table: pa.Table) -> list[Row]:
    """Publishes each release and plays all attacks on it; prints seconds as it goes."""
    os.environ[KEY] = hashlib.sha256(b"benchmarks.attacks").hexdigest()
    spark, rows = session(), []
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(table, f"{folder}/original.parquet")
        original = spark.read.parquet(f"{folder}/original.parquet")
        looks = columns(original.columns)
        for number, name in enumerate(given.only):
            started = time.perf_counter()
            layout, publish = RELEASES[name]
            release = publish(
                original,
                quasi_identifiers=looks,
                sensitive=SENSITIVE,
                key=f"env:{KEY}",
                output=f"{folder}/of-{number}/release",
            )
            published = time.perf_counter()
            found = anonlib.evaluate(release, original, queries=20, seed=given.seed, attacks=True)
            rows += [Row(attack, layout, name, told) for attack, told in found.attacks.items()]
            seconds = f"{published - started:.0f} s to publish, {time.perf_counter() - published:.0f} s to evaluate"
            print(f"{name}: {seconds}", flush=True)
    return rows


def main() -> None:
    given = arguments()
    if not (Path(given.data) / f"{TABLE}.parquet").exists():
        raise missing(f"{TABLE}.parquet is not in {given.data}: name its folder with --data or ANONLIB_DATA")
    table = records_of(Path(given.data), given.records)
    facts = f"Census occupations, the first {given.records:,} records, seed {given.seed}."
    layouts = {name: layout for name, (layout, _) in RELEASES.items()}
    old = "" if given.into is None else given.into.read_text(encoding="utf-8")
    if given.into:
        filled(old, ())  # rather now than after minutes
    stay = kept(old, layouts, given.only)
    if stay and facts not in old:
        raise SystemExit(f"the other releases on {given.into} are of another table or seed: leave out --only")
    rows = played(given, table)
    lines = gathered([*stay, *map(shown, rows)], layouts)
    told = [facts, "", *tables(lines), "", *noisy_counts(table)]
    print("\n".join(["", *told]))
    above = above_bounds(rows)
    if above:
        print("\n".join(["above a promised bound:", *above]), file=sys.stderr)
        raise SystemExit(1)
    if given.into:
        given.into.write_text(filled(given.into.read_text(encoding="utf-8"), told), encoding="utf-8")


if __name__ == "__main__":
    main()
