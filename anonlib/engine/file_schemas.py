"""Whether all files of a Parquet or ORC table have the columns that the table is read with, each of one type.

Spark takes the schema of one file for all of them. A file that lacks a column is read as if it had nulls there, a column that only other
files have is not read at all, and some types are read as others: a four-byte 300 in a column of bytes as 44, a number as a date. None of
it is said. So the schema in every file's footer is compared before anything is read: no pass over the data, and on the driver one footer
at a time for each of `THREADS`. Of local files the footers are read directly; of others through Spark, a small job each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from anonlib.engine.failures import explained
from anonlib.errors import SpecError
from anonlib.spec.reader_options import is_on
from anonlib.spec.release import Input

THREADS = 16
BATCH = 1024
"""Files whose footers are asked for at once, so that no more than their schemas are held."""

Columns = Mapping[str, tuple[str, Any]]
"""{name in lower case: (name as spelled, its type in some notation)} of one file."""

WIDER: Mapping[str, tuple[str, ...]] = {
    "tinyint": ("smallint", "int", "bigint"),
    "smallint": ("int", "bigint"),
    "int": ("bigint", "double"),
    "float": ("double",),
    "binary": ("string",),
    "date": ("timestamp_ntz",),
    "timestamp": ("timestamp_ntz",),
    "timestamp_ntz": ("timestamp",),
}
"""{a file's type: the types that it can be read as without a change of any value}, as far as Spark does it at all."""


def check(spark: SparkSession, source: Input, frame: DataFrame) -> None:
    """Raise SpecError for a file that lacks a column of the table, or has another type for it, or lies beside folders of `key=value`.

    No other format is looked at.

    frame : the table that was opened; with `mergeSchema: true` a file may lack columns, and Spark itself refuses other types
    """
    if source.format not in ("parquet", "orc"):
        return
    with explained(f"input.path {source.path!r}"):
        files = frame.inputFiles()
        check_folders(source, files)
        wanted = None
        if is_on(source.options, "mergeSchema"):
            return
        if len(files) < (2 if source.schema_ddl is None else 1):
            return
        if source.schema_ddl is not None:
            from_folders = {name.lower() for name in _KEY.findall(unquote(files[0]))}
            wanted = {name.lower(): name for name in frame.columns if name.lower() not in from_folders}
            _check_declared(dict(frame.dtypes), dict(_opened(spark, source.format, files[0]).dtypes))
        try:
            disagreement = _disagreement(files, lambda file: _footer(source.format, file), wanted)
        except (OSError, ValueError, pa.ArrowException, ImportError):  # elsewhere, or encrypted, or no such file
            disagreement = _disagreement(files, lambda file: _through_spark(spark, source.format, file), wanted)
    if disagreement is not None:
        raise SpecError(f"input.path {source.path!r}: {disagreement}")


def check_folders(source: Input, files: Sequence[str]) -> None:
    """Raise SpecError where files lie beside folders of `key=value`: Spark lists them and reads none of their rows, without a word.

    files : as Spark lists the table's
    """
    if is_on(source.options, "recursiveFileLookup"):  # reads all files, and no keys
        return
    first_with: dict[tuple[str, ...], str] = {}
    for file in files:
        first_with.setdefault(tuple(_KEY.findall(file)), file)
    if len(first_with) > 1:
        (_, beside), *_, (_, below) = sorted(first_with.items(), key=lambda item: len(item[0]))
        raise SpecError(
            f"input.path {source.path!r}: the file {unquote(beside)} lies beside folders of key=value, as {unquote(below)} does not, and "
            "its rows would be left out without a word; move it into one of them, or name the folders themselves as input.path"
        )


_KEY = re.compile(r"/([^/=]+)=[^/]*(?=/)")
"""The keys of the folders that a file lies in."""


def _disagreement(files: list[str], read: Callable[[str], Columns], wanted: Mapping[str, str] | None) -> str | None:
    """The first file that differs from the first of all, or that lacks one of the `wanted`; None when they agree."""
    pairs = _in_batches(files, read)
    first_file, first = next(pairs, ("", {}))
    if wanted is not None and (lacking := [name for key, name in wanted.items() if key not in first]):
        return _lacks(first_file, lacking[0], "input.schema names")
    for file, columns in pairs:
        for key in sorted(first.keys() | columns.keys() if wanted is None else wanted):
            if key not in columns:
                return _lacks(file, first[key][0], f"{first_file} has")
            if key not in first:
                return _lacks(first_file, columns[key][0], f"{file} has")
            if columns[key][1] != first[key][1]:
                name = columns[key][0]
                return f"the file {file} has {name!r} of another type than {first_file}; write it anew with one type, or take it out"
    return None


def _lacks(file: str, name: str, who: str) -> str:
    return (
        f"the file {file} has no column {name!r}, which {who}, and would be read as if it had missing values there; write it anew, take it "
        "out, or give input.options {mergeSchema: true}, by which they are missing values"
    )


def _in_batches(files: list[str], read: Callable[[str], Columns]) -> Iterator[tuple[str, Columns]]:
    rest = iter(files)
    with ThreadPoolExecutor(THREADS) as threads:
        while batch := list(islice(rest, BATCH)):
            yield from zip(batch, threads.map(read, batch), strict=True)


def _footer(format: str, file: str) -> Columns:
    """The columns of a local file; their types as the format writes them, without what differs by writer alone."""
    if not file.startswith("file:"):
        raise OSError("not a local file")
    path = "/" + unquote(file.removeprefix("file:")).lstrip("/")
    if format == "orc":
        from pyarrow import orc

        return {field.name.lower(): (field.name, str(field.type)) for field in orc.ORCFile(path).schema}
    columns: dict[str, tuple[str, list[str]]] = {}
    schema = pq.read_metadata(path).schema
    for i in range(len(schema)):
        leaf = schema.column(i)
        name, *inside = leaf.path.split(".")
        # how writers name the levels of a list differs; how many there are does not
        columns.setdefault(name.lower(), (name, []))[1].append(f"{len(inside)} {_kind(leaf)}")
    return columns


def _kind(leaf: Any) -> str:
    """A leaf's type: units of time and old spellings of one type are one."""
    stated = json.loads(leaf.logical_type.to_json())
    kind = stated["Type"]
    if leaf.physical_type == "INT96" or (kind == "Timestamp" and stated.get("isAdjustedToUTC")):
        return "instant"
    if kind == "Timestamp":
        return "local time"
    if kind == "None" or (
        kind == "Int" and stated.get("isSigned") and leaf.physical_type == f"INT{stated.get('bitWidth')}"
    ):
        return str(leaf.physical_type)
    if kind == "Decimal":
        return f"decimal({stated['precision']},{stated['scale']})"
    return " ".join(str(value) for value in stated.values())


def _opened(spark: SparkSession, format: str, file: str) -> DataFrame:
    path = unquote(file)
    return spark.read.format(format).load(re.sub(r"([\[\]{}*?\\])", r"\\\1", path))


def _through_spark(spark: SparkSession, format: str, file: str) -> Columns:
    return {name.lower(): (name, kind) for name, kind in _opened(spark, format, file).dtypes}


def _check_declared(declared: Mapping[str, str], stored: Mapping[str, str]) -> None:
    """Refuse a type of input.schema that would change values of the stored one in silence."""
    of_files = {name.lower(): kind for name, kind in stored.items()}
    for name, kind in declared.items():
        there = of_files.get(name.lower(), kind)
        if there == kind or kind in WIDER.get(there, ()) or "<" in there + kind or _wider_decimal(there, kind):
            continue
        raise SpecError(
            f"input.schema: {name!r} is {there} in the files, and Spark may change its values where it reads it as {kind}; leave it "
            f"out of input.schema, or write {there}, and cast it in a view"
        )


def _wider_decimal(there: str, kind: str) -> bool:
    stored, declared = (re.fullmatch(r"decimal\((\d+),(\d+)\)", text) for text in (there, kind))
    if stored is None or declared is None:
        return False
    (p, s), (wide, deep) = ((int(x[1]), int(x[2])) for x in (stored, declared))
    return deep >= s and wide - deep >= p - s
