"""Values of a column by their codes: the driver's list of texts, joined to rows that carry a code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.engine.small_table import small_table
from anonlib.engine.statistics import typed_value
from anonlib.sql import quoted


def with_values(
    frame: DataFrame, code: str, texts: Sequence[Sequence[str | None]], types: Mapping[str, str]
) -> DataFrame:
    """`frame` with new columns `types` {name: Spark type}, the k-th from texts[code][k]; `code` is SQL of an int in range.

    One broadcast join of as many rows as there are texts; partitions and the order of rows stay.
    """
    inner = [f"anonlib value {k}" for k in range(len(types))]
    schema = ", ".join(["`anonlib code` int", *(f"{quoted(name)} string" for name in inner)])
    values = small_table(frame, schema, [(i, *row) for i, row in enumerate(texts)]).select(
        "anonlib code",
        *[
            F.expr(typed_value(quoted(k), kind)).alias(name)
            for k, (name, kind) in zip(inner, types.items(), strict=True)
        ],
    )
    # a left join, so that no filter on the code is made up and moved below the task that computes it
    joined = frame.withColumn("anonlib coded", F.expr(code)).join(
        values.hint("broadcast"), F.expr("`anonlib coded` = `anonlib code`"), "left"
    )
    return joined.drop("anonlib coded", "anonlib code")
