"""What the equivalence classes of a generalized release hold: sizes, shares of sensitive values, distance from the table.

Cost: one shuffle of (class, sensitive value) counts per sensitive column and one pass over classes through Arrow; each task tells its worst
classes, one row per sensitive value and per class size, and the driver gets their merger.

Exactness: counts are whole numbers. The worst share of a value, and the largest distance, are found by comparing doubles and then told
as fractions; two shares of classes below 2^26 records that differ at all differ as doubles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.audit.generalized.closeness import Distance, WindowDistances
from anonlib.audit.generalized.facts import ClassFacts, Worst
from anonlib.engine.batches import tallied
from anonlib.engine.checksum import row_hash
from anonlib.engine.relational import DataFrame, Small, aggregate, select, with_columns
from anonlib.engine.statistics import value_text
from anonlib.engine.values import is_short, position_of, small_table
from anonlib.queries.boxes import column
from anonlib.spec.layouts import EC_ID

MAX_SIZES = 200_000
"""Different class sizes that may reach the driver; n records have at most about sqrt(2 n)."""
CELLS = 1 << 22
_SCHEMA = "kind string, key bigint, n bigint, worst double, top string, bottom string, where bigint"


def scan_classes(
    microdata: DataFrame,
    box: Sequence[str],
    sensitive: str,
    values: Sequence[str | None],
    distance: Distance | WindowDistances | None,
    salt: int,
) -> Small[ClassFacts]:
    """Facts of all classes. `box` are the published columns of the quasi-identifiers, `values` the listed sensitive values in order."""
    kind = dict(microdata.dtypes)[sensitive]
    records = select(
        microdata, {"ec": EC_ID, "text": value_text(sensitive, kind), "box": row_hash(microdata, list(box), salt)}
    )
    cells = aggregate(records, ["ec", "text"], {"c": "count(1)", "low": "min(box)", "high": "max(box)"})
    described = {"ec": "ec", "cell": "struct(coalesce(code, -1L) AS code, c AS c)", "low": "low", "high": "high"}
    coded = select(_with_codes(cells, values), described)
    classes = aggregate(coded, ["ec"], {"cells": "collect_list(cell)", "low": "min(low)", "high": "max(high)"})
    arrays = {"ec": "ec", "codes": "cells.code", "counts": "cells.c", "mixed": "low <> high"}
    limit = len(values) + MAX_SIZES + 5
    tallies = tallied(
        select(classes, arrays),
        _Facts(len(values), distance),
        _SCHEMA,
        ["kind", "key"],
        {"n": "sum(n)", "best": "max(struct(worst, top, bottom, where))"},
    )
    return Small.of_rows(tallies, limit, _facts)


def _with_codes(cells: DataFrame, values: Sequence[str | None]) -> DataFrame:
    """`cells` and `code`, the number of their text in `values`; null for none of them. Longer lists are joined, by broadcast."""
    if is_short(values):
        return with_columns(cells, {"code": position_of("text", values)})
    listed = [(_key_of(text), i) for i, text in enumerate(values)]
    known = small_table(cells, "key string, code bigint", listed)
    return with_columns(cells, {"key": "coalesce(concat('=', text), '')"}).join(known, "key", "left")


def _key_of(text: str | None) -> str:
    """A text that is never null, so that a join finds nulls too."""
    return "" if text is None else f"={text}"


def _facts(tallies: list[dict[str, Any]]) -> ClassFacts:
    of: dict[str, dict[int, dict[str, Any]]] = {}
    for row in tallies:
        of.setdefault(row["kind"], {})[int(row["key"])] = row
    several = of.get("mixed", {}).get(0)
    return ClassFacts(
        sizes={size: int(row["n"]) for size, row in of.get("size", {}).items()},
        shares={code: _worst(row) for code, row in of.get("share", {}).items() if code >= 0},
        fewest=_worst(of["values"][0], inverse=True) if "values" in of else Worst(Fraction(0), None),
        distance=_worst(of["distance"][0]) if "distance" in of else None,
        several=int(several["n"]) if several else 0,
        one_of_them=several["best"]["where"] if several else None,
        unknown=int(of["unknown"][0]["n"]) if "unknown" in of else 0,
    )


def _worst(row: Mapping[str, Any], inverse: bool = False) -> Worst:
    best = row["best"]
    value = Fraction(int(best["top"]), int(best["bottom"]))
    return Worst(1 / value if inverse else value, best["where"])


@dataclass(frozen=True)
class _Facts:
    """Kernel over classes: rows (kind, key, n, worst, top, bottom, where), the worst of the partition as top / bottom."""

    m: int
    distance: Distance | WindowDistances | None

    def __call__(self, batches: Iterable[Any]) -> dict[str, list[Any]]:
        rows: dict[tuple[str, int], tuple[int, Fraction, int | None]] = {}

        def tell(kind: str, key: int, n: int, value: Fraction, where: int | None) -> None:
            before = rows.get((kind, key))
            if before is None:
                rows[kind, key] = (n, value, where)
            else:
                rows[kind, key] = (n + before[0], *max((before[1:], (value, where)), key=lambda pair: pair[0]))

        for batch in batches:
            ids = column(batch, "ec").to_pylist()
            lists = column(batch, "codes")
            starts = np.concatenate([[0], np.cumsum(lists.value_lengths().to_numpy())]).astype(np.int64)
            codes, counts = (column(batch, name).flatten().to_numpy().astype(np.int64) for name in ("codes", "counts"))
            if not len(ids):
                continue
            self._tell(tell, ids, starts, codes, counts)
            mixed = np.flatnonzero(column(batch, "mixed").to_numpy(zero_copy_only=False))
            if mixed.size:
                tell("mixed", 0, int(mixed.size), Fraction(1), ids[int(mixed[0])])
        keys, worst_cases = list(rows), list(rows.values())
        return {
            "kind": [kind for kind, _ in keys],
            "key": [key for _, key in keys],
            "n": [n for n, _, _ in worst_cases],
            "worst": [float(value) for _, value, _ in worst_cases],
            "top": [str(value.numerator) for _, value, _ in worst_cases],
            "bottom": [str(value.denominator) for _, value, _ in worst_cases],
            "where": [where for _, _, where in worst_cases],
        }

    def _tell(
        self, tell: Any, ids: list[int | None], starts: Int64Array, codes: Int64Array, counts: Int64Array
    ) -> None:
        sizes = np.add.reduceat(counts, starts[:-1])
        for size, number in zip(*np.unique(sizes, return_counts=True), strict=True):
            tell("size", int(size), int(number), Fraction(1), None)
        row = np.repeat(np.arange(len(ids)), np.diff(starts))
        share = counts / sizes[row]
        order = np.lexsort((share, codes))
        last = np.flatnonzero(np.r_[codes[order][1:] != codes[order][:-1], True])
        for at in order[last]:
            tell("share", int(codes[at]), 0, Fraction(int(counts[at]), int(sizes[row[at]])), ids[int(row[at])])
        unknown = int(counts[codes < 0].sum())
        if unknown:
            tell("unknown", 0, unknown, Fraction(1), None)
        few = np.diff(starts)
        tell("values", 0, 0, Fraction(1, int(few.min())), ids[int(few.argmin())])
        if self.distance is not None:
            self._tell_distance(tell, ids, starts, codes, counts)

    def _tell_distance(
        self, tell: Any, ids: list[int | None], starts: Int64Array, codes: Int64Array, counts: Int64Array
    ) -> None:
        assert self.distance is not None
        step = max(1, CELLS // max(1, self.m))
        for first in range(0, len(ids), step):
            last = min(first + step, len(ids))
            part = slice(starts[first], starts[last])
            row = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
            table = np.zeros((last - first, self.m), dtype=np.int64)
            known = codes[part] >= 0
            np.add.at(table, (row[known], codes[part][known]), counts[part][known])
            value, at = self.distance.largest(table, ids[first:last])
            tell("distance", 0, 0, value, ids[first + at])
