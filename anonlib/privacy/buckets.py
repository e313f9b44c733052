"""What a bucket solver answers: how many buckets of which sizes, and how many records of each value go to each size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from anonlib.arrays import Int64Array


@dataclass(frozen=True)
class BucketSetting:
    """<B_1(S_1, b_1), ..., B_q(S_q, b_q)>: `numbers[j]` buckets of `sizes[j]` records, sizes ascending, numbers positive.

    Numbers and losses are Python integers: b * S^2 at 10^10 records must not overflow.
    """

    sizes: tuple[int, ...]
    numbers: tuple[int, ...]

    @staticmethod
    def of(pairs: Iterable[tuple[int, int]]) -> BucketSetting:
        """The setting of (size, number) pairs in any order; zero numbers are left out, equal sizes are added up."""
        total: dict[int, int] = {}
        for size, number in pairs:
            if number:
                total[int(size)] = total.get(int(size), 0) + int(number)
        sizes = tuple(sorted(total))
        return BucketSetting(sizes, tuple(total[size] for size in sizes))

    @property
    def records(self) -> int:
        """Sum of b_j S_j: how many records the buckets hold."""
        return sum(size * number for size, number in zip(self.sizes, self.numbers, strict=True))

    @property
    def buckets(self) -> int:
        """How many buckets there are over all sizes: the sum of b_j."""
        return sum(self.numbers)

    @property
    def loss(self) -> int:
        """Sum over buckets of (|g| - 1)^2 (paper 1, Eq. 2)."""
        return sum(number * (size - 1) ** 2 for size, number in zip(self.sizes, self.numbers, strict=True))

    @property
    def msbs(self) -> float:
        """Mean squared bucket size, Loss / (|T| - 1)."""
        return self.loss / max(1, self.records - 1)

    def __str__(self) -> str:
        return ", ".join(f"{number:,} x {size}" for size, number in zip(self.sizes, self.numbers, strict=True))


@dataclass(frozen=True)
class BucketSolution:
    """A valid bucket setting with its record partition and what is proven about it.

    setting   : the buckets
    partition : (m, q) int64, `partition[i, j]` records of value i go to the buckets of `setting.sizes[j]`;
                rows sum to o_i, columns to S_j b_j, and partition[i, j] <= floor(f'_i S_j) b_j
    solver    : "two_size", "multi_size", "optimal" or "anatomy"
    bound     : proven lower bound on the loss of any setting the solver may choose from (equal to the loss when optimal)
    status    : "optimal" (gap 0), "time_limit" (best found, see gap), or "heuristic" (no claim beyond validity)
    seconds   : wall time of the solver
    """

    setting: BucketSetting
    partition: Int64Array
    solver: str
    bound: int
    status: str
    seconds: float

    def __post_init__(self) -> None:
        partition = np.asarray(self.partition, dtype=np.int64)
        partition.setflags(write=False)
        object.__setattr__(self, "partition", partition)

    @property
    def loss(self) -> int:
        """The loss of the setting: the sum over buckets of (|g| - 1)^2 (generalized bucketization, Eq. 2)."""
        return self.setting.loss

    @property
    def gap(self) -> float:
        """(loss - bound) / loss: how far from proven optimal, 0 when optimal."""
        return 0.0 if self.loss == 0 else max(0, self.loss - self.bound) / self.loss
