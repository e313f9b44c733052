"""Quasi-identifiers as columns of codes, and boxes of codes as published columns: what every generalizing method stands on.

    table = microdata(frame, columns, missing)                       # the checked input
    qi = domain_statistics(table)                                    # at most two scans; domains on the driver
    qi.domains                                                       # (NumericDomain("age", 16.0, 93.0), CategoricalDomain(...), ...)

    sa = sensitive_statistics(table.frame, table.sensitive, table.keep, table.refuse).counts
    coded = encode(table.published, qi, {table.sensitive: sa.values})
    # coded: q0, q1, ... bigint (double for floating columns), one per quasi-identifier in order; s0 int, the sensitive code

    def boxes(group):                                                # a kernel: codes in, boxes out, e.g. one class of a method
        out = group[["s0"]].copy()
        out["q0_lo"], out["q0_hi"] = group.q0.min(), group.q0.max()                # a numeric quasi-identifier
        out["q1_set"] = [np.unique(group.q1).astype(np.int32)] * len(group)        # a categorical one
        out["ec_id"] = group.cell.iloc[0]
        return out

    cells = coded.withColumn("cell", ...)
    boxed = cells.groupBy("cell").applyInPandas(boxes, box_schema(qi, sensitive=1, more="ec_id bigint"))
    frame = decode(boxed, qi, {table.sensitive: sa.values}, keep=("ec_id",))
    # frame: age_min, age_max (age's own type), country array<country's type> sorted, country_label string, occupation, ec_id
    frame = mixed(frame, partitions=8, by="ec_id")                   # rows and files in an order that says nothing
    stage(MICRODATA, frame)                                          # names and roles: anonlib.release.generalized

Domains are bounded (`MAX_CATEGORIES` values of a categorical attribute), so is everything on the driver: O(values) memory. `encode`
adds one broadcast join per categorical and sensitive column, no shuffle; `decode` one pass through Arrow where an attribute is
categorical; `mixed` one shuffle of what is published.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.domains import CategoricalDomain, Domain, NumericDomain
from anonlib.engine.checksum import row_hash
from anonlib.engine.failures import explained
from anonlib.engine.microdata import Microdata
from anonlib.engine.numeric_codes import check_coded, code_of, code_type, value_of
from anonlib.engine.relational import aggregate, one_row, select
from anonlib.engine.small_table import small_table
from anonlib.engine.statistics import FLOATING, is_missing, typed_value, value_text
from anonlib.engine.tables import types
from anonlib.errors import SpecError
from anonlib.hierarchy import Hierarchy
from anonlib.sql import quoted

MAX_CATEGORIES = 100_000
"""More distinct values of a categorical quasi-identifier than this is an identifier; its values would not fit the driver."""
CHANGED = (
    "anonlib refuses (AnonlibError): a record has a value that is in none of the domains read before; the input changed between the two "
    "passes (publish from a table that nobody writes to, e.g. a snapshot), or this is not the table that the release was made from"
)


@dataclass(frozen=True)
class QuasiIdentifier:
    """One quasi-identifier of a table: `name` and `spark_type` as the table has them, and its domain in codes.

    low, high : exact codes of a numeric one (ints; floats for floating columns); the domain holds them as floats
    """

    name: str
    spark_type: str
    domain: Domain
    low: int | float | None = None
    high: int | float | None = None

    @property
    def numeric(self) -> bool:
        """Whether it is generalized to an interval; else to a set."""
        return isinstance(self.domain, NumericDomain)

    @property
    def hierarchy(self) -> Hierarchy | None:
        """The hierarchy over its values, if the spec names one."""
        return self.domain.hierarchy if isinstance(self.domain, CategoricalDomain) else None


@dataclass(frozen=True)
class QuasiIdentifiers:
    """All quasi-identifiers of a table, in the spec's order: column number i of `encode` is `columns[i]`."""

    columns: tuple[QuasiIdentifier, ...]

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The domains, in order: what kernels take."""
        return tuple(column.domain for column in self.columns)


def domain_statistics(table: Microdata) -> QuasiIdentifiers:
    """The domain of every quasi-identifier over the rows that the missing-value policy publishes.

    Two jobs at most, which read different columns: one aggregate for the numeric ones (no shuffle of rows), one grouping of
    (attribute, value) for the categorical ones (one shuffle of distinct values; rows x attributes are hashed).

    Raises SpecError: a numeric column with a missing, an infinite or no value, an infinite span, or more than 18 digits; a
    categorical one with more than `MAX_CATEGORIES` values, or a value (or missing value) that is no leaf of its
    hierarchy; each names the column.
    """
    kinds = types(table.frame)
    numeric: list[str] = []
    categorical: list[str] = []
    for name, column in zip(table.quasi_identifiers, table.columns.quasi_identifiers, strict=True):
        (numeric if column.type == "numeric" else categorical).append(name)
    for name in numeric:
        check_coded(name, kinds[name])
    with explained("reading the domains of the quasi-identifiers"):
        bounds = numeric_bounds(table.published, numeric, kinds)
        values = categories(table.published, categorical, kinds)
    found = []
    for name, column in zip(table.quasi_identifiers, table.columns.quasi_identifiers, strict=True):
        if column.type == "numeric":
            low, high = bounds[name]
            found.append(QuasiIdentifier(name, kinds[name], NumericDomain(name, float(low), float(high)), low, high))
        else:
            found.append(QuasiIdentifier(name, kinds[name], _categorical(name, values[name], column.hierarchy)))
    return QuasiIdentifiers(tuple(found))


def encode(
    frame: DataFrame,
    quasi_identifiers: QuasiIdentifiers,
    sensitive: Mapping[str, Sequence[str | None]] | None = None,
    keep: Sequence[str] = (),
) -> DataFrame:
    """The records of `frame` as codes: q0, q1, ... per quasi-identifier, s0, s1, ... (int) per sensitive column, and the columns `keep`.

    sensitive : {column: its values as text in the order of their codes}, as `SensitiveCounts.values` has them

    One broadcast join per categorical or sensitive column; partitions and the order of rows stay. A value that is in no domain fails
    the task that meets it: the input changed since the domains were read.
    """
    kinds = types(frame)
    columns = [(f"q{i}", column) for i, column in enumerate(quasi_identifiers.columns)]
    started = {
        code: code_of(c.name, c.spark_type) if c.numeric else value_text(c.name, c.spark_type) for code, c in columns
    }
    dictionaries = {code: c.domain.values for code, c in columns if isinstance(c.domain, CategoricalDomain)}
    for i, (name, values) in enumerate((sensitive or {}).items()):
        started[f"s{i}"] = value_text(name, kinds[name])
        dictionaries[f"s{i}"] = tuple(values)
    kept = {f"kept_{i}": quoted(name) for i, name in enumerate(keep)}  # names of the input may be like ours
    coded = select(frame, started | kept)
    for code, known in dictionaries.items():
        pairs = small_table(frame, "text string, code bigint", [(text, i) for i, text in enumerate(known)])
        coded = coded.alias("r").join(pairs.alias("d"), F.expr(f"r.{code} <=> d.text"), "left")
        kind = "BIGINT" if code.startswith("q") else "INT"
        seen = f"CAST(CASE WHEN d.code IS NULL THEN raise_error('{CHANGED}') ELSE d.code END AS {kind})"
        coded = select(coded, {n: seen if n == code else f"r.{n}" for n in (*started, *kept)})
    return select(coded, {n: n for n in started} | dict(zip(keep, kept, strict=True)))


def box_columns(quasi_identifiers: QuasiIdentifiers) -> dict[str, str]:
    """{column of a box: Spark type}: qI_lo and qI_hi for a numeric quasi-identifier, qI_set for a categorical one."""
    found: dict[str, str] = {}
    for i, column in enumerate(quasi_identifiers.columns):
        if column.numeric:
            found |= dict.fromkeys((f"q{i}_lo", f"q{i}_hi"), code_type(column.spark_type))
        else:
            found[f"q{i}_set"] = "array<int>"
    return found


def box_schema(quasi_identifiers: QuasiIdentifiers, sensitive: int = 1, more: str = "") -> str:
    """DDL of what `decode` takes, for applyInPandas and mapInArrow: boxes, s0, ... for `sensitive` columns, and `more` DDL."""
    columns = box_columns(quasi_identifiers) | {f"s{i}": "int" for i in range(sensitive)}
    return ", ".join([*(f"{name} {kind}" for name, kind in columns.items()), *([more] if more else [])])


def decode(
    boxes: DataFrame,
    quasi_identifiers: QuasiIdentifiers,
    sensitive: Mapping[str, tuple[Sequence[str | None], str]],
    keep: Sequence[str] = (),
) -> DataFrame:
    """Boxes of codes as the published columns, in the original types, exactly.

    boxes     : the columns of `box_columns`, s0, s1, ... and those of `keep`; sets of distinct codes in any order
    sensitive : {column: (values as text in the order of their codes, Spark type)}

    Per numeric attribute A: A_min, A_max. Per categorical one: A, an array sorted as Spark sorts (a missing value last), and A_label when a
    hierarchy gives one (the lowest node above the set). Then the sensitive columns and `keep`. One broadcast join per sensitive
    column, and one pass through Arrow when an attribute is categorical; no shuffle.
    """
    frame, published = _with_sets(boxes, quasi_identifiers, [*(f"s{i}" for i in range(len(sensitive))), *keep]), {}
    for i, column in enumerate(quasi_identifiers.columns):
        if column.numeric:
            published[f"{column.name}_min"] = value_of(f"b.q{i}_lo", column.spark_type)
            published[f"{column.name}_max"] = value_of(f"b.q{i}_hi", column.spark_type)
        else:
            published[column.name] = f"array_sort({_typed_array(f'b.q{i}_set', column.spark_type)})"
            if column.hierarchy is not None:
                published[f"{column.name}_label"] = f"b.q{i}_label"
    frame = frame.alias("b")
    for i, (name, (values, kind)) in enumerate(sensitive.items()):
        pairs = small_table(boxes, "code int, text string", list(enumerate(values)))
        typed = select(pairs, {"code": "code", "value": typed_value("text", kind)}).hint("broadcast")
        frame = frame.join(typed.alias(f"v{i}"), F.expr(f"b.s{i} = v{i}.code"))
        published[name] = f"v{i}.value"
    return select(frame, published | {name: f"b.{quoted(name)}" for name in keep})


def mixed(frame: DataFrame, partitions: int, by: str | None = None) -> DataFrame:
    """`frame` dealt to `partitions` files, and sorted in each, by a function of what is published: by the long column `by` (a class) and a
    hash of the row, or by the hash alone. Neither the order nor the file of a row says anything more. One shuffle of all rows."""
    hashed = frame.withColumn("anonlib order", F.expr(row_hash(frame)))
    keys = [*([quoted(by)] if by is not None else []), quoted("anonlib order")]
    dealt = hashed.repartition(partitions, F.expr(keys[0]))
    return dealt.sortWithinPartitions(*[F.expr(key) for key in keys]).drop("anonlib order")


def numeric_bounds(frame: DataFrame, names: Sequence[str], kinds: Mapping[str, str]) -> dict[str, tuple[Any, Any]]:
    """{numeric column: (smallest, largest) code}. One job, no shuffle. Raises SpecError, see `domain_statistics`."""
    if not names:
        return {}
    columns: dict[str, str] = {}
    sums: dict[str, str] = {}
    for i, name in enumerate(names):
        columns |= {f"c{i}": code_of(name, kinds[name]), f"m{i}": is_missing(name, kinds[name])}
        sums |= {f"low{i}": f"min(c{i})", f"high{i}": f"max(IF(m{i}, NULL, c{i}))", f"gaps{i}": f"count_if(m{i})"}
    row = one_row(aggregate(select(frame, columns), [], sums | {"n": "count(1)"}))
    if not row["n"]:
        raise SpecError("input: the table is empty, or missing: drop leaves no row; there is nothing to publish")
    found = {}
    for i, name in enumerate(names):
        if row[f"gaps{i}"]:
            raise SpecError(
                f"column {name!r}: {row[f'gaps{i}']:,} rows have no value (null or NaN), and no interval can stand for a missing number; "
                "set missing: {quasi_identifiers: drop}, fill the gaps in the input, or declare the column type: categorical"
            )
        if kinds[name] in FLOATING and not np.isfinite([row[f"low{i}"], row[f"high{i}"]]).all():
            raise SpecError(
                f"column {name!r} holds an infinite value, which no interval can bound; mend it in the input"
            )
        if kinds[name] in FLOATING and not math.isfinite(row[f"high{i}"] - row[f"low{i}"]):
            raise SpecError(
                f"column {name!r} reaches from {row[f'low{i}']} to {row[f'high{i}']}, further than a double can tell; mend it in the input"
            )
        found[name] = (row[f"low{i}"], row[f"high{i}"])
    return found


def categories(frame: DataFrame, names: Sequence[str], kinds: Mapping[str, str]) -> dict[str, list[str | None]]:
    """{categorical column: its distinct values as text, None for a missing one}. One job. Raises SpecError, see `domain_statistics`."""
    if not names:
        return {}
    pairs = ", ".join(f"struct({i} AS which, {value_text(name, kinds[name])} AS text)" for i, name in enumerate(names))
    cells = select(select(frame, {"cell": f"explode(array({pairs}))"}), {"which": "cell.which", "text": "cell.text"})
    distinct = aggregate(cells, ["which", "text"], {"n": "count(1)"}).select("which", "text")
    limit = MAX_CATEGORIES * len(names) + 1
    found: dict[str, list[str | None]] = {name: [] for name in names}
    for row in distinct.limit(limit).collect():  # bounded
        found[names[row["which"]]].append(row["text"])
    widest = max(names, key=lambda name: len(found[name]))
    if len(found[widest]) > MAX_CATEGORIES:
        raise SpecError(
            f"column {widest!r} has more than {MAX_CATEGORIES:,} distinct values: that is an identifier or a measurement; coarsen it, "
            "declare it type: numeric, or name it under identifiers"
        )
    if not found[widest]:
        raise SpecError("input: the table is empty, or missing: drop leaves no row; there is nothing to publish")
    return found


def _categorical(name: str, found: list[str | None], hierarchy: Hierarchy | None) -> CategoricalDomain:
    texts = sorted(text for text in found if text is not None)
    if hierarchy is None:
        return CategoricalDomain(name, (*texts, *([None] if None in found else [])))
    if None in found:
        raise SpecError(
            f"column {name!r} has missing values, for which its hierarchy {hierarchy.source} has no leaf; set missing: "
            "{quasi_identifiers: drop}, or fill them in the input with a value that has one"
        )
    file = f"{hierarchy.source}: " if hierarchy.source else ""
    try:
        hierarchy.positions(texts)
    except SpecError as error:
        raise SpecError(f"column {name!r}: {file}{error}") from None
    return CategoricalDomain(name, hierarchy.labels[: hierarchy.leaves], hierarchy)


def _typed_array(texts: str, spark_type: str) -> str:
    return texts if spark_type == "string" else f"transform({texts}, e -> {typed_value('e', spark_type)})"


def _with_sets(boxes: DataFrame, quasi_identifiers: QuasiIdentifiers, more: Sequence[str]) -> DataFrame:
    """Sets of codes as arrays of text, with the labels of those under a hierarchy; the other columns pass untouched."""
    domains = {f"q{i}": d for i, d in enumerate(quasi_identifiers.domains) if isinstance(d, CategoricalDomain)}
    if not domains:
        return boxes
    names = [*box_columns(quasi_identifiers), *more]
    boxes = boxes.select(*[F.col(quoted(name)) for name in names])
    kinds = dict(boxes.dtypes) | {f"{q}_set": "array<string>" for q in domains}
    labels = [f"{q}_label" for q, domain in domains.items() if domain.hierarchy is not None]
    schema = ", ".join([*(f"{quoted(name)} {kinds[name]}" for name in names), *(f"{label} string" for label in labels)])
    return boxes.mapInArrow(_texts(domains, names), schema)


def _texts(
    domains: Mapping[str, CategoricalDomain], names: Sequence[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    values = {q: pa.array(domain.values, pa.string()) for q, domain in domains.items()}

    def map_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = {name: batch.column(i) for i, name in enumerate(names)}
            for q, domain in domains.items():
                sets = columns[f"{q}_set"]
                sizes = sets.value_lengths().to_numpy(zero_copy_only=False)
                codes = sets.flatten()
                if batch.num_rows and sizes.min() < 1:
                    raise ValueError(f"an empty set of values of {domain.name!r}")
                offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
                columns[f"{q}_set"] = pa.ListArray.from_arrays(pa.array(offsets), values[q].take(codes))
                if domain.hierarchy is not None:
                    columns[f"{q}_label"] = _labels(domain.hierarchy, codes.to_numpy(), offsets)
            yield pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    return map_batches


def _labels(hierarchy: Hierarchy, codes: Any, offsets: Any) -> pa.Array:
    """The label of the lowest node above each set; leaves are numbered in leaf order, so that the ends of a set decide."""
    if len(offsets) == 1:
        return pa.array([], pa.string())
    low, high = np.minimum.reduceat(codes, offsets[:-1]), np.maximum.reduceat(codes, offsets[:-1])
    return pa.array(hierarchy.labels, pa.string()).take(pa.array(hierarchy.cover(low, high)))
