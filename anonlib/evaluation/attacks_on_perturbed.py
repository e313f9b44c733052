"""The attacks on a perturbed release, on Spark: three jobs (the sub-tables, the posterior's guesses, re-identification)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from anonlib.arrays import Int64Array
from anonlib.engine.compound import text_of
from anonlib.engine.relational import DataFrame, aggregate, one_row, rows, select, with_columns
from anonlib.engine.tables import types
from anonlib.engine.values import small_table
from anonlib.evaluation.attacks_corruption import corrupted
from anonlib.evaluation.attacks_decisions import minimality_words
from anonlib.evaluation.attacks_join import by_looks, joined
from anonlib.evaluation.attacks_posterior import SubTable, posterior
from anonlib.evaluation.attacks_registry import PERTURBED, figures_by_attack
from anonlib.exact import exact, text
from anonlib.release.manifest import Manifest, ValuePart
from anonlib.release.perturbed import (
    COUNTS,
    DOMAIN,
    GAMMA_EXACT,
    MICRODATA,
    OPERATORS,
    columns_of_value,
    sensitive_columns,
)
from anonlib.spec.layouts import SUBTABLE

MAX_ENTRIES = 2_000_000
"""(sub-table, value) pairs that reach the driver: they follow from the counts of the values, not from the number of records."""


def attacks(
    tables: Mapping[str, DataFrame], manifest: Manifest, original: DataFrame, seed: int = 0
) -> dict[str, dict[str, Any]]:
    """{attack: its figures, or words}, as `attacks_registry.figures_by_attack` has them."""
    microdata, sensitive = tables[MICRODATA], sensitive_columns(manifest)
    looks = [c.name for c in manifest.tables[MICRODATA].columns if c.role == "quasi_identifier"]
    part = manifest.guarantee
    codes = {v.value: i for i, v in enumerate(part.values)}
    protected = [v.threshold is not None for v in part.values]
    counts = [v.count for v in part.values]
    prior, rho2 = max(counts) / sum(counts), exact(part.asked["rho2"])
    shown = select(microdata, {**by_looks(looks), SUBTABLE: SUBTABLE, "value": text_of(_kinds(microdata, sensitive))})
    sub_tables, numbers, published = subtables(tables, shown, sensitive, codes)
    right = _right(shown, original, looks, sensitive, sub_tables, numbers, part.values)
    words = f"a protected value is believed with at most rho2 = {text(rho2)}, whatever is published"
    if not all(protected):
        words += f"; {protected.count(False)} value(s) above rho1 are published without a bound"
    played = [
        joined(original, looks, microdata, manifest),
        posterior(sub_tables, published, right, prior, rho2, protected, words),
        *(corrupted(sub_tables, known, prior, seed) for known in (Fraction(1, 2), Fraction(9, 10), None)),
    ]
    words_by_attack = {"minimality": minimality_words(manifest.method.name, manifest.method.parameters)}
    return figures_by_attack(PERTURBED, played, words_by_attack)


def subtables(
    tables: Mapping[str, DataFrame], shown: DataFrame, sensitive: Sequence[str], codes: Mapping[str | None, int]
) -> tuple[list[SubTable], list[int], list[Int64Array]]:
    """(sub-tables, their numbers, per sub-table how many rows publish each of its values). One job."""
    operators, kinds = tables[OPERATORS], _kinds(tables[MICRODATA], sensitive)
    entry = columns_of_value(f"held.{DOMAIN}", sensitive)
    listed = {SUBTABLE: SUBTABLE, "gamma": GAMMA_EXACT, "held": f"explode(arrays_zip({DOMAIN}, {COUNTS}))"}
    apart = select(
        select(operators, listed),
        {SUBTABLE: SUBTABLE, "anonlib gamma": "gamma", "anonlib count": f"held.{COUNTS}", **entry},
    )
    entries = select(
        apart,
        {
            "s": SUBTABLE,
            "gamma": "`anonlib gamma`",
            "n": "`anonlib count`",
            "key": f"coalesce(concat('=', {text_of(kinds)}), '')",
        },
    )
    shown_values = select(
        aggregate(shown, [SUBTABLE, "value"], {"rows": "count(1)"}),
        {"s": SUBTABLE, "key": "coalesce(concat('=', value), '')", "rows": "rows"},
    )
    entry_rows = rows(entries.join(shown_values, ["s", "key"], "left"), MAX_ENTRIES)
    by_number: dict[int, list[dict[str, object]]] = {}
    for row in sorted(entry_rows, key=lambda r: (r["s"], r["key"])):
        by_number.setdefault(int(row["s"]), []).append(row)
    sub_tables, published = [], []
    for lines in by_number.values():
        names = [None if not line["key"] else str(line["key"])[1:] for line in lines]
        code = np.array([codes[name] for name in names], dtype=np.int64)
        count = np.array([line["n"] for line in lines], dtype=np.int64)
        sub_tables.append(SubTable(exact(str(lines[0]["gamma"])), code, count))
        published.append(np.array([line["rows"] or 0 for line in lines], dtype=np.int64))
    return sub_tables, list(by_number), published


def _right(
    shown: DataFrame,
    original: DataFrame,
    looks: Sequence[str],
    sensitive: Sequence[str],
    sub_tables: Sequence[SubTable],
    numbers: Sequence[int],
    values: Sequence[ValuePart],
) -> float:
    """How many guesses are right, of rows that look alike on average. One job, two shuffles by quasi-identifiers.

    The original is grouped by (quasi-identifiers, value); a row with quasi-identifiers x is right with the share of the persons with x
    who have the value that its published value makes likeliest.
    """
    named = [v.value for v in values]
    pairs = [
        (number, _key(named[code]), _key(named[guess]))
        for number, table in zip(numbers, sub_tables, strict=True)
        for code, guess in zip(table.code, table.guesses(), strict=True)
    ]
    known = small_table(shown, "subtable int, key string, guess string", pairs)
    keyed = with_columns(shown, {"key": "coalesce(concat('=', value), '')"})
    guesses = aggregate(keyed.join(known, [SUBTABLE, "key"]), ["looks", "guess"], {"rows": "count(1)"})
    truth = select(original, {**by_looks(looks), "value": text_of(_kinds(original, sensitive))})
    held = aggregate(
        with_columns(truth, {"guess": "coalesce(concat('=', value), '')"}), ["looks", "guess"], {"n": "count(1)"}
    )
    alike = select(aggregate(held, ["looks"], {"all": "sum(n)"}), {"looks": "looks", "all": "all"})
    both = guesses.join(held, ["looks", "guess"]).join(alike, "looks")
    return float(one_row(aggregate(both, [], {"right": "sum(rows * n / all)"}))["right"] or 0)


def _key(value: str | None) -> str:
    """A value as a key of a join: a missing one is "", a text begins with "="."""
    return "" if value is None else f"={value}"


def _kinds(frame: DataFrame, sensitive: Sequence[str]) -> dict[str, str]:
    """{sensitive column: its Spark type}."""
    return {name: types(frame)[name] for name in sensitive}
