"""Numeric values as codes a kernel can compute with, and back, exactly: SQL text for every type a numeric column may have.

Whole numbers stand for themselves, dates for days and timestamps for microseconds since 1970, decimals of up to 18 digits for their
unscaled digits: int64. Floating columns become float64, -0.0 as 0.0. No session setting (time zone, ANSI mode) changes a code.
"""

from __future__ import annotations

import re

from anonlib.engine.statistics import FLOATING
from anonlib.errors import SpecError
from anonlib.sql import quoted

WHOLE = ("tinyint", "smallint", "int", "bigint")
MAX_DIGITS = 18
_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"


def check_coded(column: str, spark_type: str) -> None:
    """Raises SpecError, naming the column, for a type without codes."""
    if spark_type in (*WHOLE, *FLOATING, "date", "timestamp", "timestamp_ntz"):
        return
    if _decimal(spark_type)[0] <= MAX_DIGITS:
        return
    raise SpecError(
        f"column {column!r} is of type {spark_type}; generalization computes with up to {MAX_DIGITS} digits: "
        f"cast it to decimal({MAX_DIGITS}, ...) or double in the input"
    )


def code_type(spark_type: str) -> str:
    """The Spark type of the codes: "double" for floating columns, else "bigint"."""
    return "double" if spark_type in FLOATING else "bigint"


def code_of(column: str, spark_type: str) -> str:
    """SQL: the code of a value; null for null."""
    name = quoted(column)
    if spark_type in FLOATING:
        return f"(CAST({name} AS DOUBLE) + 0.0D)"
    if spark_type in WHOLE:
        return f"CAST({name} AS BIGINT)"
    if spark_type == "date":
        return f"CAST(unix_date({name}) AS BIGINT)"
    if spark_type == "timestamp":
        return f"unix_micros({name})"
    if spark_type == "timestamp_ntz":  # by way of an interval: as an instant it would depend on the session's time zone
        since = f"({name} - {_EPOCH})"
        seconds = f"CAST(extract(SECOND FROM {since}) * 1000000 AS BIGINT)"
        minutes = (
            f"((extract(DAY FROM {since}) * 24L + extract(HOUR FROM {since})) * 60L + extract(MINUTE FROM {since}))"
        )
        return f"({minutes} * 60000000L + {seconds})"
    _, scale = _decimal(spark_type)
    return f"CAST({name} * {_power(scale)} AS BIGINT)"


def value_of(code: str, spark_type: str) -> str:
    """SQL: the inverse of `code_of`; `code` is SQL of a bigint, of a double for floating columns."""
    if spark_type in FLOATING or spark_type in WHOLE:
        return f"CAST({code} AS {spark_type.upper()})"
    if spark_type == "date":
        return f"date_from_unix_date(CAST({code} AS INT))"
    if spark_type == "timestamp":
        return f"timestamp_micros({code})"
    if spark_type == "timestamp_ntz":
        seconds = f"CAST(CAST({code} AS DECIMAL(20, 0)) / 1000000 AS DECIMAL(18, 6))"
        return f"({_EPOCH} + make_dt_interval(0, 0, 0, {seconds}))"
    _, scale = _decimal(spark_type)
    return f"CAST(CAST({code} AS DECIMAL({MAX_DIGITS}, 0)) / {_power(scale)} AS {spark_type.upper()})"


def _decimal(spark_type: str) -> tuple[int, int]:
    """(precision, scale) of "decimal(p,s)"; more digits than any has for another type."""
    match = re.fullmatch(r"decimal\((\d+),(\d+)\)", spark_type)
    return (int(match[1]), int(match[2])) if match else (99, 0)


def _power(scale: int) -> str:
    """10^scale as a decimal of just as many digits, so that products and quotients stay within 38 digits and lose none."""
    return f"CAST('1{'0' * scale}' AS DECIMAL({scale + 1}, 0))"
