"""What the published tables of a perturbed release hold.

`microdata` is scanned once, aggregated by sub-table and value (one shuffle of as many rows as the domains have values, per task).
The driver gets the operators, and one row per value of each domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anonlib.audit.perturbed.facts import Entry, MicrodataFacts, OperatorFacts
from anonlib.audit.published import range_columns, ranges
from anonlib.audit.verdict import Measured
from anonlib.engine.checksum import combine, pieces, row_hash, sum_columns
from anonlib.engine.compound import text_of
from anonlib.engine.relational import DataFrame, aggregate, one_row, rows, select
from anonlib.engine.values import small_table
from anonlib.release.perturbed import (
    COUNTS,
    DOMAIN,
    DOMAIN_SIZE,
    GAMMA,
    GAMMA_EXACT,
    MAX_SUBTABLES,
    OPERATORS,
    RETENTION,
    SIZE,
    columns_of_value,
)
from anonlib.spec.layouts import SUBTABLE
from anonlib.sql import quoted

MAX_ENTRIES = 5_000_000
"""More values and counts than this are no table of operators; none that was edited comes to the driver in full."""


def too_large(operators: DataFrame) -> str | None:
    """Why the operators cannot be fetched, or None."""
    found = one_row(aggregate(operators, [], {"n": "count(1)", "e": f"sum(greatest(size({DOMAIN}), size({COUNTS})))"}))
    if int(found["n"]) > MAX_SUBTABLES or int(found["e"] or 0) > MAX_ENTRIES:
        return f"{OPERATORS} has {found['n']:,} rows and {found['e'] or 0:,} values in its domains"
    return None


def scan_operators(operators: DataFrame, sensitive: Mapping[str, str]) -> OperatorFacts:
    """Rows, checksum, lines and entries. Three jobs on a small table."""
    hashed = one_row(
        aggregate(select(operators, {"row": row_hash(operators)}), [], {"n": "count(1)", **sum_columns("row", "c")})
    )
    lengths = {"values": f"size({DOMAIN})", "listed": f"size({COUNTS})"}
    plain = {name: name for name in (SUBTABLE, SIZE, DOMAIN_SIZE, GAMMA, GAMMA_EXACT, RETENTION)}
    lines = rows(select(operators, plain | lengths), MAX_SUBTABLES)
    held = select(operators, {SUBTABLE: SUBTABLE, "held": f"explode(arrays_zip({DOMAIN}, {COUNTS}))"})
    parts = columns_of_value(f"held.{DOMAIN}", list(sensitive))
    apart = select(held, {SUBTABLE: SUBTABLE, "anonlib count": f"held.{COUNTS}", **parts})
    told = select(apart, {SUBTABLE: SUBTABLE, "value": text_of(sensitive), "n": quoted("anonlib count")})
    entries = tuple(Entry(r[SUBTABLE], r["value"], r["n"]) for r in rows(told, MAX_ENTRIES))
    uneven = sum(line["values"] != line["listed"] or line["values"] is None or line["values"] < 1 for line in lines)
    return OperatorFacts(
        Measured(int(hashed["n"]), combine(pieces(hashed, "c"))),
        tuple(sorted(lines, key=lambda line: (line[SUBTABLE] is None, line[SUBTABLE] or 0))),
        tuple(sorted(entries, key=lambda e: (e.subtable is None, e.subtable or 0, e.value is None, e.value or ""))),
        uneven,
    )


def scan_microdata(microdata: DataFrame, sensitive: Mapping[str, str], entries: Sequence[Entry]) -> MicrodataFacts:
    """Rows, checksum, published counts of each entry, records outside their domain, ranges of whole-number columns: one scan."""
    names, projected, aggregated = range_columns(microdata, [SUBTABLE])
    columns = {"subtable": quoted(SUBTABLE), "value": text_of(sensitive), "row": row_hash(microdata)}
    per_cell = {"n": "count(1)", **sum_columns("row", "c"), **aggregated}
    cells = aggregate(select(microdata, columns | projected), ["subtable", "value"], per_cell)
    known = small_table(
        microdata, "s int, v string, code int", [(e.subtable, e.value, i) for i, e in enumerate(entries)]
    )
    joined = cells.join(known, cells["subtable"].eqNullSafe(known["s"]) & cells["value"].eqNullSafe(known["v"]), "left")
    over = {"n": "sum(n)", **{f"c_{part}": f"sum(c_{part})" for part in ("low", "middle", "high")}}
    for i in range(len(names)):
        over |= {f"low{i}": f"min(low{i})", f"high{i}": f"max(high{i})"}
    one = "min(IF(code IS NULL, struct(subtable, value, n), NULL))"
    found = rows(aggregate(joined, ["code"], over | {"one": one}), len(entries) + 1)
    observed = [0] * len(entries)
    for r in found:
        if r["code"] is not None:
            observed[r["code"]] = int(r["n"])
    strangers = [r for r in found if r["code"] is None]
    low, middle, high = (sum(int(r[f"c_{part}"]) for r in found) for part in ("low", "middle", "high"))
    extremes = {
        f"{side}{i}": min_or_max([r[f"{side}{i}"] for r in found if r[f"{side}{i}"] is not None], default=None)
        for i in range(len(names))
        for side, min_or_max in (("low", min), ("high", max))
    }
    return MicrodataFacts(
        measured=Measured(sum(int(r["n"]) for r in found), combine((low, middle, high))),
        observed=tuple(observed),
        strangers=sum(int(r["n"]) for r in strangers),
        stranger=_shown(strangers[0]["one"]) if strangers else None,
        ranges=ranges(names, extremes),
    )


def _shown(one: Mapping[str, object]) -> str:
    return f"{one['n']:,} records of sub-table {one['subtable']} with {one['value']!r}"
