"""Pass 1: counts per partition and value, on the driver and on the cluster."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from anonlib.engine import statistics
from anonlib.engine.statistics import is_missing, offsets_by_partition, sensitive_statistics
from anonlib.errors import SpecError
from tests.thorough import cases

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


@settings(max_examples=200, deadline=None)
@given(some.lists(some.tuples(some.integers(0, 6), some.integers(0, 4)), min_size=1, max_size=80))
def test_offsets_number_the_records_of_a_value_through_the_partitions(records):
    cells = sorted(Counter(records).items(), key=lambda cell: hash(cell) % 7)  # in any order
    table = np.array([(p, c, n) for (p, c), n in cells], dtype=np.int64).reshape(-1, 3)
    partition, code, n = table.T
    found = offsets_by_partition(partition, code, n)
    ranks: dict[int, list[int]] = {}
    for p, packed in found.items():
        for c, offset, count in packed.tolist():
            assert count == Counter(records)[p, c]
            ranks.setdefault(c, []).extend(range(offset, offset + count))
    assert {c: sorted(r) for c, r in ranks.items()} == {
        c: list(range(k)) for c, k in Counter(c for _, c in records).items()
    }


@pytest.fixture
def frame(spark):
    rows = [(i, None if i % 10 == 3 else f"v{i % 4}") for i in range(200)]
    return spark.createDataFrame(rows, "id long, sa string").repartition(5, "id").localCheckpoint()


def per_partition(frame) -> Counter:
    """The counts by Spark's own grouping, for comparison."""
    rows = frame.selectExpr("spark_partition_id() AS p", "sa").collect()
    return Counter((row.p, row.sa) for row in rows)


@pytest.mark.parametrize(
    ("policy", "large"), cases(("keep", True), ("drop", False), nightly=[("keep", False), ("drop", True)])
)
def test_counts_offsets_and_hashes(frame, monkeypatch, large, policy):
    if large:
        monkeypatch.setattr(statistics, "DRIVER_CELLS", 3)
    keep = f"NOT {is_missing('sa', 'string')}" if policy == "drop" else None
    found = sensitive_statistics(frame, "sa", keep, {})
    cells = {k: n for k, n in per_partition(frame).items() if policy == "keep" or k[1] is not None}
    totals = Counter()
    for (_, value), n in cells.items():
        totals[value] += n
    assert dict(zip(found.counts.values, found.counts.counts.tolist(), strict=True)) == totals
    assert found.counts.values == ("v0", "v1", "v2", "v3") + ((None,) if policy == "keep" else ())
    assert (found.input_rows, found.dropped) == (200, 0 if policy == "keep" else 20)
    assert found.partitions == len({p for p, _ in cells})
    assert len(set(found.hashes.tolist())) == found.counts.m
    hashed = {row.sa: row.h for row in frame.selectExpr("sa", f"{found.hash_sql} AS h").distinct().collect()}
    assert [hashed[v] for v in found.counts.values] == found.hashes.tolist()
    packed = found.offsets.by_partition
    if large:
        assert packed is None
        rows = found.offsets.frame.collect()
        packed = {row.partition: np.array(row.packed).reshape(-1, 3) for row in rows}
    assert {(p, found.counts.values[c]): n for p, part in packed.items() for c, _, n in part.tolist()} == cells
    for code in range(found.counts.m):
        runs = sorted((o, o + n) for part in packed.values() for c, o, n in part.tolist() if c == code)
        assert [a for a, _ in runs] == [0, *[b for _, b in runs[:-1]]]  # no gap, no overlap


@pytest.mark.parametrize("large", cases(True, nightly=[False]))
def test_refused_rows_are_counted(frame, monkeypatch, large):
    if large:
        monkeypatch.setattr(statistics, "DRIVER_CELLS", 3)
    with pytest.raises(SpecError, match=r"column 'sa': 20 rows have no value"):
        sensitive_statistics(frame, "sa", None, {"sa": is_missing("sa", "string")})


@pytest.mark.parametrize("large", cases(False, nightly=[True]))
def test_too_many_values(frame, monkeypatch, large):
    monkeypatch.setattr(statistics, "MAX_VALUES", 4)
    if large:
        monkeypatch.setattr(statistics, "DRIVER_CELLS", 3)
    with pytest.raises(SpecError, match=r"column 'sa' has more than 4 distinct values"):
        sensitive_statistics(frame, "sa", None, {})


def test_colliding_hashes_are_drawn_again_under_another_seed(frame, monkeypatch):
    """A planted weak hash for seed 0: the next seed is taken, for the records as for the values."""
    plain = statistics._normal
    calls = []

    def weak_at_first(column, spark_type):
        calls.append(column)
        return "1" if len(calls) == 1 else plain(column, spark_type)

    monkeypatch.setattr(statistics, "_normal", weak_at_first)
    found = sensitive_statistics(frame, "sa", None, {})
    assert found.hash_sql == "xxhash64(`sa`, 1)"
    assert len(set(found.hashes.tolist())) == found.counts.m
