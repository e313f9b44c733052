"""The table of the sub-tables' perturbation operators, from the driver's description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.engine.local_table import local_table
from anonlib.engine.statistics import typed_value
from anonlib.sql import quoted


def operators_table(
    beside: DataFrame,
    rows: Sequence[tuple[Any, ...]],
    columns: Mapping[str, str],
    domain: str,
    sensitive: Mapping[str, str],
) -> DataFrame:
    """`rows` as a DataFrame of `beside`'s session with `columns` {name: Spark type}; one row per sub-table, in one partition.

    domain : the column whose elements are given as lists of texts (None for a null), one for each of `sensitive` {column: Spark type};
             it holds the values themselves or, of several columns, structs of them.
    """
    kinds = {name: "array<array<string>>" if name == domain else kind for name, kind in columns.items()}
    frame = local_table(beside.sparkSession, ", ".join(f"{name} {kind}" for name, kind in kinds.items()), rows)
    typed = [typed_value(f"t[{k}]", kind) for k, kind in enumerate(sensitive.values())]
    named = ", ".join(f"{value} AS {quoted(name)}" for name, value in zip(sensitive, typed, strict=True))
    element = typed[0] if len(typed) == 1 else f"struct({named})"
    held = F.expr(f"transform({domain}, t -> {element})").alias(domain)
    return frame.select(*[held if name == domain else F.col(name) for name in columns]).coalesce(1)
