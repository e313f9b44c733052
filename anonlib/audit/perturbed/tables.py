"""What the published tables of a perturbed release hold.

`microdata` is scanned once, aggregated by sub-table and value (one shuffle of as many rows as the domains have values, per task).
The driver gets the operators, and one row per value of each domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anonlib.audit.perturbed.facts import Entry, MicrodataFacts, OperatorFacts
from anonlib.audit.published import range_columns, ranges
from anonlib.audit.verdict import Measured
from anonlib.engine.checksum import combine, pieces, row_hash, sum_columns
from anonlib.engine.compound import text_of
from anonlib.engine.relational import DataFrame, Small, aggregate, collected, one_row, rows, select
from anonlib.engine.tables import FEW_RECORDS
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

_PIECES = ("c_low", "c_middle", "c_high")
"""Of the checksum, see `sum_columns`."""
MAX_ENTRIES = 5_000_000
"""More values and counts than this are no table of operators; none that was edited comes to the driver in full."""


def too_large(operators: DataFrame) -> str | None:
    """Why the operators cannot be fetched, or None."""
    totals = one_row(aggregate(operators, [], {"n": "count(1)", "e": f"sum(greatest(size({DOMAIN}), size({COUNTS})))"}))
    if int(totals["n"]) > MAX_SUBTABLES or int(totals["e"] or 0) > MAX_ENTRIES:
        return f"{OPERATORS} has {totals['n']:,} rows and {totals['e'] or 0:,} values in its domains"
    return None


def scan(
    operators: DataFrame, microdata: DataFrame, sensitive: Mapping[str, str], few: bool
) -> tuple[OperatorFacts, MicrodataFacts]:
    """The facts of both tables: one job where there are `few` records, else one for each. The operators must not be `too_large`."""
    cells = _Cells.of(microdata, sensitive)
    asked: list[Small[Any]] = [_operator_facts(operators, sensitive)]
    if few:
        asked.append(Small.of_rows(cells.frame.limit(FEW_RECORDS + 1), FEW_RECORDS + 1, list))
    facts, *held = collected(asked)
    if few and len(held[0]) <= FEW_RECORDS:
        return facts, cells.facts(cells.by_entry(held[0], facts.entries), facts.entries)
    return facts, cells.facts(cells.joined(facts.entries), facts.entries)


def _operator_facts(operators: DataFrame, sensitive: Mapping[str, str]) -> Small[OperatorFacts]:
    """Rows, checksum, lines and entries of the small table."""
    sums = aggregate(select(operators, {"row": row_hash(operators)}), [], {"n": "count(1)", **sum_columns("row", "c")})
    lengths = {"values": f"size({DOMAIN})", "listed": f"size({COUNTS})"}
    plain = {name: name for name in (SUBTABLE, SIZE, DOMAIN_SIZE, GAMMA, GAMMA_EXACT, RETENTION)}
    held = select(operators, {SUBTABLE: SUBTABLE, "held": f"explode(arrays_zip({DOMAIN}, {COUNTS}))"})
    parts = columns_of_value(f"held.{DOMAIN}", list(sensitive))
    apart = select(held, {SUBTABLE: SUBTABLE, "anonlib count": f"held.{COUNTS}", **parts})
    entry_rows = select(apart, {SUBTABLE: SUBTABLE, "value": text_of(sensitive), "n": quoted("anonlib count")})

    def facts(answers: list[Any]) -> OperatorFacts:
        hashed, lines, listed = answers
        entries = tuple(Entry(r[SUBTABLE], r["value"], r["n"]) for r in listed)
        uneven = sum(line["values"] != line["listed"] or line["values"] is None or line["values"] < 1 for line in lines)
        return OperatorFacts(
            Measured(int(hashed["n"]), combine(pieces(hashed, "c"))),
            tuple(sorted(lines, key=lambda line: (line[SUBTABLE] is None, line[SUBTABLE] or 0))),
            tuple(sorted(entries, key=lambda e: (e.subtable is None, e.subtable or 0, e.value is None, e.value or ""))),
            uneven,
        )

    return Small.of(
        [
            Small.of_row(sums, dict),
            Small.of_rows(select(operators, plain | lengths), MAX_SUBTABLES, list),
            Small.of_rows(entry_rows, MAX_ENTRIES, list),
        ],
        facts,
    )


@dataclass(frozen=True)
class _Cells:
    """One scan of `microdata`: a row for each sub-table and value that occur together, with how many records have them, the pieces of
    their checksum, and the ranges of the columns `names` of whole numbers."""

    frame: DataFrame
    names: list[str]

    @staticmethod
    def of(microdata: DataFrame, sensitive: Mapping[str, str]) -> _Cells:
        names, projected, aggregated = range_columns(microdata, [SUBTABLE])
        columns = {"subtable": quoted(SUBTABLE), "value": text_of(sensitive), "row": row_hash(microdata)}
        per_cell = {"n": "count(1)", **sum_columns("row", "c"), **aggregated}
        return _Cells(aggregate(select(microdata, columns | projected), ["subtable", "value"], per_cell), names)

    def joined(self, entries: Sequence[Entry]) -> list[dict[str, Any]]:
        """The cells by the entry they belong to (`code`), those that belong to none together with `one` of them. One job."""
        known = small_table(
            self.frame, "s int, v string, code int", [(e.subtable, e.value, i) for i, e in enumerate(entries)]
        )
        cells = self.frame
        same = cells["subtable"].eqNullSafe(known["s"]) & cells["value"].eqNullSafe(known["v"])
        over = {"n": "sum(n)", **{name: f"sum({name})" for name in _PIECES}}
        for i in range(len(self.names)):
            over |= {f"low{i}": f"min(low{i})", f"high{i}": f"max(high{i})"}
        one = "min(IF(code IS NULL, struct(subtable, value, n), NULL))"
        return rows(aggregate(cells.join(known, same, "left"), ["code"], over | {"one": one}), len(entries) + 1)

    def by_entry(self, cells: list[dict[str, Any]], entries: Sequence[Entry]) -> list[dict[str, Any]]:
        """What `joined` finds, from cells that are few enough for the driver."""
        codes: dict[tuple[int | None, str | None], list[int]] = {}
        for i, e in enumerate(entries):
            codes.setdefault((e.subtable, e.value), []).append(i)
        known = [
            cell | {"code": code} for cell in cells for code in codes.get((cell["subtable"], cell["value"]), [None])
        ]
        strange = [cell for cell in known if cell["code"] is None]
        first = min(strange, key=_nulls_first, default=None)
        return [cell | {"one": first} for cell in known]

    def facts(self, cells: list[dict[str, Any]], entries: Sequence[Entry]) -> MicrodataFacts:
        """Rows, checksum, published counts of each entry, records outside their domain, ranges of whole-number columns."""
        observed = [0] * len(entries)
        for r in cells:
            if r["code"] is not None:
                observed[r["code"]] += int(r["n"])
        strangers = [r for r in cells if r["code"] is None]
        low, middle, high = (sum(int(r[name]) for r in cells) for name in _PIECES)
        extremes = {
            f"{side}{i}": min_or_max([r[f"{side}{i}"] for r in cells if r[f"{side}{i}"] is not None], default=None)
            for i in range(len(self.names))
            for side, min_or_max in (("low", min), ("high", max))
        }
        return MicrodataFacts(
            measured=Measured(sum(int(r["n"]) for r in cells), combine((low, middle, high))),
            observed=tuple(observed),
            strangers=sum(int(r["n"]) for r in strangers),
            stranger=_shown(strangers[0]["one"]) if strangers else None,
            ranges=ranges(self.names, extremes),
        )


def _nulls_first(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    subtable, value = cell["subtable"], cell["value"]
    return (subtable is not None, subtable or 0, value is not None, value or "")


def _shown(one: Mapping[str, object]) -> str:
    return f"{one['n']:,} records of sub-table {one['subtable']} with {one['value']!r}"
