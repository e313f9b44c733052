"""Counts by group and sensitive value, and means, on an opened generalized release: one scan, one aggregate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from anonlib.engine.relational import DataFrame, aggregate, one_row, select
from anonlib.errors import SpecError
from anonlib.queries.means import MeanEstimate
from anonlib.queries.predicate import TRUE, ColumnCondition, parse_by_column
from anonlib.release.answers import ESTIMATES, groups
from anonlib.release.generalized import MICRODATA, records_per_row, sensitive_columns
from anonlib.release.generalized_count import Shares, condition_shares, element_condition
from anonlib.release.hierarchies import hierarchies
from anonlib.release.manifest import Manifest, QuasiIdentifierPart
from anonlib.sql import quoted

Conditions = Mapping[str, ColumnCondition] | None
"""What is asked of each column; None where nothing can meet it."""


def distribution(
    tables: Mapping[str, DataFrame], manifest: Manifest, by: Sequence[str] = (), where: str | None = None
) -> DataFrame:
    """How many records of each group have each sensitive value, estimated from the release.

    by    : categorical quasi-identifiers to group by; none for all records in one group
    where : a condition on quasi-identifiers, as in `count`

    A DataFrame, not yet computed: `by`, the sensitive columns, then `anonlib.release.answers.ESTIMATES`. A box counts in each group that
    it may belong to, evenly. One scan; rows are multiplied by the sizes of their sets. Raises SpecError for a column that cannot be grouped
    by, or a condition that cannot be read.
    """
    return grouped(tables, manifest, by, where, sensitive_columns(manifest))


def sizes(tables: Mapping[str, DataFrame], manifest: Manifest, by: Sequence[str], where: str | None) -> DataFrame:
    """How many records groups have, whatever their sensitive values; as `distribution`, without its sensitive columns."""
    return grouped(tables, manifest, by, where, ())


def grouped(
    tables: Mapping[str, DataFrame], manifest: Manifest, by: Sequence[str], where: str | None, shown: Sequence[str]
) -> DataFrame:
    """The same for each combination of values in the sensitive columns `shown`, all together where there are none.

    where : on sensitive columns too that are not shown beside one that is
    """
    attributes = {part.name: part for part in manifest.quasi_identifiers}
    spelled = groups(by, {name: part.type for name, part in attributes.items()}, sensitive_columns(manifest), ESTIMATES)
    for name in spelled:
        if attributes[name].kind == "numeric":
            raise SpecError(
                f"by: {name!r} is published in intervals, which overlap; ask counts range by range, e.g. {name} BETWEEN 30 AND 39"
            )
    exact = [name for name in sensitive_columns(manifest) if name not in shown] if shown else []
    asked = conditions(tables, manifest, where, exact)
    of_rows = [condition.sql for name, condition in (asked or {}).items() if name in exact]
    rows = tables[MICRODATA].where("FALSE" if asked is None else " AND ".join(of_rows) or TRUE)
    visible = {name: condition for name, condition in (asked or {}).items() if name not in exact}
    zone = rows.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"
    shares = [condition_shares(attributes[a], c, zone) for a, c in visible.items() if a not in spelled]
    elements = [_elements(attributes[name], visible.get(name)) for name in spelled]
    own = {f"s{i}": quoted(name) for i, name in enumerate(shown)}
    lists = {f"g{i}": element for i, (element, _) in enumerate(elements)}
    frame = select(rows, own | lists | _products([*shares, *(share for _, share in elements)]))
    for i in range(len(spelled)):  # one by one: Spark explodes one list in a projection
        kept = [name for name in frame.columns if name != f"g{i}"]
        frame = select(frame, {name: name for name in kept} | {f"g{i}": f"explode(g{i})"})
    keys = {f"g{i}": name for i, name in enumerate(spelled)} | {f"s{i}": name for i, name in enumerate(shown)}
    sums = {"f": "sum(share)", "sure": "count_if(sure)", "possible": "count_if(possible)"}
    total = aggregate(frame, list(keys), sums)
    return select(total, {name: key for key, name in keys.items()} | _estimates(manifest))


def mean(tables: Mapping[str, DataFrame], manifest: Manifest, column: str, where: str | None = None) -> MeanEstimate:
    """The mean of a numeric sensitive column among the records that meet `where`, each counted by the share of its box that does.

    where : a condition on quasi-identifiers; of several sensitive columns on these too, which every row has of one record
    One scan. Raises SpecError for a quasi-identifier, which is published in intervals, or a column that is no number.
    """
    sensitive = sensitive_columns(manifest)
    asked = conditions(tables, manifest, where, sensitive if len(sensitive) > 1 else ())
    if asked is None:
        return MeanEstimate.exact(math.nan)
    attributes = {part.name: part for part in manifest.quasi_identifiers}
    exact = [condition.sql for name, condition in asked.items() if name not in attributes]
    rows = tables[MICRODATA].where(" AND ".join(exact) or TRUE)
    zone = rows.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"
    shares = [condition_shares(attributes[a], condition, zone) for a, condition in asked.items() if a in attributes]
    frame = select(rows, {"y": f"CAST({quoted(column)} AS DOUBLE)"} | _products(shares))
    sums = {
        "total": "sum(share * y)",
        "records": "sum(IF(y IS NULL, 0D, share))",
        "open": "count_if(possible AND NOT sure)",
    }
    row = one_row(aggregate(frame, [], sums))
    records = float(row["records"] or 0)
    if records <= 0:
        return MeanEstimate.exact(math.nan)
    found = float(row["total"] or 0) / records
    if not row["open"] and not manifest.rows.dummy and not manifest.rows.suppressed:
        return MeanEstimate.exact(found)
    return MeanEstimate(found, "uniform")


def conditions(
    tables: Mapping[str, DataFrame], manifest: Manifest, where: str | None, exact: Sequence[str] = ()
) -> Conditions:
    """What `where` asks of each quasi-identifier, and of the sensitive columns `exact`. Raises SpecError for one on another of them."""
    kinds, sensitive = dict(tables[MICRODATA].dtypes), sensitive_columns(manifest)
    columns = {part.name: part.type for part in manifest.quasi_identifiers} | {name: kinds[name] for name in sensitive}
    asked = parse_by_column(where or TRUE, columns, hierarchies(manifest), exact)
    if asked and set(asked) & (set(sensitive) - set(exact)):
        raise SpecError(
            f"where: {where!r} asks for sensitive values; a distribution tells all of them, so filter its rows instead"
        )
    return asked


def _elements(part: QuasiIdentifierPart, condition: ColumnCondition | None) -> tuple[str, Shares]:
    """(SQL of the values of a set that meet the condition, the share of the set that each of them is)."""
    name = quoted(part.name)
    kept = name if condition is None else f"filter({name}, {element_condition(part, condition)})"
    return kept, (f"(1D / size({name}))", f"size({name}) = 1", "TRUE")


def _products(shares: Sequence[Shares]) -> dict[str, str]:
    """share, sure, possible: of all conditions together, in SQL."""
    return {
        "share": " * ".join(f"({share})" for share, _, _ in shares) or "1D",
        "sure": " AND ".join(f"({every})" for _, every, _ in shares) or "TRUE",
        "possible": " AND ".join(f"({some})" for _, _, some in shares) or "TRUE",
    }


def _estimates(manifest: Manifest) -> dict[str, str]:
    """The columns of the result in SQL over f, sure and possible."""
    rows = manifest.rows
    low = f"greatest(0L, sure - {rows.dummy}L)"
    high = f"least(possible + {rows.suppressed}L, {rows.published + rows.suppressed}L)"
    best = f"least(greatest(f * {records_per_row(manifest)!r}D, CAST({low} AS DOUBLE)), CAST({high} AS DOUBLE))"
    exact = f"{low} = {high}"
    return {
        "estimate": best,
        "estimator": f"IF({exact}, 'exact', 'uniform')",
        "unbiased": f"IF({exact}, CAST({low} AS DOUBLE), NULL)",
        "standard_error": f"IF({exact}, 0D, NULL)",
        "interval_low": f"CAST({low} AS DOUBLE)",
        "interval_high": f"CAST({high} AS DOUBLE)",
        "low": low,
        "high": high,
    }
