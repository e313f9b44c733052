"""What all buckets of a release tell of each quasi-identifier, for the unmixing attack: one Spark job, few rows on the driver."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from anonlib.arrays import Float64Array
from anonlib.engine.relational import DataFrame, Row, Small, aggregate, collected, rows, select
from anonlib.engine.values import small_table
from anonlib.evaluation.attacks_coding import Coding
from anonlib.evaluation.attacks_unmixing import Learnt, likelier, readable
from anonlib.queries.flattening import MAX_VALUES, Kinds
from anonlib.release.bucketized_kinds import MAX_KINDS
from anonlib.release.manifest import Manifest
from anonlib.spec.layouts import BUCKET_ID
from anonlib.sql import quoted

NUMBERS = 1_000_000
"""(code of a quasi-identifier, sensitive value) pairs that reach the driver at most: as lists of Python numbers some 100 MB."""
TOO_MANY = (
    f"not played: more than {MAX_VALUES:,} sensitive values, or {MAX_KINDS:,} kinds of buckets, are not solved for"
)
NOBODY = "not played: no bucket was sampled"


def unmixed(
    qit: DataFrame, lists: DataFrame, manifest: Manifest, names: Sequence[str], codings: Sequence[Coding]
) -> Learnt | str:
    """What was learnt, or why nothing was.

    qit     : records with BUCKET_ID and the quasi-identifiers `names`; codings : of each, by a sample; none where nothing was sampled
    lists   : (bucket, codes, counts), the values of each bucket

    Where buckets list fakes a listing counts for as many records as it stands for on average, which the public counts tell: kinds are
    those of listed values, and their compositions expected ones.

    Values of a quasi-identifier that the sample does not have are left out: nobody in it has them. One job, with fakes two: a shuffle of
    the records once for every quasi-identifier, and of one row for each of its values in a bucket. Driver: `NUMBERS` floats, `MAX_KINDS`
    kinds, and an m x m eigenproblem.
    """
    m = len(manifest.guarantee.values)
    if m > MAX_VALUES:
        return TOO_MANY
    if not codings:
        return NOBODY
    real = real_shares(lists, manifest) if manifest.rows.fake else None
    lists = lists if real is None else expected(lists, real)
    of = readable([coding.number for coding in codings], NUMBERS // m)
    chosen = [(names[place], codings[place]) for place in of]
    widths = [coding.number for _, coding in chosen]
    counted = aggregate(lists, ["codes", "counts"], {"buckets": "count(1)"}).limit(MAX_KINDS + 1)
    asked = [Small.of_rows(counted, MAX_KINDS + 1, list[Row])]
    if chosen:
        asked.append(Small.of_rows(flattened(qit, lists, chosen), sum(widths), list[Row]))
    kinds, *estimates = collected(asked)
    if len(kinds) > MAX_KINDS:
        return TOO_MANY
    ratios = likelier(kinds_of(kinds, m), tables_of(estimates[0] if chosen else [], widths, m))
    return Learnt(of, ratios, tuple(name for place, name in enumerate(names) if place not in of), real)


def real_shares(lists: DataFrame, manifest: Manifest) -> Float64Array:
    """(m,): of the buckets that list a value, the share that hold it, from the manifest's counts and how often it is listed. One job."""
    counts = np.array([v.count for v in manifest.guarantee.values], dtype=np.float64)
    each = select(lists, {"e": "explode(arrays_zip(codes, counts))"})
    times = aggregate(select(each, {"code": "e.codes", "n": "e.counts"}), ["code"], {"n": "sum(n)"})
    found = {int(row["code"]): float(row["n"]) for row in rows(times, len(counts))}
    listed = np.array([found.get(code, 0.0) for code in range(len(counts))])
    return np.asarray(np.minimum(1.0, counts / np.maximum(listed, counts)))


def expected(lists: DataFrame, real: Float64Array) -> DataFrame:
    """`lists` with the records that each listing stands for on average as its counts."""
    shares = f"array({', '.join(f'{share!r}D' for share in real.tolist())})"
    held = f"transform(arrays_zip(codes, counts), e -> e.counts * element_at({shares}, CAST(e.codes AS INT) + 1))"
    return select(lists, {"bucket": "bucket", "codes": "codes", "counts": held})


def flattened(qit: DataFrame, lists: DataFrame, chosen: Sequence[tuple[str, Coding]]) -> DataFrame:
    """(a, x, codes, estimates): for quasi-identifier a and each of its codes x, the flattened estimates by sensitive value."""
    pairs = ", ".join(f"struct({a} AS a, {_key(name, coding)} AS key)" for a, (name, coding) in enumerate(chosen))
    keyed = select(
        select(qit, {"bucket": quoted(BUCKET_ID), "pair": f"explode(array({pairs}))"}),
        {"bucket": "bucket", "a": "pair.a", "key": "pair.key"},
    )
    keys = [(a, key, x) for a, (_, coding) in enumerate(chosen) for x, key in enumerate(_keys(coding))]
    coded = keyed.join(small_table(qit, "a int, key string, x int", keys), ["a", "key"])
    matching = aggregate(coded, ["a", "x", "bucket"], {"k": "count(1)"}).join(lists, "bucket")
    size = "aggregate(counts, 0D, (sum, c) -> sum + c)"
    each = select(
        matching,
        {"a": "a", "x": "x", "share": f"CAST(k AS DOUBLE) / {size}", "e": "explode(arrays_zip(codes, counts))"},
    )
    apart = select(each, {"a": "a", "x": "x", "code": "e.codes", "f": "share * e.counts"})
    by_value = aggregate(apart, ["a", "x", "code"], {"f": "sum(f)"})
    entries = aggregate(by_value, ["a", "x"], {"e": "collect_list(struct(code, f))"})
    return select(entries, {"a": "a", "x": "x", "codes": "e.code", "estimates": "e.f"})


def kinds_of(counted: Sequence[Row], m: int) -> Kinds:
    """The kinds in rows of `codes`, `counts` and the number of `buckets`."""
    kind = np.repeat(np.arange(len(counted)), [len(row["codes"]) for row in counted])
    codes = np.concatenate([row["codes"] for row in counted])
    counts = np.concatenate([row["counts"] for row in counted])
    held = sp.csr_matrix((counts, (kind, codes)), shape=(len(counted), m))
    return Kinds(np.array([row["buckets"] for row in counted], dtype=np.int64), held)


def tables_of(found: Sequence[Row], widths: Sequence[int], m: int) -> list[Float64Array]:
    """Per quasi-identifier (its codes, m), from the rows of `flattened`."""
    tables = [np.zeros((width, m)) for width in widths]
    for row in found:
        tables[row["a"]][row["x"], row["codes"]] = row["estimates"]
    return tables


def _key(name: str, coding: Coding) -> str:
    """SQL: the key of a record's value, one of `_keys`, or of none where the coding does not know it."""
    if coding.edges is None:
        return f"coalesce(concat('=', CAST({quoted(name)} AS STRING)), '')"
    number = f"try_cast(CAST({quoted(name)} AS STRING) AS DOUBLE)"
    edges = ", ".join(f"CAST('{float(edge)!r}' AS DOUBLE)" for edge in coding.edges)
    place = f"size(filter(array({edges}), edge -> edge <= {number}))"
    return f"CAST(IF({number} IS NULL OR isnan({number}), {len(coding.edges) + 1}, {place}) AS STRING)"


def _keys(coding: Coding) -> list[str]:
    """The keys of a coding's codes, in their order."""
    return list(coding.keys) if coding.edges is None else [str(code) for code in range(coding.number)]
