"""Re-identification where quasi-identifiers are published as they are: one aggregation of original and release each, one job."""

from __future__ import annotations

from collections.abc import Sequence

from anonlib.engine.relational import DataFrame, aggregate, one_row, select
from anonlib.evaluation.attacks import Attack
from anonlib.release.manifest import Manifest
from anonlib.sql import quoted

SAID = "none promised: presence is not hidden, and quasi-identifiers are published as they are"


def by_looks(names: Sequence[str]) -> dict[str, str]:
    """{"looks": SQL}: the quasi-identifiers as one text, different for different ones, missing values among them."""
    fields = ", ".join(f"CAST({quoted(name)} AS STRING) AS a{i}" for i, name in enumerate(names))
    return {"looks": f"to_json(struct({fields}))"}


def joined(original: DataFrame, names: Sequence[str], published: DataFrame, manifest: Manifest) -> Attack:
    """How often picking one of the rows with a person's quasi-identifiers picks the person's own: exact, over all persons."""
    rows = aggregate(select(published, by_looks(names)), ["looks"], {"rows": "count(1)"})
    persons = aggregate(select(original, by_looks(names)), ["looks"], {"n": "count(1)"})
    sums = one_row(
        aggregate(
            persons.join(rows, "looks"),
            [],
            {"persons": "sum(n)", "right": "sum(n / rows)", "alone": "sum(IF(rows = 1, n, 0))"},
        )
    )
    n = int(sums["persons"] or 0)
    return Attack(
        "re-identification",
        float(sums["right"] or 0) / max(1, n),
        1 / max(1, manifest.rows.published),
        None,
        {"singled out": int(sums["alone"] or 0) / max(1, n)},
        persons=n,
        words=SAID,
    )
