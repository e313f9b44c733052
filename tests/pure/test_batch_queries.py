"""The kernels that answer many queries at once, against counting by hand. No Spark: record batches in, vectors out."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from anonlib.errors import SpecError
from anonlib.queries import batch as batched
from anonlib.queries.batch import BucketEstimates, Masks, TrueCounts

DOMAINS = {"a": ["", "x", "y"], "b": ["1", "2"], "s": ["p", "q", "r"]}
cell = some.sampled_from(["", "x", "y", None, "unknown"])
record = some.tuples(cell, some.sampled_from(["1", "2", None]))
line = some.tuples(some.sampled_from(["p", "q", "r", None]), some.integers(1, 3))
bucket = some.tuples(some.lists(record, min_size=1, max_size=4), some.lists(line, min_size=1, max_size=3))
codes = {a: some.sets(some.integers(0, len(d) - 1)).map(sorted) for a, d in DOMAINS.items()}
query = some.fixed_dictionaries({"s": codes["s"]}, optional={"a": codes["a"], "b": codes["b"]})
queries = some.lists(query, min_size=1, max_size=12)


def meets(values: dict, query: dict) -> bool:
    return all(values[a] in [DOMAINS[a][c] for c in accepted] for a, accepted in query.items() if a in values)


@settings(deadline=None)
@given(
    rows=some.lists(some.tuples(record, some.sampled_from(["p", "q", None])), max_size=12),
    asked=queries,
    rows_at_a_time=some.sampled_from([1, 3, 2048]),
)
def test_true_counts_against_counting_by_hand(rows, asked, rows_at_a_time):
    table = pa.table(
        {
            "b": pa.array([r[0][1] for r in rows], pa.string()),
            "s": pa.array([r[1] for r in rows], pa.string()),
            "a": pa.array([r[0][0] for r in rows], pa.string()),
        }
    )
    expected = [sum(meets({"a": a, "b": b, "s": s}, q) for (a, b), s in rows) for q in asked]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batched, "ROWS", rows_at_a_time)
        found = TrueCounts(Masks.of(DOMAINS, asked))(table.to_batches(max_chunksize=5))
    assert found.tolist() == expected


@settings(deadline=None)
@given(buckets=some.lists(bucket, max_size=6), asked=queries, rows_at_a_time=some.sampled_from([1, 3, 2048]))
def test_estimates_against_counting_by_hand(buckets, asked, rows_at_a_time):
    table = pa.table(
        {
            "a": pa.array([[a for a, _ in records] for records, _ in buckets], pa.list_(pa.string())),
            "b": pa.array([[b for _, b in records] for records, _ in buckets], pa.list_(pa.string())),
            "s": pa.array([[v for v, _ in lines] for _, lines in buckets], pa.list_(pa.string())),
            "count": pa.array([[c for _, c in lines] for _, lines in buckets], pa.list_(pa.int64())),
        }
    )
    expected = [
        sum(
            sum(meets({"a": a, "b": b}, q) for a, b in records)
            * sum(c for v, c in lines if meets({"s": v}, q))
            / sum(c for _, c in lines)
            for records, lines in buckets
        )
        for q in asked
    ]
    visible = Masks.of({"a": DOMAINS["a"], "b": DOMAINS["b"]}, asked)
    kernel = BucketEstimates(visible, Masks.of({"s": DOMAINS["s"]}, asked), "count")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batched, "ROWS", rows_at_a_time)
        found = kernel(table.to_batches(max_chunksize=2))
    assert found == pytest.approx(expected)


def test_empty_partitions_give_zeros():
    masks = Masks.of(DOMAINS, [{"s": [0]}, {"s": [1]}])
    assert TrueCounts(masks)(iter([])).tolist() == [0, 0]
    assert BucketEstimates(masks, Masks.of({"s": DOMAINS["s"]}, [{"s": [0]}, {"s": [1]}]), "count")(
        iter([])
    ).tolist() == [0, 0]


@pytest.mark.parametrize("size", [255, 256, 700])
def test_buckets_of_more_records_than_a_byte_counts(size):
    table = pa.table({"a": [["x"] * size], "s": [["p", "q"]], "count": [[size - 1, 1]]})
    asked = [{"a": [1], "s": [0]}, {"a": [1], "s": [0, 1]}]
    kernel = BucketEstimates(Masks.of({"a": DOMAINS["a"]}, asked), Masks.of({"s": DOMAINS["s"]}, asked), "count")
    assert kernel(table.to_batches()) == pytest.approx([size - 1, size])


def test_masks_too_large_to_travel_are_refused():
    wide = {"zip": [str(i) for i in range(100_000)], "s": ["p"]}
    with pytest.raises(SpecError, match="100,000 values of 'zip'"):
        Masks.of(wide, [{"s": [0]}] * 6_000)


def test_blocks_hold_whole_buckets_and_every_bucket_once():
    starts = np.array([0, 5, 5000, 5001, 5003, 7000, 7100])
    blocks = list(batched._blocks(starts))
    assert [b for first, last in blocks for b in range(first, last)] == list(range(6))
    assert all(last - first == 1 or starts[last] - starts[first] <= batched.ROWS for first, last in blocks)
