"""A table that follows from a description alone, written column by column: what each bucket holds.

The same rows as `anonlib.engine.generate.repeated_rows` makes through Spark's plan, by tasks that write files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from anonlib.engine.columnar.columns import typed
from anonlib.engine.columnar.files import Files, sorted_dictionary
from anonlib.engine.columnar.tasks import codec_of, on_disk, on_one_machine, said_by_each
from anonlib.engine.failures import TaskRefusal, explained
from anonlib.engine.tables import FEW_RECORDS, WITHOUT_DICTIONARY
from anonlib.errors import AnonlibError

FILE_ROWS = 2_000_000
"""Rows of a file, about."""
Stretch = tuple[int, int, Sequence[int], Sequence[int]]
"""(start, stop, codes, counts): every id in [start, stop) holds counts[k] of the value with codes[k]."""


@dataclass(frozen=True)
class Listing:
    """One row for each id and value.

    names : of the id (long), value and count (long) columns; values : the texts of the values, by code; spark_type : what they are
    stretches : see `Stretch`; the rows of one id stand together, in the order of its codes
    """

    spark: SparkSession
    names: tuple[str, str, str]
    values: Sequence[str | None]
    spark_type: str
    stretches: Sequence[Stretch]

    def written(self, folder: str, doing: str) -> bool:
        """Write the table into the new `folder`, a local path; False, with nothing done, where that is left to Spark: for a few rows,
        on more than one machine, for values that have no plain type.

        Cost: one job of Python tasks, each with some 2 million rows in memory. Raises AnonlibError where they cannot be written.
        """
        rows = sum((stop - start) * len(codes) for start, stop, codes, _ in self.stretches)
        values, codec = typed(self.values, self.spark_type), codec_of(self.spark)
        if rows <= FEW_RECORDS or values is None or codec is None or not on_one_machine(self.spark):
            return False
        shares, files = list(shared(self.stretches)), Files.of_run(codec, WITHOUT_DICTIONARY)
        names = self.names

        def task(file: int) -> int:
            table = listed(shares[file], values, names)
            try:
                files.write(table, folder, file)
            except (OSError, pa.ArrowException) as error:
                raise TaskRefusal(f"file {file} cannot be written ({error}); run again") from None
            return len(table)

        with on_disk(doing):
            Path(folder).mkdir()
        with explained(doing):
            written = said_by_each(self.spark, range(len(shares)), task)
        with on_disk(doing):
            files.settle(folder, written)
        if sum(written.values()) != rows:
            raise AnonlibError(f"{doing}: {sum(written.values()):,} rows were written instead of {rows:,}; run again")
        return True


def shared(stretches: Iterable[Stretch], rows: int = FILE_ROWS) -> Iterator[list[Stretch]]:
    """The stretches, in their order, in shares of about `rows` rows each; long ones are cut."""
    share: list[Stretch] = []
    room = rows
    for start, stop, codes, counts in stretches:
        while start < stop:
            end = min(stop, start + max(1, -(-room // len(codes))))
            share.append((start, end, codes, counts))
            room -= (end - start) * len(codes)
            start = end
            if room <= 0:
                yield share
                share, room = [], rows
    if share:
        yield share


def listed(stretches: Sequence[Stretch], values: pa.Array, names: tuple[str, str, str]) -> pa.Table:
    """The rows of some stretches. values : by code"""
    ids = [np.repeat(np.arange(start, stop), len(codes)) for start, stop, codes, _ in stretches]
    code = [np.tile(np.array(codes, dtype=np.int32), stop - start) for start, stop, codes, _ in stretches]
    count = [np.tile(np.array(counts, dtype=np.int64), stop - start) for start, stop, _, counts in stretches]
    codes_ = pa.array(np.concatenate(code))
    held = values.take(codes_)
    if pa.types.is_string(values.type):
        held = sorted_dictionary(held.dictionary_encode())
    columns = [pa.array(np.concatenate(ids)), held, pa.array(np.concatenate(count))]
    # as Spark's plan has it: an id is never missing
    fields = [pa.field(name, column.type, name != names[0]) for name, column in zip(names, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
