"""Records as codes, and what the driver may count and look at of them.

    sa = sensitive_statistics(table.frame, table.sensitive, table.keep, table.refuse).counts
    coded = encode(table.published, qi, {table.sensitive: sa.values})       # qi: `anonlib.engine.domains.domain_statistics(table)`
    # coded: q0, q1, ... bigint (double for floating columns), one per quasi-identifier in order; s0, s1, ... int, the sensitive codes

Whatever reaches the driver is bounded by a limit that its caller gives; more is `TooMany`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Codes, Int64Array
from anonlib.domains import CategoricalDomain
from anonlib.engine.domains import QuasiIdentifiers
from anonlib.engine.failures import explained
from anonlib.engine.numeric_codes import code_of
from anonlib.engine.relational import aggregate, one_row, select
from anonlib.engine.statistics import value_text
from anonlib.engine.tables import types
from anonlib.engine.values import is_short, position_of, small_table
from anonlib.errors import AnonlibError
from anonlib.sql import quoted

CHANGED = (
    "anonlib refuses (AnonlibError): a record has a value that is in none of the domains read before; the input changed between the two "
    "passes (publish from a table that nobody writes to, e.g. a snapshot), or this is not the table that the release was made from"
)


class TooMany(AnonlibError):
    """More rows than the driver takes. beyond : how many of what, in words."""

    def __init__(self, limit: int, what: str) -> None:
        self.beyond = f"more than {limit:,} {what}"
        super().__init__(f"there are {self.beyond}, which is too much for the driver")


def encode(
    frame: DataFrame,
    quasi_identifiers: QuasiIdentifiers,
    sensitive: Mapping[str, Sequence[str | None]] | None = None,
    keep: Sequence[str] = (),
) -> DataFrame:
    """The records of `frame` as codes: q0, q1, ... per quasi-identifier, s0, s1, ... (int) per sensitive column, and the columns `keep`.

    sensitive : {column: its values as text in the order of their codes}, as `SensitiveCounts.values` has them

    One broadcast join per categorical or sensitive column whose values are no short list; partitions and the order of rows stay. A value
    that is in no domain fails the task that meets it: the input changed since the domains were read.
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
    short = {code: known for code, known in dictionaries.items() if is_short(known)}
    if short:
        places = {code: _known_code(position_of(code, known), code) for code, known in short.items()}
        coded = select(coded, {n: places.get(n, n) for n in (*started, *kept)})
    for code, known in dictionaries.items():
        if code in short:
            continue
        pairs = small_table(frame, "text string, code bigint", [(text, i) for i, text in enumerate(known)])
        coded = coded.alias("r").join(pairs.alias("d"), F.expr(f"r.{code} <=> d.text"), "left")
        code_sql = _known_code("d.code", code)
        coded = select(coded, {n: code_sql if n == code else f"r.{n}" for n in (*started, *kept)})
    return select(coded, {n: n for n in started} | dict(zip(keep, kept, strict=True)))


def within(
    frame: DataFrame, quasi_identifiers: QuasiIdentifiers, sensitive: Mapping[str, Sequence[str | None]]
) -> DataFrame:
    """The records that `encode` has codes for: those with all values in the domains. A broadcast join a column of no short list."""
    kinds, kept = types(frame), frame
    lists = {c.name: c.domain.values for c in quasi_identifiers.columns if isinstance(c.domain, CategoricalDomain)}
    for column in quasi_identifiers.columns:
        if column.numeric and column.name in kinds:
            code = code_of(column.name, column.spark_type)
            kept = kept.where(f"coalesce({code} BETWEEN {column.low!r} AND {column.high!r}, false)")
    for name, known in (lists | {name: tuple(values) for name, values in sensitive.items()}).items():
        if name not in kinds:
            continue  # whoever reads on says which column is missing
        text = value_text(name, kinds[name])
        if is_short(known):
            kept = kept.where(f"{position_of(text, known)} IS NOT NULL")
            continue
        pairs = small_table(frame, "text string", [(value,) for value in known])
        kept = kept.join(pairs, F.expr(f"{text} <=> text"), "left_semi")
    return kept


def _known_code(place: str, code: str) -> str:
    """SQL: the code at `place`, which fails the task where there is none."""
    kind = "BIGINT" if code.startswith("q") else "INT"
    return f"CAST(coalesce({place}, raise_error('{CHANGED}')) AS {kind})"


def code_columns(coded: DataFrame) -> list[str]:
    """The columns of quasi-identifiers' codes: q0, q1, ... as they stand in `coded`."""
    return [name for name in coded.columns if re.fullmatch("q[0-9]+", name)]


def sensitive_columns(coded: DataFrame) -> list[str]:
    """The columns of sensitive values' codes: s0, s1, ... as they stand in `coded`."""
    return [name for name in coded.columns if re.fullmatch("s[0-9]+", name)]


def one_in(coded: DataFrame, n: int, most: int) -> int:
    """In how many slots the combinations of quasi-identifiers of n records fall by hash, so that one has about `most` of them.

    What counts is how many combinations there are, not records: a billion records of ten thousand combinations need no slots. One pass
    without a shuffle, and none where n is at most `most`.
    """
    if n <= most:
        return 1
    distinct = f"approx_count_distinct(xxhash64({', '.join(code_columns(coded))}))"
    with explained("counting combinations of quasi-identifiers"):
        return max(1, -(-int(one_row(aggregate(coded, [], {"d": distinct}))["d"]) // most))


def combinations(coded: DataFrame, limit: int, one_in: int = 1) -> tuple[list[Codes], Int64Array]:
    """(code columns of the distinct combinations of quasi-identifiers, how many records have each).

    one_in : take only the combinations whose hash falls in one of so many slots. One shuffle of distinct combinations; at most `limit`
    reach the driver, TooMany if there are more.
    """
    names = code_columns(coded)
    counted = _counted(coded, names)
    if one_in > 1:
        counted = counted.where(F.expr(f"pmod(xxhash64({', '.join(names)}), {one_in}) = 0"))
    table = bounded(counted, limit, "combinations of quasi-identifiers")
    return [table[name].to_numpy() for name in names], table["records"].to_numpy(np.int64)


def combinations_with_values(coded: DataFrame, limit: int) -> tuple[list[Codes], Int64Array, Int64Array]:
    """(code columns, first sensitive codes, records) of the distinct combinations of both, ascending. As `combinations`."""
    names = [*code_columns(coded), "s0"]
    table = bounded(_counted(coded, names), limit, "combinations of quasi-identifiers and sensitive values")
    table = table.sort_values(names, ignore_index=True)
    columns = [table[name].to_numpy() for name in names[:-1]]
    return columns, table["s0"].to_numpy(np.int64), table["records"].to_numpy(np.int64)


def joint_values(coded: DataFrame, limit: int) -> tuple[tuple[Int64Array, ...], Int64Array]:
    """(codes of each sensitive column in every combination that occurs, ascending; how many records have it), (M,) int64 each.

    One shuffle of counts; at most `limit` combinations reach the driver, TooMany if there are more.
    """
    names = sensitive_columns(coded)
    table = bounded(_counted(coded, names), limit, "combinations of sensitive values")
    table = table.sort_values(names, ignore_index=True)
    return tuple(table[name].to_numpy(np.int64) for name in names), table["records"].to_numpy(np.int64)


def sampled(coded: DataFrame, at_most: int, of: int) -> tuple[list[Codes], list[Int64Array]]:
    """(code columns, sensitive columns) of about `at_most` of a table's `of` records, never more, on the driver. One scan."""
    share = min(1.0, at_most / max(1, of))
    some = coded if share == 1 else coded.where(F.rand(0) < share)
    with explained("reading a sample"):
        table: pd.DataFrame = some.limit(at_most).toPandas()  # bounded
    columns = [table[name].to_numpy() for name in code_columns(coded)]
    return columns, [table[name].to_numpy(np.int64) for name in sensitive_columns(coded)]


def bounded(frame: DataFrame, limit: int, what: str) -> pd.DataFrame:
    """At most `limit` rows on the driver; TooMany, with `what` they are, if there are more."""
    with explained(f"counting {what}"):
        table: pd.DataFrame = frame.limit(limit + 1).toPandas()  # bounded by `limit`
    if len(table) > limit:
        raise TooMany(limit, what)
    return table


def numbered(columns: Sequence[Codes]) -> Int64Array:
    """(n,) int64: equal rows of codes have equal numbers, without a hole, in order of the codes."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        codes = np.unique(column, return_inverse=True)[1].astype(np.int64)
        key = np.unique(key * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].astype(np.int64)
    return key


def _counted(coded: DataFrame, names: Sequence[str]) -> DataFrame:
    return coded.groupBy(*names).agg(F.count(F.lit(1)).alias("records"))
