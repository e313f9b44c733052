"""A release against the table it was made from, as far as every layout that leaves records unchanged shares it.

`original` is the input after the missing-value policy. Cost: one scan of the original and one of the published table for the
fingerprint, one grouping of the original by its sensitive column. The driver gets m counts.
"""

from __future__ import annotations

from typing import Any

from anonlib.audit.published import fresh_salt
from anonlib.audit.verdict import Check
from anonlib.engine.checksum import pieces, row_hash, sum_columns
from anonlib.engine.relational import DataFrame, Small, aggregate, select
from anonlib.engine.statistics import value_text
from anonlib.release.manifest import Manifest


def same_columns(original: DataFrame, published: DataFrame, names: list[str], sensitive: str) -> Check:
    """The columns `names` stand in both tables with the same types, and the original has the sensitive column."""
    have, types = dict(original.dtypes), dict(published.dtypes)
    faults = [f"{n!r} is {types[n]}, was {have.get(n, 'absent')}" for n in names if have.get(n) != types[n]]
    if sensitive not in have:
        faults.append(f"the original has no column {sensitive!r}")
    return Check.unless(
        faults,
        name="original: columns",
        asked="published columns as in the original, with their types",
        achieved="equal" if not faults else f"{len(faults)} differ",
    )


def same_records(published: DataFrame, manifest: Manifest, original: DataFrame, names: list[str]) -> Small[Check]:
    """The columns `names` hold the same multiset of records, by a fingerprint under a fresh salt."""
    salt = fresh_salt()

    def fingerprint(frame: DataFrame) -> Small[tuple[int, tuple[int, int, int]]]:
        hashed = select(frame, {"row": row_hash(frame, names, salt)})
        sums = aggregate(hashed, [], {"n": "count(1)", **sum_columns("row", "f")})
        return Small.of_row(sums, lambda row: (int(row["n"]), pieces(row, "f")))

    def compared(sums: list[tuple[int, tuple[int, int, int]]]) -> Check:
        (n_original, of_original), (n_published, of_published) = sums
        same = of_original == of_published
        return Check(
            name="original: records",
            passed=same and n_original == n_published == manifest.rows.input - manifest.rows.dropped,
            asked=f"the {n_original:,} records of the original, each as often",
            achieved=f"{n_published:,} records, {'the same' if same else 'not the same'}; the manifest counts "
            f"{manifest.rows.input:,} less {manifest.rows.dropped:,} dropped",
        )

    return Small.of([fingerprint(original), fingerprint(published)], compared)


def same_distribution(manifest: Manifest, original: DataFrame) -> Small[Check]:
    """The manifest's count of each sensitive value is the original's."""
    alone = select(
        original, {"value": sensitive_text(original, manifest)}
    )  # the column itself may have a name of ours, such as n
    texts = aggregate(alone, ["value"], {"n": "count(1)"})
    limit = len(manifest.guarantee.values) + 1
    return Small.of_rows(texts.limit(limit), limit, lambda rows: _distribution(manifest, rows))


def _distribution(manifest: Manifest, rows: list[dict[str, Any]]) -> Check:
    values, counted = manifest.guarantee.values, {r["value"]: int(r["n"]) for r in rows}
    faults = [
        f"{v.value!r}: stated {v.count:,}, was {counted.get(v.value, 0):,}"
        for v in values
        if counted.get(v.value) != v.count
    ]
    faults += [f"{v!r} is not in the manifest" for v in counted.keys() - {v.value for v in values}]
    return Check.unless(
        faults,
        name="original: distribution of the sensitive column",
        asked="each value as often as in the original",
        achieved=f"{len(faults):,} values differ",
    )


def determined_values(original: DataFrame, manifest: Manifest, names: list[str], salts: tuple[int, int]) -> DataFrame:
    """(k0, k1, value): the classes of records equal on all columns `names` whose records have one and the same sensitive value.

    A class is known by two salted hashes of its columns, see `keyed`; `value` is the value's text, null for a null.
    """
    classes = aggregate(
        keyed(original, names, salts, {"value": sensitive_text(original, manifest)}),
        ["k0", "k1"],
        {"value": "min(value)", "high": "max(value)", "known": "count(value)", "n": "count(1)"},
    )
    return classes.where("(known = n AND value = high) OR known = 0").select("k0", "k1", "value")


def keyed(frame: DataFrame, names: list[str], salts: tuple[int, int], more: dict[str, str]) -> DataFrame:
    """k0 and k1, 128 bits that tell the values of the columns `names`, and `more` {column: SQL}."""
    return select(frame, {f"k{i}": row_hash(frame, names, salt) for i, salt in enumerate(salts)} | more)


def sensitive_text(frame: DataFrame, manifest: Manifest) -> str:
    """SQL: the sensitive value as the manifest writes it."""
    sensitive = manifest.guarantee.sensitive
    return value_text(sensitive, dict(frame.dtypes)[sensitive])
