"""How many records share their published quasi-identifiers, on Spark: class sizes and how often each occurs, small whatever the table is.

Classes of k different sizes need k (k + 1) / 2 records, so n records have at most sqrt(2 n) sizes: 141,422 for ten billion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from anonlib.engine.relational import DataFrame, Small, aggregate, collected, select
from anonlib.evaluation.attacks_join import by_looks


def sizes_by(frame: DataFrame, column: str, records: int) -> Small[dict[int, int]]:
    """{records that share a value of `column`: how many values that many share}. records : of the frame, at most. Two shuffles."""
    sizes = aggregate(frame, [column], {"size": "count(1)"})
    occurring = aggregate(sizes, ["size"], {"number": "count(1)"})
    return Small.of_rows(
        occurring,
        math.isqrt(2 * max(1, records)) + 1,
        lambda rows: {int(row["size"]): int(row["number"]) for row in rows},
    )


def sizes_by_looks(frame: DataFrame, names: Sequence[str], records: int) -> Small[dict[int, int]]:
    """The same of records that have the same values, missing ones too, in all columns `names`."""
    return sizes_by(select(frame, by_looks(names)), "looks", records)


def sizes_of(asked: Small[dict[int, int]]) -> dict[int, int]:
    """The sizes that are `asked` for, in a job of their own."""
    sizes: dict[int, int] = collected([asked])[0]
    return sizes
