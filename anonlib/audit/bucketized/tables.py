"""What the published tables of a bucketized release hold.

`qit` is scanned once and not shuffled. `st` is scanned twice: for its checksum and its kinds of rows, and grouped by bucket
(one shuffle). All is one job where there are few records, else two or three. The driver gets one row per (sensitive value, count), and see
`bucketized_gather`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anonlib.audit.bucketized.facts import Entry, QitFacts, StFacts
from anonlib.audit.bucketized.gather import Buckets, added, by_arrays, gather
from anonlib.audit.published import fresh_salt, range_columns, ranges
from anonlib.audit.verdict import Measured
from anonlib.engine.checksum import combine, pieces, row_hash, salted, sum_columns
from anonlib.engine.relational import DataFrame, Small, aggregate, collected, rows, select
from anonlib.engine.values import small_table
from anonlib.spec.layouts import BUCKET_ID, COUNT
from anonlib.sql import quoted


def scan(
    qit: DataFrame,
    st: DataFrame,
    sensitive: str,
    values: Sequence[str | None],
    largest: int,
    fake_values: int,
    salt: int,
    few: bool,
    published: Sequence[str] | None = None,
) -> tuple[QitFacts, StFacts]:
    """Everything the audit wants of `qit` and of `st`: one job where there are `few` records, else two. `values` are the texts of the
    known sensitive values, `largest` the largest sum of counts that any bucket may have, `published` the columns of `st` that its
    checksum is over, None for all (it may have one of ours besides, see `anonlib.audit.bucketized.audit`).

    A row of `st` is known by its kind, its value with its count: a salted hash of the value with the count in the low bits. The hash
    keeps 64 bits less those of `largest`, is salted afresh, and is drawn again if two known values collide; an unknown value
    passes for a known one with a chance of about m / 2^50 or less.
    """
    bits = max(8, (largest + 1).bit_length())
    code_of, value_salt = _value_hashes(st, sensitive, values, bits)
    capped = f"least(greatest(coalesce({quoted(COUNT)}, 0L), 0L), {largest + 1}L)"
    kind = f"shiftleft(xxhash64({salted(value_salt)}, {quoted(sensitive)}), {bits}) | {capped}"
    lines = select(st, {BUCKET_ID: BUCKET_ID, "n": capped, "kind": kind, "row": row_hash(st, published)})
    # A tampered table may hold any number of unknown values; more kinds than known values can make are not fetched.
    limit = (len(values) + 2) * (largest + 2)
    per_kind = aggregate(lines, ["kind"], {"n": "count(1)", **sum_columns("row", "c")})
    asked: list[Small[Any]] = [_qit_facts(qit, salt), Small.of_rows(per_kind.limit(limit), limit, list)]
    if few:
        facts, kinds, buckets = collected([*asked, by_arrays(lines, bits, largest, fake_values, salt, limit)])
    else:
        facts, kinds = collected(asked)
        buckets = gather(lines, [r["kind"] for r in kinds], bits, largest, fake_values, salt, limit)
    return facts, _st_facts(kinds, buckets, code_of, bits, largest)


def _qit_facts(qit: DataFrame, salt: int) -> Small[QitFacts]:
    """Rows, checksum, null bucket ids, fingerprint of bucket ids, ranges of whole-number columns: one scan, no shuffle."""
    ranged, projected, aggregated = range_columns(qit, [BUCKET_ID])
    columns = {
        "row": row_hash(qit),
        "bucket": f"xxhash64({salted(salt)}, {BUCKET_ID})",
        "missing": f"{BUCKET_ID} IS NULL",
    }
    sums = {"n": "count(1)", "nulls": "count_if(missing)", **sum_columns("row", "c"), **sum_columns("bucket", "f")}

    def facts(row: dict[str, Any]) -> QitFacts:
        measured = Measured(int(row["n"]), combine(pieces(row, "c")))
        return QitFacts(measured, int(row["nulls"]), pieces(row, "f"), ranges(ranged, row))

    return Small.of_row(aggregate(select(qit, columns | projected), [], sums | aggregated), facts)


def _st_facts(
    kinds: list[dict[str, Any]], buckets: Buckets, code_of: dict[int, int], bits: int, largest: int
) -> StFacts:
    entries, unknown = [], 0
    for r in kinds:
        key = int(r["kind"]) & ((1 << 64) - 1)
        code = code_of.get(key >> bits)
        if code is None:
            unknown += int(r["n"])
        else:
            smallest = buckets.smallest.get(int(r["kind"]), 0)
            entries.append(Entry(code, key & ((1 << bits) - 1), int(r["n"]), smallest))
    return StFacts(
        measured=Measured(sum(int(r["n"]) for r in kinds), combine(added([pieces(r, "c") for r in kinds]))),
        entries=tuple(sorted(entries, key=lambda e: (e.code, e.count))),
        unknown=unknown,
        sizes=buckets.sizes,
        doubled=buckets.doubled,
        null_buckets=buckets.nameless,
        fingerprint=buckets.fingerprint,
        largest=largest,
    )


def _value_hashes(st: DataFrame, sensitive: str, values: Sequence[str | None], bits: int) -> tuple[dict[int, int], int]:
    """(hash of a value without its top `bits` bits -> its number in `values`, the salt under which they are distinct)."""
    kind = dict(st.dtypes)[sensitive]
    known = small_table(st, "code int, value string", list(enumerate(values)))
    distinct = len(set(values))
    while True:
        salt = fresh_salt()
        hashed = select(known, {"code": "code", "h": f"xxhash64({salted(salt)}, try_cast(value AS {kind}))"})
        mask = (1 << (64 - bits)) - 1
        code_of = {r["h"] & mask: r["code"] for r in rows(hashed, len(values))}
        if len(code_of) == distinct or distinct == 0:
            return code_of, salt
