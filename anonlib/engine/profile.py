"""What a table's columns are like, in counts: for the draft of a spec. No value of a column reaches the driver.

The first line of a CSV is taken for the names of its columns, and refused where it looks like a record; its types are found from all of
its cells: what has a leading zero is no number (a zip code). Cost: one scan, an approximate count of distinct values a column, in one job;
of a CSV one more, of its first line.
"""

from __future__ import annotations

import os
import re
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from anonlib.engine.as_missing import LIKELY_NUMBERS, LIKELY_TEXTS
from anonlib.engine.failures import explained
from anonlib.engine.reading import read
from anonlib.engine.relational import aggregate, one_row, rows
from anonlib.engine.tables import types
from anonlib.errors import SpecError
from anonlib.spec.csv_names import check_names
from anonlib.spec.draft import ColumnFacts, TableFacts, yaml_quoted
from anonlib.spec.release import Input
from anonlib.sql import literal, quoted

FORMATS = ("parquet", "csv", "json", "orc", "delta", "avro")
_COUNTABLE = ("array", "map", "struct", "variant", "void", "interval")
_SHAPES = {
    "INT": r"^-?(0|[1-9][0-9]{0,8})$",
    "BIGINT": r"^-?(0|[1-9][0-9]{0,17})$",
    "DOUBLE": r"^-?(0|[1-9][0-9]{0,17})([.][0-9]{1,17})?$",
    "DATE": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
}
"""{type: how its cells are written}, the narrowest first; what none of them is stays text."""


def table_facts(spark: SparkSession, name: str, format: str | None = None) -> TableFacts:
    """The columns of the table `name`: a path in `format` (by its ending where None), or a catalog table where `format` is "table".

    Raises SpecError when it cannot be read, has no rows, or is a CSV whose first line looks like a record.
    """
    format = format or _format_of(name)
    if format == "table":
        frame, source = read(spark, Input.model_validate({"table": name})), [("table", yaml_quoted(name))]
    else:
        plain: dict[str, Any] = {"path": name, "format": format}
        if format == "csv":
            plain["options"] = {"header": "true"}
        stated = Input.model_validate(plain)
        if format == "csv":
            check_names(_first_line(spark, name), repr(name))
        frame = read(spark, stated)
        source = [("path", yaml_quoted(name)), ("format", format)]
    with explained(f"counting the columns of {name!r}"):
        counted = one_row(aggregate(frame, [], _asked(frame, format == "csv")))
    n_rows = int(counted["n"])
    if n_rows == 0:
        raise SpecError(f"{name!r} has no rows, so there is nothing to draft a spec from")
    columns = tuple(
        _facts(i, column, kind, counted, format == "csv") for i, (column, kind) in enumerate(types(frame).items())
    )
    if format == "csv":
        ddl = ", ".join(f"{quoted(c.name)} {c.spark_type.upper()}" for c in columns)
        source += [("schema", yaml_quoted(ddl)), ("options", "{header: true}")]
    return TableFacts(n_rows, columns, tuple(source))


def _first_line(spark: SparkSession, name: str) -> list[str | None]:
    """The cells of a CSV's first line, read as a record: of a header Spark renames what is empty or doubled."""
    with explained(f"input.path {name!r}"):
        bare = spark.read.format("csv").option("header", "false").load(name)
        first = rows(bare.limit(1), 1)
    # a column of another name is one of the folders' names
    return [cell for row in first for column, cell in row.items() if re.fullmatch(r"_c[0-9]+", column)]


def _format_of(name: str) -> str:
    ending = os.path.splitext(name.rstrip("/"))[1].lstrip(".").lower()
    if ending in FORMATS:
        return ending
    if os.path.isdir(name):
        endings = {
            os.path.splitext(file)[1].lstrip(".").lower()
            for file in os.listdir(name)
            if not file.startswith(("_", "."))
        }
        if len(endings) == 1 and endings <= set(FORMATS):
            return endings.pop()
    raise SpecError(
        f"{name!r} does not say its format; give --format, one of {', '.join(FORMATS)}, or table for a catalog table"
    )


def _asked(frame: DataFrame, as_text: bool) -> dict[str, str]:
    asked = {"n": "count(1)"}
    for i, (name, kind) in enumerate(types(frame).items()):
        cell = quoted(name)
        asked[f"filled{i}"] = f"count({cell})"
        if kind.startswith(_COUNTABLE):
            continue
        asked[f"distinct{i}"] = f"approx_count_distinct({cell})"
        if kind == "string":
            texts = ", ".join(literal(text) for text in (*LIKELY_TEXTS, *map(str, LIKELY_NUMBERS)))
            asked[f"marks{i}"] = f"count_if(lower(trim({cell})) IN ({texts}))"
        elif kind in ("smallint", "int", "bigint", "float", "double"):
            asked[f"marks{i}"] = f"count_if({cell} IN ({', '.join(map(str, LIKELY_NUMBERS))}))"
        if as_text:
            asked |= {
                f"{shape}{i}": f"count_if(regexp_like({cell}, {literal(pattern)}))"
                for shape, pattern in _SHAPES.items()
            }
    return asked


def _facts(i: int, name: str, kind: str, counted: dict[str, Any], as_text: bool) -> ColumnFacts:
    n_rows, filled, marks = int(counted["n"]), int(counted[f"filled{i}"]), int(counted.get(f"marks{i}") or 0)
    if as_text and filled:
        kind = next((shape.lower() for shape in _SHAPES if counted[f"{shape}{i}"] == filled), kind)
    return ColumnFacts(name, kind, min(int(counted.get(f"distinct{i}") or 0), filled), n_rows - filled, marks)
