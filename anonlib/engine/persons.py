"""Whose row each is, and one row for each person.

A person is known by 128 bits: HMAC-SHA-256 of the text of the person's columns, truncated. The key is in the task's function and never in
a query's plan, which Spark shows and logs; the name goes no further than the scan. Costs, for n rows of N persons:

    counted    one scan of the person's columns; one shuffle of at most n hashes of 16 bytes (one for each person of a task); one row
               reaches the driver
    one_each   one scan; one shuffle and sort of all rows, only where somebody has several

Nothing depends on the order of rows: of equal rows it does not matter which is kept, and different rows that the order does not tell
apart are drawn among by the key.
"""

import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

from anonlib.engine import tables, valid_text
from anonlib.engine.checksum import row_hash
from anonlib.engine.compound import compound_text
from anonlib.engine.failures import explained
from anonlib.engine.microdata import NUMERIC, UNBUCKETABLE, Microdata
from anonlib.engine.order import files
from anonlib.engine.relational import aggregate, one_row
from anonlib.engine.statistics import FLOATING
from anonlib.errors import SpecError
from anonlib.sql import quoted

PERSON, ORDER = "anonlib person", "anonlib order of rows"
HASH_BYTES = 16
_TIE, _PLACE = "anonlib tie", "anonlib place"
_COLUMN = "person"
"""What the column of a ledger's files is called."""


@dataclass(frozen=True)
class PersonCounts:
    """What the table holds. rows : all; nameless : rows without a person; persons : different ones; several : persons with more rows than
    one, and rows_of_several : how many rows these have."""

    rows: int
    nameless: int
    persons: int
    several: int
    rows_of_several: int

    @property
    def left_out(self) -> int:
        """Rows that are too many for one row a person."""
        return self.rows_of_several - self.several


@dataclass(frozen=True)
class Rows:
    """The table with whose row each is. Reads no data by itself.

    frame   : the columns to publish, then `ORDER` if there is an order, then the person's own columns, as the input has them
    publish : the columns to publish; person : {column: Spark type}
    key     : 32 bytes that persons are hashed under, and that ties are drawn by
    """

    frame: DataFrame
    publish: tuple[str, ...]
    person: dict[str, str]
    key: bytes

    @property
    def kinds(self) -> dict[str, str]:
        """{column: Spark type} of what says who a person is; whole numbers of any width are of one type, since their texts agree."""
        return {name: "whole number" if is_whole(kind) else kind for name, kind in self.person.items()}

    @property
    def nobody(self) -> str:
        """SQL: is the row nobody's? A person of several columns is nobody where one of them is missing."""
        return " OR ".join(f"{quoted(name)} IS NULL" for name in self.person)

    @property
    def named(self) -> DataFrame:
        """The rows that are somebody's."""
        return _without(self.frame, self.nobody)

    @property
    def hashed(self) -> DataFrame:
        """The columns to publish, `ORDER` if there is an order, and `PERSON`: binary of 16 bytes, null for nobody."""
        text = f"CASE WHEN {self.nobody} THEN NULL ELSE {compound_text(self.person)} END"
        kept = [*self.publish, *(name for name in self.frame.columns if name == ORDER)]
        columns = [F.col(quoted(name)) for name in kept]
        return self.frame.select(*columns, _keyed(self.key)(F.expr(text)).alias(PERSON))


def rows_of_persons(frame: DataFrame, table: Microdata, names: Sequence[str], order: str | None, key: bytes) -> Rows:
    """The rows of `frame`, the input that `table` was made from, with whose they are.

    names : the columns that say so, compared as Spark compares names; order : the column that orders a person's rows
    Raises SpecError for a column of a type that has no text of its own, or no order.
    """
    spelled = {name.lower(): name for name in frame.columns}
    types = tables.types(frame)
    person = {spelled[name.lower()]: types[spelled[name.lower()]] for name in names}
    for name, kind in person.items():
        if kind.startswith((*UNBUCKETABLE, *FLOATING)):
            raise SpecError(
                f"columns.person: {name!r} is of type {kind}, by which nobody is told from others for certain; cast it to a string or a "
                "whole number in the input"
            )
    if order is not None and order.lower() not in spelled:
        raise SpecError(f"persons.order: the table has no column {order!r}. It has: {', '.join(frame.columns)}")
    if order is not None and types[spelled[order.lower()]].startswith(UNBUCKETABLE):
        raise SpecError(
            f"persons.order: {order!r} is of type {types[spelled[order.lower()]]}, which has no order; choose another column"
        )
    publish = tuple(table.frame.columns)
    sorted_by = [] if order is None else [spelled[order.lower()]]
    checked = valid_text.project(frame, list(dict.fromkeys([*publish, *sorted_by, *person])))
    own = [F.col(quoted(name)) for name in (*publish, *person)]
    placed = [F.col(quoted(name)).alias(ORDER) for name in sorted_by]
    return Rows(checked.select(*own[: len(publish)], *placed, *own[len(publish) :]), publish, person, key)


def somebodys(hashed: DataFrame) -> DataFrame:
    """The rows of `Rows.hashed` that are somebody's."""
    return _without(hashed, f"{quoted(PERSON)} IS NULL")


def _without(frame: DataFrame, condition: str) -> DataFrame:
    """A narrow filter that stays where it is, as `Microdata.published` explains."""
    return frame.where(f"CASE WHEN {condition} THEN spark_partition_id() < 0 ELSE true END")


def counted(hashed: DataFrame) -> PersonCounts:
    """How many rows and persons `Rows.hashed` has."""
    groups = aggregate(hashed, [PERSON], {"n": "count(1)"})
    one = one_row(
        aggregate(
            groups.withColumn("named", F.expr(f"{quoted(PERSON)} IS NOT NULL")),
            [],
            {
                "rows": "sum(n)",
                "nameless": "sum(CASE WHEN named THEN 0L ELSE n END)",
                "persons": "count_if(named)",
                "several": "count_if(named AND n > 1)",
                "rows_of_several": "sum(CASE WHEN named AND n > 1 THEN n ELSE 0L END)",
            },
        )
    )
    return PersonCounts(**{name: int(number or 0) for name, number in one.items()})


def one_each(hashed: DataFrame, latest: bool, key: bytes) -> DataFrame:
    """One row for each person of `Rows.hashed`: the first by `ORDER`, with `latest` the last; without an `ORDER`, or where it ties, a
    draw among the person's different rows by `key`. The columns to publish, and `PERSON`."""
    content = [name for name in hashed.columns if name not in (PERSON, ORDER)]
    told = ", ".join(
        ["hex(" + quoted(PERSON) + ")", *(f"CAST({row_hash(hashed, content, salt)} AS STRING)" for salt in (0, 1))]
    )
    drawn = hashed.where(f"{quoted(PERSON)} IS NOT NULL").withColumn(
        _TIE, _keyed(key)(F.expr(f"concat_ws('|', {told})"))
    )
    window = Window.partitionBy(F.col(quoted(PERSON))).orderBy(*_placed(hashed, latest), F.col(quoted(_TIE)))
    numbered = drawn.withColumn(_PLACE, F.row_number().over(window))
    return numbered.where(f"{quoted(_PLACE)} = 1").drop(ORDER, _TIE, _PLACE)


def drawn_among(hashed: DataFrame, latest: bool) -> int:
    """Of how many persons `one_each` draws among different rows, since no `ORDER` tells which is first, or with `latest` last. One shuffle
    of all rows."""
    content = [name for name in hashed.columns if name not in (PERSON, ORDER)]
    by = _placed(hashed, latest) or [F.lit(0)]
    window = Window.partitionBy(F.col(quoted(PERSON))).orderBy(*by)
    first = hashed.withColumn(_PLACE, F.rank().over(window)).where(f"{quoted(_PLACE)} = 1")
    kinds = first.withColumn(_TIE, F.expr(row_hash(first, content, 0)))
    groups = aggregate(kinds, [PERSON], {"low": f"min({quoted(_TIE)})", "high": f"max({quoted(_TIE)})"})
    return tables.number(groups.where("low <> high"))


def _placed(hashed: DataFrame, latest: bool) -> list[Column]:
    """By what a person's rows are placed; nothing where there is no `ORDER`."""
    placed = F.col(quoted(ORDER))
    return [] if ORDER not in hashed.columns else [placed.desc_nulls_last() if latest else placed.asc_nulls_last()]


def without(rows: DataFrame, known: DataFrame) -> DataFrame:
    """The rows whose `PERSON` is not among `known`. A shuffle of all rows by their person, unless there are few of either side."""
    new = rows.join(known.withColumnRenamed(_COLUMN, PERSON), PERSON, "left_anti")
    return tables.project(new, rows.columns)


def among(rows: DataFrame, known: DataFrame) -> DataFrame:
    """The rows whose `PERSON` is among `known`. Costs as `without`."""
    theirs = rows.join(known.withColumnRenamed(_COLUMN, PERSON), PERSON, "left_semi")
    return tables.project(theirs, rows.columns)


def common(entered: DataFrame, others: DataFrame) -> DataFrame:
    """The persons of a ledger's files who stand in others as well. A shuffle of hashes."""
    return entered.join(others, _COLUMN, "left_semi")


def absent(entered: DataFrame, hashed: DataFrame) -> DataFrame:
    """The persons of a ledger's files who have no row in `Rows.hashed`. A shuffle of hashes."""
    return entered.join(hashed.select(F.col(quoted(PERSON)).alias(_COLUMN)), _COLUMN, "left_anti")


def write(rows: DataFrame, path: str, number: int) -> None:
    """Write the persons of `rows`, which are about `number`, into a new folder: one column of 16 bytes, in an order of its own, so that
    neither file nor place tells of the input's. One shuffle of hashes."""
    hashes = rows.select(F.col(quoted(PERSON)).alias(_COLUMN))
    dealt = hashes.repartition(files(number), F.col(_COLUMN)).sortWithinPartitions(_COLUMN)
    tables.write(dealt, path, "parquet", "entering persons in the ledger")


def read(spark: SparkSession, folders: Sequence[str]) -> DataFrame:
    """The persons that stand in these folders; asks no file for its columns."""
    with explained("reading the ledger"):
        return spark.read.schema(f"{_COLUMN} BINARY").parquet(*map(tables.literal_path, folders))


def is_whole(kind: str) -> bool:
    """Whether a Spark type has whole numbers alone, whose text is the same in each such type."""
    return kind in NUMERIC[:4] or (kind.startswith("decimal(") and kind.endswith(",0)"))


def _keyed(key: bytes) -> Callable[..., Any]:
    """Text -> HMAC-SHA-256 under `key`, truncated; null -> null. About a microsecond a row."""

    def hashes(texts: pd.Series) -> pd.Series:
        return pd.Series([_hash(key, text) for text in texts], dtype=object)

    udf: Any = pandas_udf
    # non-deterministic, so that no optimizer rule evaluates it twice
    keyed: Callable[..., Any] = udf(hashes, returnType="binary").asNondeterministic()
    return keyed


def _hash(key: bytes, text: Any) -> bytes | None:
    return hmac.digest(key, text.encode("utf-8"), "sha256")[:HASH_BYTES] if isinstance(text, str) else None
