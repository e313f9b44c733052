"""What a caller hands over: turned into what the library works on, or a TypeError of one sentence that says what to give instead."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from anonlib.engine.pandas_frames import from_pandas, is_pandas
from anonlib.engine.relational import DataFrame
from anonlib.engine.session import SparkSession, session
from anonlib.errors import SpecError
from anonlib.release.opened import Release
from anonlib.spec.part import Faults, shown
from anonlib.spec.paths import plain_path, read_output_path


def as_table(df: Any, name: str = "df", spark: SparkSession | None = None) -> DataFrame:
    """A Spark DataFrame as it is; a pandas one (of a small table: it goes through the driver) as one of Spark's,
    in `spark` or the active session."""
    if hasattr(df, "sparkSession") and hasattr(df, "dtypes"):
        return df  # type: ignore[no-any-return]
    if is_pandas(df):
        return from_pandas(spark or session(), df, name)
    what = f"{shown(df)} is a path" if isinstance(df, (str, os.PathLike)) else f"{_kind(df)} is no table"
    raise TypeError(
        f"{name}: {what}; give a Spark DataFrame, e.g. spark.read.parquet(path), or a pandas one of a small table (a spec names a path: "
        "anonlib.run)"
    )


def as_release(release: Any) -> Release:
    """An opened release, as it is."""
    if not isinstance(release, Release):
        raise TypeError(f"release: {_kind(release)} is no opened release; open one with anonlib.open_release(path)")
    return release


def as_columns(value: Any, name: str, example: str) -> list[Any]:
    """Columns as a list. One name alone is refused: its letters would be taken for columns."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Sequence):
        raise TypeError(f"{name}: {shown(value)} is not a list of columns; write e.g. {example}")
    return list(value)


def as_mapping(value: Any, name: str, example: str) -> dict[str, Any]:
    """A part of a spec as a mapping."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}: {shown(value)} is not a mapping; write e.g. {example}")
    return dict(value)


def as_output(output: Any) -> str:
    """Where a release goes: text or a `pathlib.Path`. Raises SpecError for a path that no file system takes."""
    path = plain_path(output, "output")
    try:
        return read_output_path(path)
    except Faults as problem:
        raise SpecError(f"output: {problem}") from None


def _kind(value: Any) -> str:
    return (
        "None" if value is None else f"a {type(value).__module__}.{type(value).__qualname__}".replace("builtins.", "")
    )
