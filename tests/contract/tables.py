"""Tables that hold all kinds of values, types and names at once."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.door import people, with_column

UTC = dt.timezone.utc
BIG = 2**53
TYPES = {
    "decimal": (pa.decimal128(20, 4), [Decimal("0.0001"), Decimal("-1.5000"), Decimal("9007199254740993.0001"), Decimal(0)]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(1582, 10, 15), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    "timestamp": (
        pa.timestamp("us", tz="UTC"),
        [
            dt.datetime(1890, 5, 1, 0, 0, 1, tzinfo=UTC),
            dt.datetime(2024, 10, 27, 0, 30, tzinfo=UTC),  # this and the next are 02:30 in Berlin, before and after
            dt.datetime(2024, 10, 27, 1, 30, tzinfo=UTC),
            dt.datetime(2024, 10, 27, 1, 30, 0, 1, tzinfo=UTC),
        ],
    ),
    "timestamp_ntz": (pa.timestamp("us"), [dt.datetime(2024, 3, 31, 2, 30, 0, n) for n in (0, 1, 999_999, 500_000)]),
    "boolean": (pa.bool_(), [True, False, True, False]),
    "bigint": (pa.int64(), [BIG, BIG + 1, -(2**63), 2**63 - 1]),
    "double": (pa.float64(), [0.1, 1e300, float("inf"), 5e-324]),
    "float": (pa.float32(), [0.10000000149011612, 1.5, float("-inf"), 16777216.0]),
    "tinyint": (pa.int8(), [-128, 0, 1, 127]),
}  # fmt: skip
"""{Spark type: (Arrow type, four values)}"""
TEXTS = (
    "", " ", "  ", "\t", "\n", "a\nb", "'", '"', "`", "\\", "\\n", "%", "[/b]", "[red]", "\u0000", "x" * 100_000, "x" * 99_999 + "y",
    "Österreich", "O\u0308sterreich", "中国", "👩‍👩‍👧", "\u202eabc", "null", "NULL", "None", "NaN", "true", "0", "0.0", "-0.0", "a,b", "{}",
    "$1", "${env:HOME}", "A", "a", "a ",
)  # fmt: skip
NAMES = (
    "a.b", "a b", "a`b", "a'b", 'a"b', "ünïcode 中", "a;b,c", "{x}", "a=b", "x\ty", "select", "n", "text",
    "partition", "packed", "1st",
)  # fmt: skip
"""Names that need quotes, or that our own plans might use."""
SENSITIVE = tuple(text for text in TEXTS if len(text) < 100)[:20]
"""Twenty sensitive values: the examples in conf/ ask for ten that differ, and for no more than 1/10 of the records each."""
COUNTS = (20,) * 6 + (12,) * 6 + (6,) * 8
"""How often each occurs among 240 persons: uneven, so that perturbation has more than one sub-table."""

NUMERIC = ("age", "date", "timestamp", "timestamp_ntz", "bigint", "double", "float", "tinyint", "scaled")
CATEGORICAL = ("country", "boolean", "words")


def cycle(n: int, *values: Any) -> list[Any]:
    """n values out of `values` in turn."""
    return [values[i % len(values)] for i in range(n)]


def nested(table: pa.Table) -> pa.Table:
    """`table` with columns that hold no single values, or values that no interval can stand for."""
    n = len(table)
    table = with_column(table, "decimal", cycle(n, *TYPES["decimal"][1], None), TYPES["decimal"][0])
    table = with_column(table, "odd", cycle(n, -0.0, float("nan"), None, 0.0, float("inf")), pa.float64())
    table = with_column(table, "holes", cycle(n, BIG + 1, None, -(2**63), 2**63 - 1), pa.int64())
    table = with_column(table, "bytes", cycle(n, b"", b"\x00\xff", None), pa.binary())
    table = with_column(table, "tags", cycle(n, [], None, ["a", None], ["x"] * 50), pa.list_(pa.string()))
    table = with_column(table, "big_list", cycle(n, [BIG + 1, None], [None], None), pa.list_(pa.int64()))
    table = with_column(table, "scores", cycle(n, [("a", 1), ("b", None)], [], None), pa.map_(pa.string(), pa.int32()))
    inner = pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.list_(pa.string()))]))])
    rows = cycle(n, {"x": BIG + 1, "y": {"z": [None, ""]}}, {"x": None, "y": None}, None)
    return with_column(table, "structs", rows, inner)


def of_all_kinds(n: int = 240) -> tuple[pa.Table, dict[str, str]]:
    """(n persons with a quasi-identifier of every type, {kind: its column}): columns have unusual names, and in turn unusual values.

    Numbers are finite and never missing, so that an interval can stand for them; a text may be missing. Columns beside `quasi` and the
    sensitive `illness` hold what no method generalizes.
    """
    held = [value for value, count in zip(SENSITIVE, COUNTS, strict=True) for _ in range(count)]
    table = people(n, [held[(7 * i) % len(held)] for i in range(len(held))])
    for kind in set(TYPES) - {"decimal"}:
        arrow, values = TYPES[kind]
        values = [v for v in values if kind not in ("double", "float") or abs(v) != float("inf")]
        table = with_column(table, kind, [values[(i * 7 + i // 5) % len(values)] for i in range(n)], arrow)
    digits = [Decimal(i % 7).scaleb(-4) for i in range(n)]
    table = with_column(table, "scaled", digits, pa.decimal128(18, 4))
    table = with_column(table, "words", cycle(n, *TEXTS[5:20], None))
    table = nested(table)
    kinds = (*NUMERIC[1:], *CATEGORICAL, "odd", "holes", "bytes", "tags")
    names = dict(zip(kinds, NAMES, strict=False))
    names["age"] = "age"
    return table.rename_columns([names.get(column, column) for column in table.column_names]), names
