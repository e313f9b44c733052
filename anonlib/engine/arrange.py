"""The order in which rows are published: a function of what is published, so that it says nothing else.

A table that kept the order of its input would give away whatever the input was sorted by. So the rows of each file are sorted by
their bucket and then by a hash of their own published values. What is left is which file a row stands in, that is, which partition
of the input it came from; where pass 1 found that the sensitive values are spread over the partitions otherwise than by chance (an
input sorted or grouped by them, or by something that goes with them), rows are dealt to files by their bucket instead.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.engine.checksum import row_hash
from anonlib.sql import quoted

_ORDER = "anonlib order"
HASH_BITS = 24


def arranged(frame: DataFrame, by: str | None, mixed_into: int | None) -> DataFrame:
    """`frame` with the rows of each partition sorted by the long column `by` and a hash of the whole row; by the hash alone without `by`.

    mixed_into : number of partitions to deal the rows to by `by` (by the hash without it), or None to leave each in its partition.
    Cost: a local sort; with `mixed_into` one shuffle of all rows.
    """
    if by is None:
        ordered = frame.withColumn(_ORDER, F.expr(row_hash(frame)))
        if mixed_into is not None:
            ordered = ordered.repartition(mixed_into, F.col(quoted(_ORDER)))
        return ordered.sortWithinPartitions(F.col(quoted(_ORDER))).drop(_ORDER)
    if mixed_into is not None:
        frame = frame.repartition(mixed_into, F.expr(quoted(by)))
    # One long holds both keys, which lets Spark sort by radix: 40 bits of the bucket, 24 of the hash. Two different rows of a bucket
    # that meet in one partition keep the input's order with a chance of 2^-24.
    key = f"shiftleft({quoted(by)}, {HASH_BITS}) | shiftrightunsigned({row_hash(frame)}, {64 - HASH_BITS})"
    ordered = frame.withColumn(_ORDER, F.expr(key)).sortWithinPartitions(F.col(quoted(_ORDER)))
    return ordered.drop(_ORDER)
