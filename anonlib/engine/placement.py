"""Which task works on which partition, where a kernel takes long for few bytes: the longest first, and all tasks about as long.

Spark deals rows to tasks by a hash of a column, which of some dozen partitions puts four into one task and none into another, and may
start the longest task last. Here each task has a *seat*, a number that Spark's hash sends to that task, and each record takes the seat
of its partition. Should a Spark hash otherwise, tasks are less even and nothing else changes.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import ArrayLike

from anonlib.arrays import Float64Array, Int64Array, UInt32Array

TRIED = 100
"""Numbers that are tried for each seat: one that stays without has a chance of exp(-100)."""
_SEED = 42
"""Of Spark's hash."""


def seats(work: ArrayLike, tasks: int) -> Int64Array:
    """(p,) the seat of each of p partitions, to be dealt by to `tasks` tasks.

    work : (p,) how long each takes, in any unit. Longest first, each to the task that has least so far: the longest task is at most a
    third longer than it need be (Graham 1969). Tasks are numbered by their work, the longest 0, as Spark starts them.
    tasks : at least 1. O(p log p), and 100 numbers hashed for each task; on the driver.
    """
    return _numbers_of_tasks(tasks)[_longest_first(np.asarray(work, dtype=np.float64), tasks)]


def _longest_first(work: Float64Array, tasks: int) -> Int64Array:
    load = [(0.0, task) for task in range(tasks)]
    task_of = np.zeros(len(work), dtype=np.int64)
    for partition in np.argsort(-work, kind="stable").tolist():
        least, task = heapq.heappop(load)
        task_of[partition] = task
        heapq.heappush(load, (least + float(work[partition]), task))
    by_load = np.empty(tasks, dtype=np.int64)
    by_load[[task for _, task in sorted(load, key=lambda each: (-each[0], each[1]))]] = np.arange(tasks)
    return by_load[task_of]


def _numbers_of_tasks(tasks: int) -> Int64Array:
    """(tasks,) the smallest number that Spark sends to each task."""
    numbers = np.arange(TRIED * tasks, dtype=np.int64)
    task, first = np.unique(spark_hash(numbers) % tasks, return_index=True)
    seat_of = np.arange(tasks, dtype=np.int64)
    seat_of[task] = numbers[first]
    return seat_of


def spark_hash(values: Int64Array) -> Int64Array:
    """(n,) Spark's `hash` of n values of type bigint, as signed numbers of 32 bits: Murmur3 of their low and high words."""
    words = values.astype(np.uint64)
    state = np.full(len(values), _SEED, dtype=np.uint32)
    for word in (words & np.uint64(0xFFFFFFFF), words >> np.uint64(32)):
        mixed = _rotated(word.astype(np.uint32) * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        state = _rotated(state ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    state ^= np.uint32(8)
    state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (state ^ (state >> np.uint32(16))).astype(np.int32).astype(np.int64)


def _rotated(words: UInt32Array, bits: int) -> UInt32Array:
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
