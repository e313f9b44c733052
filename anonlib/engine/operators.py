"""The table of the sub-tables' perturbation operators, from the driver's description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.engine.statistics import typed_value


def operators_table(
    beside: DataFrame, rows: Sequence[tuple[Any, ...]], columns: Mapping[str, str], domain: str
) -> DataFrame:
    """`rows` as a DataFrame of `beside`'s session with `columns` {name: Spark type}; one row per sub-table, in one partition.

    domain : the column whose array elements are given as texts (None for a null) and cast to the array's type.
    """
    kinds = {name: "array<string>" if name == domain else kind for name, kind in columns.items()}
    frame = beside.sparkSession.createDataFrame(list(rows), ", ".join(f"{name} {kind}" for name, kind in kinds.items()))
    element = columns[domain].removeprefix("array<").removesuffix(">")
    typed = F.expr(f"transform({domain}, t -> {typed_value('t', element)})").alias(domain)
    return frame.select(*[typed if name == domain else F.col(name) for name in columns]).coalesce(1)
