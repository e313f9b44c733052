"""The mean of a numeric column on an opened perturbed release: one aggregation of its records."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from anonlib.arrays import Float64Array
from anonlib.engine.relational import DataFrame, aggregate, one_row, rows, select
from anonlib.queries.means import MeanEstimate, PublishedNumbers, of_perturbed
from anonlib.queries.predicate import TRUE, parse
from anonlib.queries.reconstruction import Operators
from anonlib.release.answers import visible_only
from anonlib.release.manifest import Manifest
from anonlib.release.perturbed import (
    DOMAIN,
    DOMAIN_SIZE,
    GAMMA,
    MAX_SUBTABLES,
    MICRODATA,
    OPERATORS,
    columns_of_value,
    sensitive_columns,
)
from anonlib.spec.layouts import SUBTABLE
from anonlib.sql import quoted


def mean(tables: Mapping[str, DataFrame], manifest: Manifest, column: str, where: str | None = None) -> MeanEstimate:
    """The mean of a numeric column among the records that meet `where`, a condition on published columns other than the sensitive one.

    Exact for a published column, reconstructed for a sensitive one. Missing values have no part in it. One job; a row for each sub-table
    reaches the driver. Raises SpecError for a condition that cannot be read.
    """
    microdata, sensitive = tables[MICRODATA], sensitive_columns(manifest)
    parsed = parse(where or TRUE, {name: kind for name, kind in microdata.dtypes if name != SUBTABLE}, sensitive)
    visible_only(where, parsed.sensitive, TRUE)
    number = f"CAST({quoted(column)} AS DOUBLE)"
    records = microdata.where(parsed.visible)
    if column not in sensitive:
        average = one_row(aggregate(records, [], {"y": f"avg({number})"}))["y"]
        return MeanEstimate.exact(math.nan if average is None else float(average))
    of_domain = f"CAST({columns_of_value('entry', sensitive)[column]} AS DOUBLE)"
    known = select(
        tables[OPERATORS],
        {SUBTABLE: SUBTABLE, DOMAIN_SIZE: DOMAIN_SIZE, GAMMA: GAMMA}
        | {"numbers": f"filter(transform({DOMAIN}, entry -> {of_domain}), y -> y IS NOT NULL)"},
    )
    sums = {
        "n": "count(1)",
        "total": f"sum({number})",
        "squares": f"sum({number} * {number})",
        "known": f"count({number})",
    }
    found = rows(aggregate(records, [SUBTABLE], sums).join(known, SUBTABLE), MAX_SUBTABLES)
    if not found:
        return MeanEstimate.exact(math.nan)
    numbers = [np.array(row["numbers"], dtype=np.float64) for row in found]

    def column_of(name: str) -> Float64Array:
        return np.array([float(row[name] or 0) for row in found])

    operators = Operators(np.array([int(row[DOMAIN_SIZE]) for row in found], dtype=np.int64), column_of(GAMMA))
    seen = PublishedNumbers(
        column_of("n"),
        column_of("total"),
        column_of("squares"),
        column_of("known"),
        np.array([y.sum() for y in numbers]),
        np.array([(y**2).sum() for y in numbers]),
        np.array([float(len(y)) for y in numbers]),
    )
    return of_perturbed(operators, seen)
