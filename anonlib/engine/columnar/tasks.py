"""Python tasks that Spark schedules, on nothing but a number each, and where they may work on local files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from anonlib.engine.columnar.files import CODECS
from anonlib.errors import AnonlibError

_MORE_THAN_FILES = (
    "parquet.crypto.factory.class",
    "spark.hadoop.parquet.crypto.factory.class",
    "spark.sql.extensions",
)
_SAID = pa.schema([("id", pa.int64()), ("said", pa.int64())])


def said_by_each(spark: SparkSession, ids: Sequence[int], task: Callable[[int], int]) -> dict[int, int]:
    """{id: what `task` says of it}, of a Python task for each of `ids`, in their order. One job."""

    def tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            mine = [ids[k] for k in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_pydict({"id": mine, "said": [task(k) for k in mine]}, schema=_SAID)

    numbers = spark.range(0, len(ids), 1, max(1, len(ids)))
    said = numbers.mapInArrow(tasks, "id long, said long").collect()  # bounded: one row for each partition or file
    return dict(sorted((row["id"], row["said"]) for row in said))


def on_one_machine(spark: SparkSession) -> bool:
    """Whether driver and tasks are one machine's, so that a local path is the same for all."""
    return not is_remote() and re.fullmatch(r"local(\[.*\])?", spark.conf.get("spark.master", "") or "") is not None


@contextmanager
def on_disk(doing: str) -> Iterator[None]:
    """A block that makes and clears folders, whose failures are told in one sentence."""
    try:
        yield
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        raise AnonlibError(
            f"{doing}: the disk failed at{where} ({error.strerror or error}); mend that, and run again"
        ) from None


def codec_of(spark: SparkSession) -> str | None:
    """How Spark would compress Parquet, as Parquet calls it; None for a codec that not both have, and where Spark does more than that:
    where it encrypts files, or an extension decides what a query gives."""
    if any(spark.conf.get(name, "") for name in _MORE_THAN_FILES):
        return None
    return CODECS.get(str(spark.conf.get("spark.sql.parquet.compression.codec", "snappy")).lower())
