"""What the rows of `st` add up to in each bucket: its size, whether a value has two rows, which kinds of rows it holds.

Two ways to the same facts. Buckets mostly hold one of few sets of kinds (a deal makes about as many sets as there are
sensitive values and sizes), so up to `MOST_KINDS` kinds are gathered as bits, in compiled code, and the driver gets the sets.
Where kinds or sets are more, buckets are gathered as arrays, which is slower by half, and the driver gets one row per kind. So are the
buckets of a small table: which kinds there are need not be known first, and all is one job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anonlib.audit.bucketized.facts import Pieces
from anonlib.engine.checksum import pieces, salted, sum_columns
from anonlib.engine.relational import DataFrame, Small, aggregate, collected, rows, select
from anonlib.engine.values import small_table
from anonlib.spec.layouts import BUCKET_ID

MOST_KINDS = 256
MOST_SETS = 20_000
_WORD = 63
"""Kinds per 64-bit word; the sign bit stays free."""


@dataclass(frozen=True)
class Buckets:
    """Facts over all buckets.

    sizes    : sum of a bucket's counts -> number of buckets (sums above the largest allowed as one more than it)
    doubled  : buckets in which a value has more than one row
    nameless : 1 when rows have no bucket id
    fingerprint : of the multiset of bucket ids, each as often as its counts sum to, less the fake values
    smallest : kind -> the size of the smallest bucket that holds it
    """

    sizes: dict[int, int]
    doubled: int
    nameless: int
    fingerprint: Pieces
    smallest: dict[int, int]


def gather(
    lines: DataFrame, kinds: Sequence[int], bits: int, largest: int, fake_values: int, salt: int, limit: int
) -> Buckets:
    """The facts of all buckets.

    lines : (bucket_id, n capped at largest + 1, kind, ...), one row per row of `st`; kinds : those that occur, as far as known;
    bits : low bits of a kind that hold the count; limit : how many kinds may come to the driver
    """
    if len(kinds) <= MOST_KINDS:
        by_bits = _by_bits(lines, sorted(kinds), bits, largest, fake_values, salt)
        if by_bits is not None:
            return by_bits
    buckets: Buckets = collected([by_arrays(lines, bits, largest, fake_values, salt, limit)])[0]
    return buckets


def added(sums: Sequence[Pieces]) -> Pieces:
    """The pieces of one checksum over all rows, from those over parts of them: each piece summed by itself."""
    return (sum(s[0] for s in sums), sum(s[1] for s in sums), sum(s[2] for s in sums))


def _by_bits(
    lines: DataFrame, kinds: list[int], bits: int, largest: int, fake_values: int, salt: int
) -> Buckets | None:
    """None when buckets hold more than `MOST_SETS` different sets."""
    words = [f"w{k}" for k in range(-(-len(kinds) // _WORD))]
    marks = [
        (kind, *[1 << (i % _WORD) if i // _WORD == k else 0 for k in range(len(words))]) for i, kind in enumerate(kinds)
    ]
    table = small_table(lines, ", ".join(["kind long", *(f"{w} long" for w in words)]), marks)
    marked = lines.select(BUCKET_ID, "n", "kind").join(table, "kind")
    # lines_ tells a kind that stands twice in a bucket, which its bit does not
    sums = {"size": "sum(n)", "lines_": "count(1)", **{w: f"bit_or({w})" for w in words}}
    buckets = aggregate(marked, [BUCKET_ID], sums)
    named = select(
        buckets,
        {
            "size": "size",
            "lines_": "lines_",
            **{w: w for w in words},
            "nameless": f"{BUCKET_ID} IS NULL",
            "bucket": f"xxhash64({salted(salt)}, {BUCKET_ID})",
        },
    )
    facts = {
        "n": "count(1)",
        "nameless": "count_if(nameless)",
        **sum_columns("bucket", "f", times=f"size - {fake_values}L"),
    }
    sets = aggregate(named, ["size", "lines_", *words], facts).limit(MOST_SETS + 1)
    set_rows = rows(sets, MOST_SETS + 1)
    return None if len(set_rows) > MOST_SETS else _of_sets(set_rows, words, kinds, bits, largest)


def _of_sets(set_rows: list[dict[str, Any]], words: list[str], kinds: list[int], bits: int, largest: int) -> Buckets:
    sizes: Counter[int] = Counter()
    smallest: dict[int, int] = {}
    doubled = 0
    for r in set_rows:
        held = [
            kinds[k * _WORD + bit] for k, word in enumerate(words) for bit in range(_WORD) if int(r[word]) >> bit & 1
        ]
        size = int(r["size"])
        sizes[min(size, largest + 1)] += int(r["n"])
        if len(held) != int(r["lines_"]) or len({kind >> bits for kind in held}) != len(held):
            doubled += int(r["n"])
        for kind in held:
            smallest[kind] = min(size, smallest.get(kind, size))
    return Buckets(
        sizes=dict(sizes),
        doubled=doubled,
        nameless=sum(int(r["nameless"]) for r in set_rows),
        fingerprint=added([pieces(r, "f") for r in set_rows]),
        smallest=smallest,
    )


def by_arrays(lines: DataFrame, bits: int, largest: int, fake_values: int, salt: int, limit: int) -> Small[Buckets]:
    """The facts of all buckets, still to be asked for; see `gather`. One shuffle by bucket, one of kinds."""
    buckets = aggregate(lines, [BUCKET_ID], {"size": "sum(n)", "kinds": "collect_list(kind)"})
    hashes = f"transform(kinds, e -> shiftrightunsigned(e, {bits}))"
    described = select(
        buckets,
        {
            BUCKET_ID: BUCKET_ID,
            "size": "size",
            "doubled": f"size(array_distinct({hashes})) <> size(kinds)",
            # one row per kind, and one with a null kind for the bucket itself
            "kinds": "concat(kinds, array(CAST(NULL AS BIGINT)))",
        },
    )
    exploded = select(described, {"kind": "explode(kinds)", BUCKET_ID: BUCKET_ID, "size": "size", "doubled": "doubled"})
    whole = "kind IS NULL"
    keyed = select(
        exploded,
        {
            "whole": whole,
            "key": f"coalesce(kind, least(size, {largest + 1}L))",
            "size": "size",
            "doubled": f"doubled AND {whole}",
            "nameless": f"{BUCKET_ID} IS NULL AND {whole}",
            "bucket": f"IF({whole}, xxhash64({salted(salt)}, {BUCKET_ID}), NULL)",
        },
    )
    facts = {
        "n": "count(1)",
        "smallest": "min(size)",
        "doubled": "count_if(doubled)",
        "nameless": "count_if(nameless)",
        **sum_columns("bucket", "f", times=f"size - {fake_values}L"),
    }
    return Small.of_rows(aggregate(keyed, ["whole", "key"], facts).limit(limit), limit, _of_arrays)


def _of_arrays(by_key: list[dict[str, Any]]) -> Buckets:
    of_buckets = [r for r in by_key if r["whole"]]
    return Buckets(
        sizes={int(r["key"]): int(r["n"]) for r in of_buckets},
        doubled=sum(int(r["doubled"]) for r in of_buckets),
        nameless=sum(int(r["nameless"]) for r in of_buckets),
        fingerprint=added([pieces(r, "f") for r in of_buckets]),
        smallest={int(r["key"]): int(r["smallest"]) for r in by_key if not r["whole"]},
    )
