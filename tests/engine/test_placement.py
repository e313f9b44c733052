"""Partitions take their seats: which task works on which, by Spark's own hash."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from anonlib.engine.partitions import over_partitions
from anonlib.engine.placement import seats, spark_hash

pytestmark = [pytest.mark.spark, pytest.mark.every_spark]


def tasks_of(work: list[int], tasks: int) -> list[int]:
    return (spark_hash(seats(work, tasks)) % tasks).tolist()


def test_the_hash_is_sparks(spark):
    values = [0, 1, -1, 41, 2**31, 2**32 + 7, -(2**40), 2**63 - 1, -(2**63)]
    frame = spark.createDataFrame([(v,) for v in values], "v bigint").selectExpr("v", "hash(v) AS h")
    assert spark_hash(np.array(values)).tolist() == [
        row["h"] for row in sorted(frame.collect(), key=lambda r: values.index(r["v"]))
    ]


@pytest.mark.parametrize("tasks", [1, 2, 8, 200, 1_000])
def test_every_task_has_a_seat(tasks):
    assert sorted(tasks_of([1] * tasks, tasks)) == list(range(tasks))


def test_the_longest_come_first():
    assert tasks_of([3, 9, 5], 3) == [2, 0, 1]
    assert tasks_of([1, 7, 2, 4], 2) == [1, 0, 1, 1]


@pytest.mark.parametrize("seed", range(40))
def test_no_task_is_longer_by_more_than_a_third_than_it_need_be(seed):
    numbers = np.random.default_rng(seed)
    work, tasks = numbers.integers(1, 30, numbers.integers(1, 8)).tolist(), int(numbers.integers(1, 4))
    load = np.bincount(tasks_of(work, tasks), work, tasks)
    best = min(np.bincount(way, work, tasks).max() for way in product(range(tasks), repeat=len(work)))
    assert load.max() * 3 <= best * 4
    assert load.tolist() == sorted(load, reverse=True)


@pytest.mark.parametrize("number", [5, 13])
def test_partitions_are_worked_on_where_they_sit(spark, number):
    """A task each, or where they are many as many as a shuffle has; and every record is in its partition."""
    held = np.arange(1, number + 1)[::-1]
    located = spark.range(int(held.sum()), numPartitions=3)
    bounds = ", ".join(map(str, np.cumsum(held).tolist()))
    located = located.selectExpr(
        "id AS q0", "0 AS s0", f"CAST(size(filter(array({bounds}), b -> b <= id)) AS BIGINT) AS partition"
    )
    seen = over_partitions(
        located, lambda q, s, node, p: {"p": [p], "n": [len(q[0])]}, "p bigint, n int", bytes(32), "a test", held
    )
    found = seen.selectExpr("p", "n", "spark_partition_id() AS task").collect()
    assert sorted((row["p"], row["n"]) for row in found) == list(enumerate(held.tolist()))
    tasks = number if number <= 8 else 2
    assert [row["task"] for row in sorted(found, key=lambda row: row["p"])] == tasks_of((held**2).tolist(), tasks)
