"""Does a published file tell who is ill? Twenty hospitals in twenty files, one diagnosis planted in one of them.

    python -m benchmarks.planted_clusters [--data DIR] [--records 20000] [--clusters 5 20 34 100 500] [--values 1 5]

20,000 stays of diabetes_130us are dealt to 20 input files at random, and `cluster` records of the first get a planted diagnosis (or one of
a group of them). The release has as many files as its input, l = 20. The adversary looks for the published file that holds most rows of the
buckets that list a planted diagnosis, for its size, and names one person of each such bucket in that file, any of them. What is printed is
how often he is right in the mean, which may be 1 in 20. Printed beside it: the same against rows that stay in the file they came from,
which is how a release looks whose files are not dealt by bucket.
"""

from __future__ import annotations

import argparse
import glob
import tempfile
from collections import defaultdict
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anonlib import workflow
from anonlib.engine import order
from anonlib.engine.session import session
from anonlib.spec.load import parse_spec

HOSPITALS = L = 20
ARRANGED = "anonlib.methods.bucketize.arranged"


def hospitals(data: Path, folder: Path, records: int, cluster: int, values: int, seed: int = 0) -> dict[int, str]:
    """Writes the 20 files and returns the diagnosis of each person."""
    table = pq.read_table(data / "diabetes_130us.parquet", columns=["race", "gender", "age", "diag_1"])
    rng = np.random.default_rng([seed, cluster, values])
    table = table.take(rng.permutation(table.num_rows)[:records])
    # under l = 20 no diagnosis may have more than a record in 20: those that do are told apart by a number
    diagnosis = [f"{d} {k % 4}" for k, d in enumerate(table["diag_1"].to_pylist())]
    diagnosis[:cluster] = [f"planted {k % values}" for k in range(cluster)]
    columns = {name: table[name] for name in ("race", "gender", "age")}
    person = rng.choice(1 << 40, records, replace=False)
    whole = pa.table({"person": person, **columns, "diagnosis": diagnosis})
    folder.mkdir()
    for k, part in enumerate(np.array_split(np.arange(records), HOSPITALS)):
        pq.write_table(whole.take(part), folder / f"part-{k:02d}.parquet")
    return dict(zip(person.tolist(), diagnosis, strict=True))


def publish(spark, table: Path, output: Path) -> None:
    spec = {
        "input": {"path": str(table)},
        "output": {"path": str(output)},
        "columns": {"quasi_identifiers": ["race", "gender", "age"], "sensitive": "diagnosis", "other": ["person"]},
        "method": {"bucketize": {"privacy": {"l": L}, "solver": "two_size"}},
    }
    workflow.run(parse_spec(spec), spark, say=lambda _: None)


def suspects(output: Path) -> list[tuple[list[int], str]]:
    """(persons, a diagnosis that one of them may have) for each bucket that lists a planted one, from the release alone."""
    st = pq.read_table(output / "st").to_pydict()
    listed = {
        b: value for b, value in zip(st["bucket_id"], st["diagnosis"], strict=True) if value.startswith("planted")
    }
    members: dict[int, dict[int, list[int]]] = defaultdict(dict)
    rows = {}
    for k, path in enumerate(sorted(glob.glob(f"{output}/qit/*.parquet"))):
        file = pq.read_table(path, columns=["bucket_id", "person"]).to_pydict()
        rows[k] = len(file["person"])
        for bucket, person in zip(file["bucket_id"], file["person"], strict=True):
            if bucket in listed:
                members[bucket].setdefault(k, []).append(person)
    in_file = {k: sum(k in of for of in members.values()) / max(1, count) for k, count in rows.items()}
    likeliest = max(in_file, key=lambda k: (in_file[k], -k))
    return [(of[likeliest], listed[bucket]) for bucket, of in members.items() if likeliest in of]


def right(spark, scratch: Path, table: Path, truth: dict[int, str], kept: bool) -> tuple[float, int]:
    """(right guesses in the mean, guesses) against rows dealt by bucket, or `kept` in the files they came from."""
    output = scratch / ("kept" if kept else "dealt")
    if kept:
        with mock.patch(ARRANGED, lambda frame, number, by, narrow: frame.sortWithinPartitions(by)):
            publish(spark, table, output)
    else:
        publish(spark, table, output)
    named = suspects(output)
    return sum(sum(truth[p] == value for p in persons) / len(persons) for persons, value in named), len(named)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--clusters", type=int, nargs="+", default=[5, 20, 34, 100, 500])
    parser.add_argument("--values", type=int, nargs="+", default=[1, 5], help="over how many planted diagnoses")
    parser.add_argument("--releases", type=int, default=2, help="tables, each with a key of its own, per setting")
    args = parser.parse_args()
    order.FILE_ROWS = args.records // HOSPITALS
    spark = session(
        master="local[2]",
        settings={"spark.sql.files.openCostInBytes": str(1 << 30), "spark.sql.shuffle.partitions": "4"},
    )
    print(
        f"{args.records:,} records, {HOSPITALS} files, bound 1/{L}: guesses that are right in the mean, over {args.releases} releases"
    )
    for values in args.values:
        for cluster in args.clusters:
            setting(spark, args, cluster, values)


def setting(spark, args: argparse.Namespace, cluster: int, values: int) -> None:
    found = {True: np.zeros(2), False: np.zeros(2)}
    for seed in range(args.releases):
        with tempfile.TemporaryDirectory() as folder:
            scratch = Path(folder)
            truth = hospitals(args.data, scratch / "in", args.records, cluster, values, seed)
            for kept, sums in found.items():
                sums += right(spark, scratch, scratch / "in", truth, kept)
    kept, dealt = (f"{hits / max(1, of):.3f} of {of:5.0f}" for hits, of in (found[True], found[False]))
    print(f"{cluster:4d} records, {values} value(s)   files kept {kept}   dealt by bucket {dealt}", flush=True)


if __name__ == "__main__":
    main()
