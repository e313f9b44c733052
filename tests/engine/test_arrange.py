"""The order of published rows says nothing: not the place in a file, not the file.

Fixed keys; false-alarm rates stated. Each statistical test is shown to catch the fault it is for.
"""

from __future__ import annotations

import glob

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import anonlib
from anonlib.engine import order, statistics
from tests.door import KEY
from tests.thorough import cases, nightly

pytestmark = pytest.mark.spark

VALUES = ["asthma", "cancer", "cold", "flu", "gout", "HIV"]


def people(folder, order: str, n: int = 12_000, files: int = 4):
    """Persons whose sensitive value is independent of all else, in files sorted by `order` (or not at all)."""
    rng = np.random.default_rng(8)
    columns = {
        "serial": np.arange(n) * 1000 + 7,
        "age": rng.integers(16, 94, n),
        "town": rng.integers(0, 40, n).astype(str),
        "illness": np.array(VALUES)[rng.choice(6, n, p=[0.3, 0.1, 0.25, 0.2, 0.1, 0.05])],
    }
    place = np.argsort(columns[order], kind="stable") if order else np.arange(n)
    folder.mkdir()
    for k, part in enumerate(np.array_split(place, files)):
        pq.write_table(pa.table({name: column[part] for name, column in columns.items()}), folder / f"part-{k}.parquet")
    truth = dict(zip(columns["serial"].tolist(), columns["illness"].tolist(), strict=True))
    return folder, truth


def published(spark, folder, output, audit="off"):
    return anonlib.bucketize(
        spark.read.parquet(str(folder)),
        quasi_identifiers=[{"name": "age", "type": "numeric"}, "town"],
        sensitive="illness",
        other=["serial"],
        privacy={"theta": 2, "offset": "0.1"},
        solver="two_size",
        output=str(output),
        key="env:ANONLIB_TEST_KEY",
        audit=audit,
    )


def files(output):
    """The published files in order of name, each as columns."""
    return [pq.read_table(f).to_pydict() for f in sorted(glob.glob(f"{output}/qit/*.parquet"))]


def place_against_value(output, truth) -> float:
    """p-value of: the first and the last record of a bucket, in the order of files and rows, have values (x, y) as often as (y, x).

    Within a bucket, since what a bucket holds is published anyway. Bowker's test of symmetry over all pairs of values.
    """
    ends: dict[int, list[int]] = {}
    for columns in files(output):
        for bucket, serial in zip(columns["bucket_id"], columns["serial"], strict=True):
            value = VALUES.index(truth[serial])
            ends.setdefault(bucket, [value, value])[1] = value
    pairs = np.zeros((len(VALUES), len(VALUES)))
    for first, last in ends.values():
        pairs[first, last] += 1
    above, below = pairs[np.triu_indices(len(VALUES), 1)], pairs.T[np.triu_indices(len(VALUES), 1)]
    seen = above + below > 0
    statistic = ((above - below)[seen] ** 2 / (above + below)[seen]).sum()
    return float(stats.chi2.sf(statistic, seen.sum()))


@pytest.fixture(scope="module", autouse=True)
def _small_splits(spark):
    """One partition per file and several published files, so that files could differ."""
    patch = pytest.MonkeyPatch()
    spark.conf.set("spark.sql.files.openCostInBytes", str(1 << 30))
    patch.setattr(order, "FILE_ROWS", 3_000)
    patch.setenv("ANONLIB_TEST_KEY", KEY)
    yield
    spark.conf.unset("spark.sql.files.openCostInBytes")
    patch.undo()


@pytest.fixture(scope="module")
def of_sorted(spark, _small_splits, tmp_path_factory):
    """(release, its folder, {record: its value}) of persons sorted by illness; published once."""
    folder = tmp_path_factory.mktemp("sorted")
    source, truth = people(folder / "in", "illness")
    return published(spark, source, folder / "release", audit="gate"), folder / "release", truth


def test_a_records_place_says_nothing_of_its_value(of_sorted):
    """False-alarm rate 1e-4."""
    release, folder, truth = of_sorted
    assert release.audit.passed
    assert len(files(folder)) == 4
    assert place_against_value(folder, truth) > 1e-4


@nightly  # sorted by the sensitive value at every change, which tells most
@pytest.mark.parametrize("order", ["age", ""])
def test_nor_does_it_in_another_order_of_the_input(spark, tmp_path, order):
    """False-alarm rate 1e-4 each."""
    folder, truth = people(tmp_path / "in", order)
    published(spark, folder, tmp_path / "release")
    assert len(files(tmp_path / "release")) == 4
    assert place_against_value(tmp_path / "release", truth) > 1e-4


@pytest.mark.parametrize("fault", cases("sorted in files only", nightly=["kept order"]))
def test_the_place_test_catches_a_kept_order_and_unmixed_files(spark, tmp_path, monkeypatch, fault):
    folder, truth = people(tmp_path / "in", "illness")
    with monkeypatch.context() as planted:
        if fault == "kept order":
            planted.setattr("anonlib.methods.bucketize.arranged", lambda frame, number, by, narrow: frame)
        else:
            planted.setattr(
                "anonlib.methods.bucketize.arranged", lambda frame, number, by, narrow: frame.sortWithinPartitions(by)
            )
        published(spark, folder, tmp_path / "release")
    assert place_against_value(tmp_path / "release", truth) < 1e-30


def test_rows_of_a_file_are_in_an_order_of_their_own_values(spark, tmp_path, of_sorted):
    """Sorting the same published rows again, from any order, gives the same file."""
    _, folder, _ = of_sorted
    for k, path in enumerate(sorted(glob.glob(f"{folder}/qit/*.parquet"))):
        stored = pq.read_table(path)
        assert stored["bucket_id"].to_pylist() == sorted(stored["bucket_id"].to_pylist())
        shuffled = stored.take(np.random.default_rng(k).permutation(stored.num_rows))
        pq.write_table(shuffled, tmp_path / f"again-{k}.parquet")
        again = order.arranged(spark.read.parquet(str(tmp_path / f"again-{k}.parquet")), 1, "bucket_id", narrow=True)
        assert [tuple(r) for r in again.collect()] == [tuple(r.values()) for r in stored.to_pylist()]


def test_counts_kept_on_the_cluster_tell_as_many_partitions(spark, tmp_path, monkeypatch):
    folder, _ = people(tmp_path / "in", "illness")
    frame = spark.read.parquet(str(folder))
    assert statistics.sensitive_statistics(frame, "illness", None, {}).partitions == 4
    monkeypatch.setattr(statistics, "DRIVER_CELLS", 1)
    assert statistics.sensitive_statistics(frame, "illness", None, {}).partitions == 4


def test_a_rare_value_of_one_file_is_dealt_to_all(spark, tmp_path):
    """40 of 12,000 records share a value and a file of the input; their published files are those that their buckets fall to."""
    folder, _ = people(tmp_path / "in", "")
    first = min(folder.glob("*.parquet"))
    table = pq.read_table(first)
    rare = ["rare" if k < 40 else value for k, value in enumerate(table["illness"].to_pylist())]
    pq.write_table(table.set_column(table.column_names.index("illness"), "illness", [rare]), first)
    published(spark, folder, tmp_path / "release")
    of = [set(columns["bucket_id"]) for columns in files(tmp_path / "release")]
    assert len(of) == 4
    assert not any(
        one & other for k, one in enumerate(of) for other in of[k + 1 :]
    )  # a bucket is in one file, whoever is in it
    own = set(table["serial"].to_pylist())
    spread = [sum(serial in own for serial in columns["serial"]) for columns in files(tmp_path / "release")]
    assert sum(spread) == len(own)
    assert min(spread) > len(own) / 8  # a file that kept its input's would have all of these records, the others none
