"""A perturbed release against the table it was made from: same records, same values, and transitions as often as the operators say.

A record's true value is known to the auditor where its published columns determine it: all records of the original that agree on
them have one and the same value. Among those records, the share that was published unchanged must fit p + q in each sub-table, and
the counts of published values must fit the true ones. No other record is matched to the original.

Cost: one scan of the original and one of `microdata` for the fingerprint, one grouping of the original by its published columns
(128-bit hashes travel, not the columns), a join with `microdata`. The driver gets one row per value of each domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anonlib.audit.original import determined_values, keyed, same_columns, same_distribution, same_records
from anonlib.audit.perturbed.facts import Entry
from anonlib.audit.perturbed.statistics import FALSE_ALARM, Cells, kept_as_often, plausible
from anonlib.audit.published import fresh_salt
from anonlib.audit.verdict import Check
from anonlib.engine.compound import text_of
from anonlib.engine.relational import DataFrame, Small, aggregate, collected, with_columns
from anonlib.engine.tables import types
from anonlib.release.manifest import Manifest
from anonlib.release.perturbed import MICRODATA, sensitive_columns
from anonlib.spec.layouts import SUBTABLE


def compare(
    tables: Mapping[str, DataFrame],
    manifest: Manifest,
    original: DataFrame,
    entries: Sequence[Entry],
    chances: Mapping[int, tuple[float, float]],
) -> list[Check]:
    """The checks that need the original (the input after the missing-value policy). `chances` are p and q of each sub-table."""
    microdata, sensitive = tables[MICRODATA], sensitive_columns(manifest)
    names = [c.name for c in manifest.tables[MICRODATA].columns if c.name != SUBTABLE and c.name not in sensitive]
    checks = [same_columns(original, microdata, [*names, *sensitive], sensitive[0])]
    if not checks[0].passed:
        return checks
    if len(sensitive) > 1:  # the manifest knows a combination by its text
        text = text_of({n: types(original)[n] for n in sensitive})
        original = with_columns(original, {manifest.guarantee.sensitive: text})
    asked = [
        same_records(microdata, manifest, original, names),
        same_distribution(manifest, original),
        _transitions(microdata, manifest, original, names, entries, chances),
    ]
    return [*checks, *collected(asked)]


def _transitions(
    microdata: DataFrame,
    manifest: Manifest,
    original: DataFrame,
    names: list[str],
    entries: Sequence[Entry],
    chances: Mapping[int, tuple[float, float]],
) -> Small[Check]:
    salts = (fresh_salt(), fresh_salt())
    kinds = types(microdata)
    published = {"s": SUBTABLE, "y": text_of({n: kinds[n] for n in sensitive_columns(manifest)})}
    determined = determined_values(original, manifest, names, salts)
    pairs = keyed(microdata, names, salts, published).join(determined, ["k0", "k1"])
    limit = 4 * len(entries) + 1_000
    by_true = aggregate(pairs, ["s", "value"], {"n": "count(1)", "kept": "count_if(y <=> value)"})
    by_published = aggregate(pairs, ["s", "y"], {"n": "count(1)"})
    return Small.of(
        [Small.of_rows(by_true.limit(limit), limit, list), Small.of_rows(by_published.limit(limit), limit, list)],
        lambda answers: _plausible(answers[0], answers[1], entries, chances),
    )


def _plausible(
    of_true: list[dict[str, Any]],
    of_published: list[dict[str, Any]],
    entries: Sequence[Entry],
    chances: Mapping[int, tuple[float, float]],
) -> Check:
    true = {(r["s"], r["value"]): int(r["n"]) for r in of_true}
    published = {(r["s"], r["y"]): int(r["n"]) for r in of_published}
    domain: dict[int | None, list[str | None]] = {}
    for entry in entries:
        domain.setdefault(entry.subtable, []).append(entry.value)
    known = {(s, v) for s, values in domain.items() for v in values}
    astray = [key for key in true if key not in known]
    if astray:
        s, v = astray[0]
        words = f"{sum(true[key] for key in astray):,} records lie in a sub-table whose domain lacks their true value"
        return Check(
            "original: transitions",
            False,
            "true values within their sub-table's domain",
            words,
            f"sub-table {s}: {v!r}",
        )
    numbers = sorted(chances)
    kept, totals = dict.fromkeys(numbers, 0), dict.fromkeys(numbers, 0)
    for r in of_true:
        kept[r["s"]] += int(r["kept"])
        totals[r["s"]] += int(r["n"])
    diagonal = [1.0 if len(domain[i]) == 1 else sum(chances[i]) for i in numbers]
    unchanged = kept_as_often([kept[i] for i in numbers], [totals[i] for i in numbers], diagonal)
    cells = [
        Cells(
            *chances[i],
            *(np.array([table.get((i, v), 0) for v in domain[i]], dtype=np.int64) for table in (true, published)),
        )
        for i in numbers
    ]
    counts = plausible(cells)
    worst = None if unchanged.passed or unchanged.worst is None else numbers[unchanged.worst[0]]
    return Check(
        name="original: transitions",
        passed=unchanged.passed and counts.passed,
        asked="records whose value their published columns determine perturbed as stated "
        f"(false alarm once in {1 / (2 * FALSE_ALARM):,.0f})",
        achieved=f"{unchanged.words}; {counts.words}",
        evidence=None if worst is None else f"sub-table {worst}: {kept[worst]:,} of {totals[worst]:,} unchanged",
    )
