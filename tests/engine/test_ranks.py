"""Pass 2: every record gets a rank of its own within its value, and a partition that changed is refused."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from anonlib.engine import ranks, statistics
from anonlib.engine.failures import TaskRefusal, explained
from anonlib.engine.ranks import PartitionRanks, with_kernel
from anonlib.engine.statistics import sensitive_statistics
from anonlib.errors import AnonlibError
from tests.thorough import cases

HASHES = np.array([50, -7, 3], dtype=np.int64)  # codes 0, 1, 2


def packed(*triples):
    return np.array(triples, dtype=np.int64)


def test_ranks_run_on_through_the_batches_of_a_partition():
    counter = PartitionRanks(HASHES, 4, packed((0, 10, 3), (2, 5, 2)))
    code, rank = counter.next(np.array([50, 3, 50]))
    assert (code.tolist(), rank.tolist()) == ([0, 2, 0], [10, 5, 11])
    code, rank = counter.next(np.array([3, 50]))
    assert (code.tolist(), rank.tolist()) == ([2, 0], [6, 12])
    counter.finish()


def test_a_partition_without_rows():
    counter = PartitionRanks(HASHES, 0, None)
    code, rank = counter.next(np.array([], dtype=np.int64))
    assert len(code) == len(rank) == 0
    counter.finish()


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([50, 99], "a sensitive value that the first pass did not see"),
        ([50, 50, 50], "more rows than the first pass counted"),
        ([50], "fewer rows than the first pass counted"),
        ([50, -7], "more rows than the first pass counted"),
        ([], "fewer rows than the first pass counted"),
    ],
)
def test_a_partition_that_is_not_the_one_counted_is_refused(records, words):
    counter = PartitionRanks(HASHES, 12, packed((0, 0, 2)))
    with pytest.raises(TaskRefusal, match=f"partition 12 holds {words}; the input changed between the two passes"):
        whole(counter, records)


def whole(counter, records):
    counter.next(np.array(records, dtype=np.int64))
    counter.finish()


def identity(code, rank):
    return rank + 1_000_000 * code.astype(np.int64)


@pytest.fixture
def frame(spark):
    rows = [(i, f"v{i * i % 7}") for i in range(3000)]
    return spark.createDataFrame(rows, "id long, sa string").repartition(6, "id").localCheckpoint()


CHANGES = {
    "a row less": (lambda f: f.where("id <> 77"), "fewer rows"),
    "a new value": (lambda f: f.selectExpr("id", "IF(id = 77, 'new', sa) AS sa"), "did not see"),
    "another value": (
        lambda f: f.selectExpr("id", "IF(id = 77, 'v4', sa) AS sa"),
        "rows than the first pass counted",
    ),
    "cut otherwise": (lambda f: f.repartition(3, "id"), "rows than the first pass counted"),
}


@pytest.mark.spark
@pytest.mark.every_spark
@pytest.mark.parametrize("large", [False, True])
def test_ranks_of_a_value_are_all_numbers_below_its_count(spark, frame, monkeypatch, large):
    if large:
        monkeypatch.setattr(statistics, "DRIVER_CELLS", 3)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "77")
    found = sensitive_statistics(frame, "sa", None, {})
    rows = with_kernel(frame, found, identity, "seen").collect()
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    by_value: dict[str, list[int]] = {}
    for row in rows:
        code, rank = divmod(row.seen, 1_000_000)
        assert found.counts.values[code] == row.sa
        by_value.setdefault(row.sa, []).append(rank)
    assert {v: sorted(r) for v, r in by_value.items()} == {
        v: list(range(n)) for v, n in Counter(row.sa for row in rows).items()
    }
    assert sorted(row.id for row in rows) == list(range(3000))
    assert rows[0].asDict().keys() == {"id", "sa", "seen"}


@pytest.mark.spark
@pytest.mark.every_spark
@pytest.mark.parametrize(
    ("kind", "large"),
    cases(
        ("a row less", False),
        ("a new value", True),
        ("another value", False),
        nightly=[
            ("a row less", True),
            ("a new value", False),
            ("another value", True),
            ("cut otherwise", False),
            ("cut otherwise", True),
        ],
    ),
)
def test_another_table_in_the_second_pass_is_refused(frame, monkeypatch, kind, large):
    change, words = CHANGES[kind]
    if large:
        monkeypatch.setattr(statistics, "DRIVER_CELLS", 3)
    found = sensitive_statistics(frame, "sa", None, {})
    with pytest.raises(AnonlibError, match=words) as raised, explained("writing qit"):
        with_kernel(change(frame), found, identity, "seen").collect()
    assert str(raised.value).startswith("writing qit: partition ")
    assert "\n" not in str(raised.value)


def test_no_name_of_ours_meets_a_name_of_the_table():
    class Frame:
        columns = ("Packed", "packed_", "x")

    assert ranks._unlike(Frame(), "packed") == "packed__"
    assert ranks._unlike(Frame(), "partition") == "partition"
