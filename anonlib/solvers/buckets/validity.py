"""Is a bucket setting valid, and which records go where? Two sizes, or any number of them.

Source: generalized bucketization, section 4 (Lemma 2, Definition 5, Theorem 1, Algorithm 1); for three sizes and more, a
maximum flow (Theorem 1 does not extend: Example 5 of the earlier paper). All in exact integers.

Each function takes (m,) counts o_i and (m,) capacities floor(f'_i S_j) per size; cost O(m) unless said otherwise.
"""

from __future__ import annotations

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.privacy.buckets import BucketSetting
from anonlib.solvers.buckets.node_limits import node_sums
from anonlib.solvers.buckets.sensitive_table import MergedValues, SensitiveTable
from anonlib.solvers.buckets.transport import Transport, transport
from anonlib.solvers.buckets.tree_transport import tree_transport


def two_size_valid(
    counts: Int64Array, small: Int64Array, large: Int64Array, sizes: tuple[int, int], numbers: tuple[int, int]
) -> bool:
    """Whether a setting of two sizes is valid: the privacy, fill and capacity constraints PC, FC and CC together (Theorem 1).

    counts, small, large : (m,) int64, o_i and the capacities of both sizes; sizes, numbers : S_1, S_2 and b_1, b_2. Exact; O(m).
    """
    first, second = np.minimum(small * numbers[0], counts), np.minimum(large * numbers[1], counts)
    return (
        int(counts.sum()) == sizes[0] * numbers[0] + sizes[1] * numbers[1]
        and bool((first + second >= counts).all())
        and int(first.sum()) >= sizes[0] * numbers[0]
        and int(second.sum()) >= sizes[1] * numbers[1]
    )


def two_size_partition(
    counts: Int64Array, small: Int64Array, large: Int64Array, sizes: tuple[int, int], numbers: tuple[int, int]
) -> Int64Array:
    """Algorithm 1 (record partition): (m, 2) int64 for a setting that keeps Theorem 1. Raises ValueError for any other.

    First a_i1 records of each value go to the small buckets; then the surplus moves on. The paper moves any records that may
    go; here every value gives in proportion to what it may give, which leaves both halves the better to split again.
    """
    if not two_size_valid(counts, small, large, sizes, numbers):
        raise ValueError(f"sizes {sizes} with numbers {numbers} are not a valid setting of these counts")
    first = np.minimum(small * numbers[0], counts)
    movable = np.minimum(first, large * numbers[1] - (counts - first))
    first -= _in_proportion(movable.tolist(), int(first.sum()) - sizes[0] * numbers[0])
    return np.stack([first, counts - first], axis=1)


def _in_proportion(available: list[int], amount: int) -> Int64Array:
    """`amount` shared out in proportion to `available` and never above it: rounded down, then up where most was cut off.

    In Python integers: a share is a product of two numbers of records. Ties go to the earlier value.
    """
    total = max(1, sum(available))
    shares = [divmod(a * amount, total) for a in available]
    moved = np.array([whole for whole, _ in shares], dtype=np.int64)
    left = amount - int(moved.sum())
    moved[sorted(range(len(shares)), key=lambda i: -shares[i][1])[:left]] += 1
    return moved


def place(values: MergedValues, numbers: Int64Array) -> Transport:
    """Place merged values into numbers[j] buckets of values.sizes[j], (q,) int64: a flow over all q sizes, or crowded sets.

    Cost: one maximum flow over the sizes in use.
    """
    used, nodes = np.flatnonzero(numbers), values.nodes
    most = values.members[:, None] * values.capacities[:, used] * numbers[used]
    demand = values.sizes[used] * numbers[used]
    if nodes is None:
        placement = transport(values.supply, most, demand)
    else:
        limits = nodes.capacities[:, used] * numbers[used]
        placement = tree_transport(values.supply, most, demand, nodes.above, nodes.parents, limits)
    if placement.flow is None:
        return placement
    flow = np.zeros(values.capacities.shape, dtype=np.int64)
    flow[:, used] = placement.flow
    return Transport(flow, [])


def partition(table: SensitiveTable, setting: BucketSetting) -> Int64Array | None:
    """A record partition (m, len(setting.sizes)) of any setting over the table's sizes, or None when the setting is not valid."""
    if setting.records != table.n:
        return None
    values = table.merged()
    numbers = np.zeros(len(values.sizes), dtype=np.int64)
    columns = np.array(setting.sizes, dtype=np.int64) - table.first_size
    if (columns < 0).any():
        return None  # no record fits a bucket smaller than M
    numbers[columns] = setting.numbers
    placement = place(values, numbers)
    return None if placement.flow is None else values.deal(placement.flow[:, columns], len(table.counts))


def check(table: SensitiveTable, setting: BucketSetting, parts: Int64Array) -> None:
    """Raise AssertionError unless `parts` is a valid partition of exactly this table for this setting: nothing lost or over."""
    if parts.shape != (len(table.counts), len(setting.sizes)) or (parts < 0).any():
        raise AssertionError("the partition has the wrong shape or a negative entry")
    if (parts.sum(axis=1) != table.counts).any():
        raise AssertionError("the partition loses or invents records of a value")
    for j, (size, number) in enumerate(zip(setting.sizes, setting.numbers, strict=True)):
        if int(parts[:, j].sum()) != size * number:
            raise AssertionError(f"the buckets of size {size} are not exactly full")
        if (parts[:, j] > table.capacity(size) * number).any():
            raise AssertionError(f"a value has more records in buckets of size {size} than its threshold allows")
        if table.nodes is not None:
            held = node_sums(parts[:, [j]], table.nodes.above, table.nodes.parents)[:-1, 0]
            if (held > table.nodes.capacities[:, size - table.first_size] * number).any():
                raise AssertionError(f"a node has more records in buckets of size {size} than its threshold allows")
