"""A checksum of a table's rows in any order: the sum over rows, modulo 2^64, of a 64-bit hash of the row.

One scan, no shuffle, three 64-bit sums per task, and three numbers on the driver. The same rows give the same checksum
however they are ordered, cut into files or partitions, under any session time zone, on Spark 3.5 and 4.x.

Spark's `xxhash64` alone is not enough: it skips nulls, so (null, 'a') and ('a', null) collide, so do [null, 1], [1, null]
and [1]; and it refuses maps. Here every column brings its null mark, an array its size and the null mark of each element, a
struct those of its fields, and a map the exclusive or over its entries, so that their order does not count. -0.0 equals 0.0
and every NaN equals every other, as in SQL comparison.

The checksum finds damage and careless edits. It has no key, so whoever may edit the manifest can recompute it: against that
stands the audit's comparison with the original. With a `salt` that was drawn after the tables were written, equal sums mean
equal multisets of rows but for a chance of about 2^-64, provided the hash behaves like a random one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from anonlib.engine.relational import aggregate, one_row, select
from anonlib.errors import SpecError
from anonlib.sql import quoted

_LOW = (1 << 22) - 1
_ROW_HASH = "row_hash"


def row_hash(frame: DataFrame, columns: Sequence[str] | None = None, salt: int | None = None) -> str:
    """SQL of the 64-bit hash of a row: over the columns named (all when None), in the order of their names.

    Raises SpecError for a column of a type that cannot be hashed (variant).
    """
    wanted = sorted(frame.columns if columns is None else columns)
    fields = {field.name: field for field in frame.schema.fields}
    parts = [] if salt is None else [salted(salt)]
    parts += _null_marks([quoted(name) for name in wanted])
    parts += [_hashable(quoted(name), fields[name].dataType, name, 0) for name in wanted]
    return f"xxhash64({', '.join(parts or ['0L'])})"


def salted(salt: int) -> str:
    """SQL: a salt for xxhash64 to begin with. As text: a number would stand in the code that Spark makes of a query, which would then have
    to be compiled anew for each salt."""
    return f"'{int(salt)}'"


def sum_columns(hashed: str, prefix: str, times: str | None = None) -> dict[str, str]:
    """Aggregates that add up the 64-bit `hashed` (a column's SQL), each row counted `times` times (once when None).

    The hash is cut into pieces of 22, 22 and 20 bits, whose sums fit in 64 bits for up to 2 * 10^12 rows in all.
    """
    by = "" if times is None else f" * ({times})"
    return {
        f"{prefix}_low": f"sum(({hashed} & {_LOW}L){by})",
        f"{prefix}_middle": f"sum((shiftrightunsigned({hashed}, 22) & {_LOW}L){by})",
        f"{prefix}_high": f"sum(shiftrightunsigned({hashed}, 44){by})",
    }


def pieces(row: Mapping[str, Any], prefix: str) -> tuple[int, int, int]:
    """The three sums of `sum_columns` in one result row; zeros for no rows. Equal hashes give equal pieces."""
    low, middle, high = (int(row[f"{prefix}_{name}"] or 0) for name in ("low", "middle", "high"))
    return low, middle, high


def combine(sums: tuple[int, int, int]) -> str:
    """The checksum as text from its three sums: "xxh64sum:0123456789abcdef"."""
    low, middle, high = sums
    return f"xxh64sum:{(low + (middle << 22) + (high << 44)) % (1 << 64):016x}"


def checksum(frame: DataFrame) -> str:
    """The checksum of all rows and columns of `frame`. One scan; zero for an empty frame."""
    hashed = select(frame, {_ROW_HASH: row_hash(frame)})
    return combine(pieces(one_row(aggregate(hashed, [], sum_columns(_ROW_HASH, "c"))), "c"))


def _null_marks(expressions: Sequence[str]) -> list[str]:
    """Null marks of up to 62 columns packed into one long each."""
    marks = []
    for start in range(0, len(expressions), 62):
        block = expressions[start : start + 62]
        marks.append(" + ".join(f"IF({e} IS NULL, {1 << bit}L, 0L)" for bit, e in enumerate(block)))
    return marks


def _hashable(expression: str, kind: T.DataType, column: str, depth: int) -> str:
    """SQL of something xxhash64 takes, that differs wherever two values of this type differ."""
    # The size of a null array or map is -1 or null, as the session's settings have it: hence the coalesce.
    if isinstance(kind, T.ArrayType):
        item = f"e{depth}"
        inner = _hashable(item, kind.elementType, column, depth + 1)
        items = f"transform({expression}, {item} -> struct({item} IS NULL, {inner}))"
        return f"struct(coalesce(size({expression}), -1), {items})"
    if isinstance(kind, T.StructType):
        names = [f"{expression}.{quoted(field.name)}" for field in kind.fields]
        fields = [_hashable(n, f.dataType, column, depth + 1) for n, f in zip(names, kind.fields, strict=True)]
        return f"struct({', '.join([*_null_marks(names), *fields] or ['0L'])})"
    if isinstance(kind, T.MapType):
        entry, total = f"e{depth}", f"t{depth}"
        key = _hashable(f"{entry}.key", kind.keyType, column, depth + 1)
        value = _hashable(f"{entry}.value", kind.valueType, column, depth + 1)
        one = f"xxhash64({key}, {entry}.value IS NULL, {value})"
        entries = f"aggregate(map_entries({expression}), 0L, ({total}, {entry}) -> {total} ^ {one})"
        return f"struct(coalesce(size({expression}), -1), {entries})"
    if kind.typeName() in ("variant", "geometry", "geography"):
        raise SpecError(
            f"column {column!r} of type {kind.simpleString()} cannot be checksummed; cast it to a string in the input"
        )
    return expression
