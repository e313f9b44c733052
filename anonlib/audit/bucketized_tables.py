"""What the published tables of a bucketized release hold.

`qit` is scanned once and not shuffled. `st` is scanned twice: for its checksum, and grouped by bucket (one shuffle, of a
64-bit entry per row). The driver gets one row per (sensitive value, count) and per bucket size.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anonlib.audit.verdict import Measured
from anonlib.engine.checksum import combine, pieces, row_hash, sum_columns
from anonlib.engine.relational import DataFrame, aggregate, one_row, rows, select
from anonlib.engine.small_table import small_table
from anonlib.release.bucketized import BUCKET_ID, COUNT
from anonlib.sql import quoted

Pieces = tuple[int, int, int]
_WHOLE_TYPES = ("tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True)
class QitFacts:
    """One scan of `qit`: `fingerprint` is of the multiset of bucket ids, `ranges` min and max of whole-number columns."""

    measured: Measured
    null_buckets: int
    fingerprint: Pieces
    ranges: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Entry:
    """`rows` rows of `st` say: value number `code`, `count` times; the smallest of their buckets sums to `smallest`."""

    code: int
    count: int
    rows: int
    smallest: int


@dataclass(frozen=True)
class StFacts:
    """What was found in `st`.

    entries       : one per (value, count) that occurs; a count above `largest` is reported as `largest` + 1, below 1 as 0
    unknown       : rows whose value the manifest does not list
    sizes         : sum of a bucket's counts -> number of buckets (sums above `largest` as `largest` + 1)
    doubled       : buckets in which a value has more than one row
    null_buckets  : 1 when rows have no bucket id
    fingerprint   : of the multiset of bucket ids, each as often as its counts sum to, less the fake values
    """

    measured: Measured
    entries: tuple[Entry, ...]
    unknown: int
    sizes: dict[int, int]
    doubled: int
    null_buckets: int
    fingerprint: Pieces
    largest: int


def fresh_salt() -> int:
    """A salt that nobody knew when the tables were written, so that no table can be made to collide under it."""
    return secrets.randbits(62)


def scan_qit(qit: DataFrame, salt: int) -> QitFacts:
    """Rows, checksum, null bucket ids, fingerprint of bucket ids, ranges of whole-number columns: one scan, no shuffle."""
    ranged = [name for name, kind in qit.dtypes if name != BUCKET_ID and _whole(kind)]
    columns = {"row": row_hash(qit), "bucket": f"xxhash64({salt}L, {BUCKET_ID})", "missing": f"{BUCKET_ID} IS NULL"}
    columns |= {f"r{i}": quoted(name) for i, name in enumerate(ranged)}
    sums = {"n": "count(1)", "nulls": "count_if(missing)", **sum_columns("row", "c"), **sum_columns("bucket", "f")}
    for i in range(len(ranged)):
        sums |= {f"low{i}": f"min(r{i})", f"high{i}": f"max(r{i})"}
    found = one_row(aggregate(select(qit, columns), [], sums))
    ranges = {
        name: (int(found[f"low{i}"]), int(found[f"high{i}"]))
        for i, name in enumerate(ranged)
        if found[f"low{i}"] is not None
    }
    measured = Measured(int(found["n"]), combine(pieces(found, "c")))
    return QitFacts(measured, int(found["nulls"]), pieces(found, "f"), ranges)


def scan_st(
    st: DataFrame, sensitive: str, values: Sequence[str | None], largest: int, fake_values: int, salt: int
) -> StFacts:
    """Everything the audit wants of `st`. `values` are the texts of the known sensitive values, `largest` the largest
    sum of counts that any bucket may have.

    A row travels as one long: a salted hash of its value with its count in the low bits. The hash keeps 64 bits less those
    of `largest`, is salted afresh, and is drawn again if two known values collide; an unknown value passes for a known one
    with a chance of about m / 2^50 or less.
    """
    bits = max(8, (largest + 1).bit_length())
    code_of, value_salt = _value_hashes(st, sensitive, values, bits)
    capped = f"least(greatest(coalesce({quoted(COUNT)}, 0L), 0L), {largest + 1}L)"
    packed = f"shiftleft(xxhash64({value_salt}L, {quoted(sensitive)}), {bits}) | {capped}"
    lines = select(st, {BUCKET_ID: BUCKET_ID, "n": capped, "entry": packed})
    buckets = aggregate(lines, [BUCKET_ID], {"size": "sum(n)", "entries": "collect_list(entry)"})
    hashes = f"transform(entries, e -> shiftrightunsigned(e, {bits}))"
    described = select(
        buckets,
        {
            BUCKET_ID: BUCKET_ID,
            "size": "size",
            "doubled": f"size(array_distinct({hashes})) <> size(entries)",
            "entries": "concat(entries, array(CAST(NULL AS BIGINT)))",
        },
    )
    # One row per entry, and one with a null entry for the bucket itself. Only slim rows are exploded, and the checksum has
    # its own scan: carrying its sums through the grouping costs more than reading the table again.
    exploded = select(
        described, {"entry": "explode(entries)", BUCKET_ID: BUCKET_ID, "size": "size", "doubled": "doubled"}
    )
    whole = "entry IS NULL"
    keyed = select(
        exploded,
        {
            "whole": whole,
            "key": f"coalesce(entry, least(size, {largest + 1}L))",
            "size": "size",
            "doubled": f"doubled AND {whole}",
            "nameless": f"{BUCKET_ID} IS NULL AND {whole}",
            "bucket": f"IF({whole}, xxhash64({salt}L, {BUCKET_ID}), NULL)",
        },
    )
    shapes = aggregate(
        keyed,
        ["whole", "key"],
        {
            "n": "count(1)",
            "smallest": "min(size)",
            "doubled": "count_if(doubled)",
            "nameless": "count_if(nameless)",
            **sum_columns("bucket", "f", times=f"size - {fake_values}L"),
        },
    )
    # A tampered table may hold any number of unknown values; more rows than known values can make are not fetched.
    limit = (len(values) + 2) * (largest + 2)
    return _st_facts(rows(shapes.limit(limit), limit), _measure(st), code_of, bits, largest)


def _st_facts(
    found: list[dict[str, Any]], measured: Measured, code_of: dict[int, int], bits: int, largest: int
) -> StFacts:
    whole = [r for r in found if r["whole"]]
    entries, unknown = [], 0
    for r in found:
        if r["whole"]:
            continue
        key = int(r["key"]) & ((1 << 64) - 1)
        code = code_of.get(key >> bits)
        if code is None:
            unknown += int(r["n"])
        else:
            entries.append(Entry(code, key & ((1 << bits) - 1), int(r["n"]), int(r["smallest"])))
    return StFacts(
        measured=measured,
        entries=tuple(sorted(entries, key=lambda e: (e.code, e.count))),
        unknown=unknown,
        sizes={int(r["key"]): int(r["n"]) for r in whole},
        doubled=sum(int(r["doubled"]) for r in whole),
        null_buckets=sum(int(r["nameless"]) for r in whole),
        fingerprint=_added([pieces(r, "f") for r in whole]),
        largest=largest,
    )


def _measure(frame: DataFrame) -> Measured:
    found = one_row(
        aggregate(select(frame, {"row": row_hash(frame)}), [], {"n": "count(1)", **sum_columns("row", "c")})
    )
    return Measured(int(found["n"]), combine(pieces(found, "c")))


def _value_hashes(st: DataFrame, sensitive: str, values: Sequence[str | None], bits: int) -> tuple[dict[int, int], int]:
    """(hash of a value without its top `bits` bits -> its number in `values`, the salt under which they are distinct)."""
    kind = dict(st.dtypes)[sensitive]
    known = small_table(st, "code int, value string", list(enumerate(values)))
    distinct = len(set(values))
    while True:
        salt = fresh_salt()
        hashed = select(known, {"code": "code", "h": f"xxhash64({salt}L, try_cast(value AS {kind}))"})
        mask = (1 << (64 - bits)) - 1
        code_of = {r["h"] & mask: r["code"] for r in rows(hashed, len(values))}
        if len(code_of) == distinct or distinct == 0:
            return code_of, salt


def _added(sums: Sequence[Pieces]) -> Pieces:
    return (sum(s[0] for s in sums), sum(s[1] for s in sums), sum(s[2] for s in sums))


def _whole(kind: str) -> bool:
    return kind in _WHOLE_TYPES or (kind.startswith("decimal(") and kind.endswith(",0)"))
