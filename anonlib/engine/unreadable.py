"""What of a text file cannot be read: how much in which column, an example's place, and how to mend it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from anonlib.engine.valid_text import is_valid
from anonlib.spec.reader_options import is_on, option
from anonlib.spec.release import Input
from anonlib.sql import quoted

FILE = "_anonlib_file"


@dataclass(frozen=True)
class Example:
    """One record with something unreadable: its file (a URI) and its text, where Spark tells it. The text is never shown."""

    file: str
    text: str | None


@dataclass(frozen=True)
class Unreadable:
    """records : with anything unreadable; lengths : of these, with too few or too many cells (JSON: no object of the schema)
    cells      : {column: cells that cannot be read as its type}; undecodable : {column: cells with bytes that are no text}
    types      : {column: its type}, for the message
    """

    records: int = 0
    lengths: int = 0
    cells: Mapping[str, int] = field(default_factory=dict)
    undecodable: Mapping[str, int] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    example: Example | None = None


def counted(
    frame: DataFrame, record: str, broken: Column, looked_at: Mapping[str, tuple[Column, Column]]
) -> Unreadable:
    """One job, no shuffle but of one row per partition.

    record    : the column with the text of a record that Spark found fault with
    broken    : whether a record has other than its cells
    looked_at : {column: (whether its cell cannot be read, whether it holds bytes that are no text)}
    """
    names = list(looked_at)
    flaws = [broken, *(flaw for name in names for flaw in looked_at[name])]
    flawed = F.array_contains(F.array(*[F.coalesce(flaw, F.lit(False)) for flaw in flaws]), True)
    example = F.min(F.when(flawed, F.struct(F.col(FILE).alias("file"), F.col(record).alias("text"))))
    row = (
        frame.withColumn(FILE, F.input_file_name())
        .agg(
            F.count_if(flawed).alias("records"),
            example.alias("example"),
            *[F.count_if(flaw).alias(f"flaw_{i}") for i, flaw in enumerate(flaws)],
            *[F.count(quoted(name)).alias(f"asked_{i}") for i, name in enumerate(names)],  # Spark looks at no other
        )
        .first()
    )
    assert row is not None
    types = dict(frame.dtypes)
    return Unreadable(
        row["records"],
        row["flaw_0"],
        {name: row[f"flaw_{1 + 2 * i}"] for i, name in enumerate(names) if row[f"flaw_{1 + 2 * i}"]},
        {name: row[f"flaw_{2 + 2 * i}"] for i, name in enumerate(names) if row[f"flaw_{2 + 2 * i}"]},
        {name: types[name] for name in names},
        None if row["example"] is None else Example(row["example"]["file"], row["example"]["text"]),
    )


def sentence(spark: SparkSession, source: Input, unreadable: Unreadable) -> str:
    """Why the table is refused; no cell of it. Two small jobs over the example's file, for its line."""
    said, mends = [], []
    for name, number in unreadable.cells.items():
        said.append(f"{number:,} cell(s) of {name!r} not of its column's type ({unreadable.types[name]})")
        mends.append(_format_option(unreadable.types[name]))
    encoding = option(source.options, "encoding") or option(source.options, "charset") or "UTF-8"
    for name, number in unreadable.undecodable.items():
        said.append(f"{number:,} cell(s) of {name!r} with bytes that are no text in {encoding}")
        mends.append("encoding, e.g. iso-8859-1")
    if unreadable.lengths and source.format == "csv":
        said.append(f"{unreadable.lengths:,} record(s) with too few or too many cells")
        mends.append("sep, quote, escape or multiLine")
    elif unreadable.lengths and is_on(source.options, "multiLine"):
        said.append(
            f"something that cannot be read as the schema, among the {unreadable.lengths:,} record(s) of its file(s)"
        )
    elif unreadable.lengths:
        said.append(f"{unreadable.lengths:,} record(s) that cannot be read as an object")
        mends.append("multiLine")
    where = ""
    if unreadable.example is not None:
        line = _line(spark, source, unreadable.example)
        where = f" (for one, {f'line {line:,} of ' if line else ''}{unreadable.example.file})"
    how = f", give input.options what it needs ({'; '.join(dict.fromkeys(mends))})" if mends else ""
    return (
        f"input.path {source.path!r} has {'; '.join(said)}{where}. Mend the file{how}, or read the column as STRING in input.schema; or "
        "allow it: input.unreadable: missing reads such cells as missing values, drop leaves their records out, and the manifest says how "
        "many"
    )


def _format_option(kind: str) -> str:
    if kind.startswith("timestamp"):
        return "timestampFormat"
    return "dateFormat" if kind == "date" else "nullValue for what stands for a missing value"


def _line(spark: SparkSession, source: Input, example: Example) -> int | None:
    """The example's line in its file, from 1; None where it cannot be told (records of many lines, other encodings)."""
    if is_on(source.options, "multiLine") or option(source.options, "lineSep"):
        return None
    path = re.sub(r"([\[\]{}*?\\])", r"\\\1", unquote(example.file))
    with suppress(Exception):  # it is a help, not a need
        lines = spark.read.text(path).select("value", F.monotonically_increasing_id().alias("at"))
        if example.text is None:
            sought = F.contains(F.col("value"), F.lit("\ufffd")) | ~is_valid("value", spark.version)
        else:
            sought = F.col("value") == F.lit(example.text)
        first = F.min(F.when(sought, F.col("at")))
        parts = lines.groupBy(F.shiftright("at", 33).alias("part")).agg(
            F.count("*").alias("lines"), first.alias("first")
        )
        before = 0
        for row in sorted(parts.collect(), key=lambda row: row["part"]):  # one row per 128 MB of one file
            if row["first"] is not None:
                return before + int(row["first"] & ((1 << 33) - 1)) + 1
            before += row["lines"]
    return None
