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
from anonlib.engine import arrange, statistics

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]

KEY = "11" * 32
VALUES = ["asthma", "cancer", "cold", "flu", "gout", "HIV"]


def differs(table: np.ndarray) -> bool:
    """`statistics.differs` of a (partitions, values) table of counts."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    agreement = (table**2 / np.outer(rows, columns)).sum()
    return statistics.differs(*table.shape, float(table.sum()), float(agreement), (1 / rows).sum(), (1 / columns).sum())


@pytest.mark.parametrize(
    "shares", [np.full(20, 0.05), np.r_[0.9, np.full(100, 0.001)], np.array([0.5, 0.49999, 0.00001])]
)
def test_partitions_that_differ_by_chance_alone_are_left_as_they_are(shares):
    """300 random tables each of 8 partitions; none may raise the alarm (5 standard deviations: below 1e-4 a table)."""
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(300):
        table = rng.multinomial(20_000, shares, size=8).astype(float)
        alarms += differs(table[:, table.sum(axis=0) > 0])
    assert alarms == 0


def test_a_small_but_real_difference_is_found():
    rng = np.random.default_rng(6)
    shares = np.full(10, 0.1)
    table = rng.multinomial(100_000, shares, size=8).astype(float)
    tilted = shares + np.r_[0.02, -0.02, np.zeros(8)]
    table[3] = rng.multinomial(100_000, tilted)
    assert differs(table)


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


def published(spark, folder, output, monkeypatch):
    monkeypatch.setenv("ANONLIB_TEST_KEY", KEY)
    return anonlib.bucketize(
        spark.read.parquet(str(folder)),
        quasi_identifiers=[{"name": "age", "type": "numeric"}, "town"],
        sensitive="illness",
        other=["serial"],
        privacy={"theta": 2, "offset": "0.1"},
        solver="two_size",
        output=str(output),
        key="env:ANONLIB_TEST_KEY",
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


@pytest.fixture
def small_splits(spark):
    """One partition per file, so that files could differ."""
    spark.conf.set("spark.sql.files.openCostInBytes", str(1 << 30))
    yield
    spark.conf.unset("spark.sql.files.openCostInBytes")


@pytest.mark.usefixtures("small_splits")
@pytest.mark.parametrize("order", ["illness", "age", ""])
def test_a_records_place_says_nothing_of_its_value(spark, tmp_path, monkeypatch, order):
    """False-alarm rate 1e-4 each."""
    folder, truth = people(tmp_path / "in", order)
    release = published(spark, folder, tmp_path / "release", monkeypatch)
    assert release.audit.passed
    assert len(files(tmp_path / "release")) == 4
    assert place_against_value(tmp_path / "release", truth) > 1e-4


@pytest.mark.usefixtures("small_splits")
@pytest.mark.parametrize("fault", ["kept order", "sorted in files only"])
def test_the_place_test_catches_a_kept_order_and_unmixed_files(spark, tmp_path, monkeypatch, fault):
    folder, truth = people(tmp_path / "in", "illness")
    with monkeypatch.context() as planted:
        if fault == "kept order":
            planted.setattr("anonlib.methods.bucketize.arranged", lambda frame, by, mixed: frame)
        else:
            planted.setattr(
                "anonlib.methods.bucketize.arranged", lambda frame, by, mixed: arrange.arranged(frame, by, None)
            )
        published(spark, folder, tmp_path / "release", monkeypatch)
    assert place_against_value(tmp_path / "release", truth) < 1e-30


@pytest.mark.usefixtures("small_splits")
def test_rows_of_a_file_are_in_an_order_of_their_own_values(spark, tmp_path, monkeypatch):
    """Sorting the same published rows again, from any order, gives the same file."""
    folder, _ = people(tmp_path / "in", "illness")
    published(spark, folder, tmp_path / "release", monkeypatch)
    for k, path in enumerate(sorted(glob.glob(f"{tmp_path}/release/qit/*.parquet"))):
        stored = pq.read_table(path)
        assert stored["bucket_id"].to_pylist() == sorted(stored["bucket_id"].to_pylist())
        shuffled = stored.take(np.random.default_rng(k).permutation(stored.num_rows))
        pq.write_table(shuffled, tmp_path / f"again-{k}.parquet")
        again = arrange.arranged(spark.read.parquet(str(tmp_path / f"again-{k}.parquet")), "bucket_id", None)
        assert [tuple(r) for r in again.collect()] == [tuple(r.values()) for r in stored.to_pylist()]


@pytest.mark.usefixtures("small_splits")
def test_counts_kept_on_the_cluster_come_to_the_same_judgement(spark, tmp_path, monkeypatch):
    for order, wanted in (("illness", True), ("", False)):
        folder, _ = people(tmp_path / f"in-{order}", order)
        frame = spark.read.parquet(str(folder))
        on_the_driver = statistics.sensitive_statistics(frame, "illness", None, {})
        with monkeypatch.context() as tiny:
            tiny.setattr(statistics, "DRIVER_CELLS", 1)
            on_the_cluster = statistics.sensitive_statistics(frame, "illness", None, {})
        assert on_the_driver.grouped == on_the_cluster.grouped == wanted
        assert on_the_driver.partitions == on_the_cluster.partitions == 4
