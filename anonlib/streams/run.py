"""A stream from its spec: the input opened, its records played through windows, batch after batch shown, until it is stopped.

Memory: a task holds a window of its shard and what has arrived of it in one micro-batch; the driver m counts for each window of a batch.
One shuffle of the codes of what arrives, one of what is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anonlib.engine import reading, streaming
from anonlib.engine.as_missing import read_as_missing
from anonlib.engine.boxes import box_schema
from anonlib.engine.microdata import Microdata, microdata
from anonlib.engine.relational import DataFrame
from anonlib.engine.session import SparkSession, keys_on_disks, run_settings
from anonlib.engine.streaming import Coding
from anonlib.engine.tables import types
from anonlib.errors import SpecError
from anonlib.keyed import derive
from anonlib.methods.recipe import Say
from anonlib.methods.sabre_stream import NOTES, Played
from anonlib.release import generalized, storage, streamed
from anonlib.release.opened import Release, open_release
from anonlib.spec.keys import key_tag, resolve_key, run_key
from anonlib.spec.layouts import EC_ID
from anonlib.spec.methods.sabre import Sabre
from anonlib.spec.release import ReleaseSpec
from anonlib.spec.stream import Stream
from anonlib.streams import terms
from anonlib.streams.batch import Batches
from anonlib.streams.checkpoint import Checkpoint, claimed, held

DRAWS = "stream: draws"


@dataclass(frozen=True)
class Streamed:
    """What a run of a stream did. release : all that is shown of the stream; shown : numbers of the batches that this run showed."""

    release: Release
    shown: tuple[int, ...]


def _silent(_: str) -> None:
    return None


def stream(
    spec: ReleaseSpec,
    spark: SparkSession,
    frame: DataFrame | None = None,
    *,
    once: bool = False,
    flush: bool = False,
    say: Say = _silent,
) -> Streamed:
    """Publish the stream that `spec` asks for, from `frame` (a streaming DataFrame) or from the spec's input.

    once  : take what has arrived, show it and return; else run until it is stopped
    flush : then end the stream: show what waits as well, as far as it may be shown; only with `once`. It may be gone on with all the same

    Raises SpecError (2) and AuditRefused (4): the stream stops, nothing of the batch is visible, what was shown before stays.
    """
    asked = _checked(spec, spark, frame, once, flush)
    assert spec.output is not None
    with run_settings(spark):
        if warning := keys_on_disks(spark):
            say(warning)
        frame = _opened(spec, asked, spark) if frame is None else frame
        frame = read_as_missing(frame, spec.columns.may_be_missing, spec.missing.as_missing)
        table = microdata(frame, spec.columns, spec.missing)
        coding = terms.coding(spec, asked, spark, frame, table)
        place = streamed.Place(spec.output.path.rstrip("/"))
        named_key = _named_key(spec)
        folder = asked.checkpoint.rstrip("/")
        with held(folder):
            checkpoint = claimed(folder, place.path, _settings(spec, asked, frame, coding, named_key), named_key)
            streamed.take_place(place)
            say(f"{'going on with' if checkpoint.begun else 'beginning'} the stream at {place.path}")
            batches = _batches(spec, spark, table, coding, checkpoint, place, named_key, say)
            records = streaming.coded(frame, table, coding)
            ends = storage.spark_path(checkpoint.below("ends"))
            with_ends = records.unionByName(streaming.flushes(spark, ends, coding, records))
            schema = box_schema(coding.quasi_identifiers, more=f"{EC_ID} bigint, {NOTES}")
            played = streaming.with_state(with_ends, _played(spec, asked, coding, checkpoint), schema)

            def run() -> None:
                at = storage.spark_path(checkpoint.below("spark"))
                streaming.run_query(
                    played, at, batches, coding.shards, once, asked.trigger, f"the stream at {place.path}"
                )

            run()
            if flush:
                say("ending the stream: what waits is shown as far as it may be")
                streaming.tell_flush(spark, ends, coding.shards)
                run()
    if not streamed.batch_numbers(place.path):
        raise SpecError(
            f"input: nothing has arrived yet, so nothing is shown at {place.path!r}; run again once there is something"
        )
    return Streamed(open_release(spark, place.path), tuple(batches.done))


def _checked(spec: ReleaseSpec, spark: SparkSession, frame: DataFrame | None, once: bool, flush: bool) -> Stream:
    if spec.stream is None:
        raise SpecError(
            "stream: missing; say how the window advances, e.g. stream: {window: 20000, advance: 5000, checkpoint: ...}"
        )
    if spec.output is None:
        raise SpecError("output: missing; say where the release goes, e.g. output: {path: releases/census-stream}")
    if flush and not once:
        raise SpecError("--flush: a stream that runs on has no end; use it with --once")
    if streaming.is_connect(spark):
        raise SpecError(
            "a stream runs in a classic session: under Spark Connect its batches would be shown by the server, which has not what the "
            "driver keeps beside them; use --master, or spark-submit"
        )
    if frame is not None and not frame.isStreaming:
        raise SpecError(
            "the DataFrame is no stream (spark.readStream makes one); a table is published by anonlib.sabre"
        )
    return spec.stream


def _opened(spec: ReleaseSpec, asked: Stream, spark: SparkSession) -> DataFrame:
    source, used = terms.source(spec, asked)
    return reading.read_stream(spark, source, used, asked.files)


def _named_key(spec: ReleaseSpec) -> bytes | None:
    """The key that the spec names, for this kind of release; None where it names none."""
    if spec.random.key is None:
        return None
    key = resolve_key(spec.random.key, allow_open_key_file=spec.random.allow_open_key_file)
    roles = {role: [name for r, name in spec.columns.roles() if r == role] for role, _ in spec.columns.roles()}
    roles.pop("identifiers", None)
    return run_key(key, spec.method.name, spec.method.to_public_dict(), roles)


def _settings(
    spec: ReleaseSpec, asked: Stream, frame: DataFrame, coding: Coding, named_key: bytes | None
) -> dict[str, Any]:
    """All that shapes what is published, under the names of the spec: a stream that goes on must be asked for the same."""
    kinds = types(frame)
    used = [name for role, name in spec.columns.roles() if role != "identifiers"]
    spelled = {name.lower(): name for name in kinds}
    return {
        "columns": spec.columns.to_public_dict(),
        "types of the input": {name: kinds[spelled[name.lower()]] for name in used},
        "missing": spec.public_missing(),
        **({"missing.as_missing": list(spec.missing.as_missing)} if spec.missing.as_missing else {}),
        "method": {spec.method.name: spec.method.to_public_dict()},
        "stream.window": asked.window,
        "stream.advance": asked.advance,
        "stream.order": coding.order,
        "stream.shard": coding.shard,
        "stream.domains": [part.model_dump() for part in generalized.parts(coding.quasi_identifiers)],
        "values of the sensitive column": list(coding.values),
        "hierarchy of the sensitive column": _hierarchy(spec),
        "random.key": "" if named_key is None else key_tag(named_key),
    }


def _hierarchy(spec: ReleaseSpec) -> list[list[str]]:
    tree = spec.columns.sensitive[0].told_hierarchy
    return [] if tree is None else [list(row) for row in tree.rows]


def _played(spec: ReleaseSpec, asked: Stream, coding: Coding, checkpoint: Checkpoint) -> Played:
    method = spec.method
    assert isinstance(method, Sabre)
    fates = (streaming.TO_PUBLISH, streaming.MISSING, streaming.OUTSIDE, streaming.FLUSH)
    key = derive(checkpoint.key, DRAWS, checkpoint.id)
    distance = terms.distance(spec, coding)
    return Played(
        coding.quasi_identifiers.domains, distance, asked.window, asked.advance, method.k, method.t, fates, key
    )


def _batches(
    spec: ReleaseSpec,
    spark: SparkSession,
    table: Microdata,
    coding: Coding,
    checkpoint: Checkpoint,
    place: streamed.Place,
    named_key: bytes | None,
    say: Say,
) -> Batches:
    kind = types(table.frame)[table.sensitive]
    tag = "" if named_key is None else key_tag(named_key)
    guarantee = terms.guarantee(spec, table.sensitive, kind, coding)
    return Batches(spark, spec, coding, (table.sensitive, kind), guarantee, checkpoint, place, tag, say)
