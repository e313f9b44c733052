"""Text that is none: a Parquet, ORC or Avro file may hold any bytes as a string, and Spark hands them on as they are.

Python has no such strings. What reaches it fails, or two values that differ become one, and then a bound that was kept for each is not
kept for what is published. So whatever reads such a value is refused. The check is part of each pass, a look at every byte of the texts.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from anonlib.engine.failures import refusal_text
from anonlib.errors import SpecError
from anonlib.sql import quoted


def project(frame: DataFrame, names: list[str]) -> DataFrame:
    """The named columns, spelled as given, in this order. Reading a text with bytes that are no UTF-8 fails: SpecError under `explained`.

    Texts inside arrays, maps and structs are not looked at.
    """
    kinds = {field.name.lower(): field.dataType for field in frame.schema.fields}
    version = frame.sparkSession.version
    return frame.select(
        *[
            (_refusing(name, version) if isinstance(kinds[name.lower()], T.StringType) else F.col(quoted(name))).alias(
                name
            )
            for name in names
        ]
    )


def is_valid(text: str, spark_version: str) -> Column:
    """Whether `text`, an SQL expression, is UTF-8; true of null."""
    if int(spark_version.split(".")[0]) >= 4:
        return F.expr(f"coalesce(is_valid_utf8({text}), true)")
    return F.expr(
        f"coalesce(decode(CAST({text} AS BINARY), 'UTF-8') = {text}, true)"
    )  # decoding replaces what is no character


def sentence(name: str) -> str:
    """Why a column is refused."""
    return f"column {name!r} has text with bytes that are no UTF-8; mend it where it is written, or decode it in a view"


def _refusing(name: str, spark_version: str) -> Column:
    refuse = F.raise_error(F.lit(refusal_text(sentence(name), SpecError)))
    return F.when(~is_valid(quoted(name), spark_version), refuse).otherwise(F.col(quoted(name)))
