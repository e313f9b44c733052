"""Boxes of codes as published columns.

    def class_of_all(columns, sensitive, nodes, partition):         # a kernel: codes in, boxes out, here one class a partition
        n = len(columns[0])
        return {"q0_lo": np.full(n, columns[0].min()), "q0_hi": np.full(n, columns[0].max()),    # a numeric quasi-identifier
                "q1_set": [np.unique(columns[1]).astype(np.int32)] * n,                          # a categorical one
                "s0": sensitive[0], "ec_id": np.full(n, partition)}

    boxed = over_partitions(located, class_of_all, box_schema(qi, more="ec_id bigint"), key, purpose)
    frame = decode(boxed, qi, {table.sensitive: (sa.values, kind)}, keep=("ec_id",))
    # frame: age_min, age_max (age's own type), country array<country's type> sorted, country_label string, occupation, ec_id
    frame = arranged(frame, number=8, by="ec_id")                    # rows and files in an order that says nothing
    stage(MICRODATA, frame)                                          # names and roles: anonlib.release.generalized

Cost of `decode`: a broadcast join a sensitive column of many values, and one pass through Arrow where an attribute is categorical. No
shuffle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Codes, Int32Array
from anonlib.domains import CategoricalDomain
from anonlib.engine.domains import QuasiIdentifier, QuasiIdentifiers
from anonlib.engine.numeric_codes import WHOLE, code_type, value_of
from anonlib.engine.relational import select
from anonlib.engine.statistics import typed_value
from anonlib.engine.values import is_short, small_table, text_at
from anonlib.hierarchy import Hierarchy
from anonlib.sql import quoted


def box_types(quasi_identifiers: QuasiIdentifiers) -> dict[str, str]:
    """{column of a box: Spark type}: qI_lo and qI_hi for a numeric quasi-identifier, qI_set for a categorical one."""
    kinds: dict[str, str] = {}
    for i, column in enumerate(quasi_identifiers.columns):
        if column.numeric:
            kinds |= dict.fromkeys((f"q{i}_lo", f"q{i}_hi"), code_type(column.spark_type))
        else:
            kinds[f"q{i}_set"] = "array<int>"
    return kinds


def box_schema(quasi_identifiers: QuasiIdentifiers, sensitive: int = 1, more: str = "") -> str:
    """DDL of what `decode` takes, for applyInPandas and mapInArrow: boxes, s0, ... for `sensitive` columns, and `more` DDL."""
    columns = box_types(quasi_identifiers) | {f"s{i}": "int" for i in range(sensitive)}
    return ", ".join([*(f"{name} {kind}" for name, kind in columns.items()), *([more] if more else [])])


def decode(
    boxes: DataFrame,
    quasi_identifiers: QuasiIdentifiers,
    sensitive: Mapping[str, tuple[Sequence[str | None], str]],
    keep: Sequence[str] = (),
) -> DataFrame:
    """Boxes of codes as the published columns, in the original types, exactly.

    boxes     : the columns of `box_types`, s0, s1, ... and those of `keep`; sets of distinct codes in any order
    sensitive : {column: (values as text in the order of their codes, Spark type)}

    Per numeric attribute A: A_min, A_max. Per categorical one: A, an array sorted as Spark sorts (a missing value last), and A_label when a
    hierarchy gives one (the lowest node above the set). Then the sensitive columns and `keep`. One broadcast join per sensitive
    column whose values are no short list, and one pass through Arrow when an attribute is categorical; no shuffle.
    """
    frame, published = _with_sets(boxes, quasi_identifiers, [*(f"s{i}" for i in range(len(sensitive))), *keep]), {}
    for i, column in enumerate(quasi_identifiers.columns):
        if column.numeric:
            published[f"{column.name}_min"] = value_of(f"b.q{i}_lo", column.spark_type)
            published[f"{column.name}_max"] = value_of(f"b.q{i}_hi", column.spark_type)
        else:
            published[column.name] = _typed_set(f"b.q{i}_set", column)
            if column.hierarchy is not None:
                published[f"{column.name}_label"] = f"b.q{i}_label"
    frame = frame.alias("b")
    for i, (name, (values, kind)) in enumerate(sensitive.items()):
        if is_short(values):
            published[name] = text_at(f"b.s{i}", values, kind)
            continue
        pairs = small_table(boxes, "code int, text string", list(enumerate(values)))
        typed = select(pairs, {"code": "code", "value": typed_value("text", kind)}).hint("broadcast")
        frame = frame.join(typed.alias(f"v{i}"), F.expr(f"b.s{i} = v{i}.code"))
        published[name] = f"v{i}.value"
    return select(frame, published | {name: f"b.{quoted(name)}" for name in keep})


def _typed_set(values: str, column: QuasiIdentifier) -> str:
    """SQL: a set as `_with_sets` gives it in the column's own type, sorted, a missing value last.

    `array_sort` compares by a function that Spark interprets, ten times slower than `sort_array`, which puts missing values first.
    """
    assert isinstance(column.domain, CategoricalDomain)
    typed = values if column.spark_type == "string" else f"CAST({values} AS ARRAY<{column.spark_type}>)"
    return f"{'array_sort' if None in column.domain.values else 'sort_array'}({typed})"


def _with_sets(boxes: DataFrame, quasi_identifiers: QuasiIdentifiers, more: Sequence[str]) -> DataFrame:
    """Sets of codes as arrays of text, of bigint where values are whole numbers, with the labels of those under a hierarchy; the other
    columns pass untouched."""
    domains = {f"q{i}": d for i, d in enumerate(quasi_identifiers.domains) if isinstance(d, CategoricalDomain)}
    if not domains:
        return boxes
    values = {q: _values(domain, quasi_identifiers.columns[int(q[1:])].spark_type) for q, domain in domains.items()}
    names = [*box_types(quasi_identifiers), *more]
    boxes = boxes.select(*[F.col(quoted(name)) for name in names])
    kinds = dict(boxes.dtypes) | {f"{q}_set": _ARRAYS[each.type] for q, each in values.items()}
    labels = [f"{q}_label" for q, domain in domains.items() if domain.hierarchy is not None]
    schema = ", ".join([*(f"{quoted(name)} {kinds[name]}" for name in names), *(f"{label} string" for label in labels)])
    return boxes.mapInArrow(_texts(domains, values, names), schema)


_WHOLE = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_ARRAYS = {pa.string(): "array<string>", pa.int64(): "array<bigint>"}


def _values(domain: CategoricalDomain, spark_type: str) -> pa.Array:
    """The values of a domain in the order of their codes: whole numbers as such, which cost Spark a tenth of what texts cost it, unless a
    hierarchy has leaves that are none."""
    whole = spark_type in WHOLE and all(text is None or _WHOLE.fullmatch(text) for text in domain.values)
    if not whole:
        return pa.array(domain.values, pa.string())
    return pa.array([None if text is None else int(text) for text in domain.values], pa.int64())


def _texts(
    domains: Mapping[str, CategoricalDomain], values: Mapping[str, pa.Array], names: Sequence[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
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


def _labels(hierarchy: Hierarchy, codes: Codes, offsets: Int32Array) -> pa.Array:
    """The label of the lowest node above each set; leaves are numbered in leaf order, so that the ends of a set decide."""
    if len(offsets) == 1:
        return pa.array([], pa.string())
    low, high = np.minimum.reduceat(codes, offsets[:-1]), np.maximum.reduceat(codes, offsets[:-1])
    return pa.array(hierarchy.labels, pa.string()).take(pa.array(hierarchy.cover(low, high)))
