"""Count queries and reconstructed distributions on an opened perturbed release: one aggregation of its records each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from anonlib.engine.relational import DataFrame, aggregate, rows, select
from anonlib.errors import SpecError
from anonlib.exact import exact
from anonlib.queries import perturbed as counting
from anonlib.queries.predicate import TRUE, parse
from anonlib.queries.reconstruction import Operators, ReconstructedCount, reconstruct
from anonlib.release.answers import groups as grouping
from anonlib.release.answers import visible_only
from anonlib.release.manifest import Manifest
from anonlib.release.perturbed import (
    COUNTS,
    DOMAIN,
    DOMAIN_SIZE,
    GAMMA,
    GAMMA_EXACT,
    MAX_SUBTABLES,
    MICRODATA,
    OPERATORS,
    SIZE,
    columns_of_value,
    sensitive_columns,
)
from anonlib.spec.layouts import SUBTABLE
from anonlib.sql import quoted

_TRUE_COUNT = "anonlib count"
_OPERATOR = "anonlib operator"
"""Columns of ours beside columns of the release."""


def count(tables: Mapping[str, DataFrame], manifest: Manifest, predicate: str) -> ReconstructedCount:
    """How many records meet `predicate`, e.g. "age BETWEEN 30 AND 40 AND occupation = 'x'", reconstructed from the release.

    One job: one scan of the records, aggregated by sub-table (one shuffle of a row per sub-table and task); as many rows as there
    are sub-tables reach the driver. Raises SpecError for a predicate that cannot be read or that names an unknown column.
    """
    microdata, operators = tables[MICRODATA], tables[OPERATORS]
    sensitive = sensitive_columns(manifest)
    columns = {name: kind for name, kind in microdata.dtypes if name != SUBTABLE}
    parsed = parse(predicate, columns, sensitive)
    records = aggregate(microdata, [SUBTABLE], counting.record_columns(parsed))
    known = aggregate(
        _domains(operators, sensitive),
        [SUBTABLE],
        {"operator": f"first({quoted(_OPERATOR)})"} | counting.domain_columns(parsed, quoted(_TRUE_COUNT)),
    )
    by_subtable = rows(known.join(records, SUBTABLE), MAX_SUBTABLES)
    sizes, domain_sizes = ([int(r["operator"][name]) for r in by_subtable] for name in (SIZE, DOMAIN_SIZE))
    gammas = [exact(r["operator"][GAMMA_EXACT], GAMMA_EXACT) for r in by_subtable]
    if any(gamma <= 1 for gamma in gammas):
        raise SpecError(
            "operators: a sub-table has gamma of 1 or less, from which nothing can be reconstructed; was it edited?"
        )
    sums_of = {
        name: [int(r[name] or 0) for r in by_subtable]
        for name in ("matching", "accepted", "observed", "observed_in_all", "true_in_all")
    }
    return reconstruct(
        Operators(np.array(domain_sizes, dtype=np.int64), np.array([float(g) for g in gammas])), sizes=sizes, **sums_of
    )


def distribution(
    tables: Mapping[str, DataFrame], manifest: Manifest, by: Sequence[str] = (), where: str | None = None
) -> DataFrame:
    """The distribution of the sensitive attribute in each group of records, reconstructed from the release.

    by    : published columns to group by; none for all records in one group
    where : a condition on published columns other than the sensitive one, as in `count`

    A DataFrame, not yet computed: `by`, the sensitive column, then `estimate` (`raw` within `low` and `high`), `standard_error` (of
    `raw`), `low` and `high` (certain), `raw` (equation 7 summed over sub-tables: unbiased, may be negative, adds up to the number of
    records of a group). One row per group and value that its sub-tables may hold; groups without records have none.

    One scan of the records, aggregated by group, sub-table and value (one shuffle); then groups x sub-tables x domains small rows.
    Raises SpecError for a column that is unknown, sensitive or named twice, or a condition that cannot be read.
    """
    microdata, operators = tables[MICRODATA], tables[OPERATORS]
    sensitive = sensitive_columns(manifest)
    columns = {name: kind for name, kind in microdata.dtypes if name != SUBTABLE}
    groups = grouping(by, columns, sensitive, tuple(counting.distribution_columns()))
    parsed = parse(where or TRUE, columns, sensitive)
    visible_only(where, parsed.sensitive, TRUE)
    group = f"struct({', '.join(map(quoted, groups))})" if groups else "0"
    records = select(microdata.where(parsed.visible), {"g": group, "v": _value(sensitive), SUBTABLE: SUBTABLE})
    observed = aggregate(records, ["g", "v", SUBTABLE], {"o": "count(1)"})
    # operator: subtable, p, q, size, held (array of structs of a value and its true count)
    chances = counting.chances(GAMMA, DOMAIN_SIZE)
    operator = select(
        operators, {SUBTABLE: SUBTABLE, **chances, "size": SIZE, "held": f"arrays_zip({DOMAIN}, {COUNTS})"}
    )
    of_observed = select(
        observed.join(operator, SUBTABLE),
        {"g": "g", "v": "v", **counting.observed_terms("o"), "low": "0L", "high": "0L"},
    )
    matching = aggregate(observed, ["g", SUBTABLE], {"n": "sum(o)"}).join(operator, SUBTABLE)
    held = select(matching, {"g": "g", "p": "p", "q": "q", "size": "size", "n": "n", "held": "explode(held)"})
    of_matching = select(
        held, {"g": "g", "v": f"held.{DOMAIN}", **counting.matching_terms("n", f"held.{COUNTS}", "size")}
    )
    sums = {name: f"sum({name})" for name in ("raw", "variance", "low", "high")}
    total = aggregate(of_observed.union(of_matching), ["g", "v"], sums)
    shown = {name: f"g.{quoted(name)}" for name in groups} | columns_of_value("v", sensitive)
    return select(total, shown | counting.distribution_columns())


def _domains(operators: DataFrame, sensitive: Sequence[str]) -> DataFrame:
    """One row per sub-table and value of its domain: the sensitive columns, the value's true count, the operator."""
    operator = f"struct({SIZE}, {DOMAIN_SIZE}, {GAMMA_EXACT})"
    listed = select(
        operators,
        {SUBTABLE: SUBTABLE, _OPERATOR: operator, _TRUE_COUNT: f"explode(arrays_zip({DOMAIN}, {COUNTS}))"},
    )
    entry = quoted(_TRUE_COUNT)
    kept = {SUBTABLE: SUBTABLE, _OPERATOR: quoted(_OPERATOR), _TRUE_COUNT: f"{entry}.{COUNTS}"}
    return select(listed, columns_of_value(f"{entry}.{DOMAIN}", sensitive) | kept)


def _value(sensitive: Sequence[str]) -> str:
    """SQL: a record's sensitive value as a domain holds it: itself, or a struct of the parts of a compound one. See `columns_of_value`."""
    return quoted(sensitive[0]) if len(sensitive) == 1 else f"struct({', '.join(map(quoted, sensitive))})"
