"""A count query on an opened generalized release: one scan, one aggregate.

A published row counts by the share of its box that meets the predicate: of a set the values that do, of an interval the part that does
(whole numbers one by one, floating ones by length), attributes taken as independent and values as uniform within the box. The
sensitive value is exact. Every record's own values lie in the box that carries its sensitive value, with classes and with matches
alike, so a box that lies wholly within the condition counts for certain, and one outside for none.
"""

from __future__ import annotations

from collections.abc import Mapping

from anonlib.engine.relational import DataFrame, aggregate, one_row, select
from anonlib.queries.estimates import CountEstimate
from anonlib.queries.pieces import number_set, shares_sql
from anonlib.queries.predicate import ColumnCondition, parse_by_column
from anonlib.release.generalized import MICRODATA, column_codes, records_per_row, sensitive_columns
from anonlib.release.hierarchies import hierarchies
from anonlib.release.manifest import Manifest, QuasiIdentifierPart
from anonlib.sql import quoted

Shares = tuple[str, str, str]
"""SQL: the share of a box that meets a condition, whether all of it does, whether any of it does."""
_ELEMENT = "element"


def count(tables: Mapping[str, DataFrame], manifest: Manifest, predicate: str) -> CountEstimate:
    """How many records meet `predicate`, e.g. "age BETWEEN 30 AND 40 AND occupation = 'x'", estimated from the release.

    Records do not lie evenly in their boxes, and nothing in the release tells how far they are from it: the estimate comes without an
    error. Dummies are taken out on average, and suppressed records put in; `low` and `high` allow for each of them. One job without a
    shuffle of rows. Raises SpecError for a predicate that cannot be read, names an unknown column, or mixes columns under OR or NOT that
    are not all sensitive: of several sensitive columns a row has the values of one record.
    """
    microdata = tables[MICRODATA]
    attributes = {part.name: part for part in manifest.quasi_identifiers}
    types = dict(microdata.dtypes)
    columns = {name: part.type for name, part in attributes.items()}
    sensitive = sensitive_columns(manifest)
    columns |= {name: types[name] for name in sensitive}
    asked = parse_by_column(predicate, columns, hierarchies(manifest), sensitive)
    if asked is None:
        return CountEstimate.exact(0)
    zone = microdata.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"
    visible = [
        condition_shares(attributes[name], condition, zone) for name, condition in asked.items() if name in attributes
    ]
    exact = [condition.sql for name, condition in asked.items() if name not in attributes]
    rows = microdata.where(" AND ".join(exact)) if exact else microdata
    shares = {
        "share": " * ".join(f"({share})" for share, _, _ in visible) or "1D",
        "sure": " AND ".join(f"({every})" for _, every, _ in visible) or "TRUE",
        "possible": " AND ".join(f"({some})" for _, _, some in visible) or "TRUE",
    }
    sums = one_row(
        aggregate(
            select(rows, shares),
            [],
            {
                "mean": "sum(share)",
                "sure": "count_if(sure)",
                "possible": "count_if(possible)",
            },
        )
    )
    low = max(0, int(sums["sure"]) - manifest.rows.dummy)
    high = min(int(sums["possible"]) + manifest.rows.suppressed, manifest.rows.published + manifest.rows.suppressed)
    if low == high:
        return CountEstimate.exact(low)
    estimate = float(sums["mean"] or 0) * records_per_row(manifest)
    return CountEstimate(min(max(estimate, float(low)), float(high)), "uniform", (float(low), float(high)), low, high)


def condition_shares(part: QuasiIdentifierPart, condition: ColumnCondition, zone: str) -> Shares:
    """What share of a box meets a condition on one quasi-identifier. zone : of the session, which decides what instant a literal is."""
    if part.kind == "numeric":
        held = [number_set(node, part.type, zone) for node in condition.nodes]
        numbers = held[0]
        for further in held[1:]:
            numbers = numbers.intersection(further)
        ends = column_codes(part)
        return shares_sql(numbers, ends["low"], ends["high"], whole=part.type not in ("float", "double"))
    name = quoted(part.name)
    meeting = f"size(filter({name}, {element_condition(part, condition)}))"
    return (f"CAST({meeting} AS DOUBLE) / size({name})", f"{meeting} = size({name})", f"{meeting} > 0")


def element_condition(part: QuasiIdentifierPart, condition: ColumnCondition) -> str:
    """SQL: a lambda that says of an element of a set whether it meets the condition."""
    return f"{_ELEMENT} -> {condition.over(_ELEMENT, part.type)}"
