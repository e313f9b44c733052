"""MultiSize: split a part of the table in two sizes, then split each half again, while the loss falls.

Source: generalized bucketization, section 6.2, Algorithm 4. A heuristic: valid, never worse than TwoSize, no bound.
"""

from __future__ import annotations

import time

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.privacy.buckets import BucketSetting
from anonlib.solvers.buckets import two_size
from anonlib.solvers.buckets.sensitive_table import SensitiveTable


def solve(table: SensitiveTable, deadline: float | None = None) -> tuple[BucketSetting, Int64Array] | None:
    """A setting and its record partition (m, q), or None when not even two sizes are valid.

    A work list instead of recursion; each step strictly lowers the loss, so it ends. `deadline` (time.perf_counter)
    stops further splitting, and what is there is valid all the same. Cost: one TwoSize per split, O(m) each otherwise.
    """
    start = two_size.solve(table)
    if start is None:
        return None
    leaves: list[tuple[int, int, Int64Array]] = []  # (size, number, records of each value)
    work = _halves(start, table)
    while work:
        size, number, records = work.pop()
        part = table.part(records)
        late = deadline is not None and time.perf_counter() > deadline
        better = None if late else two_size.solve(part, below=number * (size - 1) ** 2)
        if better is None:
            leaves.append((size, number, records))
        else:
            work.extend(_halves(better, part))
    setting = BucketSetting.of((size, number) for size, number, _ in leaves)
    parts = np.zeros((len(table.counts), len(setting.sizes)), dtype=np.int64)
    for size, _, records in leaves:
        parts[:, setting.sizes.index(size)] += records
    return setting, parts


def _halves(setting: BucketSetting, table: SensitiveTable) -> list[tuple[int, int, Int64Array]]:
    """(size, number, records of each value) of each size of a setting of `table`."""
    parts = two_size.partition(table, setting)
    return [
        (size, number, parts[:, j]) for j, (size, number) in enumerate(zip(setting.sizes, setting.numbers, strict=True))
    ]
