"""Small driver-side tables that travel in the plan of a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession


def local_table(spark: SparkSession, schema: str, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    """`rows` as a DataFrame that travels in the plan, so that looking at it is no job. `schema` is DDL, e.g. "value string, code int".

    By way of Arrow, which is what keeps it out of an RDD (rows of up to `spark.sql.execution.arrow.localRelationThreshold`, 48 MB; more
    are spread over tasks). Without Arrow (`run_settings` sets it), or without rows, it is an RDD, and every use a job.
    """
    if not rows:
        return spark.createDataFrame([], schema)
    names = [f"c{i}" for i in range(len(rows[0]))]
    # columns of Python objects: pandas would make floats of whole numbers among which one is missing
    columns = {
        name: pd.Series(list(cells), dtype=object) for name, cells in zip(names, zip(*rows, strict=True), strict=True)
    }
    return spark.createDataFrame(pd.DataFrame(columns), schema)
