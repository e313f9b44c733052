"""The order in which rows are published: a function of what is published, so that it says nothing else.

A table that kept the order of its input would give away whatever the input was sorted by, and one that kept its files, who stood in which.
A test of whether files differ cannot be as strong as somebody who knows which value to look for: a rare diagnosis of one hospital out of
twenty is lost in a chi-square over all values, and its file and its bucket together name the patients. So rows are always dealt to files
by their bucket or class (or by a hash of what is published), and those of each file are sorted by it and a hash of their own values. How
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


def arranged(frame: DataFrame, number: int, by: str | None = None, narrow: bool = False) -> DataFrame:
    """`frame` dealt to `number` files by the long column `by`, each sorted by it and a hash of the whole row; without `by` by the hash.

    narrow : `by` is in [0, 2^40). It and 24 bits of the hash then make one key, which Spark sorts by radix; two different rows of a bucket
             that meet in one partition keep the input's order with a chance of 2^-24.

    Cost: one shuffle of all rows and a local sort.
    """
    order, hashed = quoted(_ORDER), row_hash(frame)
    if by is None:
        dealt = frame.withColumn(_ORDER, F.expr(hashed)).repartition(number, F.expr(order))
        return dealt.sortWithinPartitions(F.expr(order)).drop(_ORDER)
    dealt = frame.repartition(number, F.expr(quoted(by)))
    if narrow:
        # sorted by the expression itself: a column for it would have every row copied twice
        key = f"shiftleft({quoted(by)}, {HASH_BITS}) | shiftrightunsigned({hashed}, {64 - HASH_BITS})"
        return dealt.sortWithinPartitions(F.expr(key))
    dealt = dealt.withColumn(_ORDER, F.expr(hashed))
    return dealt.sortWithinPartitions(F.expr(quoted(by)), F.expr(order)).drop(_ORDER)
