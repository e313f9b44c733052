"""SABRE's default: what a class holds is chosen from counts, which records it takes from quasi-identifiers, never one from the other.

    sub-buckets   driver, from counts of sensitive values alone                                     (`anonlib.solvers.classes.sub_buckets`)
    deal          which records of a value go to which sub-bucket: an exact rank, permuted by the key. No look at anything else
    partitions    only above `partition_size`: equal runs of every sub-bucket along the Hilbert curve, so that each partition holds the same
                  number of records of every sub-bucket; a class of it keeps t by construction, and nothing is ever merged
    classes       `anonlib.kernels.classes.symmetric_classes`: the same number of records of every sub-bucket, all sub-buckets treated alike

Above `partition_size` that is two range shuffles of codes (sorts in one task up to 500,000 rows of input), both staged, and a scan for
(task x value) and (task x sub-bucket) counts on the driver; the classes then take one more shuffle. Combinations of several sensitive
columns: one more scan, at most `COMBINATIONS` reach the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonlib.arrays import Codes, Int64Array
from anonlib.domains import Domain
from anonlib.engine import curve_ranks
from anonlib.engine.batches import over_batches
from anonlib.engine.codes import TooMany, joint_values
from anonlib.engine.failures import TaskRefusal
from anonlib.engine.partitions import NODE, PARTITION, in_one_piece
from anonlib.engine.ranks import CHANGED
from anonlib.engine.relational import DataFrame, select
from anonlib.errors import Unsatisfiable
from anonlib.kernels.classes.equivalence_classes import Symmetric
from anonlib.kernels.hilbert import hilbert_positions
from anonlib.keyed import KeyedPermutation, Stream
from anonlib.methods.boxed import Coded
from anonlib.methods.recipe import Run
from anonlib.privacy.sub_buckets import JointValues, SubBuckets
from anonlib.privacy.t_closeness import TCloseness
from anonlib.solvers.classes.sub_buckets import Packing, pack

COMBINATIONS = 1_000_000
"""Combinations of values of several sensitive columns that the driver takes."""
TOO_LARGE = 4
"""A class of more than so many times the partition size is too much for a task."""


def packed(
    frame: DataFrame, closeness: Sequence[TCloseness], k: int, partition_size: int | str
) -> tuple[JointValues, Packing]:
    """The sub-buckets of a coded table. Raises Unsatisfiable where classes would not fit into a task, or there are too many combinations
    of sensitive values."""
    joint = JointValues.single(closeness[0].table)
    if len(closeness) > 1:
        try:
            codes, counts = joint_values(frame, COMBINATIONS)
        except TooMany as error:
            raise Unsatisfiable(
                f"there are {error.beyond}, too many to share out so that every class is close in each column; give fewer sensitive "
                "columns, or use sabre: {refine: true, allow_minimality_leak: true}, which looks at each column by itself"
            ) from None
        joint = JointValues(codes, counts, tuple(each.distance.m for each in closeness))
    packing = pack(closeness, joint, k)
    size = packing.sub_buckets.number * packing.least
    if partition_size != "all" and size > TOO_LARGE * max(int(partition_size), k):
        raise Unsatisfiable(
            f"classes that keep t whatever records they take have {size:,} records here, more than a task of partition_size: "
            f"{partition_size} holds; ask for a larger t, for a larger partition_size, or for partition_size: all"
        )
    return joint, packing


def partitions(packing: Packing, partition_size: int | str) -> int:
    """How many partitions a table is cut into, the rest not counted."""
    parts = packing.sub_buckets
    if partition_size == "all":
        return 1
    return max(1, min(parts.number * parts.records // int(partition_size), parts.records // packing.least))


def one_task(packing: Packing, partition_size: int | str) -> bool:
    """Whether one task takes the whole table."""
    return partitions(packing, partition_size) == 1


def cut_by_rank(coded: Coded, joint: JointValues, packing: Packing, partition_size: int | str, run: Run) -> DataFrame:
    """The located records, their sub-bucket as their node: 0 for the rest, else its number + 1."""
    if one_task(packing, partition_size):
        return in_one_piece(coded.frame)
    parts, number = packing.sub_buckets, partitions(packing, partition_size)
    run.say(f"dealing the records of each value to {parts.number:,} sub-buckets")
    one, other = Stream(run.key, SALT).below(1 << 62, 2).tolist()
    valued = over_batches(coded.frame, _Value(joint), {"grp": "int", "curve": "bigint"})
    ranked = run.stage("ranked", curve_ranks.seated(valued, one, coded.input_rows))
    dealt = curve_ranks.by_rank(ranked, joint.counts, _Deal(parts, run.key))
    names = {name: name for name in coded.frame.columns} | {"grp": PARTITION, "slot": NODE}
    dealt = select(dealt, names)
    run.say(f"ordering the records of each sub-bucket along the Hilbert curve, for {number:,} partitions")
    placed = over_batches(dealt, _Curve(coded.domains), {"curve": "bigint"})
    staged = run.stage(curve_ranks.SEATED, curve_ranks.seated(placed, other, coded.n))
    sizes = np.full(parts.number + 1, parts.records, dtype=np.int64)
    sizes[0] = int(parts.rest.sum())
    return curve_ranks.by_rank(staged, sizes, _Even(parts.records, number)).drop("slot")


SALT = "sabre: order of records of equal value, and at one place of the curve"


@dataclass(frozen=True)
class _Value:
    """Each record's value, or combination of values; no place on any curve."""

    joint: JointValues

    def __call__(self, columns: dict[str, Codes]) -> dict[str, Codes]:
        number = self.joint.number([columns[f"s{i}"].astype(np.int64) for i in range(len(self.joint.sizes))])
        if (number < 0).any():
            raise TaskRefusal(CHANGED)
        return {"grp": number.astype(np.int32), "curve": np.zeros(len(number), dtype=np.int64)}


@dataclass(frozen=True)
class _Deal:
    """(value, rank) -> (sub-bucket + 1, 0 for the rest; the slot drawn for the record, a number that no other record of the value has)."""

    parts: SubBuckets
    key: bytes

    def __call__(self, value: Int64Array, rank: Int64Array) -> tuple[Int64Array, Int64Array]:
        slot = KeyedPermutation(self.key, Symmetric.DEAL, self.parts.counts)(value, rank)
        return self.parts.of(value, slot) + 1, slot


@dataclass(frozen=True)
class _Curve:
    domains: tuple[Domain, ...]

    def __call__(self, columns: dict[str, Codes]) -> dict[str, Codes]:
        return {"curve": hilbert_positions([columns[f"q{i}"] for i in range(len(self.domains))], self.domains)}


@dataclass(frozen=True)
class _Even:
    """Equal runs of every sub-bucket, and a partition for the rest."""

    records: int
    number: int

    def __call__(self, group: Int64Array, rank: Int64Array) -> tuple[Int64Array, Int64Array]:
        return np.where(group == 0, self.number, rank * self.number // self.records), group
