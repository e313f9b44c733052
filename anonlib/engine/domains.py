"""The domains of a table's quasi-identifiers, read from the table: what every generalizing method stands on.

    table = microdata(frame, columns, missing)                       # the checked input
    qi = domain_statistics(table)                                    # at most two scans; domains on the driver
    qi.domains                                                       # (NumericDomain("age", 16.0, 93.0), CategoricalDomain(...), ...)

`anonlib.engine.codes` turns records into codes of these domains, `anonlib.engine.boxes` boxes of codes into published columns. Domains are
bounded (`MAX_CATEGORIES` values of a categorical attribute), so is everything on the driver: O(values) memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from anonlib.domains import CategoricalDomain, Domain, NumericDomain
from anonlib.engine.failures import explained
from anonlib.engine.microdata import Microdata
from anonlib.engine.numeric_codes import check_coded, code_of
from anonlib.engine.relational import Small, aggregate, collected, select
from anonlib.engine.statistics import FLOATING, is_missing, value_text
from anonlib.engine.tables import types
from anonlib.errors import SpecError
from anonlib.hierarchy import Hierarchy
from anonlib.spec.release import ColumnWithHierarchy

MAX_CATEGORIES = 100_000
"""More distinct values of a categorical quasi-identifier than this is an identifier; its values would not fit the driver."""


@dataclass(frozen=True)
class QuasiIdentifier:
    """One quasi-identifier of a table: `name` and `spark_type` as the table has them, and its domain in codes.

    low, high : exact codes of a numeric one (ints; floats for floating columns); the domain holds them as floats
    """

    name: str
    spark_type: str
    domain: Domain
    low: int | float | None = None
    high: int | float | None = None

    @property
    def numeric(self) -> bool:
        """Whether it is generalized to an interval; else to a set."""
        return isinstance(self.domain, NumericDomain)

    @property
    def hierarchy(self) -> Hierarchy | None:
        """The hierarchy over its values, if the spec names one."""
        return self.domain.hierarchy if isinstance(self.domain, CategoricalDomain) else None


@dataclass(frozen=True)
class QuasiIdentifiers:
    """All quasi-identifiers of a table, in the spec's order: column number i of `encode` is `columns[i]`."""

    columns: tuple[QuasiIdentifier, ...]

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The domains, in order: what kernels take."""
        return tuple(column.domain for column in self.columns)


def domain_statistics(table: Microdata) -> QuasiIdentifiers:
    """The domain of every quasi-identifier over the rows that the missing-value policy publishes.

    One job of two parts at most, which read different columns: one aggregate for the numeric ones (no shuffle of rows), one grouping of
    (attribute, value) for the categorical ones (one shuffle of distinct values; rows x attributes are hashed).

    Raises SpecError: a numeric column with a missing, an infinite or no value, an infinite span, or more than 18 digits; a
    categorical one with more than `MAX_CATEGORIES` values, or a value (or missing value) that is no leaf of its
    hierarchy; each names the column.
    """
    kinds = types(table.frame)
    numeric: list[str] = []
    categorical: list[str] = []
    for name, column in zip(table.quasi_identifiers, table.columns.quasi_identifiers, strict=True):
        (numeric if column.type == "numeric" else categorical).append(name)
    for name in numeric:
        check_coded(name, kinds[name])
    for name in categorical:
        _check_boxed(name, kinds[name])
    with explained("reading the domains of the quasi-identifiers"):
        bounds, values = collected(
            [numeric_bounds(table.published, numeric, kinds), categories(table.published, categorical, kinds)]
        )
    columns = []
    for name, column in zip(table.quasi_identifiers, table.columns.quasi_identifiers, strict=True):
        if column.type == "numeric":
            low, high = bounds[name]
            columns.append(QuasiIdentifier(name, kinds[name], NumericDomain(name, float(low), float(high)), low, high))
        else:
            columns.append(QuasiIdentifier(name, kinds[name], _categorical(name, values[name], column)))
    return QuasiIdentifiers(tuple(columns))


NO_TEXT = ("array", "map", "struct", "variant", "binary", "geometry", "geography", "interval")
"""Types of which a box cannot hold a set of values: their values have no text that can be read back."""


def _check_boxed(name: str, kind: str) -> None:
    if kind.startswith(NO_TEXT):
        raise SpecError(
            f"the quasi-identifier {name!r} is of type {kind}, and a box holds sets of single values; give its parts columns of their "
            "own in a view, or cast it to STRING (binary: hex), or withhold it under identifiers"
        )


def numeric_bounds(
    frame: DataFrame, names: Sequence[str], kinds: Mapping[str, str]
) -> Small[dict[str, tuple[Any, Any]]]:
    """{numeric column: (smallest, largest) code}. No shuffle. Raises SpecError, see `domain_statistics`."""
    if not names:
        return Small((), lambda _: {})
    columns: dict[str, str] = {}
    sums: dict[str, str] = {}
    for i, name in enumerate(names):
        columns |= {f"c{i}": code_of(name, kinds[name]), f"m{i}": is_missing(name, kinds[name])}
        sums |= {f"low{i}": f"min(c{i})", f"high{i}": f"max(IF(m{i}, NULL, c{i}))", f"gaps{i}": f"count_if(m{i})"}
    sums["n"] = "count(1)"
    return Small.of_row(aggregate(select(frame, columns), [], sums), lambda row: _bounds(row, names, kinds))


def _bounds(row: Mapping[str, Any], names: Sequence[str], kinds: Mapping[str, str]) -> dict[str, tuple[Any, Any]]:
    if not row["n"]:
        raise SpecError("input: the table is empty, or missing: drop leaves no row; there is nothing to publish")
    ends = {}
    for i, name in enumerate(names):
        if row[f"gaps{i}"]:
            raise SpecError(
                f"column {name!r}: {row[f'gaps{i}']:,} rows have no value (null or NaN), and no interval can stand for a missing number; "
                "set missing: {quasi_identifiers: drop}, fill the gaps in the input, or declare the column type: categorical"
            )
        if kinds[name] in FLOATING and not np.isfinite([row[f"low{i}"], row[f"high{i}"]]).all():
            raise SpecError(
                f"column {name!r} holds an infinite value, which no interval can bound; mend it in the input"
            )
        if kinds[name] in FLOATING and not math.isfinite(row[f"high{i}"] - row[f"low{i}"]):
            raise SpecError(
                f"column {name!r} reaches from {row[f'low{i}']} to {row[f'high{i}']}, further than a double can tell; mend it in the input"
            )
        ends[name] = (row[f"low{i}"], row[f"high{i}"])
    return ends


def categories(frame: DataFrame, names: Sequence[str], kinds: Mapping[str, str]) -> Small[dict[str, list[str | None]]]:
    """{categorical column: its distinct values as text, None for a missing one}. One shuffle of them. Raises SpecError, see
    `domain_statistics`."""
    if not names:
        return Small((), lambda _: {})
    pairs = ", ".join(f"struct({i} AS which, {value_text(name, kinds[name])} AS text)" for i, name in enumerate(names))
    cells = select(select(frame, {"cell": f"explode(array({pairs}))"}), {"which": "cell.which", "text": "cell.text"})
    distinct = aggregate(cells, ["which", "text"], {"n": "count(1)"}).select("which", "text")
    limit = MAX_CATEGORIES * len(names) + 1
    return Small.of_rows(distinct.limit(limit), limit, lambda rows: _by_column(rows, names))


def _by_column(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, list[str | None]]:
    texts: dict[str, list[str | None]] = {name: [] for name in names}
    for row in rows:
        texts[names[row["which"]]].append(row["text"])
    widest = max(names, key=lambda name: len(texts[name]))
    if len(texts[widest]) > MAX_CATEGORIES:
        raise SpecError(
            f"column {widest!r} has more than {MAX_CATEGORIES:,} distinct values: that is an identifier or a measurement; coarsen it, "
            "declare it type: numeric, or name it under identifiers"
        )
    if not texts[widest]:
        raise SpecError("input: the table is empty, or missing: drop leaves no row; there is nothing to publish")
    return texts


def _categorical(name: str, occurring: list[str | None], column: ColumnWithHierarchy) -> CategoricalDomain:
    texts = sorted(text for text in occurring if text is not None)
    try:
        hierarchy = column.hierarchy_over(texts)
    except SpecError as error:
        raise SpecError(f"column {name!r}: {error}") from None
    if hierarchy is None:
        return CategoricalDomain(name, (*texts, *([None] if None in occurring else [])))
    if None in occurring:
        raise SpecError(
            f"column {name!r} has missing values, for which its hierarchy {hierarchy.source} has no leaf; set missing: "
            "{quasi_identifiers: drop}, or fill them in the input with a value that has one"
        )
    file = f"{hierarchy.source}: " if hierarchy.source else ""
    try:
        hierarchy.positions(texts)
    except SpecError as error:
        raise SpecError(f"column {name!r}: {file}{error}") from None
    return CategoricalDomain(name, hierarchy.labels[: hierarchy.leaves], hierarchy)
