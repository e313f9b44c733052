"""A pandas frame as a Spark DataFrame: a small table that travels in the plan.

A timestamp without a time zone stays one. What pandas has as missing is null; the index is left out."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from anonlib.errors import SpecError


def is_pandas(value: Any) -> bool:
    """Whether it is a pandas frame."""
    return isinstance(value, pd.DataFrame)


def from_pandas(spark: SparkSession, frame: pd.DataFrame, name: str) -> DataFrame:
    """The rows of `frame`, each column of one type: whole numbers that pandas keeps as floats, since some are missing, stay floats.

    Cost: the whole table in the driver's memory, and in each plan that reads it. Raises SpecError, which names the column and repeats no
    value, for a column of mixed types, of a type that Spark has not, or of a name that is no text or not the only one.
    """
    columns: dict[str, pa.Array] = {}
    for position, label in enumerate(frame.columns):
        if not isinstance(label, str):
            raise SpecError(f"{name}: the column {label!r} of the pandas frame has no text for a name; rename it")
        if label in columns:
            raise SpecError(f"{name}: the pandas frame has more than one column named {label!r}; rename one of them")
        columns[label] = _cells(frame.iloc[:, position], label, name)
    table = pa.table(columns)
    try:
        schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    except Exception:  # each version has its own
        there = ", ".join(sorted({str(field.type) for field in table.schema}))
        raise SpecError(
            f"{name}: a column of the pandas frame has a type that Spark has not ({there} are there); cast it with astype"
        ) from None
    rows = pd.DataFrame({label: _series(cells) for label, cells in columns.items()})
    if rows.empty:
        return spark.createDataFrame([], schema)
    return spark.createDataFrame(rows, T.StructType(schema.fields))


def _series(cells: pa.Array) -> pd.Series:
    """Objects, since pandas makes floats of whole numbers among which one is missing; timestamps as Spark takes them by its time zone."""
    return cells.to_pandas() if pa.types.is_timestamp(cells.type) else pd.Series(cells.to_pylist(), dtype=object)


_SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
"""Spark has no unsigned numbers."""


def _cells(series: pd.Series, label: str, name: str) -> pa.Array:
    try:
        cells = pa.Array.from_pandas(series)
    except (pa.ArrowException, TypeError, ValueError):
        raise SpecError(
            f"{name}: the column {label!r} of the pandas frame has values of several types, or of one that Arrow has not; cast it, e.g. "
            "with astype(str)"
        ) from None
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.combine_chunks()
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pa.types.is_large_string(cells.type) or pa.types.is_string_view(cells.type):
        cells = cells.cast(pa.string())
    if cells.type in _SIGNED:
        cells = cells.cast(_SIGNED[cells.type])
    if pa.types.is_timestamp(cells.type) and cells.type.unit != "us":
        cells = cells.cast(pa.timestamp("us", cells.type.tz), safe=False)
    return cells
