"""Parquet files as Spark would write them, from Arrow tables. Pure but for the files."""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

GROUP_BYTES = 128 << 20
"""Of a row group, at most, as Spark has it."""
CODECS = {name: name for name in ("snappy", "zstd", "gzip", "none")} | {"uncompressed": "none"}
"""Spark's names of the codecs that both have -> Parquet's."""
DECIMALS: dict[str, Any] = (
    {"store_decimal_as_integer": True} if "store_decimal_as_integer" in signature(pq.write_table).parameters else {}
)
"""PyArrow's way to write decimals of up to 18 digits as Spark does; empty where it has none."""


@dataclass(frozen=True)
class Files:
    """The files of one table.

    codec : how they are compressed, as Parquet calls it; plain : columns that get no dictionary
    token : part of their names, of this run alone: a task that runs twice writes one file
    """

    codec: str
    plain: frozenset[str]
    token: str

    @staticmethod
    def of_run(codec: str, plain: frozenset[str]) -> Files:
        """Files with a token of their own."""
        return Files(codec, plain, secrets.token_hex(16))

    def name(self, number: int) -> str:
        """The name of a file, as Spark would give it."""
        codec = {"none": "", "gzip": ".gz"}.get(self.codec, f".{self.codec}")
        return f"part-{number:05d}-{self.token}{codec}.parquet"

    def write(self, table: pa.Table, folder: str, number: int) -> None:
        """Write file `number` in one step. Raises what PyArrow and the disk raise."""
        hidden = Path(folder) / f"_{secrets.token_hex(8)}"
        group = max(1, min(len(table), len(table) * GROUP_BYTES // max(1, table.nbytes)))
        coded = [name for name in table.column_names if name not in self.plain]
        pq.write_table(
            table, hidden, group, compression=self.codec, use_dictionary=coded, store_schema=False, **DECIMALS
        )
        os.replace(hidden, Path(folder) / self.name(number))

    def settle(self, folder: str, numbers: Collection[int]) -> None:
        """Leave in `folder` the files of these numbers and Spark's mark of a whole table; a task that was stopped may have left half a
        file."""
        names = {self.name(number) for number in numbers}
        for path in Path(folder).iterdir():
            if path.name not in names:
                path.unlink()
        (Path(folder) / "_SUCCESS").touch()


def sorted_dictionary(column: pa.DictionaryArray) -> pa.DictionaryArray:
    """The same column with a dictionary of the values that it holds and no others, each once, sorted.

    As read it has the values of the whole input's file, in the order in which they came: that of the input.
    """
    used = np.zeros(len(column.dictionary), dtype=bool)
    used[column.indices.drop_null().to_numpy()] = True
    kept = np.flatnonzero(used)
    once = column.dictionary.take(pa.array(kept)).dictionary_encode()
    by = pc.sort_indices(once.dictionary).to_numpy()
    rank = np.empty(len(by), dtype=np.int32)
    rank[by] = np.arange(len(by), dtype=np.int32)
    place = np.zeros(len(used), dtype=np.int32)
    place[kept] = rank[once.indices.to_numpy()]
    return pa.DictionaryArray.from_arrays(pa.array(place).take(column.indices), once.dictionary.take(pa.array(by)))
