"""The intersection attack: two monthly releases of overlapping tables, without a ledger and with one.

    python -m benchmarks.intersection [--records 10000] [--overlap 8000] [--master local[2]]

The table is `census_occ_100k` with occupation sensitive. January's table is its first --overlap records, February's the first --records:
whoever was there is there still. Without a ledger both months are published whole; with one February publishes who is new. Attacked are the
persons of January whose quasi-identifiers nobody shares, so that the adversary finds their rows in each release that has them; he knows
each bucket's list or, of perturbed values, the operator, and takes what both releases say together
(`anonlib.evaluation.attacks_intersection`). Prints one Markdown table. A key of the ledger that stands in a program is for benchmarks only.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import anonlib
from anonlib.engine.session import session
from anonlib.evaluation.attacks_intersection import intersection
from anonlib.privacy.f_privacy import FPrivacy
from benchmarks.attacks import NUMERIC, SENSITIVE, TABLE
from benchmarks.missing import missing

KEY = "ANONLIB_BENCHMARK_LEDGER_KEY", "9811d7763645e585c34b5f6f27a33181210af0a49e043a325ec21c1d67abcfaa"
PERSON = "person"
METHODS: Mapping[str, tuple[Any, float]] = {
    "bucketize, l = 10": (partial(anonlib.bucketize, privacy=FPrivacy.l_diversity(10)), 1 / 10),
    "anatomy, l = 10": (partial(anonlib.anatomy, l=10), 1 / 10),
    "perturb, rho2 = 1/3": (partial(anonlib.perturb, rho2="1/3"), 1 / 3),
}
"""{name: (how it is published, what nobody may believe more than)}."""


def beliefs(release: Path, names: list[str], code: Mapping[Any, int], looks: list[tuple[Any, ...]]) -> np.ndarray:
    """(persons, m) what a release lets one believe of those who look so; zeros for who is not in it."""
    found = np.zeros((len(looks), len(code)))
    place = {look: i for i, look in enumerate(looks)}
    if (release / "qit").exists():
        lists: dict[int, np.ndarray] = {}
        for row in pq.read_table(release / "st").to_pylist():
            lists.setdefault(row["bucket_id"], np.zeros(len(code)))[code[row[SENSITIVE]]] += row["count"]
        for row in pq.read_table(release / "qit").to_pylist():
            if (i := place.get(tuple(row[name] for name in names))) is not None:
                found[i] = lists[row["bucket_id"]] / lists[row["bucket_id"]].sum()
        return found
    operators = {row["subtable"]: row for row in pq.read_table(release / "operators").to_pylist()}
    for row in pq.read_table(release / "microdata").to_pylist():
        if (i := place.get(tuple(row[name] for name in names))) is not None:
            operator = operators[row["subtable"]]
            weight = np.zeros(len(code))
            for value, count in zip(operator["domain"], operator["counts"], strict=True):
                weight[code[value]] = count * (operator["gamma"] if value == row[SENSITIVE] else 1)
            found[i] = weight / weight.sum()
    return found


def attacked(spark: Any, table: pa.Table, overlap: int, scratch: Path, name: str) -> list[str]:
    """The lines of one method: without a ledger, and with one."""
    publish, bound = METHODS[name]
    names = [column for column in table.column_names if column not in (SENSITIVE, PERSON)]
    quasi = [{"name": n, "type": "numeric" if n in NUMERIC else "categorical"} for n in names]
    rows = table.to_pylist()
    alone = {look for look, n in Counter(tuple(row[n] for n in names) for row in rows).items() if n == 1}
    persons = [row for row in rows[:overlap] if tuple(row[n] for n in names) in alone]
    looks = [tuple(row[n] for n in names) for row in persons]
    counts = Counter(row[SENSITIVE] for row in rows)
    code = {value: i for i, value in enumerate(sorted(counts))}
    prior = np.array([counts[value] for value in code]) / len(rows)
    truth = np.array([code[row[SENSITIVE]] for row in persons])
    lines = []
    for kind in ("no ledger", "ledger"):
        folder = scratch / f"{name} {kind}".replace(" ", "-").replace("/", "-")
        ledger = None
        if kind == "ledger":
            ledger = {"path": str(folder / "ledger"), "key": f"env:{KEY[0]}"}
            anonlib.new_ledger(**ledger)
        for month, number in enumerate((overlap, len(rows)), 1):
            source = folder / f"table-{month}.parquet"
            source.parent.mkdir(exist_ok=True)
            pq.write_table(table.slice(0, number), source)
            frame = spark.read.parquet(str(source))
            publish(
                frame,
                quasi_identifiers=quasi,
                sensitive=SENSITIVE,
                person=PERSON,
                ledger=ledger,
                output=str(folder / f"m{month}"),
            )
        seen = [beliefs(folder / f"m{month}", names, code, looks) for month in (1, 2)]
        told = intersection(seen, prior, truth, np.full(len(code), bound)).to_dict()
        lines.append(
            f"| {name} | {kind} | {told['persons']:,} | {told['accuracy']:.4f} | {told['prior']:.4f} | {bound:.4f} | "
            f"{told['largest']:.4f} | {told['above']:,} | {told['certain']:,} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("ANONLIB_DATA", "../shared/data"))
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--overlap", type=int, default=8_000)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    path = Path(given.data) / f"{TABLE}.parquet"
    if not path.exists():
        raise missing(f"{TABLE}.parquet is not in {given.data}: name its folder with --data or ANONLIB_DATA")
    os.environ[KEY[0]] = KEY[1]
    table = pq.read_table(path).slice(0, given.records)
    table = table.append_column(PERSON, pa.array(range(len(table)), pa.int64()))
    spark = session(master=given.master)
    print("| release | | persons | accuracy | prior | bound | largest belief | above | certain |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="anonlib-") as scratch:
        for name in METHODS:
            print("\n".join(attacked(spark, table, given.overlap, Path(scratch), name)), flush=True)


if __name__ == "__main__":
    main()
