"""The combinations of values that records have in several sensitive columns, counted.

One pass and a shuffle of counts; at most `limit` combinations reach the driver.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Int64Array
from anonlib.engine.failures import explained
from anonlib.errors import AnonlibError


class TooManyCombinations(AnonlibError):
    """More combinations than the driver takes."""


def joint_values(coded: DataFrame, columns: int, limit: int) -> tuple[tuple[Int64Array, ...], Int64Array]:
    """(codes of each column in every combination that occurs, ascending; how many records have it), (M,) int64 each.

    coded : s0, s1, ... codes; columns : how many. Raises TooManyCombinations above `limit`.
    """
    names = [f"s{i}" for i in range(columns)]
    with explained("counting combinations of sensitive values"):
        counted = coded.groupBy(*names).agg(F.count(F.lit(1)).alias("records"))
        table: pd.DataFrame = counted.limit(limit + 1).toPandas()  # bounded by `limit`
    if len(table) > limit:
        raise TooManyCombinations(f"there are more than {limit:,} combinations of sensitive values")
    table = table.sort_values(names, ignore_index=True)
    return tuple(table[name].to_numpy(np.int64) for name in names), table["records"].to_numpy(np.int64)
