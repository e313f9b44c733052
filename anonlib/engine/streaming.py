"""Structured Streaming for a kernel that keeps a state a shard: records as codes, the stateful operator, and the query itself.

    coded   : shard int, fate tinyint, due (bigint or double), s0 int, q0, q1, ...          one row a record, whatever becomes of it
    output  : what the kernel returns, by a schema of its own

`applyInPandasWithState` is the one operator that Spark 3.5 and 4.x both have. A micro-batch that is played again sees the state it saw
before, so a kernel without chance of its own gives the same rows. Connect has the operator and `foreachBatch` from 4.0 on; what runs in
`foreachBatch` there runs on the server, where files that the driver writes are not: the query is refused under Connect.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from anonlib.domains import CategoricalDomain
from anonlib.engine import valid_text
from anonlib.engine.domains import QuasiIdentifiers
from anonlib.engine.failures import TaskRefusal, explained, refusal_text
from anonlib.engine.microdata import Microdata
from anonlib.engine.numeric_codes import check_coded, code_of, code_type
from anonlib.engine.relational import aggregate, rows, select, with_columns
from anonlib.engine.session import set_meanwhile
from anonlib.engine.statistics import is_missing, value_text
from anonlib.engine.tables import types
from anonlib.engine.values import is_short, position_of, small_table
from anonlib.errors import AnonlibError, SpecError
from anonlib.spec.stream import MOST_SHARDS
from anonlib.sql import literal, quoted

Play = Callable[[int, bytes | None, pd.DataFrame], tuple[bytes, dict[str, Any]]]
"""(shard, its state or None at first, what has arrived of it: the columns of `coded`) -> (state, columns of the output); pickled."""
Handle = Callable[[DataFrame, int], None]
"""(output of a micro-batch, its number): called once for each, and again for one that was interrupted."""

TO_PUBLISH, MISSING, OUTSIDE, FLUSH = 0, 1, 2, 3
"""What becomes of a row of `coded`: it is published, left out by the policy on missing values, or for a value outside the domains; the
last is no record but the word that the stream ends here."""
_ORDER = "anonlib due"


@dataclass(frozen=True)
class Coding:
    """How records become codes.

    values : of the sensitive column, by code; order, shard : columns as the table spells them, or None
    outside : "error" or "drop", what becomes of a value outside the domains
    """

    quasi_identifiers: QuasiIdentifiers
    values: tuple[str | None, ...]
    order: str | None
    shard: str | None
    outside: str

    @property
    def shards(self) -> int:
        """How many shards there are: 1 without a column for them."""
        return len(self.shard_values)

    @property
    def shard_values(self) -> tuple[str | None, ...]:
        """The values of the shard's column by the shard's number; one empty text without a column."""
        return ("",) if self.shard is None else tuple(self._of_shard.values)

    @property
    def _of_shard(self) -> CategoricalDomain:
        domain = next(c.domain for c in self.quasi_identifiers.columns if c.name == self.shard)
        assert isinstance(domain, CategoricalDomain)
        return domain


def check_order(column: str, kind: str) -> None:
    """Raises SpecError for a column that cannot say when a record arrived."""
    with_sentence = f"stream.order: {column!r} is of type {kind}; what says when a record arrived is a number, a date or a timestamp"
    try:
        check_coded(column, kind)
    except SpecError:
        raise SpecError(with_sentence) from None


def coded(frame: DataFrame, table: Microdata, coding: Coding) -> DataFrame:
    """The records of a stream as codes; see the module. frame : with all columns; table : the same frame, checked. No shuffle."""
    kinds = types(frame)
    names = [*table.quasi_identifiers, table.sensitive]
    due = "0L" if coding.order is None else code_of(coding.order, kinds[coding.order])
    with_due = with_columns(frame, {_ORDER: due})
    records = valid_text.project(with_due, [*names, _ORDER])
    raw: dict[str, str] = {}
    lists: dict[str, Sequence[str | None]] = {}
    ends: dict[str, tuple[Any, Any]] = {}
    for i, column in enumerate(coding.quasi_identifiers.columns):
        if isinstance(column.domain, CategoricalDomain):
            raw[f"q{i}"], lists[f"q{i}"] = value_text(column.name, column.spark_type), column.domain.values
        else:
            raw[f"q{i}"] = code_of(column.name, column.spark_type)
            ends[f"q{i}"] = (column.low, column.high)
    raw["s0"], lists["s0"] = value_text(table.sensitive, kinds[table.sensitive]), coding.values
    gaps = {f"gap{i}": is_missing(name, kinds[name]) for i, name in enumerate(names)}
    started = select(records, {**raw, **gaps, "due": quoted(_ORDER), "dropped": _dropped(table)})
    placed = _places(started, lists)
    inside = {code: f"{code} IS NOT NULL" for code in lists}
    inside |= {code: f"coalesce({code} BETWEEN {low!r} AND {high!r}, false)" for code, (low, high) in ends.items()}
    named = dict(zip([*(f"q{i}" for i in range(len(names) - 1)), "s0"], names, strict=True))
    fate = _fate(table, coding, named, inside, names)
    shard = (
        "0" if coding.shard is None else f"CAST(coalesce(q{table.quasi_identifiers.index(coding.shard)}, 0L) AS INT)"
    )
    # Spark compares the key of a state with that of the run before, whether it may be null too, which would follow from which of the
    # sources has anything new: so it always may, as far as the optimizer can see
    shard = f"IF(spark_partition_id() < 0, CAST(NULL AS INT), {shard})"
    kinds_of = code_kinds(coding)
    return select(
        placed,
        {"shard": shard, "fate": f"CAST({fate} AS TINYINT)", "due": f"CAST(due AS {_due_type(kinds, coding.order)})"}
        | {code: f"coalesce(CAST({code} AS {kind}), CAST(0 AS {kind}))" for code, kind in kinds_of.items()},
    )


def code_kinds(coding: Coding) -> dict[str, str]:
    """{code column: Spark type} of `coded`, s0 first."""
    columns = {"s0": "int"}
    for i, column in enumerate(coding.quasi_identifiers.columns):
        columns[f"q{i}"] = code_type(column.spark_type) if column.numeric else "bigint"
    return columns


def _due_type(kinds: Mapping[str, str], order: str | None) -> str:
    return "bigint" if order is None else code_type(kinds[order])


def _dropped(table: Microdata) -> str:
    return "false" if table.keep is None else f"NOT ({table.keep})"


def _places(frame: DataFrame, lists: Mapping[str, Sequence[str | None]]) -> DataFrame:
    """Texts of the columns `lists` as places in their lists, null for none; long lists are joined, by broadcast."""
    others = [name for name in frame.columns if name not in lists]
    short = {code: position_of(code, known) for code, known in lists.items() if is_short(known)}
    placed = select(frame, {name: name for name in others} | {code: short.get(code, code) for code in lists})
    for code, known in lists.items():
        if code in short:
            continue
        pairs = small_table(frame, "text string, place bigint", [(text, i) for i, text in enumerate(known)])
        joined = placed.alias("r").join(pairs.alias("d"), F.expr(f"r.{code} <=> d.text"), "left")
        placed = select(joined, {name: "d.place" if name == code else f"r.{name}" for name in placed.columns})
    return placed


def _fate(
    table: Microdata, coding: Coding, named: Mapping[str, str], inside: Mapping[str, str], names: Sequence[str]
) -> str:
    """SQL: what becomes of a record, or the sentence that stops the stream."""
    cases = []
    if coding.order is not None:
        sentence = f"column {coding.order!r}: a record has no value, so that nobody knows when it arrived; mend it in the input"
        cases.append(f"WHEN due IS NULL THEN {_refused(sentence)}")
    for name in table.refuse:
        part = "sensitive" if name == table.sensitive else "quasi_identifiers"
        sentence = (
            f"column {name!r}: a record has no value (null or NaN) and missing.{part} is error; set missing: {{{part}: drop}}, or mend "
            "the data"
        )
        cases.append(f"WHEN gap{names.index(name)} THEN {_refused(sentence)}")
    cases.append(f"WHEN dropped THEN {MISSING}")
    for code, condition in inside.items():
        sentence = (
            f"column {named[code]!r}: a record has a value outside the domain that stream.domains (or the hierarchy) tells; mend it in the "
            "input, or set stream: {outside: drop}, and such records are left out and counted. A wider domain is another stream"
        )
        then = str(OUTSIDE) if coding.outside == "drop" else _refused(sentence)
        cases.append(f"WHEN NOT ({condition}) THEN {then}")
    return f"CASE {' '.join(cases)} ELSE {TO_PUBLISH} END"


def _refused(sentence: str) -> str:
    return f"CAST(raise_error({literal(refusal_text(sentence, SpecError))}) AS INT)"


def fates(records: DataFrame) -> dict[tuple[int, int], int]:
    """{(shard, fate): how many records of `coded`} of a table. One scan."""
    with explained("counting what is there"):
        counted = rows(aggregate(records, ["shard", "fate"], {"records": "count(1)"}), 4 * MOST_SHARDS)
    return {(row["shard"], row["fate"]): row["records"] for row in counted}


def newest(records: DataFrame, shard: int, at_most: int) -> pd.DataFrame:
    """The records of `coded` of a table and a shard that are to be published and arrived last, as they arrived; ties in any order.

    At most `at_most` on the driver. One scan.
    """
    chosen = records.where((F.col("fate") == TO_PUBLISH) & (F.col("shard") == shard))
    with explained("reading a sample"):
        sample: pd.DataFrame = chosen.orderBy(F.col("due").desc(), F.rand(0)).limit(at_most).toPandas()  # bounded
    return sample.sort_values("due", kind="stable", ignore_index=True)


def flushes(spark: SparkSession, path: str, coding: Coding, like: DataFrame) -> DataFrame:
    """The stream of words that the stream ends: a row for each shard, wherever `tell_flush` has left one. Columns as `like`."""
    names = {name: f"CAST({FLUSH if name == 'fate' else 0} AS {kind})" for name, kind in types(like).items()}
    told = spark.readStream.schema("shard int").format("parquet").load(path)
    return select(told, names | {"shard": "shard"})


def tell_flush(spark: SparkSession, path: str, shards: int) -> None:
    """Leave the word for all shards."""
    with explained("ending the stream"):
        spark.range(shards).select(F.col("id").cast("int").alias("shard")).coalesce(1).write.mode("append").parquet(
            path
        )


def with_state(records: DataFrame, play: Play, schema: str) -> DataFrame:
    """`play` on what has arrived of each shard, with the shard's state. One shuffle of the codes; a task holds a shard's micro-batch."""

    def task(key: Any, groups: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        arrived = pd.concat(list(groups), ignore_index=True)
        before = bytes(state.get[0]) if state.exists else None
        try:
            after, columns = play(int(key[0]), before, arrived)
        except AnonlibError as error:
            raise TaskRefusal(str(error), type(error)) from error
        state.update((after,))
        yield pd.DataFrame(columns)

    grouped = records.groupBy("shard")
    return grouped.applyInPandasWithState(task, schema, "state binary", "append", GroupStateTimeout.NoTimeout)


_STOPPED = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling a batch's handler: java.lang.InterruptedException"
)
"""What Spark takes for the end of a batch by `stop` (its `PROXY_ERROR`, a pattern that overflows the stack on the long text of the true
error, so that a stop ended in a page of Java frames)."""
_PLAN = "=== Streaming Query ==="
"""Where Spark's report of a failed query goes on with its plan."""
SETTINGS = {
    # versions of the state that are kept: what has been shown needs none, and each holds raw records
    "spark.sql.streaming.minBatchesToRetain": "3",
}


def run_query(
    output: DataFrame, checkpoint: str, handle: Handle, shards: int, once: bool, trigger: str, doing: str
) -> None:
    """Run the query until all that has arrived is handled (`once`), or until it is stopped. What `handle` raises is raised here."""
    spark = output.sparkSession
    failures: list[BaseException] = []
    stopping = threading.Event()

    def guarded(batch: DataFrame, number: int) -> None:
        try:
            handle(batch, number)
        except BaseException as error:
            failures.append(error)
            raise RuntimeError(_STOPPED if stopping.is_set() else type(error).__name__) from None

    partitions = min(shards, int(spark.conf.get("spark.sql.shuffle.partitions") or 200))
    settings = {**SETTINGS, "spark.sql.shuffle.partitions": str(max(1, partitions))}
    with explained(doing):
        writer = output.writeStream.outputMode("append").option("checkpointLocation", checkpoint).foreachBatch(guarded)
        writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=trigger)
        with set_meanwhile(spark, settings):
            query = writer.start()
        try:
            with _quiet_bridge():
                _wait(query)
        except Exception as error:
            if failures:
                raise failures[0] from None
            said = str(error).partition(_PLAN)[0]  # in the plan stand the sentences of all refusals, which are no news
            raise PySparkException(message=said) from None
        finally:
            stopping.set()
            with suppress(Exception):
                query.stop()


def _wait(query: StreamingQuery) -> None:
    """Return when the query has ended, raise what it failed of. Ctrl-C strikes here, and not in the bridge to Java, which would tell it as
    an error and drop the connection.
    """
    ends: list[Exception | None] = []

    def wait() -> None:
        try:
            query.awaitTermination()
            ends.append(None)
        except Exception as error:
            ends.append(error)

    waiting = threading.Thread(target=wait, name="a stream's end", daemon=True)
    waiting.start()
    waiting.join()
    if (error := ends[0]) is not None:
        raise error


@contextmanager
def _quiet_bridge() -> Iterator[None]:
    """What `handle` raises is raised to the caller; the bridge to Java would write its whole trace to standard error as well."""
    bridge = logging.getLogger("py4j")
    before = bridge.level
    bridge.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        bridge.setLevel(before)


def evaluated(batch: DataFrame) -> None:
    """Compute a micro-batch and keep nothing of it but the state: what was shown before is not shown again."""
    with explained("playing a batch again"):
        batch.write.format("noop").mode("overwrite").save()


def is_connect(spark: SparkSession) -> bool:
    """Whether the session is a Spark Connect client."""
    return "connect" in type(spark).__module__
