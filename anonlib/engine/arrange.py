"""The order in which rows are published: a function of what is published, so that it says nothing else.

A table that kept the order of its input would give away whatever the input was sorted by, and one that kept its files, who stood in which.
A test of whether files differ cannot be as strong as somebody who knows which value to look for: a rare diagnosis of one hospital out of
twenty is lost in a chi-square over all values, and its file and its bucket together name the patients. So rows are always dealt to files
by their bucket (or by a hash of what is published), and those of each file are sorted by their bucket and a hash of their own values. How
many files there are follows from the number of records alone.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.engine.checksum import row_hash
from anonlib.sql import quoted

_ORDER = "anonlib order"
HASH_BITS = 24


FILE_ROWS = 1_000_000
"""Records of a published file, at most."""


def files(n: int) -> int:
    """How many files n records are published in: a number of n alone, so that it says nothing else."""
    return max(1, -(-n // FILE_ROWS))


def arranged(frame: DataFrame, by: str | None, number: int) -> DataFrame:
    """`frame` dealt to `number` files by the long column `by`, each sorted by it and a hash of the whole row; without `by` by the hash.

    Cost: one shuffle of all rows and a local sort.
    """
    if by is None:
        ordered = frame.withColumn(_ORDER, F.expr(row_hash(frame)))
        ordered = ordered.repartition(number, F.col(quoted(_ORDER)))
        return ordered.sortWithinPartitions(F.col(quoted(_ORDER))).drop(_ORDER)
    frame = frame.repartition(number, F.expr(quoted(by)))
    # One long holds both keys, which lets Spark sort by radix: 40 bits of the bucket, 24 of the hash. Two different rows of a bucket
    # that meet in one partition keep the input's order with a chance of 2^-24.
    key = f"shiftleft({quoted(by)}, {HASH_BITS}) | shiftrightunsigned({row_hash(frame)}, {64 - HASH_BITS})"
    ordered = frame.withColumn(_ORDER, F.expr(key)).sortWithinPartitions(F.col(quoted(_ORDER)))
    return ordered.drop(_ORDER)
