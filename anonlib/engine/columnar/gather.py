"""A task of the columnar second pass: the records of one file, put in order and written as Parquet.

What a file tells besides its rows must follow from what is published, or from chance: the order of rows, and of the values in a column's
dictionary, which are those that the file holds and no others, sorted. Cost: memory of some two copies of a file's records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anonlib.arrays import Int64Array, UInt64Array
from anonlib.engine.columnar.columns import Columns
from anonlib.engine.columnar.deal import NUMBER, WORD
from anonlib.engine.columnar.files import Files, sorted_dictionary
from anonlib.engine.columnar.pieces import Pieces
from anonlib.engine.failures import TaskRefusal

LARGEST_GROUPED = 1 << 39
"""Numbers by which records are grouped lie below it: with 24 bits of a record's word they make one key."""
_WORD_BITS = 24


@dataclass(frozen=True)
class Gathering:
    """How the records of a file become its rows.

    names   : the published columns, in their order; columns : those of them that a record's number stands for
    grouped : records of one number stand together, in random order; else all are in random order
    files   : how they are written
    """

    names: tuple[str, ...]
    columns: Columns
    grouped: bool
    files: Files

    def __call__(self, pieces: Pieces, batches: Sequence[tuple[int, int]], file: int, folder: str) -> int:
        """Write `file` into `folder`: the records that `batches`, (partition, batch), dealt to it. Returns how many there are."""
        try:
            dealt = pa.concat_tables([pieces.read(partition, batch, file) for partition, batch in batches])
            table = published(dealt, self.names, self.columns, self.grouped)
            self.files.write(table, folder, file)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise TaskRefusal(f"file {file} of the release cannot be written ({error}); run again") from None
        return len(table)


def published(dealt: pa.Table, names: Sequence[str], columns: Columns, grouped: bool) -> pa.Table:
    """The rows of a file in their order, as columns `names`, of the records dealt to it (columns of files, `NUMBER`, `WORD`)."""
    number, word = dealt[NUMBER].to_numpy(), dealt[WORD].to_numpy()
    order = in_order(number, word, grouped)
    of_numbers, place = columns(number[order]), pa.array(order)
    arrays = []
    for name in names:  # one by one, so that no more than one is there twice
        array = of_numbers.get(name)
        if array is None:
            array = dealt[name].unify_dictionaries().combine_chunks().take(place)
        arrays.append(sorted_dictionary(array) if pa.types.is_dictionary(array.type) else array)
    return pa.Table.from_arrays(arrays, names=list(names))


def in_order(number: Int64Array, word: UInt64Array, grouped: bool) -> Int64Array:
    """The order in which records are published, (N,) int64: by number and then the key's word, or by that alone."""
    if not grouped:
        return np.argsort(word, kind="stable")
    if len(number) and (number.min() < 0 or number.max() >= LARGEST_GROUPED):
        raise ValueError(f"numbers by which records are grouped lie in [0, 2^39), not {number.min()} to {number.max()}")
    low = (word >> np.uint64(64 - _WORD_BITS)).astype(np.int64)
    return np.argsort((number << _WORD_BITS) | low, kind="stable")
